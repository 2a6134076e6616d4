"""Broker sessions at the active controller of a KRaft quorum, kept by heartbeats.

At exactly the timeout a session is still valid. Up to 3.9 it expires right after that. Since 4.0 the active controller
checks eight times per timeout, fences one expired broker, and checks again 10 ms later; so brokers that fall silent
together are fenced one after the other. Of several expired ones, Kafka fences the first of a hash map whose keys are
pairs of id and broker epoch; here, each broker has a random rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from sim.kernel.scheduler import Event, Gate, Kernel
from sim.protocol.decisions import Decision

CHECKS_PER_TIMEOUT: Final = 8
"""Checks for expired sessions per timeout. Kafka: QuorumController#maybeFenceStaleBrokerPeriodNs (4.1-4.4)."""
_SHORTEST_PERIOD_US: Final = 1_000
RECHECK_US: Final = 10_000
"""How soon sessions are checked again after fencing one. Kafka: PeriodicTask#DEFAULT_IMMEDIATE_PERIOD_NS (4.1-4.4)."""


class Quorum(Protocol):
    """What keeps sessions: the quorum of a simulation, or a test's.

    Attributes:
        life: through which timers come.
    """

    life: Gate

    def end_elision(self) -> None:
        """End elided exchanges: brokers will be told something."""

    def fence(self, broker: int) -> None:
        """Let the active controller fence a broker whose session has expired."""


class _HeartbeatTimeout(Event):
    """Checks whether a session has expired."""

    __slots__ = ("_broker", "_tracker")
    elision_safe = True

    def __init__(self, tracker: BrokerHeartbeatTracker, broker: int) -> None:
        self._tracker = tracker
        self._broker = broker

    def happen(self, _: Gate) -> None:
        self._tracker.check(self._broker)


class _Session:
    """A broker's session.

    Attributes:
        heard_us: time of the last heartbeat; -1: there is no session.
        check_us: when its expiry is checked; -1: no check is scheduled.
    """

    __slots__ = ("check_us", "heard_us")

    def __init__(self) -> None:
        self.heard_us = -1
        self.check_us = -1


class BrokerHeartbeatTracker:
    """The time of each broker's last heartbeat. Kafka: BrokerHeartbeatTracker (4.1-4.4), BrokerHeartbeatManager.

    Args:
        keeps_fenced: whether it is Kafka 4's, in which fenced brokers have sessions.
        begins_sessions: rule ``activation_sessions``, which decides only in Kafka 4's.
        ranks: broker -> its place in Kafka 4's map.

    Attributes:
        suspended: brokers whose heartbeats are elided, so that their sessions do not expire.
        elided: broker whose heartbeats to a replicated quorum are elided -> when the last before a time arrived; -1:
            none did.
        unfenced: the unfenced brokers.
    """

    def __init__(
        self,
        quorum: Quorum,
        session_us: int,
        kernel: Kernel,
        *,
        keeps_fenced: bool,
        begins_sessions: Decision,
        ranks: Mapping[int, int],
    ) -> None:
        self._quorum = quorum
        self._session_us = session_us
        self._kernel = kernel
        self._keeps_fenced = keeps_fenced
        self._begins_sessions = begins_sessions
        self._ranks = ranks
        self._period_us = max(_SHORTEST_PERIOD_US, session_us // CHECKS_PER_TIMEOUT)
        self._next_check_us = 0
        self._registered: set[int] = set()
        self._sessions: dict[int, _Session] = {}
        self.unfenced: set[int] = set()
        self.suspended: set[int] = set()
        self.elided: dict[int, Callable[[int], int]] = {}

    @property
    def brokers(self) -> list[int]:
        """All registered brokers, by id."""
        return sorted(self._registered)

    def registered(self, broker: int) -> None:
        """Note a new incarnation, whose session begins with its first heartbeat."""
        self._registered.add(broker)
        self.end(broker)

    def take_over(self, broker: int, *, fenced: bool) -> None:
        """Note, before `begin`, a broker that the metadata has."""
        self._registered.add(broker)
        self._session(broker)
        if not fenced:
            self.unfenced.add(broker)

    def unregistered(self, broker: int) -> None:
        """Forget a broker. Kafka: BrokerHeartbeatManager#remove."""
        self._registered.discard(broker)
        self.unfenced.discard(broker)
        self.end(broker)

    def note_heartbeat(self, broker: int, at_us: int) -> None:
        """Note a heartbeat.

        Kafka: BrokerHeartbeatTracker#updateContactTime (4.1-4.4), BrokerHeartbeatManager#touch.
        """
        session = self._session(broker)
        session.heard_us = max(session.heard_us, at_us)
        if self._keeps_fenced and session.check_us < 0:
            self._schedule_check(broker, session)

    def note_reregistration(self, broker: int) -> None:
        """Note that the same incarnation registered again: up to 3.9 this renews its session, unless it is fenced."""
        if not self._keeps_fenced and broker in self.unfenced:
            self.note_heartbeat(broker, self._kernel.now_us)

    def end(self, broker: int) -> None:
        """End a broker's session, if it has one."""
        self._session(broker).heard_us = -1

    def _session(self, broker: int) -> _Session:
        session = self._sessions.get(broker)
        if session is None:
            session = self._sessions[broker] = _Session()
        return session

    def begin(self) -> None:
        """Begin as a new active controller: unfenced brokers get fresh sessions, others none.

        With rule ``activation_sessions=at-heartbeat`` no broker has a session before its first heartbeat, and so one
        that sends none is never fenced.
        Kafka: ClusterControlManager#activate.
        """
        self._next_check_us = self._kernel.now_us + self._period_us
        for session in self._sessions.values():
            session.heard_us = -1
        if not self.unfenced or not self._keeps_fenced or self._begins_sessions.yes():
            for broker in sorted(self.unfenced):
                self._session(broker).heard_us = self._kernel.now_us
        if self._keeps_fenced:
            self._reschedule_checks()

    def renew_sessions(self) -> None:
        """Renew all sessions."""
        for broker, session in self._sessions.items():
            if session.heard_us >= 0 and (self._keeps_fenced or broker in self.unfenced):
                session.heard_us = self._kernel.now_us

    def valid_until_us(self, broker: int) -> int:
        """End of a broker's session unless another heartbeat arrives; -1 without a session."""
        return self._ends_us(self._session(broker))

    def _ends_us(self, session: _Session) -> int:
        return session.heard_us + self._session_us if session.heard_us >= 0 else -1

    def is_open(self, broker: int) -> bool:
        """Whether a broker's last heartbeat is within the timeout.

        Kafka: BrokerHeartbeatTracker#hasValidSession (4.1-4.4), BrokerHeartbeatManager#hasValidSession.
        """
        return self.valid_until_us(broker) >= self._kernel.now_us

    def cannot_expire(self, broker: int, arrives_us: int, interval_us: int) -> bool:
        """Whether a session cannot expire if a heartbeat arrives at that time and others follow at that interval."""
        return max(arrives_us - self._session(broker).heard_us, interval_us) <= self._session_us

    def schedule_check(self, broker: int) -> None:
        """Schedule the check of a session's expiry."""
        session = self._session(broker)
        if session.check_us < 0:
            self._schedule_check(broker, session)

    def _schedule_check(self, broker: int, session: _Session) -> None:
        if session.heard_us >= 0:
            session.check_us = self._fenced_at_us(session)
            self._kernel.schedule(session.check_us, self._quorum.life, _HeartbeatTimeout(self, broker))

    def _reschedule_checks(self) -> None:
        """Reschedule all checks."""
        for broker, session in sorted(self._sessions.items()):
            session.check_us = -1
            if broker not in self.suspended:
                self._schedule_check(broker, session)

    def _fenced_at_us(self, session: _Session) -> int:
        """When a broker is fenced unless another heartbeat arrives."""
        over_us = self._ends_us(session)
        if not self._keeps_fenced:
            return over_us + 1
        checks = (over_us - self._next_check_us) // self._period_us + 1
        return self._next_check_us + max(0, checks) * self._period_us

    def check(self, broker: int) -> None:
        """Fence expired brokers: up to 3.9 all, by id, since several may be due at once after `renew_sessions`; since
        4.0 the first only, and the others at later checks.

        Kafka: BrokerHeartbeatTracker#maybeRemoveExpired (4.1-4.4), BrokerHeartbeatManager#findOneStaleBroker (3.9),
        ReplicationControlManager#maybeFenceOneStaleBroker.
        """
        now_us = self._kernel.now_us
        session = self._session(broker)
        if not 0 <= session.check_us <= now_us:
            return  # The check was rescheduled.
        session.check_us = -1
        if not self._may_expire(broker, session) or broker in self.suspended:
            return
        if self.elided and broker in self.elided:
            session.heard_us = max(session.heard_us, self.elided[broker](now_us))
        if self._fenced_at_us(session) > now_us:
            self._schedule_check(broker, session)
            return
        self._quorum.end_elision()
        due = [
            other
            for other, known in sorted(self._sessions.items())
            if self._may_expire(other, known) and self._fenced_at_us(known) <= now_us
        ]
        if self._keeps_fenced:
            due = [min(due, key=self._ranks.__getitem__)]
            self._next_check_us = now_us + RECHECK_US
        for other in due:
            self.end(other)
            self._quorum.fence(other)
        if self._keeps_fenced:
            self._reschedule_checks()

    def _may_expire(self, broker: int, session: _Session) -> bool:
        """Whether a broker is fenced if no heartbeat arrives: it has a session or, up to 3.9, is unfenced."""
        return session.heard_us >= 0 if self._keeps_fenced else broker in self.unfenced
