"""The active controller of a KRaft quorum, as a node: heartbeat sessions and the metadata log.

The quorum's Raft is not modelled: records appended by the active controller are committed in order and never lost.
`sim.hosts.metadata_log` delivers the log to brokers. When another controller takes over, the log stays and sessions
start afresh. Requests that arrive meanwhile wait, as brokers resend requests until they are answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from sim.config import Value
from sim.environment.elision import ElidingBroker
from sim.history import steps
from sim.hosts.broker_heartbeat_tracker import BrokerHeartbeatTracker
from sim.hosts.control_plane import CONTROL, ControlPlaneSetup, PartitionSetup
from sim.hosts.metadata_log import MetadataLog
from sim.hosts.peers import QuorumSessions
from sim.hosts.settings import quorum_settings
from sim.kernel.message import Message
from sim.kernel.scheduler import ALWAYS, Event, IdleCall
from sim.protocol import probes
from sim.protocol.kraft.metadata import (
    MIN_ISR,
    BrokerRegistration,
    BrokerUnregistration,
    ConfigRecord,
    MetadataImage,
    PartitionRegistration,
    Record,
    TopicRemoval,
)
from sim.protocol.kraft.partition_change_builder import DESIGNATED, PREFERRED, UNCLEAN
from sim.protocol.kraft.quorum_controller import QuorumController
from sim.protocol.kraft.quorum_messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
)
from sim.protocol.kraft.replication_control_manager import LONGEST_AGGRESSIVE, NotAssignedError
from sim.protocol.messages import NONE, UNKNOWN_SERVER_ERROR, LeaderAndIsr
from sim.protocol.replica.partition import NO_LEADER

Task = Callable[[QuorumController], object]
"""A periodic task of the active controller."""
FORCED: Final = (UNCLEAN, DESIGNATED, LONGEST_AGGRESSIVE)
"""Kinds of elections by which an administrator accepts data loss."""


class ControllerQuorum(QuorumSessions):
    """The control plane of a KRaft cluster. Kafka: ControllerApis, QuorumController.

    Attributes:
        log: the metadata log.
        active: the active controller.
        epoch: the controller epoch: number of active controllers so far, including this one.
    """

    __deletable__ = ("active", "log", "sessions")

    active: QuorumController

    def __init__(self, setup: ControlPlaneSetup) -> None:
        super().__init__(setup)
        self.log = MetadataLog(self, setup.kernel)
        self.epoch = 0
        self._decide = setup.decide
        self._settings = quorum_settings(setup.config)
        self.session_us = self._settings.session_us
        self._config = setup.config
        self._min_isrs = setup.min_isrs
        self._min_isrs_noted: dict[str, int] = {}
        self._in_order = setup.in_order
        self.sessions = BrokerHeartbeatTracker(
            self,
            self.session_us,
            setup.kernel,
            keeps_fenced=setup.decide.keeps_fenced_sessions.yes(),
            ranks=setup.expiry_ranks,
        )
        self._failing_over = False
        self._forced = False
        self._take_over()

    def dispose(self) -> None:
        del self.active, self.log, self.sessions

    def receive(self, message: Event) -> None:
        if isinstance(message, BrokerHeartbeatRequest):
            self.on_heartbeat(message)
        elif isinstance(message, AlterPartitionRequest):
            self.on_alter_partition(message)
        elif isinstance(message, BrokerRegistrationRequest):
            self.on_register(message)
        elif isinstance(message, GetReplicaLogInfoResponse):
            self.on_replica_log_info(message)
        elif isinstance(message, AssignReplicasToDirsRequest):
            self.on_assign_replicas_to_dirs(message)
        else:
            super().receive(message)

    # The controller.

    def _take_over(self) -> None:
        """Activate another controller, which knows only the log. Kafka: QuorumController#claim."""
        image = self.active.image if self.epoch else MetadataImage()
        self.epoch += 1
        settings = self._settings
        self.active = QuorumController(image, self._decide, self, self._config, self._min_isrs)
        self._recorder.record_for_all(steps.Controller(CONTROL, self.epoch))
        self.sessions.begin()
        if settings.auto_balance:
            self._every(settings.balance_check_us, QuorumController.balance)
        self._every(settings.unclean_check_us, QuorumController.check_unclean)

    def _every(self, interval_us: int, task: Task) -> None:
        timer = IdleCall(self._periodic, (self.epoch, interval_us, task))
        self._kernel.schedule(self._kernel.now_us + interval_us, self.life, timer)

    def _periodic(self, entry: tuple[int, int, Task]) -> None:
        epoch, interval_us, task = entry
        if epoch == self.epoch:
            try:
                task(self.active)
            except NotAssignedError as exception:
                self.event_failed(exception)
            else:
                self._every(interval_us, task)

    def event_failed(self, exception: NotAssignedError) -> None:
        """Resign after an unexpected exception in an event. Kafka: QuorumController#handleEventException."""
        self.reached(probes.CONTROLLER_CRASHED)
        self._recorder.of(exception.name).record(steps.ControllerCrashed(str(exception)))
        self._fail_over(self._settings.election_us)

    def fail_over(self) -> bool:
        return self._fail_over(self._settings.election_us)

    def pause_controller(self, broker: int, pause: Callable[[int], bool]) -> bool:  # noqa: ARG002
        """See `ControlPlane.pause_controller`: the others elect one of them; the paused one can no longer commit."""
        return self._fail_over(self._settings.fetch_timeout_us + self._settings.election_us)

    def _fail_over(self, gap_us: int) -> bool:
        """Kafka: QuorumController#renounce."""
        if self._failing_over:
            return False
        self._failing_over = True
        self.network.pause(self)
        self._kernel.call_at(self._kernel.now_us + gap_us, ALWAYS, self._failed_over, None)
        return True

    def _failed_over(self, _: object) -> None:
        self._failing_over = False
        self._take_over()
        self.network.resume(self)
        self.active.activate()

    def renew_sessions(self) -> None:
        """See `ControlPlane.renew_sessions`: all sessions are renewed."""
        self.sessions.renew_sessions()

    def append(self, records: Sequence[Record]) -> None:
        """See `QuorumControllerHost.append`. Kafka: QuorumController#appendWriteEvent."""
        self.end_elision()
        first = len(self.log.records)
        self._recorder.record(steps.Metadata(steps.COMMITTED_METADATA, 0, first, records))
        elr_enabled, unclean = self.active.elr_enabled, self._registering(records, first)
        remembers = self._decide.last_known_elr.value == "ejected-members"
        for record in records:
            self.log.append(record)
            if isinstance(record, PartitionRegistration):
                self._note_partition(record)
                min_isr = self.active.own_min_isr(record) if elr_enabled else 0
                recorder = self._recorder.of(record.name)
                recorder.record(steps.PartitionChanged(record, min_isr, unclean, remembers=remembers))
            elif isinstance(record, BrokerRegistration):
                self._note_broker(record)
            elif isinstance(record, BrokerUnregistration):
                self._note_unregistered(record.broker)
            elif isinstance(record, TopicRemoval):
                self._note_deleted(record)
        self._note_min_isr(records)
        self.log.send_to_all(first, self.sessions.brokers)
        if self.changed is not None:
            self.changed()

    @staticmethod
    def _registering(records: Sequence[Record], first: int) -> int:
        """The broker that registers with these records, the first of them at that offset, else 0."""
        for record in records:
            first += 1
            if isinstance(record, BrokerRegistration) and record.broker_epoch == first:
                return record.broker
        return 0

    def delay_metadata(self, broker: int, by_us: int) -> bool:
        self.end_elision()
        self.log.delay(broker, by_us)
        self._recorder.record(steps.MetadataDelay(broker, by_us))
        return True

    def _send(self, broker: int, message: Message) -> None:
        channel = self.out.get(broker) or self.reach(broker)
        if channel is not None:
            channel.send(message)

    def _note_partition(self, record: PartitionRegistration) -> None:
        name, recorder = record.name, self._recorder.of(record.name)
        old = self.state_of(name)
        if name in self.further:
            self.further[name] = record
        else:
            self.state = record
        if record.leader != old.leader:
            if record.leader:
                self._note_forced(record.leader, old)
            recorder.record(steps.Elected(record.leader, record.leader_epoch, by_isr=False))
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
        if name in self.further:
            self.record_further(self._further[name])
        else:
            self.record_state()

    def _note_deleted(self, record: TopicRemoval) -> None:
        self._recorder.record(steps.TopicChange(steps.TOPIC_DELETED, record.names))
        for name in record.names:
            del self.further[name], self._further[name]
            self._recorder.of(name).close()

    def _note_forced(self, leader: int, before: LeaderAndIsr) -> None:
        """Note a forced election of a replica that is not known to have all committed records."""
        if self._forced and leader not in _candidates(before):
            self._recorder.of(before.name).record(steps.Fact(steps.UNCLEAN_ELECTION, leader))
        self._forced = False

    def _note_min_isr(self, records: Sequence[Record]) -> None:
        """Note the effective ``min.insync.replicas`` of the first partition, and of others for which it changed."""
        state, active, noted = self.state, self.active, self._min_isrs_noted
        if isinstance(state, PartitionRegistration):
            self._recorder.record(steps.MinIsr(active.own_min_isr(state)))
        if not self.further:
            return
        changed = any(isinstance(record, ConfigRecord) for record in records)
        for other in self.further.values() if changed else records:
            if isinstance(other, PartitionRegistration) and other.name in self.further:
                min_isr = active.own_min_isr(other)
                if noted.get(other.name) != min_isr:
                    noted[other.name] = min_isr
                    self._recorder.of(other.name).record(steps.MinIsr(min_isr))

    def _note_broker(self, record: BrokerRegistration) -> None:
        broker = record.broker
        unfenced = self.sessions.unfenced
        if not record.fenced and broker not in unfenced:
            unfenced.add(broker)
            self._recorder.record_for_all(steps.Registered(steps.UNFENCED, broker, record.incarnation))
            self.sessions.schedule_check(broker)
        elif record.fenced and broker in unfenced:
            unfenced.remove(broker)
            self._recorder.record_for_all(steps.SessionEnd(broker, fenced=True))
            if self.ended is not None:
                self.ended(broker)

    def _note_unregistered(self, broker: int) -> None:
        self._recorder.record_for_all(steps.Fact(steps.UNREGISTERED, broker))
        was_unfenced = broker in self.sessions.unfenced
        self.sessions.unregistered(broker)
        if was_unfenced:
            self._recorder.record_for_all(steps.SessionEnd(broker))
            if self.ended is not None:
                self.ended(broker)

    # Sessions.

    def on_register(self, request: BrokerRegistrationRequest) -> None:
        """Handle a registration.

        Kafka: ControllerApis#handleBrokerRegistration, QuorumController#registerBroker.
        """
        broker = request.broker
        known = self.active.image.brokers.get(broker)
        again = known is not None and known.incarnation == request.incarnation
        error, broker_epoch = UNKNOWN_SERVER_ERROR, -1
        try:
            registered = self.active.register(
                broker, request.incarnation, request.previous_broker_epoch, request.directories
            )
            error, broker_epoch = registered.error, registered.broker_epoch
        except NotAssignedError as exception:
            self.event_failed(exception)
        if not error and again:
            self.sessions.note_reregistration(broker)
        elif not error:
            self.sessions.registered(broker)
            self._recorder.record_for_all(steps.Registered(steps.REGISTERED, broker, request.incarnation, opens=False))
        self._send(broker, BrokerRegistrationResponse(request, error, broker_epoch))
        if not error:
            self.log.send(broker, 0)

    def has_session(self, broker: int) -> bool:
        """See `QuorumControllerHost.has_session`: a heartbeat arrived within ``broker.session.timeout.ms``."""
        return broker in self.sessions.suspended or self.sessions.is_open(broker)

    def on_heartbeat(self, heartbeat: BrokerHeartbeatRequest) -> None:
        """Handle a heartbeat.

        Kafka: ControllerApis#handleBrokerHeartBeatRequest, QuorumController#processBrokerHeartbeat.
        """
        broker = heartbeat.broker
        known = self.active.image.brokers.get(broker)
        if known is None or known.broker_epoch != heartbeat.broker_epoch:
            return
        offline = heartbeat.offline_directories
        changes = offline or heartbeat.cordoned != known.cordoned
        if changes or not self._keeps_alive(known, heartbeat.metadata_offset, want_fence=heartbeat.want_fence):
            self.end_elision()
        self.sessions.note_heartbeat(broker, self._kernel.now_us)
        try:
            answer = self.active.heartbeat(
                broker,
                heartbeat.broker_epoch,
                heartbeat.metadata_offset,
                want_fence=heartbeat.want_fence,
                want_shut_down=heartbeat.want_shut_down,
                offline_directories=offline,
                cordoned=heartbeat.cordoned,
            )
        except NotAssignedError as exception:
            self._answer_heartbeat(BrokerHeartbeatResponse(heartbeat, UNKNOWN_SERVER_ERROR))
            self.event_failed(exception)
            return
        self._answer_heartbeat(
            BrokerHeartbeatResponse(
                heartbeat,
                answer.error,
                is_caught_up=answer.is_caught_up,
                is_fenced=answer.is_fenced,
                should_shut_down=answer.should_shut_down,
            )
        )
        if self.state.partition_epoch < 0:
            self._create()

    def _answer_heartbeat(self, reply: BrokerHeartbeatResponse) -> None:
        channel = self.reach(reply.request.broker)
        if channel is not None:
            channel.send_usually(reply)

    def _create(self) -> None:
        """Create all partitions, once all brokers are unfenced."""
        brokers = self.active.image.brokers
        if len(brokers) == self._brokers and all(self.active.image.is_active(broker) for broker in brokers):
            self.active.create_partition(self._topic, self.state.replicas)
            self.active.create_topic({one.name: one.replicas for one in self._further.values()})

    def is_keepalive(self, broker: int, broker_epoch: int, metadata_offset: int, *, want_fence: bool) -> bool:
        """Whether a heartbeat with these fields would only keep the session.

        A broker that has replayed the whole log gets later records in time while its link is steady. One that starts
        stays fenced, and its offset matters only when it has read its registration.
        """
        known = self.active.image.brokers.get(broker)
        return (
            known is not None
            and known.broker_epoch == broker_epoch
            and self._keeps_alive(known, metadata_offset, want_fence=want_fence)
        )

    def _keeps_alive(self, known: BrokerRegistration, metadata_offset: int, *, want_fence: bool) -> bool:
        """`is_keepalive` for the current incarnation of a broker."""
        if known.fenced:
            starts = want_fence and metadata_offset < known.registered_offset
            return starts and self.sessions.is_open(known.broker)
        for entry in self.active.image.brokers.values():
            if entry.shutting_down:
                return False
        return self.log.keeps_up(known.broker, metadata_offset)

    def cannot_expire(self, broker: int, arrives_us: int, interval_us: int) -> bool:
        """See `BrokerHeartbeatTracker.cannot_expire`."""
        return self.sessions.cannot_expire(broker, arrives_us, interval_us)

    def response_latency_us(self, broker: int) -> int:
        """See `QuorumSessions.response_latency_us`."""
        channel = self.reach(broker)
        assert channel is not None
        return channel.usual_us

    def deliver_response(self, heartbeat: BrokerHeartbeatRequest, arrives_us: int) -> None:
        """See `QuorumSessions.deliver_response`."""
        channel = self.reach(heartbeat.broker)
        assert channel is not None
        starts = heartbeat.want_fence
        reply = BrokerHeartbeatResponse(heartbeat, NONE, is_caught_up=not starts, is_fenced=starts)
        channel.deliver_at(arrives_us, reply)

    def fetch_metadata(self, fetch: tuple[int, int]) -> None:
        """See `QuorumSessions.fetch_metadata`; the log is sent to registered brokers only."""
        broker, first = fetch
        if broker in self.sessions.brokers:
            self.log.fetch(broker, first)

    def suspend_expiry(self, broker: int) -> None:
        self.sessions.suspended.add(broker)

    def resume_expiry(self, broker: int, last_us: int, metadata_offset: int) -> None:
        """See `SessionKeeper.resume_expiry`; each elided heartbeat reported the metadata offset."""
        self.sessions.suspended.discard(broker)
        if last_us >= 0:
            self.sessions.note_heartbeat(broker, last_us)
            self.active.note_metadata_offset(broker, metadata_offset)
        self.sessions.schedule_check(broker)

    def expire_session(self, broker: int) -> bool:
        """See `ControlPlane.expire_session`: the broker is fenced, and unfenced by its next heartbeat."""
        return self.expire_silently(broker)

    def expire_silently(self, broker: int) -> bool:
        known = self.active.image.brokers.get(broker)
        if known is None or known.fenced or self.frozen:
            return False
        self.end_elision()
        self.sessions.end(broker)
        self.active.fence(broker)
        return True

    def close_session(self, broker: int, broker_epoch: int) -> None:
        """See `ControlPlane.close_session`: a no-op, since heartbeats have requested the shutdown."""

    # ISR changes.

    def on_alter_partition(self, request: AlterPartitionRequest) -> None:
        """Handle a leader's proposal of another ISR.

        Kafka: ControllerApis#handleAlterPartitionRequest, QuorumController#alterPartition.
        """
        error, results = self.active.alter_partition(request.broker, request.broker_epoch, request.changes)
        self._send(request.broker, AlterPartitionResponse(request, error, results))

    def on_assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest) -> None:
        """Handle a change of a replica's log directory; the outcome is in the metadata log.

        Kafka: ControllerApis#handleAssignReplicasToDirs, QuorumController#assignReplicasToDirs.
        """
        try:
            self.active.assign_directory(request.name, request.broker, request.broker_epoch, request.directory)
        except NotAssignedError as exception:
            self.event_failed(exception)

    # Unclean recovery.

    def ask_log_info(self, broker: int, name: str) -> None:
        """See `RecoveryHost.ask_log_info`."""
        self._send(broker, GetReplicaLogInfoRequest(broker, name))

    def record_recoveries(self, running: int, finished: int, manual: int) -> None:
        """See `QuorumControllerHost.record_recoveries`."""
        self._recorder.record(steps.Recoveries(running, finished, manual))

    def on_replica_log_info(self, info: GetReplicaLogInfoResponse) -> None:
        """Handle a broker's log end offset and epoch."""
        self.active.on_log_info(info)

    def schedule_recovery_timeout(self, timer: int, after_us: int) -> None:
        """See `RecoveryHost.schedule_recovery_timeout`."""
        self._kernel.call_at(self._kernel.now_us + after_us, self.life, self._recovery_timed_out, (self.epoch, timer))

    def _recovery_timed_out(self, entry: tuple[int, int]) -> None:
        epoch, timer = entry
        if epoch == self.epoch:
            self.active.recovery_timed_out(timer)

    def waits_for_operator(self, state: LeaderAndIsr, offline: Sequence[int]) -> bool:
        """See `ControlPlane.waits_for_operator`: no replica is electable, is the only last known leader (which needs
        ELR: PartitionChangeBuilder#canElectLastKnownLeader), or can be asked for its log.
        """
        if not isinstance(state, PartitionRegistration):
            return False
        electable = state.isr + state.elr
        recovery = self.active.recovery
        if not electable and recovery is None and len(state.last_known_elr) == 1 and self.active.tracks_elr(state):
            electable = state.last_known_elr
        if electable:
            return bool(offline) and all(broker in offline for broker in electable)
        return not state.leader and (recovery is None or recovery.manual_count > 0)

    def unsettled_brokers(self, brokers: Iterable[int], running: Mapping[int, ElidingBroker]) -> str:
        image, end = self.active.image, len(self.log.records)
        fenced = [broker for broker in brokers if not image.is_active(broker)]
        behind = sorted(broker for broker, process in running.items() if process.metadata_offset != end)
        return f"fenced or shutting down: {fenced}, behind the metadata log: {behind}" if fenced or behind else ""

    def unsettled_work(self, state: LeaderAndIsr, *, changes_isr: bool, writes_answered: bool) -> str:
        found = []
        if changes_isr:
            found.append(f"broker {state.leader} waits for an ISR change")
        if isinstance(state, PartitionRegistration) and (state.adding or state.removing):
            found.append(f"a reassignment adds {list(state.adding)} and removes {list(state.removing)}")
        if not writes_answered:
            found.append("writes are not answered")
        return ", ".join(found)

    def eligible(self, state: LeaderAndIsr) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        return (state.elr, state.last_known_elr) if isinstance(state, PartitionRegistration) else None

    def reassignment(self, state: LeaderAndIsr) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (state.adding, state.removing) if isinstance(state, PartitionRegistration) else ((), ())

    # Operations of an administrator.

    def _is_known(self, name: str) -> bool:
        """Whether an active controller knows a partition."""
        return not self.frozen and self.state.partition_epoch >= 0 and self.exists(name)

    def elect_preferred(self, name: str = "") -> bool:
        return self.elect_leader(PREFERRED, name=name)

    def elect_leader(self, kind: str, desired: int = NO_LEADER, name: str = "") -> bool:
        """See `ControlPlane.elect_leader`. Kafka: QuorumController#electLeaders."""
        if not self._is_known(name):
            return False
        before, self._forced = self._forced, self._forced or kind in FORCED
        try:
            error = self.active.elect(name or self._topic, kind, desired)
        except NotAssignedError as exception:
            error = UNKNOWN_SERVER_ERROR
            self.event_failed(exception)
        if error:
            self._forced = before
        return not error

    def reassign(self, replicas: tuple[int, ...], name: str = "") -> bool:
        """See `ControlPlane.reassign`. Kafka: QuorumController#alterPartitionReassignments."""
        return self._is_known(name) and not self.active.reassign(name or self._topic, replicas)

    def cancel_reassignment(self, name: str = "") -> bool:
        """See `ControlPlane.cancel_reassignment`: unclean if no electable replica is in the resulting ISR."""
        if not self._is_known(name):
            return False
        before = _candidates(self.state_of(name))
        if self.active.cancel_reassignment(name or self._topic):
            return False
        after = self.state_of(name).isr
        if after and set(before).isdisjoint(after):
            self._recorder.of(name).record(steps.Fact(steps.UNCLEAN_ELECTION, after[0]))
        return True

    def place(self, first: int, count: int, replication_factor: int) -> list[tuple[int, ...]]:
        """See `ControlPlane.place`: none before the first topic is created."""
        if not self._is_known(""):
            return []
        _, found = self.active.place(self._in_order, first, count, replication_factor)
        return found

    def create_partitions(self, setups: Sequence[PartitionSetup]) -> None:
        """See `ControlPlane.create_partitions`. Kafka: QuorumController#createTopics."""
        for one in setups:
            self._further[one.name] = one
            self._note_further(one)
            min_isr = self._min_isr if one.min_isr is None else one.min_isr
            one.recorder.record(steps.MinIsr(min(min_isr, len(one.replicas))))
        self.active.create_topic({one.name: one.replicas for one in setups})

    def delete_topic(self, names: tuple[str, ...]) -> bool:
        """See `ControlPlane.delete_topic`. Kafka: QuorumController#deleteTopics."""
        return not self.frozen and not self.active.delete_topic(names)

    @property
    def is_quorum(self) -> bool:
        return True

    def has_elr_feature(self) -> bool:
        return self._decide.elr.yes()

    def unregister(self, broker: int) -> bool:
        """See `ControlPlane.unregister`. Kafka: QuorumController#unregisterBroker."""
        if self.frozen or self.state.partition_epoch < 0:
            return False
        return not self.active.unregister(broker)

    def set_config(self, key: str, value: Value) -> None:
        """See `ControlPlane.set_config`. Kafka: QuorumController#incrementalAlterConfigs."""
        self.perform(self._set_config, (key, value))

    def _set_config(self, change: tuple[str, Value]) -> None:
        key, value = change
        self.active.set(key, value)
        if key == MIN_ISR:
            self.set_min_isr(int(value))


def _candidates(state: LeaderAndIsr) -> tuple[int, ...]:
    """Replicas that can be elected cleanly."""
    return state.isr or (state.elr if isinstance(state, PartitionRegistration) else ())
