"""The process of the active controller: its periodic tasks, its metadata log, and the sessions of brokers.

The quorum's Raft is not modelled: records appended by the active controller are committed in order and never lost.
`sim.hosts.metadata_log` delivers the log to brokers. When another controller takes over, the log stays and sessions
start afresh.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sim.history import steps
from sim.hosts.broker_heartbeat_tracker import BrokerHeartbeatTracker
from sim.hosts.control_plane import CONTROL, ControlPlane, ControlPlaneSetup
from sim.hosts.metadata_history import MetadataHistory
from sim.hosts.metadata_log import MetadataLog
from sim.hosts.settings import quorum_settings
from sim.kernel.message import Message
from sim.kernel.scheduler import ALWAYS, IdleCall
from sim.protocol import probes
from sim.protocol.kraft.metadata import MetadataImage, Record
from sim.protocol.kraft.quorum_controller import QuorumController
from sim.protocol.kraft.quorum_messages import GetReplicaLogInfoRequest
from sim.protocol.kraft.replication_control_manager import NotAssignedError

Task = Callable[[QuorumController], object]
"""A periodic task of the active controller."""


class ControllerServer:
    """See the module. Kafka: ControllerServer, QuorumController.

    Attributes:
        active: the active controller.
        epoch: the controller epoch: number of active controllers so far, including this one.
        log: the metadata log.
        sessions: heartbeats of brokers.
        history: records what is committed.
        settings: settings of the quorum.
    """

    __deletable__ = ("active", "history", "log", "sessions")
    __slots__ = (
        "_config",
        "_decide",
        "_failing_over",
        "_kernel",
        "_min_isrs",
        "_plane",
        "active",
        "epoch",
        "history",
        "life",
        "log",
        "reached",
        "sessions",
        "settings",
    )

    active: QuorumController

    def __init__(self, plane: ControlPlane, setup: ControlPlaneSetup) -> None:
        self._plane = plane
        self.life = plane.life
        self.reached = plane.reached
        self._kernel = setup.kernel
        self._decide = setup.decide
        self._config = setup.config
        self._min_isrs = setup.min_isrs
        self.settings = quorum_settings(setup.config)
        self.log = MetadataLog(plane, setup.kernel)
        self.epoch = 0
        self.sessions = BrokerHeartbeatTracker(
            self,
            self.settings.session_us,
            setup.kernel,
            keeps_fenced=setup.decide.keeps_fenced_sessions.yes(),
            begins_sessions=setup.decide.begins_sessions_at_activation,
            ranks=setup.expiry_ranks,
        )
        self.history = MetadataHistory(plane, setup.decide, self.sessions)
        self._failing_over = False
        self._take_over()

    def dispose(self) -> None:
        """See `Cluster.dispose`."""
        self.active.end()
        del self.active, self.history, self.log, self.sessions

    # Failover and periodic tasks.

    def _take_over(self) -> None:
        """Activate another controller, which knows only the log. Kafka: QuorumController#claim."""
        image = MetadataImage()
        if self.epoch:
            image = self.active.image
            self.active.end()
        self.epoch += 1
        settings = self.settings
        self.active = QuorumController(image, self._decide, self, self._config, self._min_isrs)
        self._plane.recorder.record_for_all(steps.Controller(CONTROL, self.epoch))
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
        self._plane.recorder.of(exception.name).record(steps.ControllerCrashed(str(exception)))
        self.fail_over(self.settings.election_us)

    def fail_over(self, gap_us: int) -> bool:
        """Resign; another controller takes over after that time. False if that has begun already.

        Kafka: QuorumController#renounce.
        """
        if self._failing_over:
            return False
        self._failing_over = True
        plane = self._plane
        plane.network.pause(plane)
        self._kernel.call_at(self._kernel.now_us + gap_us, ALWAYS, self._failed_over, None)
        return True

    def _failed_over(self, _: object) -> None:
        self._failing_over = False
        self._take_over()
        self._plane.network.resume(self._plane)
        self.active.activate()

    # What the controller asks of its process.

    def end_elision(self) -> None:
        """End elided exchanges: brokers will be told something."""
        self._plane.end_elision()

    def fence(self, broker: int) -> None:
        """See `sim.hosts.broker_heartbeat_tracker.Quorum.fence`."""
        self.active.fence(broker)

    def append(self, records: Sequence[Record]) -> None:
        """See `QuorumControllerHost.append`. Kafka: QuorumController#appendWriteEvent."""
        plane, log = self._plane, self.log
        plane.end_elision()
        first = len(log.records)
        for record in records:
            log.append(record)
        self.history.note(records, first, self.active)
        log.send_to_all(first, self.sessions.brokers)
        if plane.changed is not None:
            plane.changed()

    def has_session(self, broker: int) -> bool:
        """See `QuorumControllerHost.has_session`: a heartbeat arrived within ``broker.session.timeout.ms``."""
        return broker in self.sessions.suspended or self.sessions.is_open(broker)

    def send(self, broker: int, message: Message) -> None:
        """Send a message to a broker."""
        channel = self._plane.out.get(broker) or self._plane.reach(broker)
        if channel is not None:
            channel.send(message)

    def ask_log_info(self, broker: int, name: str) -> None:
        """See `RecoveryHost.ask_log_info`."""
        self.send(broker, GetReplicaLogInfoRequest(broker, name))

    def record_recoveries(self, running: int, finished: int, manual: int) -> None:
        """See `QuorumControllerHost.record_recoveries`."""
        self._plane.recorder.record(steps.Recoveries(running, finished, manual))

    def schedule_recovery_timeout(self, timer: int, after_us: int) -> None:
        """See `RecoveryHost.schedule_recovery_timeout`."""
        self._kernel.call_at(self._kernel.now_us + after_us, self.life, self._recovery_timed_out, (self.epoch, timer))

    def _recovery_timed_out(self, entry: tuple[int, int]) -> None:
        epoch, timer = entry
        if epoch == self.epoch:
            self.active.recovery_timed_out(timer)
