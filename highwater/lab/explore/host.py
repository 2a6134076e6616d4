"""The host of a real partition and fetcher in a search: it keeps what they send, and what they commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.protocol.messages import FetchRequest, ListOffsetsRequest, OffsetsForLeaderEpochRequest
from sim.protocol.replica.partition import Partition
from sim.protocol.replica.partition_host import PartitionHost

if TYPE_CHECKING:
    from sim.protocol.batch import Batch
    from sim.protocol.messages import Ask, LeaderAndIsr, Position
    from sim.protocol.replica.abstract_fetcher_manager import AbstractFetcherManager
    from sim.protocol.replica.replica import Replica
    from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread

NOW_US: Final = 0
UNSETTLED: Final = -1
Request = FetchRequest | OffsetsForLeaderEpochRequest | ListOffsetsRequest


class RecordingHost(PartitionHost):
    """What the hosts of a search under ZooKeeper and under KRaft have in common; time stands still.

    Attributes:
        broker: its id in requests.
        broker_epoch: its broker epoch in fetches.
        settled_epoch: the leader epoch in which the follower has confirmed its log, else `UNSETTLED`.
        requests: sent requests of fetchers, each with the leader.
        proposal: what the broker asks of the control plane, None without anything (`Outcome.proposal`).
        committed: records that a leader's HW has passed, as a bit set.
        acked: records that it has acknowledged, as a bit set.
        min_isr: see `Outcome.min_isr`.
        halted: the process exits.
    """

    def __init__(self, broker: int, broker_epoch: int) -> None:
        self.broker = broker
        self.broker_epoch = broker_epoch
        self.settled_epoch = UNSETTLED
        self.requests: list[tuple[int, Request]] = []
        self.proposal: object = None
        self.committed = 0
        self.acked = 0
        self.min_isr = 0
        self.halted = False

    def appended(self, replica: Replica, batch: Batch) -> None:
        """See `PartitionHost.appended`."""

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """See `PartitionHost.truncated`."""

    def log_start_moved(self, replica: Replica) -> None:
        """See `PartitionHost.log_start_moved`."""

    def replicated(self, partition: Partition, follower: int, leo: int) -> None:
        """See `PartitionHost.replicated`."""

    def reached(self, probe: int) -> None:
        """See `PartitionHost.reached`."""

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """Note as committed what a leader's HW passes."""
        if isinstance(replica, Partition) and replica.is_leader:
            for offset in range(previous, replica.hw):
                batch = replica.log.batch_at(offset)
                if batch is not None:
                    self.committed |= 1 << (batch.first_id + offset - batch.base_offset)

    def send_fetch(
        self, fetcher: ReplicaFetcherThread, positions: list[Position], leader_epochs: list[int]
    ) -> FetchRequest:
        """See `FetcherHost.send_fetch`."""
        request = FetchRequest(self.broker, fetcher.leader, self.broker, self.broker_epoch, positions, leader_epochs)
        self.requests.append((fetcher.leader, request))
        return request

    def send_list_offsets(
        self, fetcher: ReplicaFetcherThread, name: str, timestamp: int, leader_epoch: int
    ) -> ListOffsetsRequest:
        """See `FetcherHost.send_list_offsets`."""
        request = ListOffsetsRequest(self.broker, self.broker, name, timestamp, leader_epoch)
        self.requests.append((fetcher.leader, request))
        return request

    def send_epoch_end(
        self, fetcher: ReplicaFetcherThread, asks: list[Ask], leader_epochs: list[int], *, with_epoch: bool
    ) -> OffsetsForLeaderEpochRequest:
        """See `FetcherHost.send_epoch_end`."""
        request = OffsetsForLeaderEpochRequest(self.broker, asks, leader_epochs, with_epoch=with_epoch)
        self.requests.append((fetcher.leader, request))
        return request

    def halt(self, reason: str) -> None:  # noqa: ARG002
        """See `FetcherHost.halt`."""
        self.halted = True

    def wake_fetcher(self, fetcher: ReplicaFetcherThread, at_us: int) -> None:  # noqa: ARG002
        """See `FetcherHost.wake_fetcher`."""
        raise AssertionError("no fetcher backs off while time stands still")

    def truncation_completed(self, replica: Replica, leader_epoch: int, rounds: int) -> None:  # noqa: ARG002
        """See `FetcherHost.truncation_completed`."""
        self.settled_epoch = leader_epoch


def stop_following(name: str, fetchers: AbstractFetcherManager) -> None:
    """Remove a partition from its fetcher, which ends with it."""
    fetchers.remove(name)
    fetchers.shut_down_idle()


def follow(partition: Partition, decision: LeaderAndIsr, fetchers: AbstractFetcherManager, host: RecordingHost) -> None:
    """Follow a leader, as `ReplicaManager` and `ReplicaFetcherManager` do by the same manager."""
    restarts = fetchers.restarts(partition, decision)
    partition.become_follower(decision)
    host.settled_epoch = UNSETTLED
    if restarts:
        fetchers.add(partition, decision, NOW_US)
        fetchers.shut_down_idle()
    elif fetchers.goes_on(partition.name, decision):
        host.settled_epoch = decision.leader_epoch
