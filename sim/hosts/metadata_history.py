"""What committed metadata records mean: they are noted as the control plane's state, and recorded as steps."""

from __future__ import annotations

from collections.abc import Sequence

from sim.history import steps
from sim.hosts.broker_heartbeat_tracker import BrokerHeartbeatTracker
from sim.hosts.control_plane import ControlPlane
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import (
    BrokerRegistration,
    BrokerUnregistration,
    ConfigRecord,
    PartitionRegistration,
    Record,
    TopicRemoval,
)
from sim.protocol.kraft.quorum_controller import QuorumController
from sim.protocol.messages import LeaderAndIsr


class MetadataHistory:
    """See the module.

    Attributes:
        forced: whether an administrator has requested an election that may lose data, and it has not happened yet.
    """

    __slots__ = ("_decide", "_min_isrs", "_plane", "_recorder", "_sessions", "forced")

    def __init__(self, plane: ControlPlane, decide: Decisions, sessions: BrokerHeartbeatTracker) -> None:
        self._plane = plane
        self._recorder = plane.recorder
        self._decide = decide
        self._sessions = sessions
        self._min_isrs: dict[str, int] = {}
        """Partition -> its effective ``min.insync.replicas`` that was recorded last."""
        self.forced = False

    def note(self, records: Sequence[Record], first: int, active: QuorumController) -> None:
        """Note committed records, the first of them at that index of the log."""
        self._recorder.record(steps.Metadata(steps.COMMITTED_METADATA, 0, first, records))
        elr_enabled, unclean = active.elr_enabled, _registering(records, first)
        remembers = self._decide.last_known_elr.value == "ejected-members"
        for record in records:
            if isinstance(record, PartitionRegistration):
                self._note_partition(record)
                min_isr = active.own_min_isr(record) if elr_enabled else 0
                recorder = self._recorder.of(record.name)
                recorder.record(steps.PartitionChanged(record, min_isr, unclean, remembers=remembers))
            elif isinstance(record, BrokerRegistration):
                self._note_broker(record)
            elif isinstance(record, BrokerUnregistration):
                self._note_unregistered(record.broker)
            elif isinstance(record, TopicRemoval):
                self._note_deleted(record)
        self._note_min_isr(records, active)

    def restore(self, record: PartitionRegistration) -> None:
        """Note an earlier state of a partition, because later ones were lost."""
        self._note_partition(record)

    def _note_partition(self, record: PartitionRegistration) -> None:
        plane, name, recorder = self._plane, record.name, self._recorder.of(record.name)
        old = plane.state_of(name)
        plane.states[name] = record
        if record.leader != old.leader:
            if record.leader:
                self._note_forced(record.leader, old)
            recorder.record(
                steps.Elected(record.leader, record.leader_epoch, by_isr=False, recovering=record.recovering)
            )
        elif record.leader_epoch > old.leader_epoch:
            recorder.record(steps.EpochRaised(record.leader, record.leader_epoch))
        if record.isr != old.isr:
            recorder.record(steps.Isr(record.isr, record.leader_epoch, old.isr, record.elr))
        before = old.replicas, old.target if isinstance(old, PartitionRegistration) else ()
        after = record.replicas, record.target
        if after != before:
            recorder.record(steps.Assigned(*after, before))
        if isinstance(old, PartitionRegistration) and record.directories != old.directories:
            for broker in record.replicas:
                directory = record.directory(broker)
                if directory != old.directory(broker):
                    recorder.record(steps.DirectoryAssigned(broker, directory))
        known = (old.elr, old.last_known_elr) if isinstance(old, PartitionRegistration) else ((), ())
        if (record.elr, record.last_known_elr) != known:
            recorder.record(steps.Elr(record.elr, record.last_known_elr, record.leader_epoch))
        plane.record_state(name)

    def _note_deleted(self, record: TopicRemoval) -> None:
        plane = self._plane
        self._recorder.record(steps.TopicChange(steps.TOPIC_DELETED, record.names))
        for name in record.names:
            plane.forget(name)
            self._recorder.of(name).close()

    def _note_forced(self, leader: int, before: LeaderAndIsr) -> None:
        """Note a forced election of a replica that is not known to have all committed records."""
        if self.forced and leader not in candidates(before):
            self._recorder.of(before.name).record(steps.Fact(steps.UNCLEAN_ELECTION, leader))
        self.forced = False

    def _note_min_isr(self, records: Sequence[Record], active: QuorumController) -> None:
        """Note the effective ``min.insync.replicas`` of partitions for which it changed."""
        states, noted = self._plane.states, self._min_isrs
        changed = any(isinstance(record, ConfigRecord) for record in records)
        for state in states.values() if changed else records:
            if isinstance(state, PartitionRegistration) and state.name in states:
                min_isr = active.own_min_isr(state)
                if noted.get(state.name) != min_isr:
                    noted[state.name] = min_isr
                    self._recorder.of(state.name).record(steps.MinIsr(min_isr))

    def _note_broker(self, record: BrokerRegistration) -> None:
        broker = record.broker
        unfenced = self._sessions.unfenced
        if not record.fenced and broker not in unfenced:
            unfenced.add(broker)
            self._recorder.record_for_all(steps.Registered(steps.UNFENCED, broker, record.incarnation))
            self._sessions.schedule_check(broker)
        elif record.fenced and broker in unfenced:
            unfenced.remove(broker)
            self._recorder.record_for_all(steps.SessionEnd(broker, fenced=True))
            if self._plane.ended is not None:
                self._plane.ended(broker)

    def _note_unregistered(self, broker: int) -> None:
        self._recorder.record_for_all(steps.Fact(steps.UNREGISTERED, broker))
        was_unfenced = broker in self._sessions.unfenced
        self._sessions.unregistered(broker)
        if was_unfenced:
            self._recorder.record_for_all(steps.SessionEnd(broker))
            if self._plane.ended is not None:
                self._plane.ended(broker)


def _registering(records: Sequence[Record], first: int) -> int:
    """The broker that registers with these records, the first of them at that index of the log, else 0."""
    for record in records:
        first += 1
        if isinstance(record, BrokerRegistration) and record.broker_epoch == first:
            return record.broker
    return 0


def candidates(state: LeaderAndIsr) -> tuple[int, ...]:
    """Replicas that can be elected cleanly."""
    return state.isr or (state.elr if isinstance(state, PartitionRegistration) else ())
