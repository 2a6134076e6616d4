"""A kernel that loses chosen calls, or makes chosen ones in a given order, to ask what a run would be without them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Final

from sim.kernel.scheduler import ALWAYS, CALL, FIRST, Gate, Handler, Kernel

Identify = Callable[[Gate, Handler, Any, int], Hashable]
"""(gate, handler, argument, time) of a call that is asked for -> what it is known by; None: it is no one's concern."""
PATIENCE_US: Final = 5_000_000
"""So long does one call wait for those before it, which may never come."""
Waiting = tuple[int, Gate, Handler, Any]


class ChoosingKernel(Kernel):
    """Without anything chosen it does what a `Kernel` does.

    Args:
        event_budget: see `Kernel`.
        identify: names calls.
        lost: names of calls that are never made.
        order: names of calls each of which is made after those before it, if they come within `PATIENCE_US`. Until then
            what comes over the same connection waits behind it.
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

    def call_at(self, at_us: int, gate: Gate, handler: Handler, argument: Any) -> None:
        """See `Kernel.call_at`."""
        self._choose(at_us, CALL, gate, handler, argument)

    def call_first(self, at_us: int, gate: Gate, handler: Handler, argument: Any) -> None:
        """See `Kernel.call_first`."""
        self._choose(at_us, FIRST, gate, handler, argument)

    def _choose(self, at_us: int, tie: int, gate: Gate, handler: Handler, argument: Any) -> None:
        name = self._identify(gate, handler, argument, at_us)
        if name is None:
            self.add(at_us, tie, gate, handler, argument)
        elif name in self._lost:
            self.number += 1
        elif self._places:
            place = self._places.get(name, -1)
            self.add(at_us, tie, gate, _Arrival(self, place, gate, handler), argument)
        else:
            self.add(at_us, tie, gate, handler, argument)

    def arrive(self, place: int, gate: Gate, handler: Handler, argument: Any) -> None:
        """A call is due that may have to wait for others; its place is -1 where none is given."""
        entry = (place, gate, handler, argument)
        if gate in self._behind:
            self._behind[gate].append(entry)
        elif place > self._next:
            self._held[place] = entry
            if gate is not ALWAYS:
                self._behind[gate] = []
            self.add(self.now_us + PATIENCE_US, CALL, ALWAYS, self._release, place)
        else:
            handler(argument)
            if place == self._next:
                self._next += 1
                self._release(self._next)

    def _release(self, place: int) -> None:
        """Make a call that waits, if it still does, and what waits behind it."""
        found = self._held.pop(place, None)
        if found is None:
            return
        self._next = max(self._next, place)
        _, gate, _, _ = found
        for waiting in (found, *self._behind.pop(gate, ())):
            number, gate, handler, argument = waiting
            self.add(self.now_us, CALL, gate, _Arrival(self, number, gate, handler), argument)


class _Arrival:
    """Stands in the place of a handler, and is named like it."""

    __slots__ = ("_gate", "_handler", "_kernel", "_place")

    def __init__(self, kernel: ChoosingKernel, place: int, gate: Gate, handler: Handler) -> None:
        self._kernel = kernel
        self._place = place
        self._gate = gate
        self._handler = handler

    @property
    def __name__(self) -> str:
        return getattr(self._handler, "__name__", "")

    def __call__(self, argument: Any) -> None:
        self._kernel.arrive(self._place, self._gate, self._handler, argument)
