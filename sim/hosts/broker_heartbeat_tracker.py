"""Sessions that heartbeats keep, as the active controller of a quorum has them.

At exactly the timeout a session is still valid. Up to 3.9 it ends right after that. Since 4.0 the active controller
looks eight times a timeout, fences one broker whose time is over, and looks again 10 ms later; so two that fall silent
together are fenced one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.kernel.scheduler import Event, Gate, Kernel

if TYPE_CHECKING:
    from sim.hosts.controller_quorum import ControllerQuorum

LOOKS: Final = 8
"""So often in a timeout sessions are looked at. Kafka: QuorumController#maybeFenceStaleBrokerPeriodNs (4.1-4.3)."""
_LEAST_US: Final = 1_000
AGAIN_US: Final = 10_000
"""How soon sessions are checked again after fencing one. Kafka: PeriodicTask#DEFAULT_IMMEDIATE_PERIOD_NS (4.1-4.3)."""


class _SessionTimeout(Event):
    """A session may be over."""

    __slots__ = ("_broker", "_tracker")
    elision_safe = True

    def __init__(self, tracker: BrokerHeartbeatTracker, broker: int) -> None:
        self._tracker = tracker
        self._broker = broker

    def happen(self, _: Gate) -> None:
        self._tracker.check(self._broker)


class BrokerHeartbeatTracker:
    """When each broker was heard of last. Kafka: BrokerHeartbeatTracker (4.1-4.3), BrokerHeartbeatManager.

    Args:
        quorum: who fences those that are silent for too long.
        session_us: ``broker.session.timeout.ms`` in us.
        kernel: time and timers.
        keeps_fenced: whether sessions of fenced brokers count (rule ``fenced_session``).

    Attributes:
        going_on: brokers whose sessions are kept by elided heartbeats.
        unfenced: the brokers that are.
    """

    def __init__(self, quorum: ControllerQuorum, session_us: int, kernel: Kernel, *, keeps_fenced: bool) -> None:
        self._quorum = quorum
        self._session_us = session_us
        self._kernel = kernel
        self._keeps_fenced = keeps_fenced
        self._period_us = max(_LEAST_US, session_us // LOOKS)
        self._look_us = 0
        self._registered: set[int] = set()
        self._heard_us: dict[int, int] = {}
        self._watched: dict[int, int] = {}
        self.unfenced: set[int] = set()
        self.going_on: set[int] = set()

    @property
    def brokers(self) -> list[int]:
        """All that ever registered, in order of ids."""
        return sorted(self._registered)

    def registered(self, broker: int) -> None:
        """A new incarnation registered: its session begins with its first heartbeat."""
        self._registered.add(broker)
        self.end(broker)

    def heard(self, broker: int, at_us: int) -> None:
        """A broker sent a heartbeat at a time.

        Kafka: BrokerHeartbeatTracker#updateContactTime (4.1-4.3), BrokerHeartbeatManager#touch.
        """
        self._heard_us[broker] = max(self._heard_us.get(broker, 0), at_us)
        if self._keeps_fenced:
            self.watch(broker)

    def registered_again(self, broker: int) -> None:
        """The same incarnation registered: up to 3.9 its session begins anew, if it is not fenced."""
        if not self._keeps_fenced and broker in self.unfenced:
            self.heard(broker, self._kernel.now_us)

    def end(self, broker: int) -> None:
        """A broker's session is over, if it has one."""
        self._heard_us.pop(broker, None)

    def begin(self) -> None:
        """Another controller is active: it has heard of unfenced brokers now, and not of others."""
        self._look_us = self._kernel.now_us + self._period_us
        self._heard_us = dict.fromkeys(sorted(self.unfenced), self._kernel.now_us)
        if self._keeps_fenced:
            self._watch_all()

    def touch(self) -> None:
        """All sessions get their full timeout."""
        for broker in self._heard_us:
            if self._keeps_fenced or broker in self.unfenced:
                self._heard_us[broker] = self._kernel.now_us

    def valid_until_us(self, broker: int) -> int:
        """Until when a broker's session is valid, if it is not heard of again; -1 if it has none."""
        heard_us = self._heard_us.get(broker, -1)
        return heard_us + self._session_us if heard_us >= 0 else -1

    def is_open(self, broker: int) -> bool:
        """Whether a broker was heard of within the timeout.

        Kafka: BrokerHeartbeatTracker#hasValidSession (4.1-4.3), BrokerHeartbeatManager#hasValidSession.
        """
        return self.valid_until_us(broker) >= self._kernel.now_us

    def outlasts(self, broker: int, arrives_us: int, interval_us: int) -> bool:
        """Whether a session cannot end while a heartbeat arrives then, and others follow at that interval."""
        return max(arrives_us - self._heard_us[broker], interval_us) <= self._session_us

    def watch(self, broker: int) -> None:
        """See to it that a session ends in time."""
        if broker not in self._watched and broker in self._heard_us:
            due_us = self._watched[broker] = self._ends_us(broker)
            self._kernel.schedule(due_us, self._quorum.life, _SessionTimeout(self, broker))

    def _watch_all(self) -> None:
        """The times of looks changed."""
        self._watched.clear()
        for broker in sorted(self._heard_us):
            if broker not in self.going_on:
                self.watch(broker)

    def _ends_us(self, broker: int) -> int:
        """When a broker is fenced, if it is not heard of again."""
        over_us = self.valid_until_us(broker)
        if not self._keeps_fenced:
            return over_us + 1
        looks = (over_us - self._look_us) // self._period_us + 1
        return self._look_us + max(0, looks) * self._period_us

    def check(self, broker: int) -> None:
        """Fence who was silent for too long: up to 3.9 all, in order of ids, since after `touch` several may be due at
        once; since 4.0 the first, and the others at the next look.

        Kafka: BrokerHeartbeatTracker#maybeRemoveExpired (4.1-4.3), BrokerHeartbeatManager#findOneStaleBroker (3.9),
        ReplicationControlManager#maybeFenceOneStaleBroker.
        """
        now_us = self._kernel.now_us
        if not 0 <= self._watched.get(broker, -1) <= now_us:
            return  # The time of its look changed.
        del self._watched[broker]
        watched = sorted(self._heard_us if self._keeps_fenced else self.unfenced)
        if broker not in watched or broker in self.going_on:
            return
        if self._ends_us(broker) > now_us:
            self.watch(broker)
            return
        self._quorum.end_elision()
        due = [other for other in watched if self._ends_us(other) <= now_us]
        if self._keeps_fenced:
            del due[1:]
            self._look_us = now_us + AGAIN_US
        for other in due:
            self.end(other)
            self._quorum.active.fence(other)
        if self._keeps_fenced:
            self._watch_all()
