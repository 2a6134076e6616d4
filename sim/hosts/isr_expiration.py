"""Task isr-expiration: looks for followers that lag."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.kernel.scheduler import Event, Gate

if TYPE_CHECKING:
    from sim.hosts.broker import Broker


class IsrExpiration(Event):
    """Looks every half ``replica.lag.time.max.ms`` since the start of its broker, while that leads.

    Elided while nobody lags and nothing holds it up: what is held up may find other things when its time comes.
    Kafka: ReplicaManager#maybeShrinkIsr.

    Args:
        broker: whose ISR.

    Attributes:
        watching: whether it will look.
    """

    __slots__ = ("_began_us", "_broker", "watching")
    elision_safe = True
    needs_partition = True

    def __init__(self, broker: Broker) -> None:
        self._broker: Broker | None = broker
        self._began_us = 0
        self.watching = False

    def begin(self, now_us: int) -> None:
        """The task is scheduled from now on."""
        self._began_us = now_us

    def end(self) -> None:
        """The process is over."""
        self._broker = None

    def watch(self) -> None:
        """There may be something to find next time."""
        broker = self._broker
        if not self.watching and broker is not None:
            self.watching = True
            now_us, half_us = broker.kernel.now_us, broker.settings.lag_us // 2
            due_us = now_us + half_us - (now_us - self._began_us) % half_us
            broker.kernel.schedule(due_us, broker.life, self)

    def happen(self, _: Gate) -> None:
        """See `Event.happen`: look, and watch on if there may be something to find next time."""
        broker = self._broker
        if broker is None:
            return
        self.watching = False
        partition = broker.partition
        if partition is not None and partition.is_leader:
            if partition.has_laggards:
                broker.end_elision()  # How long they have lagged depends on elided fetches.
            partition.shrink_isr(broker.kernel.now_us)
            if partition.has_laggards or not broker.network.elides:
                self.watch()
