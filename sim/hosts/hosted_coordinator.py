"""The group coordinator in a broker: its messages, its writes to the offsets partition, and its tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sim.history import steps
from sim.hosts.broker_metadata_cache import UNKNOWN_LEADER
from sim.hosts.broker_node import BrokerNode
from sim.hosts.hosted_replica import HostedReplicas
from sim.kernel.scheduler import Event
from sim.protocol.group.group_coordinator import (
    ACTIVE,
    EMPTY,
    FAILED,
    INITIAL,
    CoordinatorHost,
    GroupCoordinator,
    GroupRequest,
)
from sim.protocol.group.group_messages import (
    COORDINATOR_NOT_AVAILABLE,
    OFFSETS,
    CommittedOffsets,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommit,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from sim.protocol.messages import NONE, NOT_LEADER_OR_FOLLOWER, ProduceRequest, ProduceResponse
from sim.protocol.replica.partition import NO_LEADER, Partition

_ALL: Final = -1
_LEADER: Final = 1
_STEPS: Final = {
    ACTIVE: steps.COORDINATOR_LOADED,
    EMPTY: steps.COORDINATOR_EMPTY,
    FAILED: steps.COORDINATOR_FAILED,
    INITIAL: steps.COORDINATOR_UNLOADED,
}


class HostedCoordinator(CoordinatorHost):
    """See the module.

    Attributes:
        group: the coordinator.
    """

    __deletable__ = ("group",)
    __slots__ = ("_broker", "_replicas", "group")

    def __init__(self, broker: BrokerNode, replicas: HostedReplicas, offsets: CommittedOffsets) -> None:
        self._broker = broker
        self._replicas = replicas
        self.group = GroupCoordinator(broker.decide, self, offsets)

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        del self.group

    def receive(self, message: Event) -> bool:
        """Handle a consumer's request; False if the message is none."""
        if isinstance(message, OffsetCommitRequest):
            self.group.commit(message)
        elif isinstance(message, OffsetFetchRequest):
            self.group.fetch(message)
        elif isinstance(message, FindCoordinatorRequest):
            self._find(message)
        else:
            return False
        return True

    def _find(self, request: FindCoordinatorRequest) -> None:
        """Kafka: KafkaApis#handleFindCoordinatorRequest (1.1-4.4)."""
        leader, _ = self._replicas.metadata.leaders.get(OFFSETS, UNKNOWN_LEADER)
        error = COORDINATOR_NOT_AVAILABLE if leader == NO_LEADER else NONE
        self._broker.reply(request.node, FindCoordinatorResponse(request, error, leader))

    # For the coordinator.

    def partition(self) -> Partition | None:
        replica = self._replicas.replica(OFFSETS)
        return None if replica is None else replica.partition

    def append(self, record: int, *, waits: bool) -> None:
        broker, timeout_us = self._broker, self._broker.settings.commit_timeout_us
        partition = self.partition()
        if partition is None:
            self.group.appended(record, NOT_LEADER_OR_FOLLOWER, -1)
            return
        request = ProduceRequest(broker.node, OFFSETS, record, 1, _ALL if waits else _LEADER, timeout_us=timeout_us)
        partition.produce(request, broker.kernel.now_us)
        waiting = self.group.waiting_for(record)
        if waits and waiting is not None:
            self.await_commit(waiting)

    def await_commit(self, request: GroupRequest) -> None:
        kernel, broker = self._broker.kernel, self._broker
        kernel.call_at(kernel.now_us + broker.settings.commit_timeout_us, broker.life, self.group.expire, request)

    def forget_append(self, record: int) -> None:
        partition = self.partition()
        for _, request, _ in [] if partition is None else partition.delayed.waiting:
            if request.first_id == record:
                assert partition is not None
                partition.delayed.expire(request)
                return

    def answer_commit(self, request: OffsetCommitRequest, error: str, base_offset: int) -> None:
        write: ProduceResponse | None = None
        if not error:
            replica, record = self._replicas.replica(OFFSETS), request.commit.record
            write = None if replica is None else replica.coordinator_write
            if write is None or write.request.first_id != record:  # Appended with acks=1.
                sent = ProduceRequest(self._broker.node, OFFSETS, record, 1, _ALL)
                write = ProduceResponse(sent, NONE, base_offset, self._broker.kernel.now_us)
        self._broker.reply(request.node, OffsetCommitResponse(request, error, write))

    def answer_fetch(self, request: OffsetFetchRequest, error: str, commit: OffsetCommit | None) -> None:
        self._broker.reply(request.node, OffsetFetchResponse(request, error, commit))

    def run_later(self, task: Callable[[int], None], epoch: int) -> None:
        kernel, broker = self._broker.kernel, self._broker
        kernel.call_at(kernel.now_us + broker.settings.coordinator_delay_us, broker.life, task, epoch)

    def reached(self, probe: int) -> None:
        self._broker.reached(probe)

    def state_changed(self, state: str) -> None:
        self._broker.recorder.of(OFFSETS).record(steps.CoordinatorStep(_STEPS[state], self._broker.node))
