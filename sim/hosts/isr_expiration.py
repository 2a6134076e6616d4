"""Task isr-expiration: shrinks the ISR when followers lag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sim.hosts.broker_node import BrokerNode
from sim.kernel.scheduler import Event, Gate
from sim.protocol.replica.partition import Partition


class Expiring(Protocol):
    """A replica whose ISR may shrink.

    Attributes:
        partition: state and leadership of the replica.
    """

    partition: Partition


class IsrExpiration(Event):
    """Checks for lagging followers of the partitions that the broker leads, every half ``replica.lag.time.max.ms``
    since its start.

    Elided while no follower lags and the task is not held back; a held task may find a different state when it runs.
    Kafka: ReplicaManager#maybeShrinkIsr.
    """

    __slots__ = ("_began_us", "_broker", "_replicas", "scheduled")
    elision_safe = True
    needs_partition = True

    def __init__(self, broker: BrokerNode, replicas: Mapping[str, Expiring]) -> None:
        self._broker: BrokerNode | None = broker
        self._replicas = replicas
        self._began_us = 0
        self.scheduled = False

    def begin(self, now_us: int) -> None:
        """Start the task."""
        self._began_us = now_us

    def end(self) -> None:
        """Stop the task, because the process ended."""
        self._broker = None

    def schedule(self) -> None:
        """Schedule the next check, since it may find something."""
        broker = self._broker
        if not self.scheduled and broker is not None:
            self.scheduled = True
            now_us, half_us = broker.kernel.now_us, broker.settings.lag_us // 2
            due_us = now_us + half_us - (now_us - self._began_us) % half_us
            broker.kernel.schedule_task(due_us, broker.life, self)

    def happen(self, _: Gate) -> None:
        """See `Event.happen`: check, and schedule the next check if it may find something."""
        if self._broker is not None:
            self.scheduled = False
            self.check(list(self._replicas.values()))

    def check(self, replicas: list[Expiring]) -> None:
        """Check these replicas. While the ISR of one of them is being written to ZooKeeper, the others wait."""
        broker = self._broker
        if broker is None:
            return
        for place, replica in enumerate(replicas, 1):
            partition = replica.partition
            if partition.is_leader:
                if partition.has_laggards:
                    broker.end_elision()  # Followers' lag depends on elided fetches.
                partition.shrink_isr(broker.kernel.now_us)
                if partition.has_laggards or not broker.network.elides:
                    self.schedule()
                if partition.state.locked and place < len(replicas):
                    broker.put_back(_RestOfCheck(self, replicas[place:]))
                    return


class _RestOfCheck(Event):
    """The rest of a check, which waits until an ISR is written."""

    __slots__ = ("_expiration", "_replicas")
    needs_partition = True

    def __init__(self, expiration: IsrExpiration, replicas: list[Expiring]) -> None:
        self._expiration = expiration
        self._replicas = replicas

    def happen(self, _: Gate) -> None:
        self._expiration.check(self._replicas)
