"""Registration, heartbeats and shutdown of a KRaft broker: sends what its `BrokerLifecycleManager` decides."""

from __future__ import annotations

from sim.environment.network import Channel
from sim.environment.storage import LogDirectory
from sim.hosts.broker import NOT_REGISTERED, SHUTDOWN, Broker
from sim.hosts.control_plane import CONTROL
from sim.hosts.node_to_controller_channel_manager import NodeToControllerChannelManager
from sim.hosts.peers import QuorumSessions
from sim.kernel.scheduler import Event, Gate, IdleCall
from sim.protocol import probes
from sim.protocol.kraft.broker_lifecycle_manager import (
    RECOVERY,
    RUNNING,
    BrokerLifecycleManager,
    LifecycleHost,
    adopts_registration,
)
from sim.protocol.kraft.quorum_messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)


class _Communication(Event):
    """Timer of the next registration or heartbeat."""

    __slots__ = ("_manager", "_number")
    elision_safe = True

    def __init__(self, manager: BrokerLifecycleManager, number: int) -> None:
        self._manager = manager
        self._number = number

    def happen(self, _: Gate) -> None:
        self._manager.communicate(self._number)


class BrokerLifecycle(LifecycleHost):
    """See the module. Kafka: BrokerLifecycleManager.

    Attributes:
        manager: decides which request is next.
        fenced: whether the broker is fenced according to the last response of the controller.
        wants_shut_down: whether the broker is asked to shut down, or has decided to.
        ending: why the broker exits, once it has begun to.
        previous_broker_epoch: the broker epoch in the clean-shutdown files, which it registers with.
    """

    __deletable__ = ("manager",)
    __slots__ = (
        "_broker",
        "_channel",
        "_in_phase",
        "_registered_directories",
        "ending",
        "fenced",
        "manager",
        "previous_broker_epoch",
        "wants_shut_down",
    )

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        settings = broker.settings
        self.manager = BrokerLifecycleManager(self, broker.decide, settings.heartbeat_us, settings.session_us)
        # BrokerServer gives this channel half the session timeout (KAFKA-14392). Its earlier resends, if
        # ``controller.socket.timeout.ms`` is shorter, are not modelled.
        self._channel = NodeToControllerChannelManager(broker, settings.session_us // 2, self.manager.failed)
        self.fenced = True
        self._in_phase = False
        """Whether the first interval between heartbeats has begun."""
        self.previous_broker_epoch = -1
        self._registered_directories: tuple[int, ...] = ()
        self.wants_shut_down = False
        self.ending = ""

    def end(self) -> None:
        """Stop, because the process ended."""
        self._channel.end()

    def dispose(self) -> None:
        """See `Cluster.dispose`."""
        del self.manager

    # Registration.

    def start(self) -> None:
        """Register."""
        broker = self._broker
        directories = broker.directories
        self.previous_broker_epoch = directories.clean_broker_epoch
        used = directories.used_broker_epoch
        if used != self.previous_broker_epoch and broker.decide.ignores_offline_directories.yes():
            self.previous_broker_epoch = used
        directories.forget_epochs_before_failure()
        self._registered_directories = tuple([directory.number for directory in broker.live_directories])
        self.manager.start()
        if directories.cordoned:
            self.cordon()

    def send_registration(self) -> None:
        """See `LifecycleHost.send_registration`."""
        broker = self._broker
        self._channel.send(
            BrokerRegistrationRequest(
                broker.node, broker.incarnation, self.previous_broker_epoch, self._registered_directories
            )
        )

    def on_registered(self, reply: BrokerRegistrationResponse) -> bool:
        """Handle the response to a registration, which is refused while an earlier incarnation may be alive. Returns
        whether the broker is registered by it.
        """
        broker = self._broker
        is_answer = reply.request is self._channel.in_flight
        if not adopts_registration(broker.decide, broker.broker_epoch, is_answer=is_answer):
            return False
        self._channel.in_flight = None
        if reply.error:
            broker.reached(probes.REGISTRATION_REFUSED)
            self.manager.failed()
            return False
        broker.broker_epoch = reply.broker_epoch
        self.manager.registered()
        return True

    def time_out_registration_after(self, after_us: int) -> None:
        """See `LifecycleHost.time_out_registration_after`."""
        broker = self._broker
        timeout = IdleCall(self._registration_timed_out, None)
        broker.kernel.schedule(broker.kernel.now_us + after_us, broker.life, timeout)

    def _registration_timed_out(self, _: object) -> None:
        self.manager.registration_timed_out()

    # Heartbeats.

    def send_heartbeat(self, *, want_fence: bool, want_shut_down: bool) -> None:
        """See `LifecycleHost.send_heartbeat`."""
        broker, manager = self._broker, self.manager
        channel: Channel[QuorumSessions] | None = broker.out.get(CONTROL)
        if channel is not None and self._can_elide_pings(channel):
            interval_us = self._round_trip_us(channel) + manager.interval_us
            if broker.elide_pings(channel, interval_us):
                return
        request = self.new_heartbeat(want_fence=want_fence, want_shut_down=want_shut_down)
        if not broker.zombie:
            channel = broker.reach(CONTROL)
            assert channel is not None
            channel.send_usually(request)
        self._channel.await_response(request, broker.kernel.now_us)

    def new_heartbeat(self, *, want_fence: bool, want_shut_down: bool) -> BrokerHeartbeatRequest:
        """A heartbeat that reports the present state."""
        broker, manager = self._broker, self.manager
        return BrokerHeartbeatRequest(
            broker.node,
            broker.broker_epoch,
            broker.metadata_offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offline_directories=manager.offline_directories,
            cordoned=manager.reported_cordoned,
        )

    def _round_trip_us(self, channel: Channel[QuorumSessions]) -> int:
        """Round trip of an elided heartbeat."""
        return channel.usual_us + channel.target.response_latency_us(self._broker.node)

    def communicate_after(self, after_us: int, number: int) -> None:
        """See `LifecycleHost.communicate_after`."""
        broker = self._broker
        if not self._in_phase and self.manager.state == RUNNING:
            self._in_phase = True
            after_us = broker.first_interval_us(after_us)
        communication = _Communication(self.manager, number)
        broker.kernel.schedule_first(broker.kernel.now_us + after_us, broker.life, communication)

    def _can_elide_pings(self, channel: Channel[QuorumSessions]) -> bool:
        """Whether this and later heartbeats and their responses will arrive and change nothing but the session."""
        broker, manager = self._broker, self.manager
        if broker.zombie or not manager.is_steady(fenced=self.fenced):
            return False
        controller = channel.target
        if not broker.network.is_steady(broker, controller):
            return False
        round_us, node = self._round_trip_us(channel), broker.node
        return (
            round_us < self._channel.timeout_us
            and controller.is_keepalive(
                node, broker.broker_epoch, broker.metadata_offset, want_fence=manager.wants_fence
            )
            and controller.cannot_expire(node, broker.kernel.now_us + channel.usual_us, round_us + manager.interval_us)
        )

    def resume_pings(self, channel: Channel[QuorumSessions], sent_us: int, next_us: int) -> None:
        """See `ElidingBroker.resume_pings`."""
        broker, manager = self._broker, self.manager
        now_us = broker.kernel.now_us
        arrives_us, answered_us = sent_us + channel.usual_us, sent_us + self._round_trip_us(channel)
        if answered_us <= now_us:
            manager.resume(next_us - now_us)
            return
        request = BrokerHeartbeatRequest(
            broker.node,
            broker.broker_epoch,
            broker.metadata_offset,
            want_fence=manager.wants_fence,
            want_shut_down=False,
            cordoned=manager.reported_cordoned,
        )
        self._channel.await_response(request, sent_us)
        if arrives_us > now_us:
            channel.deliver_at(arrives_us, request)
        else:
            channel.target.deliver_response(request, answered_us)

    def on_heartbeat_reply(self, reply: BrokerHeartbeatResponse) -> None:
        """Handle the response to a heartbeat."""
        request = reply.request
        if not self._channel.is_answered_by(request):
            return
        manager = self.manager
        if reply.error:
            manager.failed()
            return
        self.fenced = reply.is_fenced
        if manager.unreported:
            manager.note_report(request.offline_directories)
        if request.cordoned == manager.cordoned:
            manager.cordon_unreported = False
        manager.heartbeat_answered(
            is_caught_up=reply.is_caught_up, is_fenced=reply.is_fenced, should_shut_down=reply.should_shut_down
        )

    def caught_up(self) -> None:
        """See `LifecycleHost.caught_up`."""
        self.request_unfencing()

    def request_unfencing(self) -> None:
        """Ask to be unfenced once the controller knows that the broker has caught up, and metadata was published."""
        if self._broker.ready and self.manager.state == RECOVERY:
            self.manager.set_ready_to_unfence()

    # Log directories.

    def cordon(self) -> None:
        """See `Broker.cordon`. Kafka: DirectoryEventHandler#handleCordoned (4.3-4.4)."""
        self._broker.end_elision()
        self.manager.propagate_directory_cordoned(self._broker.directories.cordoned)

    def report_failed(self, directory: LogDirectory) -> None:
        """See `Broker.report_failed`. Kafka: DirectoryEventHandler#handleFailure (3.9-4.4)."""
        self.manager.propagate_directory_failure(directory.number)

    def time_out_directory_report(self, number: int) -> None:
        """See `LifecycleHost.time_out_directory_report`."""
        broker = self._broker
        due_us = broker.kernel.now_us + broker.settings.directory_failure_us
        broker.kernel.call_at(due_us, broker.life, self._directory_report_timed_out, number)

    def _directory_report_timed_out(self, number: int) -> None:
        self.manager.directory_report_timed_out(number)

    def directory_unreported(self) -> None:
        """See `LifecycleHost.directory_unreported`: the shutdown hook stops the broker in a controlled way."""
        self._broker.reached(probes.DIRECTORY_UNREPORTED)
        self.begin_shutdown()

    # Shutdown.

    def begin_shutdown(self) -> None:
        """See `Broker.begin_shutdown`: heartbeats request it until the controller allows it."""
        self.wants_shut_down = True
        self.manager.begin_controlled_shutdown()

    def shutting_down(self) -> None:
        """See `LifecycleHost.shutting_down`."""
        self.ending = SHUTDOWN if self.wants_shut_down else NOT_REGISTERED
        self.exit_if_ending()

    def exit_if_ending(self) -> None:
        """Let the broker exit if it is about to: its logs are closed once all log directories answer."""
        if self.ending and not self._broker.backlog.stalled:
            self._broker.exit(self.ending)
