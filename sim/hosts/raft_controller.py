"""A controller of a replicated metadata quorum as a process: its Raft thread, its event queue, its answers to brokers.

`ReplicatedController` decides. Brokers' requests become its events, whose answers wait until their records are
committed. A controller that is not active refuses them (NOT_CONTROLLER).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sim.config import Value
from sim.environment.network import Node
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.broker_heartbeat_tracker import BrokerHeartbeatTracker
from sim.hosts.idle_quorum import NO_OP_US, PeriodTimes, Situation, begin_idle_time
from sim.hosts.raft_machine import RaftMachine
from sim.hosts.raft_member import RaftMember
from sim.hosts.settings import QuorumSettings
from sim.hosts.snapshot_generator import SnapshotGenerator, image_of
from sim.kernel.build import COMPILED
from sim.kernel.message import Message
from sim.kernel.scheduler import Event, Gate, IdleCall, Kernel, noop
from sim.protocol import probes
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.broker_heartbeat_manager import BrokerHeartbeatReply
from sim.protocol.kraft.quorum_controller import BrokerRegistrationReply, QuorumController
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
    NotControllerResponse,
)
from sim.protocol.kraft.replicated_controller import (
    Answer,
    Operation,
    ReplicatedController,
    ReplicatedControllerHost,
)
from sim.protocol.kraft.replication_control_manager import NotAssignedError
from sim.protocol.messages import NONE, NOT_CONTROLLER, UNKNOWN_SERVER_ERROR
from sim.protocol.raft.kafka_raft_client import LeaderAndEpoch, QuorumConfig
from sim.protocol.raft.raft_log import RaftBatch, RaftSnapshot
from sim.protocol.raft.raft_messages import RaftFetchRequest, RaftFetchResponse, RaftRequest, RaftResponse


class ControllerSetup:
    """What all controllers of a quorum share.

    Attributes:
        machines: their machines, by id.
        min_isrs: ``min.insync.replicas`` of partitions whose topics have their own.
        expiry_ranks: see `ControlPlaneSetup`.
        key: of their random numbers.
        members: see `RaftMember`.
        period_times: see `sim.hosts.idle_quorum.IdleQuorum`.
    """

    def __init__(
        self,
        machines: Mapping[int, RaftMachine],
        decide: Decisions,
        config: Mapping[str, Value],
        settings: QuorumSettings,
        raft: QuorumConfig,
        min_isrs: dict[str, int],
        expiry_ranks: Mapping[int, int],
        kernel: Kernel,
        recorder: Recorder,
        key: int,
        committed: Callable[[RaftController, Sequence[RaftBatch]], None],
        claimed: Callable[[RaftController], None],
        crashed: Callable[[RaftController, str], None],
        members: dict[int, RaftMember],
    ) -> None:
        self.members = members
        self.period_times: dict[Situation, PeriodTimes] = {}
        self.machines = machines
        self.decide = decide
        self.config = config
        self.settings = settings
        self.raft = raft
        self.min_isrs = min_isrs
        self.expiry_ranks = expiry_ranks
        self.kernel = kernel
        self.recorder = recorder
        self.key = key
        self.committed = committed
        self.claimed = claimed
        self.crashed = crashed


class _ActiveSessions:
    """What a tracker of sessions needs of the active controller, as long as it is active."""

    def __init__(self, controller: RaftController) -> None:
        self.life: Gate = controller.life
        self._controller: RaftController | None = controller

    def end(self) -> None:
        """The controller is no longer active."""
        self._controller = None

    def end_elision(self) -> None:
        """See `sim.hosts.broker_heartbeat_tracker.Quorum.end_elision`."""
        if self._controller is not None:
            self._controller.end_idle()

    def fence(self, broker: int) -> None:
        """See `sim.hosts.broker_heartbeat_tracker.Quorum.fence`."""
        controller = self._controller
        if controller is not None:
            controller.run(lambda active: active.fence(broker))


class _Host(ReplicatedControllerHost):
    """Passes the callbacks of a `ReplicatedController` on."""

    __slots__ = ("_controller",)

    def __init__(self, controller: RaftController) -> None:
        self._controller = controller

    def claimed(self, epoch: int) -> None:
        self._controller.begin_activity(epoch)

    def renounced(self) -> None:
        self._controller.end_activity()

    def has_session(self, broker: int) -> bool:
        return self._controller.has_session(broker)

    def ask_log_info(self, broker: int, name: str) -> None:
        self._controller.send(broker, GetReplicaLogInfoRequest(broker, name))

    def record_recoveries(self, running: int, finished: int, manual: int) -> None:
        self._controller.recorder.record(steps.Recoveries(running, finished, manual))

    def schedule_recovery_timeout(self, timer: int, after_us: int) -> None:
        self._controller.schedule_recovery_timeout(timer, after_us)

    def reached(self, probe: int) -> None:
        self._controller.reached(probe)


class RaftController(Node):
    """See the module. Kafka: ControllerServer, ControllerApis.

    Attributes:
        incarnation: number of the process among those of its machine.
        member: its Raft thread.
        controller: decides.
        sessions: heartbeats of brokers, while it is active.
        recorder: records its steps.
    """

    __deletable__ = ("controller", "member")
    __slots__ = (
        "_active_sessions",
        "_setup",
        "controller",
        "incarnation",
        "kernel",
        "member",
        "reached",
        "recorder",
        "sessions",
    )

    controller: ReplicatedController
    member: RaftMember
    notes_peers = False

    def __init__(self, node: int, setup: ControllerSetup, early_us: int = 0) -> None:
        super().__init__(node)
        self._setup = setup
        self.kernel = setup.kernel
        self.recorder = setup.recorder
        self.reached = setup.recorder.coverage.reached
        machine = setup.machines[node]
        self.incarnation = machine.incarnation
        self.sessions: BrokerHeartbeatTracker | None = None
        self._active_sessions: _ActiveSessions | None = None
        self.controller = ReplicatedController(node, setup.decide, setup.config, _Host(self), setup.min_isrs)
        self.member = RaftMember(
            self,
            setup.kernel,
            setup.machines,
            machine,
            setup.decide,
            setup.raft,
            setup.key,
            self._on_commit,
            self._on_snapshot,
            SnapshotGenerator(self, machine.log, setup.settings.snapshot_interval_us, setup.kernel, setup.recorder),
            self._on_leader_change,
            self._on_leadership,
            self._on_crash,
            setup.members,
            early_us=early_us,
            always_flushes=setup.raft.has_bootstrap_servers,
        )
        self.controller.client = self.member.client

    def end(self) -> None:
        super().end()
        self.end_activity()
        self.member.end()

    def dispose(self) -> None:
        self.end_activity()
        self.member.dispose()
        self.controller.end_active()
        self.reached = noop
        del self.controller, self.member

    @property
    def active(self) -> QuorumController | None:
        """The state machine of the active controller, None for a standby."""
        return self.controller.active

    @property
    def epoch(self) -> int:
        """The epoch in which it is active, -1 for a standby."""
        return self.controller.claim_epoch

    # Raft.

    def _on_commit(self, batches: Sequence[RaftBatch]) -> None:
        self._setup.committed(self, batches)
        self.controller.handle_commit(batches)
        self.member.snapshots.published(batches[-1].end_offset)

    def _on_snapshot(self, snapshot: RaftSnapshot) -> None:
        step = steps.MetadataSnapshot(steps.SNAPSHOT_LOADED, self.node, snapshot, self.incarnation)
        self.recorder.record(step)
        self.controller.handle_load_snapshot(snapshot.id.offset, image_of(snapshot))
        self.member.snapshots.loaded()

    def _on_leader_change(self, leader: LeaderAndEpoch) -> None:
        self.controller.handle_leader_change(leader)

    def _on_leadership(self, epoch: int) -> None:
        self.recorder.record(steps.RaftLeader(self.node, epoch))

    def _on_crash(self, reason: str) -> None:
        self._setup.crashed(self, reason)

    def disconnected(self, peer: int) -> None:
        self.member.disconnected(peer)

    # Activity.

    def begin_activity(self, epoch: int) -> None:
        """Begin the periodic tasks, and sessions of registered brokers. Kafka: QuorumController#claim."""
        setup = self._setup
        active_sessions = self._active_sessions = _ActiveSessions(self)
        sessions = self.sessions = BrokerHeartbeatTracker(
            active_sessions,
            setup.settings.session_us,
            setup.kernel,
            keeps_fenced=setup.decide.keeps_fenced_sessions.yes(),
            begins_sessions=setup.decide.begins_sessions_at_activation,
            ranks=setup.expiry_ranks,
        )
        for broker, entry in sorted(self.controller.image.brokers.items()):
            sessions.take_over(broker, fenced=entry.fenced)
        sessions.begin()
        for broker in sorted(sessions.unfenced):
            sessions.schedule_check(broker)
        settings = setup.settings
        self._append_later(epoch)
        if settings.auto_balance:
            self._every(settings.balance_check_us, QuorumController.balance)
        self._every(settings.unclean_check_us, QuorumController.check_unclean)
        setup.claimed(self)
        # In an event of its own, as Kafka completes the activation.
        self.kernel.schedule(self.kernel.now_us, self.life, IdleCall(self._activate, epoch))

    def end_activity(self) -> None:
        """End sessions and periodic tasks. Kafka: QuorumController#renounce."""
        if self._active_sessions is not None:
            self._active_sessions.end()
        self._active_sessions = self.sessions = None

    def _activate(self, epoch: object) -> None:
        if epoch == self.epoch:
            self.run(QuorumController.activate)

    def _every(self, interval_us: int, task: Operation) -> None:
        timer = IdleCall(self._periodic, (self.epoch, interval_us, task))
        self.kernel.schedule(self.kernel.now_us + interval_us, self.life, timer)

    def _periodic(self, entry: tuple[int, int, Operation]) -> None:
        epoch, interval_us, task = entry
        if epoch == self.epoch:
            self.run(task)
            if epoch == self.epoch:
                self._every(interval_us, task)

    def _append_later(self, epoch: int) -> None:
        """Schedule the next NoOpRecord."""
        self.kernel.schedule(self.kernel.now_us + NO_OP_US, self.life, IdleCall(self.append_no_op, epoch))

    def append_no_op(self, epoch: object) -> None:
        """See `ActiveController.append_no_op`."""
        if epoch == self.epoch and not self._begin_idle_time():
            self.controller.append_no_op(self.kernel.now_us)
            self._after_event()
            self._append_later(self.epoch)

    def _begin_idle_time(self) -> bool:
        """Elide the record that is due, and what follows from it (`sim.hosts.idle_quorum`), if nothing else happens."""
        setup = self._setup
        return not self.controller.waits and begin_idle_time(self, setup.decide, setup.raft, setup.period_times)

    def skip_no_ops(self, count: int) -> None:
        """See `ActiveController.skip_no_ops`."""
        self.controller.skip_no_ops(count)

    def end_idle(self) -> None:
        self.member.end_idle()

    def schedule_recovery_timeout(self, timer: int, after_us: int) -> None:
        """See `RecoveryHost.schedule_recovery_timeout`."""
        timeout = IdleCall(self._recovery_timed_out, (self.epoch, timer))
        self.kernel.schedule(self.kernel.now_us + after_us, self.life, timeout)

    def _recovery_timed_out(self, entry: tuple[int, int]) -> None:
        epoch, timer = entry
        if epoch == self.epoch:
            self.run(lambda active: active.recovery_timed_out(timer))

    # Events.

    def run(self, operation: Operation, answer: Answer = noop) -> None:
        """Process an event of the active controller; the answer waits for its records."""
        self.end_idle()
        try:
            self.controller.run(operation, answer, self.kernel.now_us)
        except NotAssignedError as exception:
            answer(UNKNOWN_SERVER_ERROR, None)
            self.reached(probes.CONTROLLER_CRASHED)
            self.recorder.of(exception.name).record(steps.ControllerCrashed(str(exception)))
            self.controller.renounce()
        self._after_event()

    def resign(self) -> bool:
        """Stop to be active; False for a standby. Kafka: QuorumController#renounce."""
        if self.active is None:
            return False
        self.end_idle()
        self.controller.renounce()
        self.member.drive()
        return True

    def _after_event(self) -> None:
        """Follow the sessions of brokers whose state the event has changed, and let Raft append."""
        active, sessions = self.active, self.sessions
        if active is not None and sessions is not None:
            brokers = active.image.brokers
            for broker, entry in brokers.items():
                if entry.fenced:
                    sessions.unfenced.discard(broker)
                elif broker not in sessions.unfenced:
                    sessions.unfenced.add(broker)
                    sessions.schedule_check(broker)
            for broker in sessions.brokers:
                if broker not in brokers:
                    sessions.unregistered(broker)
        self.member.drive()

    def has_session(self, broker: int) -> bool:
        """See `QuorumControllerHost.has_session`."""
        self.end_idle()
        return self.sessions is not None and self.sessions.is_open(broker)

    # Elision of heartbeats: see `sim.environment.elision`.

    def is_keepalive(self, broker: int, broker_epoch: int, arrives_us: int, interval_us: int) -> bool:
        """Whether a heartbeat that arrives at that time, and others at that interval, would only keep the session."""
        active, sessions = self.active, self.sessions
        if active is None or sessions is None:
            return False
        brokers = active.image.brokers
        known = brokers.get(broker)
        return (
            known is not None
            and known.broker_epoch == broker_epoch
            and not known.fenced
            and not any(entry.shutting_down for entry in brokers.values())
            and sessions.cannot_expire(broker, arrives_us, interval_us)
        )

    def begin_heartbeats(self, broker: int, heard_us: Callable[[int], int]) -> None:
        """See `ActiveController.begin_heartbeats`."""
        assert self.sessions is not None
        self.sessions.elided[broker] = heard_us

    def end_heartbeats(self, broker: int, last_us: int, metadata_offset: int) -> None:
        """See `ActiveController.end_heartbeats`."""
        active, sessions = self.active, self.sessions
        assert active is not None
        assert sessions is not None
        del sessions.elided[broker]
        if last_us >= 0:
            sessions.note_heartbeat(broker, last_us)
            active.note_metadata_offset(broker, metadata_offset)

    # Messages.

    def send(self, node: int, message: Message) -> None:
        """Send a message to a broker."""
        channel = self.out.get(node) or self.reach(node)
        if channel is not None:
            channel.send(message)

    def receive(self, message: Event) -> None:
        self.end_idle()
        if isinstance(message, RaftRequest | RaftResponse):
            self.member.receive(message)
        elif isinstance(message, BrokerHeartbeatRequest):
            self._on_heartbeat(message)
        elif isinstance(message, AlterPartitionRequest):
            self._on_alter_partition(message)
        elif isinstance(message, BrokerRegistrationRequest):
            self._on_register(message)
        elif isinstance(message, GetReplicaLogInfoResponse):
            self._on_log_info(message)
        elif isinstance(message, AssignReplicasToDirsRequest):
            self._on_assign_replicas_to_dirs(message)
        else:
            super().receive(message)

    def _refuse(
        self,
        broker: int,
        request: BrokerHeartbeatRequest
        | BrokerRegistrationRequest
        | AlterPartitionRequest
        | AssignReplicasToDirsRequest,
    ) -> None:
        self.send(broker, NotControllerResponse(request))

    def _on_register(self, request: BrokerRegistrationRequest) -> None:
        """Kafka: ControllerApis#handleBrokerRegistration, QuorumController#registerBroker."""
        broker, active = request.broker, self.active
        if active is None:
            self._refuse(broker, request)
            return
        known = active.image.brokers.get(broker)
        again = known is not None and known.incarnation == request.incarnation

        def register(controller: QuorumController) -> object:
            registered = controller.register(
                broker, request.incarnation, request.previous_broker_epoch, request.directories
            )
            sessions = self.sessions
            if not registered.error and sessions is not None:
                if again:
                    sessions.note_reregistration(broker)
                else:
                    sessions.registered(broker)
            return registered

        def answer(error: str, result: object) -> None:
            if error == NOT_CONTROLLER:
                self._refuse(broker, request)
                return
            epoch = -1
            if isinstance(result, BrokerRegistrationReply):
                error, epoch = result.error, result.broker_epoch
            if not error and not again:
                step = steps.Registered(steps.REGISTERED, broker, request.incarnation, opens=False)
                self.recorder.record_for_all(step)
            self.send(broker, BrokerRegistrationResponse(request, error, epoch))

        self.run(register, answer)

    def _on_heartbeat(self, heartbeat: BrokerHeartbeatRequest) -> None:
        """Kafka: ControllerApis#handleBrokerHeartBeatRequest, QuorumController#processBrokerHeartbeat."""
        broker, active = heartbeat.broker, self.active
        if active is None:
            self._refuse(broker, heartbeat)
            return
        known = active.image.brokers.get(broker)
        if known is not None and known.broker_epoch == heartbeat.broker_epoch and self.sessions is not None:
            self.sessions.note_heartbeat(broker, self.kernel.now_us)

        def beat(controller: QuorumController) -> object:
            return controller.heartbeat(
                broker,
                heartbeat.broker_epoch,
                heartbeat.metadata_offset,
                want_fence=heartbeat.want_fence,
                want_shut_down=heartbeat.want_shut_down,
                offline_directories=heartbeat.offline_directories,
                cordoned=heartbeat.cordoned,
            )

        def answer(error: str, result: object) -> None:
            if error == NOT_CONTROLLER:
                self._refuse(broker, heartbeat)
            elif isinstance(result, BrokerHeartbeatReply):
                self.send(
                    broker,
                    BrokerHeartbeatResponse(
                        heartbeat,
                        result.error,
                        is_caught_up=result.is_caught_up,
                        is_fenced=result.is_fenced,
                        should_shut_down=result.should_shut_down,
                    ),
                )
            else:
                self.send(broker, BrokerHeartbeatResponse(heartbeat, error))

        self.run(beat, answer)

    def _on_alter_partition(self, request: AlterPartitionRequest) -> None:
        """Kafka: ControllerApis#handleAlterPartitionRequest, QuorumController#alterPartition."""
        if self.active is None:
            self._refuse(request.broker, request)
            return

        def alter(controller: QuorumController) -> object:
            return controller.alter_partition(request.broker, request.broker_epoch, request.changes)

        def answer(error: str, result: object) -> None:
            if error == NOT_CONTROLLER:
                self._refuse(request.broker, request)
            elif error != NONE:
                self.send(request.broker, AlterPartitionResponse(request, error, {}))
            else:
                assert isinstance(result, tuple)
                self.send(request.broker, AlterPartitionResponse(request, result[0], result[1]))

        self.run(alter, answer)

    def _on_assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest) -> None:
        """Kafka: ControllerApis#handleAssignReplicasToDirs, QuorumController#assignReplicasToDirs."""
        if self.active is None:
            self._refuse(request.broker, request)
            return
        self.run(
            lambda active: active.assign_directory(
                request.name, request.broker, request.broker_epoch, request.directory
            )
        )

    def _on_log_info(self, info: GetReplicaLogInfoResponse) -> None:
        if self.active is not None:
            self.run(lambda active: active.on_log_info(info))


def _on_raft(controller: RaftController, message: RaftRequest | RaftResponse) -> None:
    controller.member.receive(message)


if not COMPILED:
    RaftController.handlers = {RaftFetchRequest: _on_raft, RaftFetchResponse: _on_raft}
