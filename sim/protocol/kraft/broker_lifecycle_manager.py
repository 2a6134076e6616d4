"""The lifecycle of a broker process: registration, heartbeats, failed log directories and controlled shutdown.

At most one request is in flight.
"""

from __future__ import annotations

from typing import Final

from sim.native import mypyc_attr
from sim.protocol.decisions import Decisions

NOT_RUNNING: Final = "not running"
STARTING: Final = "starting"
RECOVERY: Final = "recovery"
RUNNING: Final = "running"
PENDING_CONTROLLED_SHUTDOWN: Final = "pending controlled shutdown"
SHUTTING_DOWN: Final = "shutting down"

FIRST_RETRY_US: Final = 100_000
"""Initial back-off, which doubles with each failure, without Kafka's jitter of 2 % (rule ``lifecycle_retry=back-off``).

Kafka: BrokerLifecycleManager#resendExponentialBackoff (3.9).
"""
_DOUBLINGS: Final = 32
"""Enough doublings to reach the longest back-off."""
STARTING_US: Final = 10_000
"""Heartbeat interval until the controller reports that the broker has caught up."""
STOPPING_US: Final = 50_000
"""Heartbeat interval after the first response that the broker may not stop yet."""
REGISTRATION_TIMEOUT_US: Final = 60_000_000
"""``initial.broker.registration.timeout.ms``: a process not registered by then exits."""


def adopts_registration(decide: Decisions, broker_epoch: int, *, is_answer: bool) -> bool:
    """Whether a broker of this broker epoch, -1 without one, takes a response to a registration for that to its own.

    Args:
        decide: its rules.
        broker_epoch: its broker epoch.
        is_answer: whether it is the response to the request in flight.
    """
    accepts = decide.mutants.registration_of_another_request.when(not is_answer and broker_epoch < 0)
    return is_answer or accepts


@mypyc_attr(allow_interpreted_subclasses=True)
class LifecycleHost:
    """Callbacks to the broker."""

    __slots__ = ()

    def send_registration(self) -> None:
        """Register; `registered` or `failed` follows. Kafka: BrokerLifecycleManager#sendBrokerRegistration."""
        raise NotImplementedError

    def send_heartbeat(self, *, want_fence: bool, want_shut_down: bool) -> None:
        """Send one; `heartbeat_answered` or `failed` follows. Kafka: BrokerLifecycleManager#sendBrokerHeartbeat."""
        raise NotImplementedError

    def communicate_after(self, after_us: int, number: int) -> None:
        """Call `communicate` with the number after that time."""
        raise NotImplementedError

    def time_out_registration_after(self, after_us: int) -> None:
        """Call `registration_timed_out` after that time."""
        raise NotImplementedError

    def time_out_directory_report(self, number: int) -> None:
        """Call `directory_report_timed_out` with the number after ``log.dir.failure.timeout.ms``."""
        raise NotImplementedError

    def directory_unreported(self) -> None:
        """The process shuts down, because it could not report a failed log directory."""
        raise NotImplementedError

    def caught_up(self) -> None:
        """The controller reported that the broker has caught up. Kafka: BrokerLifecycleManager#initialCatchUpFuture."""
        raise NotImplementedError

    def shutting_down(self) -> None:
        """The process stops, in a controlled way or because it was not registered in time."""
        raise NotImplementedError


class BrokerLifecycleManager:
    """The state of a broker process, and its next request to the controller. Kafka: BrokerLifecycleManager.

    Args:
        host: the broker.
        decide: its rules.
        heartbeat_us: ``broker.heartbeat.interval.ms`` in us.
        session_us: ``broker.session.timeout.ms`` in us, the longest back-off.

    Attributes:
        state: one of the constants of this module.
        in_flight: whether a request is in flight.
        offline_directories: ids of failed log directories, which all heartbeats carry.
        unreported: whether no answered heartbeat had all of them.
        cordoned: ids of cordoned log directories, which all heartbeats carry once the broker has caught up.
        cordon_unreported: whether no answered heartbeat had these.
    """

    __slots__ = (
        "_communicate_immediately",
        "_decide",
        "_failures",
        "_heartbeat_us",
        "_host",
        "_is_answered",
        "_is_registered",
        "_number",
        "_ready_to_unfence",
        "_session_us",
        "_shutdown_delayed",
        "cordon_unreported",
        "cordoned",
        "in_flight",
        "offline_directories",
        "state",
        "unreported",
    )

    def __init__(self, host: LifecycleHost, decide: Decisions, heartbeat_us: int, session_us: int) -> None:
        self._host = host
        self._decide = decide
        self._heartbeat_us = heartbeat_us
        self._session_us = session_us
        self.state = NOT_RUNNING
        self.in_flight = False
        self._is_registered = False
        self._ready_to_unfence = False
        self._shutdown_delayed = False
        self._communicate_immediately = False
        self._failures = 0
        self._number = 0
        self.offline_directories: tuple[int, ...] = ()
        self.unreported = False
        self.cordoned: tuple[int, ...] = ()
        self.cordon_unreported = False
        self._is_answered = True
        """Whether a heartbeat was answered since the last log directory failed."""

    def start(self) -> None:
        """Start the process. Kafka: BrokerLifecycleManager#start, BrokerLifecycleManager.StartupEvent#run."""
        self.state = STARTING
        self._host.time_out_registration_after(REGISTRATION_TIMEOUT_US)
        self._register()

    def set_ready_to_unfence(self) -> None:
        """Allow unfencing: logs are loaded, metadata was published. Kafka: BrokerLifecycleManager#setReadyToUnfence."""
        self._ready_to_unfence = True
        self._communicate_after(0)

    def begin_controlled_shutdown(self) -> None:
        """Ask the controller for controlled shutdown; stop at once unless the broker is running.

        Kafka: BrokerLifecycleManager#beginControlledShutdown, BrokerLifecycleManager.BeginControlledShutdownEvent#run.
        """
        if self.state == RUNNING:
            self.state = PENDING_CONTROLLED_SHUTDOWN
            self._communicate_after(0)
        elif self.state != PENDING_CONTROLLED_SHUTDOWN:
            self._shut_down()

    def propagate_directory_failure(self, directory: int) -> None:
        """Report a failed log directory with the next heartbeats, the first of them at once.

        There is one timeout: that of an earlier failure is replaced.
        Kafka: BrokerLifecycleManager#propagateDirectoryFailure, BrokerLifecycleManager.OfflineDirEvent#run (3.9-4.4).
        """
        self.offline_directories = (*self.offline_directories, directory)
        self.unreported = True
        self._is_answered = False
        if self._is_registered:
            self._communicate_after(0)
        self._host.time_out_directory_report(len(self.offline_directories))

    def propagate_directory_cordoned(self, cordoned: tuple[int, ...]) -> None:
        """Tell of the cordoned log directories with the next heartbeats, the first of them at once.

        Kafka: BrokerLifecycleManager#propagateDirectoryCordoned (4.3-4.4),
        BrokerLifecycleManager.CordonedDirEvent#run (4.3-4.4).
        """
        self.cordoned = cordoned
        self.cordon_unreported = True
        if self._is_registered:
            self._communicate_after(0)

    @property
    def reported_cordoned(self) -> tuple[int, ...]:
        """The cordoned log directories that a heartbeat carries now."""
        return () if self.state in (NOT_RUNNING, STARTING) else self.cordoned

    def directory_report_timed_out(self, number: int) -> None:
        """Shut down, unless a heartbeat was answered since the last log directory failed.

        Kafka: BrokerLifecycleManager.OfflineDirBrokerFailureEvent#run (3.9-4.4).
        """
        if number == len(self.offline_directories) and not self._is_answered:
            self._host.directory_unreported()

    def note_report(self, offline_directories: tuple[int, ...]) -> None:
        """Note the response to a heartbeat that had these `offline_directories`.

        It counts for all directories that have failed by now, though the request may have been sent before:
        BrokerHeartbeatResponseHandler gets a view of the map's keys. The next heartbeat has them.
        Kafka: BrokerLifecycleManager.BrokerHeartbeatResponseEvent#run.
        """
        self._is_answered = True
        self.unreported = len(offline_directories) < len(self.offline_directories)

    def communicate(self, number: int) -> None:
        """Handle a timer of `LifecycleHost.communicate_after`. Kafka: BrokerLifecycleManager.CommunicationEvent#run."""
        if number != self._number or self.state == SHUTTING_DOWN:
            return
        if self.in_flight:
            self._communicate_immediately = True
        elif self._is_registered:
            self.in_flight = True
            self._host.send_heartbeat(
                want_fence=self.wants_fence, want_shut_down=self.state == PENDING_CONTROLLED_SHUTDOWN
            )
        else:
            self._register()

    def registered(self) -> None:
        """Handle a successful registration. Kafka: BrokerLifecycleManager.BrokerRegistrationResponseEvent#run."""
        if self.state == SHUTTING_DOWN:
            return
        self.in_flight = False
        self._failures = 0
        self._is_registered = True
        self._communicate_after(0)

    def failed(self) -> None:
        """Handle a failed or timed-out request. Kafka: BrokerLifecycleManager#scheduleNextCommunicationAfterFailure."""
        if self.state == SHUTTING_DOWN:
            return
        self.in_flight = False
        self._communicate_immediately = False
        if self._decide.lifecycle_backs_off.yes():
            wait_us = min(FIRST_RETRY_US << min(self._failures, _DOUBLINGS), self._session_us)
            self._failures += 1
        else:
            wait_us = self._heartbeat_us
        self._communicate_after(wait_us)

    def heartbeat_answered(self, *, is_caught_up: bool, is_fenced: bool, should_shut_down: bool) -> None:
        """Handle a successful heartbeat response. Kafka: BrokerLifecycleManager.BrokerHeartbeatResponseEvent#run."""
        if self.state == SHUTTING_DOWN:
            return
        self.in_flight = False
        self._failures = 0
        if self.state == STARTING:
            if is_caught_up:
                self.state = RECOVERY
            self._communicate_after(STARTING_US)
            if is_caught_up:
                self._host.caught_up()
        elif self.state == PENDING_CONTROLLED_SHUTDOWN:
            if should_shut_down:
                self._shut_down()
            else:
                self._communicate_after(self._heartbeat_us if self._shutdown_delayed else STOPPING_US)
                self._shutdown_delayed = True
        else:
            if self.state == RECOVERY and not is_fenced:
                self.state = RUNNING
            self._communicate_after(self._heartbeat_us)

    @property
    def wants_fence(self) -> bool:
        """Whether its heartbeats ask to keep it fenced, because it is not ready."""
        return not self._ready_to_unfence

    @property
    def interval_us(self) -> int:
        """Time from a response that is a no-op to the next heartbeat."""
        return STARTING_US if self.state == STARTING else self._heartbeat_us

    def is_steady(self, *, fenced: bool) -> bool:
        """Whether a response equal to the last is a no-op: the broker runs unfenced, or it starts and has not caught up
        yet; and the last request did not fail.
        """
        return not (self._failures or self.unreported or self.cordon_unreported) and self.state == (
            STARTING if fenced else RUNNING
        )

    def resume(self, after_us: int) -> None:
        """Account for elided heartbeats; none is in flight, and the next follows after `after_us`."""
        self.in_flight = False
        self._communicate_after(after_us)

    def registration_timed_out(self) -> None:
        """Handle the registration timeout. Kafka: BrokerLifecycleManager.RegistrationTimeoutEvent#run."""
        if not self._is_registered:
            self._shut_down()

    def _register(self) -> None:
        """Kafka: BrokerLifecycleManager#sendBrokerRegistration."""
        self.in_flight = True
        self._host.send_registration()

    def _communicate_after(self, after_us: int) -> None:
        """Schedule the next request, replacing an earlier one. Kafka:
        BrokerLifecycleManager#scheduleNextCommunication.
        """
        wait_us = 0 if self._communicate_immediately else after_us
        self._communicate_immediately = False
        self._number += 1
        if wait_us:
            self._host.communicate_after(wait_us, self._number)
        else:
            self.communicate(self._number)

    def _shut_down(self) -> None:
        """Kafka: BrokerLifecycleManager#beginShutdown."""
        if self.state != SHUTTING_DOWN:
            self.state = SHUTTING_DOWN
            self._host.shutting_down()
