"""Random walks: orders of events too long for a search of all. What they find is shortened by leaving out events."""

from __future__ import annotations

import gc
import time
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from highwater.lab.explore.search import Found, World, collect_rarely

if TYPE_CHECKING:
    from collections.abc import Collection

    from highwater.lab.explore.search import Action

FAULT_WEIGHT: Final = 0.125
"""Weight of a kind of event that the bounds count, such as the end of a session; each other kind has weight 1. With
equal weights most walks would spend all faults in their first events.
"""
NEW_SHARE: Final = 0.9
"""Share of the steps that lead to a state from which no walk has gone on yet, if there is one."""
WARNED_SHARE: Final = 0.5
"""Share of the walks that begin where an earlier one met an early warning that does not end the search."""
MOST_WARNED: Final = 1000
"""States with an early warning that are kept for later walks to begin at: the first ones."""
S = TypeVar("S")
Ways = dict[S, list[tuple["Action", S]]]
"""Seen states -> their successors."""
Choice = tuple["Action", int]
"""An event, and which of its outcomes: the controller may elect one or another broker."""
Path = list[tuple[Choice, S]]


class WalkedWorld(World[S], Protocol[S]):
    """A world for random walks."""

    def is_fault(self, kind: str) -> bool:
        """Whether the bounds limit how often this kind of event happens."""


def walk(
    world: WalkedWorld[S],
    *,
    until: Collection[str],
    walks: int,
    most_events: int,
    seed: int = 0,
    most_states: int | None = None,
    time_limit: float | None = None,
    cpu_limit: float | None = None,
) -> Found[S]:
    """Follow random orders of events from the first state, until one shows a violation or an early warning.

    Most events lead to states from which no walk has gone on (`NEW_SHARE`). The kind of an event is drawn first
    (`FAULT_WEIGHT`), then an event of that kind. If `until` lacks some kinds, a state that shows one of those is where
    later walks begin (`WARNED_SHARE`): splitting, as in the simulation of rare events. The same arguments draw the same
    walks. Walks that find nothing prove nothing.

    Args:
        world: the cluster.
        until: stop as soon as one of these kinds is found.
        walks: walks to try.
        most_events: events of a walk.
        seed: of the random numbers.
        most_states: give up before the successors of more distinct states than these are kept.
        time_limit: give up after these seconds (monotonic clock), looked at once per walk.
        cpu_limit: the same of this process's CPU time.
    """
    began, used = time.monotonic(), time.process_time()
    rng = Random(seed)
    found: Found[S] = Found()
    ways: Ways[S] = {}
    wanted = frozenset(until)
    first = world.first()
    warned: list[tuple[S, list[Choice]]] = []
    known: set[S] = set()
    thresholds = collect_rarely()
    try:
        while (
            found.walks < walks
            and (time_limit is None or time.monotonic() - began < time_limit)
            and (cpu_limit is None or time.process_time() - used < cpu_limit)
        ):
            found.walks += 1
            state = first
            drawn: list[Choice] = []
            if warned and rng.random() < WARNED_SHARE:
                state, before = rng.choice(warned)
                drawn = list(before)
            for depth in range(len(drawn) + 1, most_events + 1):
                if most_states is not None and len(ways) >= most_states and state not in ways:
                    return found
                successors = _successors(world, ways, state)
                if not successors:
                    break
                choice, state = _draw(world, rng, successors, ways)
                drawn.append(choice)
                found.transitions += 1
                found.depth = max(found.depth, depth)
                kinds = world.findings(state)
                if not wanted.isdisjoint(kinds):
                    path = _shortened(world, ways, first, drawn, wanted)
                    events = [(action, after) for (action, _), after in path]
                    found.paths = dict.fromkeys(world.findings(path[-1][1]), events)
                    found.stopped = True
                    return found
                if kinds and state not in known and len(warned) < MOST_WARNED:
                    known.add(state)
                    warned.append((state, list(drawn)))
        return found
    finally:
        found.states = len(ways)
        found.seconds = time.process_time() - used
        gc.set_threshold(*thresholds)


def _draw(world: WalkedWorld[S], rng: Random, after: list[tuple[Action, S]], ways: Ways[S]) -> tuple[Choice, S]:
    places = list(range(len(after)))
    if rng.random() < NEW_SHARE:
        places = [place for place in places if after[place][1] not in ways] or places
    kinds: dict[Any, list[int]] = {}
    for place in places:
        kinds.setdefault(after[place][0][0], []).append(place)
    weights = [FAULT_WEIGHT if world.is_fault(kind) else 1.0 for kind in kinds]
    (places,) = rng.choices(list(kinds.values()), weights)
    drawn = places[int(rng.random() * len(places))]
    action, state = after[drawn]
    return (action, [one for one, _ in after[:drawn]].count(action)), state


def _shortened(world: WalkedWorld[S], ways: Ways[S], first: S, drawn: list[Choice], wanted: frozenset[str]) -> Path[S]:
    """A part of the drawn events that still shows one of these kinds; no single event and no pair can be left out."""
    path = _follow(world, ways, first, drawn, wanted)
    assert path is not None
    count = 0
    while count != len(path):
        count = len(path)
        for left_out in (1, 2):
            place = 0
            while place < len(path):
                for other in range(place, len(path)) if left_out == 2 else (place,):
                    kept = [one for at, (one, _) in enumerate(path) if at not in (place, other)]
                    shorter = _follow(world, ways, first, kept, wanted)
                    if shorter is not None:
                        path = shorter
                        break
                else:
                    place += 1
    return path


def _follow(
    world: WalkedWorld[S], ways: Ways[S], first: S, events: list[Choice], wanted: frozenset[str]
) -> Path[S] | None:
    """These events without those that are not possible, each with the state after it, up to the first state that shows
    one of these kinds; None if no state does.
    """
    state, path = first, []
    for choice in events:
        action, place = choice
        states = [after for possible, after in _successors(world, ways, state) if possible == action]
        if place >= len(states):
            continue
        state = states[place]
        path.append((choice, state))
        if not wanted.isdisjoint(world.findings(state)):
            return path
    return None


def _successors(world: WalkedWorld[S], ways: Ways[S], state: S) -> list[tuple[Action, S]]:
    known = ways.get(state)
    if known is None:
        known = ways[state] = list(world.successors(state))
    return known
