"""Counts the work that only heartbeats and empty fetches make, so that it can be left out of a figure."""

from __future__ import annotations

from heapq import heappush
from typing import Any, Final

from sim.kernel import Gate, Handler, Kernel

HOPS_OF_AN_EMPTY_FETCH: Final = 3
"""The fetch arrives, its wait expires, the empty answer arrives."""
_IDLE_HANDLERS: Final = ("on_heartbeat", "_heartbeat", "_expire")
"""Sending and receiving heartbeats, and the session timers that they put off."""


class CountingKernel(Kernel):
    """Counts scheduled heartbeats, and fetches whose wait expires.

    Attributes:
        idle: events of heartbeats and of empty fetches.
    """

    def __init__(self) -> None:
        super().__init__()
        self.idle = 0

    def call_at(self, at_us: int, gate: Gate, handler: Handler, argument: Any) -> None:
        """See `Kernel.call_at`."""
        name = handler.__name__
        if name in _IDLE_HANDLERS:
            self.idle += 1
        elif name == "_expire_fetch":
            handler = self._expiry(handler)
        heappush(self._queue, (at_us, 1, next(self._eid), gate, handler, argument))  # type: ignore[misc]

    def _expiry(self, handler: Handler) -> Handler:
        def expire(request: Any) -> None:
            if request.parked:
                self.idle += HOPS_OF_AN_EMPTY_FETCH
            handler(request)

        return expire
