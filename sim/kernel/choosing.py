"""A kernel that loses chosen events, or puts them in a given order, to ask what a run would be without them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Final

from sim.kernel.scheduler import ALWAYS, CALL, FIRST, Call, Event, Gate, Kernel

Identify = Callable[[Gate, Event, int], Hashable]
"""(gate, event, time) of an event that is asked for -> what it is known by; None: the event is not tracked."""
PATIENCE_US: Final = 5_000_000
"""So long does one event wait for those before it, which may never come."""
Waiting = tuple[int, Gate, Event]


class ChoosingKernel(Kernel):
    """Without anything chosen it does what a `Kernel` does.

    Args:
        event_budget: see `Kernel`.
        identify: names events.
        lost: names of events that never happen.
        order: names of events each of which happens after those before it, if they come within `PATIENCE_US`. Until
            then what comes over the same connection waits behind it.
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
        """See `Kernel.schedule`."""
        self._choose(at_us, CALL, gate, event)

    def schedule_first(self, at_us: int, gate: Gate, event: Event) -> None:
        """See `Kernel.schedule_first`."""
        self._choose(at_us, FIRST, gate, event)

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
        """An event is due that may have to wait for others; its place is -1 where none is given."""
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
        """Let an event happen that waits, if it still does, and what waits behind it."""
        found = self._held.pop(place, None)
        if found is None:
            return
        self._next = max(self._next, place)
        _, gate, _ = found
        for number, through, event in (found, *self._behind.pop(gate, ())):
            self.add(self.now_us, CALL, through, _Arrival(self, number, event))


class _Arrival(Event):
    """Stands in the place of an event."""

    __slots__ = ("_event", "_kernel", "_place", "elision_safe")

    def __init__(self, kernel: ChoosingKernel, place: int, event: Event) -> None:
        self._kernel = kernel
        self._place = place
        self._event = event
        self.elision_safe = event.elision_safe

    def has_to_wait(self, *, registered: bool) -> bool:
        """See `Event.has_to_wait`."""
        return self._event.has_to_wait(registered=registered)

    def happen(self, gate: Gate) -> None:
        """See `Event.happen`."""
        self._kernel.arrive(self._place, gate, self._event)
