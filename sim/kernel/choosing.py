"""A kernel that drops chosen events, or reorders them, to ask how a run would go without them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Sequence
from typing import Final

from sim.kernel.scheduler import ALWAYS, CALL, FIRST, TASK, Call, Event, Gate, Kernel

Identify = Callable[[Gate, Event, int], Hashable]
"""(gate, event, time) of a scheduled event -> its name; None: the event is not tracked."""
PATIENCE_US: Final = 5_000_000
"""How long an event waits for its predecessors in the order, which may never come."""
Waiting = tuple[int, Gate, Event]


class ChoosingKernel(Kernel):
    """Drops and reorders events by the names that `identify` gives them; with neither given it behaves as `Kernel`.

    An event of `order` is held until its predecessors have happened, for `PATIENCE_US` at most. Later events of the
    same connection wait behind a held one.
    """

    def __init__(
        self, event_budget: int, identify: Identify, lost: Collection[Hashable] = (), order: Sequence[Hashable] = ()
    ) -> None:
        super().__init__(event_budget)
        self._identify = identify
        self._lost = lost
        self._places = {name: place for place, name in enumerate(order)}
        self._next = 0
        self._held: dict[int, Waiting] = {}
        self._behind: dict[Gate, list[Waiting]] = {}

    def schedule(self, at_us: int, gate: Gate, event: Event) -> None:
        self._choose(at_us, CALL, gate, event)

    def schedule_first(self, at_us: int, gate: Gate, event: Event) -> None:
        self._choose(at_us, FIRST, gate, event)

    def schedule_task(self, at_us: int, gate: Gate, event: Event) -> None:
        """See `Kernel.schedule_task`."""
        self._choose(at_us, TASK, gate, event)

    def _choose(self, at_us: int, tie: int, gate: Gate, event: Event) -> None:
        name = self._identify(gate, event, at_us)
        if name is None:
            self.add(at_us, tie, gate, event)
        elif name in self._lost:
            self.number += 1
        elif self._places:
            place = self._places.get(name, -1)
            self.add(at_us, tie, gate, _Arrival(self, place, event))
        else:
            self.add(at_us, tie, gate, event)

    def arrive(self, place: int, gate: Gate, event: Event) -> None:
        """Handle a due event, which may have to wait for its predecessors; `place` is -1 if it has none."""
        entry = (place, gate, event)
        if gate in self._behind:
            self._behind[gate].append(entry)
        elif place > self._next:
            self._held[place] = entry
            if gate is not ALWAYS:
                self._behind[gate] = []
            self.add(self.now_us + PATIENCE_US, CALL, ALWAYS, Call(self._release, place))
        else:
            event.happen(gate)
            if place == self._next:
                self._next += 1
                self._release(self._next)

    def _release(self, place: int) -> None:
        """Schedule a held event, if it is still held, and the events behind it."""
        found = self._held.pop(place, None)
        if found is None:
            return
        self._next = max(self._next, place)
        _, gate, _ = found
        for number, through, event in (found, *self._behind.pop(gate, ())):
            self.add(self.now_us, CALL, through, _Arrival(self, number, event))


class _Arrival(Event):
    """Queued in place of an event, to pass it to `ChoosingKernel.arrive` when due."""

    __slots__ = ("_event", "_kernel", "_place", "elision_safe")

    def __init__(self, kernel: ChoosingKernel, place: int, event: Event) -> None:
        self._kernel = kernel
        self._place = place
        self._event = event
        self.elision_safe = event.elision_safe

    def has_to_wait(self, *, registered: bool) -> bool:
        return self._event.has_to_wait(registered=registered)

    def writes_to(self, names: Container[str]) -> bool:
        return self._event.writes_to(names)

    def needs(self, names: Container[str]) -> bool:
        return self._event.needs(names)

    def happen(self, gate: Gate) -> None:
        self._kernel.arrive(self._place, gate, self._event)
