"""A controller of a quorum whose metadata log is replicated by Raft: tentative state, deferred answers, failover.

The active controller replays its records when it appends them, before they are committed, and answers once they are. A
standby replays what is committed. `sim.hosts.raft_controller` is its process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sim.config import Value
from sim.native import mypyc_attr
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import NO_OP, MetadataImage, Record
from sim.protocol.kraft.quorum_controller import QuorumController
from sim.protocol.messages import NONE, NOT_CONTROLLER
from sim.protocol.raft.batch_accumulator import NotLeaderError
from sim.protocol.raft.kafka_raft_client import KafkaRaftClient, LeaderAndEpoch
from sim.protocol.raft.raft_log import IllegalRaftStateError, RaftBatch

NO_EPOCH: Final = -1

Operation = Callable[[QuorumController], object]
"""An event of the active controller; it returns the answer."""
Answer = Callable[[str, object], None]
"""Takes an error, or `NONE` and the answer."""


class DeferredEvent:
    """An event whose answer waits for the commit of an offset. Kafka: DeferredEvent.

    Attributes:
        offset: of the last record for which it waits.
    """

    __slots__ = ("answer", "offset", "result")

    def __init__(self, offset: int, answer: Answer, result: object) -> None:
        self.offset: Final = offset
        self.answer: Final = answer
        self.result: Final = result


class DeferredEventQueue:
    """The events that wait, in the order of their offsets. Kafka: DeferredEventQueue."""

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending: list[DeferredEvent] = []

    def highest_pending_offset(self) -> int:
        """The offset for which the last event waits, -1 without one. Kafka: DeferredEventQueue#highestPendingOffset."""
        return self._pending[-1].offset if self._pending else -1

    def add(self, event: DeferredEvent) -> None:
        """Let an event wait. Kafka: DeferredEventQueue#add."""
        if event.offset < self.highest_pending_offset():
            raise ValueError(f"offset {event.offset} below {self.highest_pending_offset()}, for which events wait")
        self._pending.append(event)

    def complete_up_to(self, offset: int) -> None:
        """Answer the events that wait for this offset or an earlier one. Kafka: DeferredEventQueue#completeUpTo."""
        done = [event for event in self._pending if event.offset <= offset]
        self._pending = [event for event in self._pending if event.offset > offset]
        for event in done:
            event.answer(NONE, event.result)

    def fail_all(self, error: str) -> None:
        """Answer all events with an error. Kafka: DeferredEventQueue#failAll."""
        failed = self._pending
        self._pending = []
        for event in failed:
            event.answer(error, None)


@mypyc_attr(allow_interpreted_subclasses=True)
class ReplicatedControllerHost:
    """Callbacks to the controller's process."""

    __slots__ = ()

    def claimed(self, epoch: int) -> None:
        """The controller is active, and begins its periodic tasks. Kafka: QuorumController#claim."""
        raise NotImplementedError

    def renounced(self) -> None:
        """The controller is no longer active, and stops its periodic tasks. Kafka: QuorumController#renounce."""
        raise NotImplementedError

    def has_session(self, broker: int) -> bool:
        """See `QuorumControllerHost.has_session`."""
        raise NotImplementedError

    def ask_log_info(self, broker: int, name: str) -> None:
        """See `RecoveryHost.ask_log_info`."""
        raise NotImplementedError

    def record_recoveries(self, running: int, finished: int, manual: int) -> None:
        """See `ReplicationHost.record_recoveries`."""
        raise NotImplementedError

    def schedule_recovery_timeout(self, timer: int, after_us: int) -> None:
        """See `RecoveryHost.schedule_recovery_timeout`."""
        raise NotImplementedError

    def reached(self, probe: int) -> None:
        """A transition was reached."""
        raise NotImplementedError


class ReplicatedController:
    """One controller: a standby, or active. Its Raft client reports to it what is committed and who leads.

    Offsets of records in the image count from 1, those of Raft from 0; control records and no-ops have offsets, too.
    Kafka: QuorumController, OffsetControlManager.

    Args:
        node: its id.
        decide: its rules.
        config: static values of configuration keys and features.
        host: its process.
        min_isrs: as for `QuorumController`.

    Attributes:
        image: all committed records; those of the active controller that are not yet committed, too.
        active: the active controller's state machine, None for a standby.
        claim_epoch: epoch in which it is active, `NO_EPOCH` for a standby.
        stable_offset: end offset of what it knows to be committed.
    """

    client: KafkaRaftClient

    def __init__(
        self,
        node: int,
        decide: Decisions,
        config: Mapping[str, Value],
        host: ReplicatedControllerHost,
        min_isrs: dict[str, int] | None = None,
    ) -> None:
        self.node: Final = node
        self._decide = decide
        self._config = config
        self._min_isrs = min_isrs
        self._host = host
        self._deferred = DeferredEventQueue()
        self._now_us = 0
        self.image = MetadataImage()
        self.active: QuorumController | None = None
        self.claim_epoch = NO_EPOCH
        self.stable_offset = 0

    def end_active(self) -> None:
        """Be active no longer: the state machine of the active controller decides nothing more."""
        if self.active is not None:
            self.active.end()
            self.active = None

    @property
    def waits(self) -> bool:
        """Whether events wait for a commit."""
        return self._deferred.highest_pending_offset() >= 0

    # What the Raft client reports.

    def handle_commit(self, batches: Sequence[RaftBatch]) -> None:
        """Answer the events that waited for these records, or replay them.

        Kafka: QuorumController.QuorumMetaLogListener#handleCommit, OffsetControlManager#handleCommitBatch.
        """
        for batch in batches:
            if self.active is None:
                _replay(self.image, batch)
            self.stable_offset = batch.end_offset
            self._deferred.complete_up_to(batch.end_offset - 1)

    def handle_load_snapshot(self, offset: int, image: MetadataImage) -> None:
        """Go on from a snapshot that ends at an offset.

        Raises:
            IllegalRaftStateError: the controller is active.

        Kafka: QuorumController.QuorumMetaLogListener#handleLoadSnapshot, OffsetControlManager#endLoadSnapshot.
        """
        if self.active is not None:
            raise IllegalRaftStateError(f"a snapshot of offset {offset} for the active controller")
        image.cleared_elr.clear()
        self.image = image
        self.stable_offset = offset

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        """Become active, or stop to be. Kafka: QuorumController.QuorumMetaLogListener#handleLeaderChange."""
        if self.active is not None:
            if leader.leader == self.node:
                self.claim_epoch = leader.epoch
            else:
                self.renounce()
        elif leader.leader == self.node:
            self._claim(leader.epoch)

    def _claim(self, epoch: int) -> None:
        """Kafka: QuorumController#claim, OffsetControlManager#activate."""
        self.claim_epoch = epoch
        self.image.offset = self.client.log.end_offset
        self.active = QuorumController(self.image, self._decide, self, self._config, self._min_isrs)
        self._host.claimed(epoch)

    def renounce(self) -> None:
        """Stop to be active: resign, fail what waits, and forget what is not committed.

        Kafka: QuorumController#renounce, OffsetControlManager#deactivate.
        """
        self.client.resign(self.claim_epoch)
        self.claim_epoch = NO_EPOCH
        self.end_active()
        self._deferred.fail_all(NOT_CONTROLLER)
        self._revert()
        self._host.renounced()

    def _revert(self) -> None:
        """Forget what is not committed. Kafka: SnapshotRegistry#revertToSnapshot."""
        log, first = self.client.log, 0
        self.image = MetadataImage()
        for snapshot in log.snapshots:
            if snapshot.id.offset <= self.stable_offset:
                assert isinstance(snapshot.content, MetadataImage)
                self.image, first = snapshot.content.copy(), snapshot.id.offset
        for batch in log.read(first, self.stable_offset):
            _replay(self.image, batch)

    # Events.

    def run(self, operation: Operation, answer: Answer, now_us: int) -> None:
        """Process a request; the answer waits for the commit of its records, or of those that it has read.

        `KafkaRaftClient.poll` has to follow. Kafka: QuorumController.ControllerWriteEvent#run.
        """
        active = self.active
        if active is None:
            answer(NOT_CONTROLLER, None)
            return
        self._now_us = now_us
        # Raft may have appended VotersRecords meanwhile.
        self.image.offset = max(self.image.offset, self.client.next_append_offset)
        before = self.image.offset
        try:
            result = operation(active)
        except NotLeaderError:
            # Raft has another leader, or none: the controller learns it by this.
            self.renounce()
            answer(NOT_CONTROLLER, None)
            return
        offset = self.image.offset - 1 if self.image.offset > before else self._deferred.highest_pending_offset()
        if offset < 0:
            answer(NONE, result)
        else:
            self._deferred.add(DeferredEvent(offset, answer, result))

    def append_no_op(self, now_us: int) -> None:
        """Append a NoOpRecord, every ``metadata.max.idle.interval.ms``.

        Kafka: NoOpRecord.
        """
        self.run(self._append_no_op, _ignore, now_us)

    def skip_no_ops(self, count: int) -> None:
        """Note that NoOpRecords were appended."""
        self.image.offset += count

    def _append_no_op(self, _: QuorumController) -> object:
        self.image.offset += 1
        self._append((NO_OP,))
        return None

    def _append(self, records: Sequence[object]) -> None:
        offset = self.client.prepare_append(self.claim_epoch, records, self._now_us)
        if offset != self.image.offset - 1:
            raise IllegalRaftStateError(f"records replayed up to {self.image.offset - 1} are appended up to {offset}")

    # What the state machine asks of its host.

    def append(self, records: list[Record]) -> None:
        """See `ReplicationHost.append`."""
        self._append(tuple(records))

    def has_session(self, broker: int) -> bool:
        """See `QuorumControllerHost.has_session`."""
        return self._host.has_session(broker)

    def ask_log_info(self, broker: int, name: str) -> None:
        """See `RecoveryHost.ask_log_info`."""
        self._host.ask_log_info(broker, name)

    def record_recoveries(self, running: int, finished: int, manual: int) -> None:
        """See `ReplicationHost.record_recoveries`."""
        self._host.record_recoveries(running, finished, manual)

    def schedule_recovery_timeout(self, timer: int, after_us: int) -> None:
        """See `RecoveryHost.schedule_recovery_timeout`."""
        self._host.schedule_recovery_timeout(timer, after_us)

    def reached(self, probe: int) -> None:
        """See `QuorumControllerHost.reached`."""
        self._host.reached(probe)


def _ignore(_: str, __: object) -> None:
    """Take an answer that nobody waits for."""


def _replay(image: MetadataImage, batch: RaftBatch) -> None:
    """Replay a batch: a control record only has an offset."""
    for record in batch.records:
        image.replay(record)  # type: ignore[arg-type]
    image.offset = batch.end_offset
