"""What a partition and its parts ask of their broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.native import mypyc_attr

if TYPE_CHECKING:
    from sim.protocol.batch import Batch
    from sim.protocol.messages import ProduceRequest
    from sim.protocol.replica.partition import Partition
    from sim.protocol.replica.replica import Replica


@mypyc_attr(allow_interpreted_subclasses=True)
class MetadataCache:
    """The metadata of the leader's broker.

    Kafka: server.MetadataCache (0.10.2-3.9), metadata.MetadataCache (4.1-4.4).
    """

    __slots__ = ()

    def is_alive(self, broker: int) -> bool:
        """Whether the leader's metadata lists that broker as alive (rule ``isr_eligibility``).

        In KRaft: whether it is neither fenced nor shutting down (KIP-841).
        Kafka: MetadataCache#hasAliveBroker (3.9-4.4), MetadataCache#isBrokerAlive (1.1-2.0).
        """
        raise NotImplementedError

    def registered_epoch(self, broker: int) -> int:
        """Broker epoch of that broker in the leader's metadata, `UNREGISTERED` if it is missing or fenced.

        KIP-903. Kafka: KRaftMetadataCache#getAliveBrokerEpoch (3.9-4.4).
        """
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class PartitionHost(MetadataCache):
    """Callbacks of a partition and its replica to their broker, each after the change.

    A class, no protocol: compiled code calls its methods without looking them up.
    """

    __slots__ = ()

    def appended(self, replica: Replica, batch: Batch) -> None:
        """A batch entered the log."""
        raise NotImplementedError

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """The log was truncated to its current LEO, perhaps removing nothing."""
        raise NotImplementedError

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """The high watermark has a new value, higher or lower than the previous one."""
        raise NotImplementedError

    def log_start_moved(self, replica: Replica) -> None:
        """The log start has a new value, higher than the one before."""
        raise NotImplementedError

    def replicated(self, partition: Partition, follower: int, leo: int) -> None:
        """The leader learnt that a follower has all records below `leo`."""
        raise NotImplementedError

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """Propose an ISR to the control plane.

        The result is a call of `Partition.isr_persisted` or `Partition.isr_refused`, now or later. With rule
        ``isr_update=zookeeper-write`` the partition is locked until then (`PartitionState.locked`), and the host holds
        back every request, response, LeaderAndIsr and timer that needs it.
        """
        raise NotImplementedError

    def answer_produce(self, request: ProduceRequest, error: str, base_offset: int) -> None:
        """A write is complete."""
        raise NotImplementedError

    def reached(self, probe: int) -> None:
        """A probe was reached (`sim.protocol.probes`)."""
        raise NotImplementedError
