"""The share of a run that only heartbeats and empty fetches take, so that it can be left out of a figure."""

from __future__ import annotations

import statistics
import time
from heapq import heappop, heappush
from typing import Any, Final

from sim.broker import Broker
from sim.kernel import _LAST, Gate, Handler, Kernel, _Stop
from sim.protocol.messages import FetchReply, FetchRequest

_HEARTBEATS: Final = ("on_ping", "_ping", "_check_session")
"""Pings sent and received, and the session timers that they put off."""


def _clock_seconds() -> float:
    """What lies between two readings of the clock with nothing between them."""
    clock = time.perf_counter
    return statistics.median(-(clock() - clock()) for _ in range(101))


class TimingKernel(Kernel):
    """Takes the time of each event, from the end of the one before, and adds up the idle ones.

    An empty fetch is three events: it arrives and shows no new LEO, its wait expires, the empty answer arrives and
    shows no new HW.

    Attributes:
        idle_seconds: time of heartbeats and empty fetches.
    """

    def __init__(self) -> None:
        super().__init__()
        self.idle_seconds = 0.0
        self._arrivals: dict[FetchRequest, float] = {}
        self._expired: set[FetchRequest] = set()

    def run_until(self, until_us: int) -> None:
        """See `Kernel.run_until`; what the clock itself takes is taken off again."""
        queue: list[Any] = self._queue
        end = Gate()
        heappush(queue, (until_us, _LAST, next(self._eid), end, self._reached, None))
        clock, clock_seconds = time.perf_counter, _clock_seconds()
        try:
            while True:
                begin = clock()
                self.now_us, _, _, gate, handler, argument = heappop(queue)
                popped = clock()
                self.events += 1
                if gate.open:
                    idle = self._is_idle(handler, argument)
                    called = clock()
                    handler(argument)
                    took = clock() - called + popped - begin - 2 * clock_seconds
                    self._count(idle, argument, took)
                elif gate.held is not None:
                    gate.held.append((handler, argument))
        except _Stop:
            end.open = False

    def _is_idle(self, handler: Handler, argument: Any) -> str | None:
        """Which idle event this is about to be, None for all others."""
        name = handler.__name__
        if name in _HEARTBEATS:
            return "heartbeat"
        broker = getattr(handler, "__self__", None)
        if not isinstance(broker, Broker) or broker.partition is None:
            return None
        if name == "on_fetch" and argument.replica > 0:
            state = broker.partition.followers.get(argument.replica)
            return "arrival" if state is not None and state.leo == argument.positions[0][1] else None
        if name == "_expire_fetch" and argument.parked:
            return "expiry"
        if name == "on_fetch_reply" and isinstance(argument, FetchReply) and argument.request in self._expired:
            return "answer" if argument.results[0][3] == broker.partition.hw else None
        return None

    def _count(self, idle: str | None, argument: Any, seconds: float) -> None:
        if idle == "arrival":
            self._arrivals[argument] = seconds
        elif idle == "expiry":
            self._expired.add(argument)
            self.idle_seconds += seconds + self._arrivals.pop(argument, 0.0)
        elif idle is not None:
            self.idle_seconds += seconds
