"""The events that a broker has with ZooKeeper: decisions of the controller, ISRs written to ZooKeeper, deletions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from highwater.lab.explore.broker_machine import NAME, BrokerMachine, BrokerOutcome, Process
from highwater.lab.explore.host import NOW_US, RecordingHost, follow, stop_following
from sim.protocol.messages import (
    INVALID_UPDATE_VERSION,
    NO_BROKER_EPOCH,
    LeaderAndIsr,
    ProduceRequest,
)
from sim.protocol.replica.fetch_results import IGNORED, fetch_refusal
from sim.protocol.replica.followers import NEVER_US
from sim.protocol.replica.isr import UNREGISTERED
from sim.protocol.replica.partition import NO_LEADER, Partition

if TYPE_CHECKING:
    from highwater.lab.explore.interning import InternTable
    from sim.protocol.decisions import Decisions
    from sim.protocol.messages import FetchResult, Position

LAG_US: Final = 1
CONSTANTS: Final = {"rounds": 0}
"""Counted for reports only. A follower that asks for ever (KAFKA-10706) would never come back to a known state."""


class ZooKeeperBrokerHost(RecordingHost):
    """Records the requests of partition and fetcher."""

    def __init__(self) -> None:
        super().__init__(0, NO_BROKER_EPOCH)

    def answer_produce(self, request: ProduceRequest, error: str, base_offset: int) -> None:
        """See `PartitionHost.answer_produce`."""

    def is_alive(self, broker: int) -> bool:  # noqa: ARG002
        """See `MetadataCache.is_alive`."""
        return True

    def registered_epoch(self, broker: int) -> int:  # noqa: ARG002
        """See `MetadataCache.registered_epoch`."""
        return UNREGISTERED

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:  # noqa: ARG002
        """See `PartitionHost.propose_isr`."""
        self.proposal = isr


class ZooKeeperBrokerMachine(BrokerMachine[ZooKeeperBrokerHost]):
    """All snapshots of the brokers of a cluster with ZooKeeper, and what events make of them.

    Args:
        decide: the rules of all brokers.
        payloads: contents of messages.
        replicas: the brokers.
    """

    ACKS = 0

    def __init__(self, decide: Decisions, payloads: InternTable, replicas: tuple[int, ...]) -> None:
        super().__init__(decide, payloads, CONSTANTS)
        self.replicas = replicas
        self._handlers |= {
            "control": self._control,
            "delete": self._delete,
            "persisted": self._persisted,
            "refused": self._refused,
            "answer": self._answer,
        }

    # Snapshots.

    def _host(self, _: Any) -> ZooKeeperBrokerHost:
        return ZooKeeperBrokerHost()

    def _own(self, _: Process[ZooKeeperBrokerHost]) -> Any:
        return None

    def _details(self, process: Process[ZooKeeperBrokerHost]) -> tuple[Any, ...]:
        leo = process.partition.log.leo
        states = process.partition.followers.states.values()
        return (tuple([state.broker for state in states if state.leo != leo and state.caught_up_us == NOW_US]),)

    # Life cycle.

    def _end(self, process: Process[ZooKeeperBrokerHost]) -> int:
        """The process ends; the page cache stays: nothing of the log is lost."""
        return self._number_ended(process, process.partition.log.leo)

    def _before_up(self, snapshot: int, kind: str, *details: Any) -> BrokerOutcome:
        """The process loads its log, with a checkpointed HW. If the file with the log start is written periodically, it
        is older than any deletion, so deleted records are back.
        """
        assert kind == "start"
        (hw,) = details
        return self._outcome(self._start_process(self._snapshots[snapshot][1], ZooKeeperBrokerHost(), hw, 1, LAG_US))

    # Decisions of the controller (`sim.hosts.broker` for the order of things).

    def _control(self, process: Process[ZooKeeperBrokerHost], leader: int, epoch: int, isr: tuple[int, ...]) -> None:
        partition, host = process.partition, process.host
        if epoch <= partition.leader_epoch:
            return
        # Partition epochs: each decision of the controller raises the leader epoch, and only the leader that it named
        # writes otherwise. So whether a leader knows the present version is whether it knows the present leader epoch.
        decision = LeaderAndIsr(NAME, leader, epoch, isr, epoch, self.replicas)
        if leader == partition.broker:
            stop_following(NAME, process.fetchers)
            host.settled_epoch = epoch
            partition.become_leader(decision, NOW_US)
        elif leader != NO_LEADER:
            follow(partition, decision, process.fetchers, host)
        # One without a leader is ignored, leader epoch included (ReplicaManager.makeFollowers).

    # Leading.

    def _delete(self, process: Process[ZooKeeperBrokerHost], offset: int) -> None:
        """DeleteRecords (`sim.hosts.administrator`)."""
        process.partition.advance_log_start(offset)

    def _lag(self, process: Process[ZooKeeperBrokerHost], follower: int) -> None:
        process.partition.followers.states[follower].caught_up_us = NEVER_US
        process.partition.shrink_isr(NOW_US)

    def _persisted(self, process: Process[ZooKeeperBrokerHost], isr: tuple[int, ...]) -> None:
        partition = process.partition
        partition.isr_persisted(isr, partition.partition_epoch, NOW_US)

    def _refused(self, process: Process[ZooKeeperBrokerHost]) -> None:
        process.partition.isr_refused(INVALID_UPDATE_VERSION, NOW_US)

    def _read(
        self, partition: Partition, follower: int, broker_epoch: int, position: Position
    ) -> tuple[FetchResult, int]:
        """A refused fetch changes nothing: rule ``refused_fetch`` is not explored."""
        _, offset, epoch, last_epoch = position
        error = partition.check_fetch(offset, epoch, last_epoch)
        if error:
            return fetch_refusal(partition, error, last_epoch), IGNORED
        return super()._read(partition, follower, broker_epoch, position)

    def _answer(self, process: Process[ZooKeeperBrokerHost]) -> int | None:
        """An empty response to a fetch, once the fetch was counted and the ISR is settled."""
        return None if process.host.proposal is not None else super()._answer(process)
