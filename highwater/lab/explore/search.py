"""Searches over all orders of events: breadth-first, where the first way to a state is a shortest one, and by costs."""

from __future__ import annotations

import gc
import heapq
import time
from array import array
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

Action = tuple[Any, ...]
Way = list[tuple[Action, "S"]]
"""Events, each with the state after it."""
Costs = tuple[int, int]
"""Events of two sorts. Neither sort outweighs the other."""
S = TypeVar("S")
_GARBAGE: Final = (100_000, 50, 1000)
"""Thresholds of Python's garbage collector during a search. All states are kept, and looking for cycles among them took
a fifth of the time of random walks.
"""


class World(Protocol[S]):
    """Something whose every order of events can be tried. Its states are hashable values."""

    def first(self) -> S:
        """The first state."""

    def successors(self, state: S) -> Iterator[tuple[Action, S]]:
        """All possible next events, with the resulting states."""

    def findings(self, state: S) -> tuple[str, ...]:
        """The kinds of violations, early warnings and other things looked for that a state shows."""


class PricedWorld(World[S], Protocol[S]):
    """A world whose events have costs."""

    def costs(self, action: Any) -> Costs:
        """The costs of an event."""


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
        ways: ways to different states (`search`).
        seconds: CPU time that it took.
        levels: of a search, how many states were new after one event, two events, ...
        walks: random walks (`highwater.lab.explore.walk`).
    """

    def __init__(self) -> None:
        self.states = 0
        self.transitions = 0
        self.depth = 0
        self.exhausted = False
        self.stopped = False
        self.paths: dict[str, Way[S]] = {}
        self.ways: list[Way[S]] = []
        self.seconds = 0.0
        self.levels: list[int] = []
        self.walks = 0


def search(
    world: World[S],
    *,
    until: Collection[str],
    every: bool = False,
    ends: Collection[str] = (),
    most_states: int | None = None,
    time_limit: float | None = None,
    most_events: int | None = None,
    most_ways: int = 0,
    is_over: Callable[[], bool] | None = None,
) -> Found[S]:
    """Look for violations and early warnings.

    Args:
        world: the cluster.
        until: stop as soon as one of these kinds is found; without any, go on to the end.
        every: stop only when all of them are found.
        ends: kinds after which nothing else matters: what follows such a state is not looked at.
        most_states: give up before more distinct states than these are kept; at least 1.
        time_limit: give up after these seconds (monotonic clock), looked at once per state.
        most_events: look at no state that takes more events.
        most_ways: keep ways to so many states that show one of `until` after equally few events, and stop when all
            states after as many events were looked at.
        is_over: whether to give up, asked once for each number of events.
    """
    began = time.monotonic()
    used = time.process_time()
    thresholds = collect_rarely()
    states = [world.first()]
    seen = set(states)
    parents = array("l", [-1])
    found: Found[S] = Found()
    wanted = _Wanted(world, found, until, every=every, most_ways=most_ways)
    level_end = 1
    place = 0
    try:
        while place < len(states):
            if place == level_end:
                found.depth += 1
                found.levels.append(len(states) - level_end)
                level_end = len(states)
                if found.ways:
                    break
                if found.depth == most_events or (is_over is not None and is_over()):
                    return found
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
                seen.add(after)
                if not kinds or set(kinds).isdisjoint(ends):
                    states.append(after)
                    parents.append(place)
                if kinds and wanted.note(kinds, states, parents, place, after):
                    return found
            place += 1
        found.stopped = bool(found.ways)
        found.exhausted = not found.ways
        return found
    finally:
        found.states = len(seen)
        found.seconds = time.process_time() - used
        gc.set_threshold(*thresholds)


def collect_rarely() -> tuple[int, int, int]:
    """Let Python look for garbage rarely; returns the thresholds until now."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*_GARBAGE)
    return thresholds


class _Wanted(Generic[S]):
    """What a search keeps, and what ends it."""

    __slots__ = ("every", "found", "most_ways", "until", "world")

    def __init__(
        self, world: World[S], found: Found[S], until: Collection[str], *, every: bool, most_ways: int
    ) -> None:
        self.world = world
        self.found = found
        self.until = until
        self.every = every
        self.most_ways = most_ways

    def note(self, kinds: tuple[str, ...], states: list[S], parents: array[int], place: int, after: S) -> bool:
        """Note the kinds that a state shows which follows the one at a place; returns whether the search ends."""
        found = self.found
        fresh = [kind for kind in kinds if kind not in found.paths]
        is_kept = len(found.ways) < self.most_ways and not set(kinds).isdisjoint(self.until)
        if not fresh and not is_kept:
            return False
        way = _way(self.world, [*_path(states, parents, place), after])
        found.paths |= dict.fromkeys(fresh, way)
        if is_kept:
            found.ways.append(way)
        if self.most_ways:
            return False
        shown = [kind in found.paths for kind in self.until]
        found.stopped = bool(shown) and (all(shown) if self.every else any(shown))
        return found.stopped


def _path(states: list[S], parents: array[int], place: int) -> list[S]:
    """The states on the way to one, the first included."""
    path = []
    while place >= 0:
        path.append(states[place])
        place = parents[place]
    return path[::-1]


def _way(world: World[S], path: list[S]) -> Way[S]:
    """The events between the states of a path."""
    events = []
    for before, after in pairwise(path):
        action = next(action for action, reached in world.successors(before) if reached == after)
        events.append((action, after))
    return events


@dataclass
class Cheapest:
    """The result of a search by costs.

    Attributes:
        found: kind -> costs -> events that lead there, for all costs that no others beat.
        within: events within which all orders were looked at.
    """

    found: dict[str, dict[Costs, list[Any]]]
    within: int


def cheapest(world: PricedWorld[S], *, ends: str, most_costs: int, is_over: Callable[[], bool]) -> Cheapest:
    """Look for the cheapest ways to each kind: Dijkstra by the sum of costs, with several labels for each state.

    Args:
        world: the world; an event may be free.
        ends: a kind after which nothing else matters. What costs as much as such a way in both sorts is not looked at.
        most_costs: the greatest sum of costs.
        is_over: whether to give up, looked at after each event.
    """
    found: dict[str, dict[Costs, list[Any]]] = {}
    labels: dict[S, list[Costs]] = {}
    came: dict[tuple[S, Costs], tuple[S, Costs, Any] | None] = {}
    queue: list[tuple[int, int, int, S]] = []

    def push(state: S, costs: Costs, origin: tuple[S, Costs, Any] | None) -> None:
        known = labels.setdefault(state, [])
        if any(_beats(other, costs) for other in known):
            return
        known[:] = [other for other in known if not _beats(costs, other)]
        known.append(costs)
        came[state, costs] = origin
        heapq.heappush(queue, (sum(costs), costs[0], len(came), state))

    push(world.first(), (0, 0), None)
    while queue:
        total, first, _, state = heapq.heappop(queue)
        costs = first, total - first
        if costs not in labels[state]:
            continue
        kinds = world.findings(state)
        for kind in kinds:
            _keep(found.setdefault(kind, {}), costs, _events(came, state, costs))
        if ends not in kinds:
            for action, after in world.successors(state):
                one, other = world.costs(action)
                further = costs[0] + one, costs[1] + other
                if sum(further) <= most_costs and not any(_beats(known, further) for known in found.get(ends, ())):
                    push(after, further, (state, costs, action))
                if is_over():
                    break
        if is_over():
            return Cheapest(found, total - 1)
    return Cheapest(found, most_costs)


def _beats(costs: Costs, other: Costs) -> bool:
    return costs[0] <= other[0] and costs[1] <= other[1]


def _keep(found: dict[Costs, list[Any]], costs: Costs, events: list[Any]) -> None:
    """Keep events whose costs no others beat; those that they beat go."""
    if not any(_beats(other, costs) for other in found):
        for other in [other for other in found if _beats(costs, other)]:
            del found[other]
        found[costs] = events


def _events(came: dict[tuple[S, Costs], tuple[S, Costs, Any] | None], state: S, costs: Costs) -> list[Any]:
    events = []
    origin = came[state, costs]
    while origin is not None:
        state, costs, action = origin
        events.append(action)
        origin = came[state, costs]
    return events[::-1]
