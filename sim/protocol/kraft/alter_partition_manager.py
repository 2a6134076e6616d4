"""How leaders send ISR changes to the controller with rule ``isr_update=alter-partition`` (KIP-497).

A broker has at most one request in flight, and each partition one pending change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from sim.protocol.messages import NO_BROKER_EPOCH, NO_EPOCH, NONE, OPERATION_NOT_ATTEMPTED
from sim.protocol.replica.partition import Partition

RETRY_US: Final = 50_000
"""Back-off after a request that failed as a whole."""

Result = tuple[str, tuple[int, ...], int, int, int]
"""(error, ISR, partition epoch, leader epoch, effective ``min.insync.replicas``) at the controller; rule
``isr_response`` decides whether the leader learns the last one."""


class Proposer(Protocol):
    """Receives the result of its change: a `sim.protocol.replica.partition.Partition`."""

    name: str

    def isr_persisted(
        self, isr: tuple[int, ...], partition_epoch: int, now_us: int, *, leader_epoch: int = NO_EPOCH, min_isr: int = 0
    ) -> None:
        """See `Partition.isr_persisted`."""

    def isr_refused(self, error: str, now_us: int) -> None:
        """See `Partition.isr_refused`."""


class AlterPartitionItem:
    """An ISR proposed by a leader, conditional on the epochs that it knows. Kafka: AlterPartitionItem.

    Attributes:
        name: the partition.
        isr: the ISR.
        leader_epoch: the leader epoch.
        partition_epoch: the partition epoch that the change is based on.
        broker_epochs: of the members, -1 where unknown (KIP-903).
        recovering: whether the leader is still recovering from its unclean election; always False here.
    """

    __slots__ = ("broker_epochs", "isr", "leader_epoch", "name", "partition_epoch", "recovering")

    def __init__(
        self,
        name: str,
        isr: tuple[int, ...],
        leader_epoch: int,
        partition_epoch: int,
        broker_epochs: Mapping[int, int],
        *,
        recovering: bool = False,
    ) -> None:
        self.name: Final = name
        self.isr: Final = isr
        self.leader_epoch: Final = leader_epoch
        self.partition_epoch: Final = partition_epoch
        self.broker_epochs: Final = broker_epochs
        self.recovering: Final = recovering


def proposed_isr(partition: Partition, isr: tuple[int, ...], broker_epoch: int) -> AlterPartitionItem:
    """The proposal of an ISR by the leader of a partition, whose broker has this broker epoch.

    Kafka: Partition#prepareIsrExpand (3.9-4.4), Partition#prepareIsrShrink (3.9-4.4).
    """
    known = partition.state.broker_epochs
    epochs = {member: known.get(member, NO_BROKER_EPOCH) for member in isr}
    epochs[partition.broker] = broker_epoch
    return AlterPartitionItem(partition.name, isr, partition.leader_epoch, partition.partition_epoch, epochs)


class AlterPartitionHost(Protocol):
    """Callbacks to the broker."""

    def send_alter_partition(self, changes: list[AlterPartitionItem]) -> None:
        """Send a request; `AlterPartitionManager.on_reply` follows. Kafka: DefaultAlterPartitionManager#sendRequest."""

    def retry_alter_partition(self, after_us: int) -> None:
        """Call `AlterPartitionManager.send` after that time."""


class AlterPartitionManager:
    """Sends all pending ISR changes in one request.

    Kafka: AlterPartitionManager, DefaultAlterPartitionManager.

    Attributes:
        pending: undecided changes by partition, including those in flight.
        in_flight: the changes of the request in flight, None without one.
    """

    __slots__ = ("_host", "_proposers", "in_flight", "pending")

    def __init__(self, host: AlterPartitionHost) -> None:
        self._host = host
        self._proposers: dict[str, Proposer] = {}
        self.pending: dict[str, AlterPartitionItem] = {}
        self.in_flight: list[AlterPartitionItem] | None = None

    def submit(self, partition: Proposer, change: AlterPartitionItem, now_us: int) -> None:
        """Queue a change; refused while the partition has a pending one. Kafka: DefaultAlterPartitionManager#submit."""
        if change.name in self.pending:
            partition.isr_refused(OPERATION_NOT_ATTEMPTED, now_us)
            return
        self.pending[change.name] = change
        self._proposers[change.name] = partition
        self.send()

    def send(self) -> None:
        """Send pending changes, if none is in flight. Kafka: DefaultAlterPartitionManager#maybePropagateIsrChanges."""
        if self.pending and self.in_flight is None:
            self.in_flight = list(self.pending.values())
            self._host.send_alter_partition(self.in_flight)

    def on_reply(self, error: str, results: Mapping[str, Result], now_us: int) -> None:
        """Handle the response or timeout of the request.

        A partition missing from the response is sent again with the next request.
        Kafka: DefaultAlterPartitionManager#handleAlterPartitionResponse,
        DefaultAlterPartitionManager#clearInFlightRequest.

        Args:
            error: of the request as a whole; all changes of it stay pending then.
            results: by partition.
            now_us: the time.
        """
        changes = self.in_flight or []
        if error != NONE:
            self.in_flight = None
            self._host.retry_alter_partition(RETRY_US)
            return
        for change in changes:
            if change.name not in results:
                continue
            del self.pending[change.name]
            partition = self._proposers.pop(change.name)
            refusal, isr, partition_epoch, leader_epoch, min_isr = results[change.name]
            if refusal:
                partition.isr_refused(refusal, now_us)
            else:
                partition.isr_persisted(isr, partition_epoch, now_us, leader_epoch=leader_epoch, min_isr=min_isr)
        self.in_flight = None
        self.send()
