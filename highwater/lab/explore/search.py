"""Breadth-first search over all orders of events: the first way to a state is a shortest one."""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

Action = tuple[Any, ...]
S = TypeVar("S")


class World(Protocol[S]):
    """A cluster whose every order of events can be tried. Its states are hashable values."""

    def first(self) -> S:
        """The first state."""

    def successors(self, state: S) -> Iterator[tuple[Action, S]]:
        """All possible next events, with the resulting states."""

    def findings(self, state: S) -> tuple[str, ...]:
        """The kinds of violations and early warnings that a state shows."""

    def is_fault(self, kind: str) -> bool:
        """Whether the bounds limit how often this kind of event happens."""


@dataclass
class Found(Generic[S]):
    """The result of a search.

    Attributes:
        states: distinct states seen; with random walks, those from which one has gone on.
        transitions: pairs of a state and an event looked at.
        depth: events on the way to the last state looked at; with random walks, of the longest one.
        exhausted: there are no other states within the bounds.
        stopped: a kind that ends the search was found. Neither: a limit was reached, and what was not found by then may
            still be possible.
        paths: kind -> a shortest way to it, or a shortened walk: the events, each with the state after it.
        seconds: CPU time that it took.
        levels: of a search, how many states were new after one event, two events, ...
        walks: random walks (`highwater.lab.explore.walk`).
    """

    states: int = 0
    transitions: int = 0
    depth: int = 0
    exhausted: bool = False
    stopped: bool = False
    paths: dict[str, list[tuple[Action, S]]] = field(default_factory=dict)
    seconds: float = 0.0
    levels: list[int] = field(default_factory=list)
    walks: int = 0


def search(
    world: World[S],
    *,
    until: Collection[str],
    every: bool = False,
    ends: Collection[str] = (),
    most_states: int | None = None,
    time_limit: float | None = None,
) -> Found[S]:
    """Look for violations and early warnings.

    Args:
        world: the cluster.
        until: stop as soon as one of these kinds is found; without any, go on to the end.
        every: stop only when all of them are found.
        ends: kinds after which nothing else matters: what follows such a state is not looked at.
        most_states: give up before more distinct states than these are kept; at least 1.
        time_limit: give up after these seconds (monotonic clock), looked at once per state.
    """
    began = time.monotonic()
    used = time.process_time()
    states = [world.first()]
    seen = set(states)
    parents = array("l", [-1])
    found: Found[S] = Found()
    level_end = 1
    place = 0
    try:
        while place < len(states):
            if place == level_end:
                found.depth += 1
                found.levels.append(len(states) - level_end)
                level_end = len(states)
            if time_limit is not None and time.monotonic() - began >= time_limit:
                return found
            state = states[place]
            for _, after in world.successors(state):
                found.transitions += 1
                if after in seen:
                    continue
                if most_states is not None and len(states) >= most_states:
                    return found
                kinds = world.findings(after)
                fresh = [kind for kind in kinds if kind not in found.paths]
                if kinds and not set(kinds).isdisjoint(ends):
                    # Kept in `seen` only: nothing that follows is looked at.
                    seen.add(after)
                    if fresh:
                        path = [*_path(states, parents, place), after]
                        found.paths |= dict.fromkeys(fresh, _told(world, path))
                else:
                    seen.add(after)
                    states.append(after)
                    parents.append(place)
                    if fresh:
                        path = _path(states, parents, len(states) - 1)
                        found.paths |= dict.fromkeys(fresh, _told(world, path))
                if fresh and _is_enough(found.paths, until, every=every):
                    found.stopped = True
                    return found
            place += 1
        found.exhausted = True
        return found
    finally:
        found.states = len(seen)
        found.seconds = time.process_time() - used


def _is_enough(kinds: Collection[str], until: Collection[str], *, every: bool) -> bool:
    wanted = [kind in kinds for kind in until]
    return bool(wanted) and (all(wanted) if every else any(wanted))


def _path(states: list[S], parents: array[int], place: int) -> list[S]:
    """The states on the way to one, the first included."""
    path = []
    while place >= 0:
        path.append(states[place])
        place = parents[place]
    return path[::-1]


def _told(world: World[S], path: list[S]) -> list[tuple[Action, S]]:
    """The events between the states of a path."""
    events = []
    for before, after in pairwise(path):
        action = next(action for action, reached in world.successors(before) if reached == after)
        events.append((action, after))
    return events
