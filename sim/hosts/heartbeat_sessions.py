"""Sessions that heartbeats keep, as the active controller of a quorum has them.

Kafka classes: BrokerHeartbeatManager, since 4.0 BrokerHeartbeatTracker; QuorumController.maybeFenceStaleBrokers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from sim.kernel.scheduler import Kernel

if TYPE_CHECKING:
    from sim.hosts.controller_quorum import ControllerQuorum


class HeartbeatSessions:
    """When each broker was heard of last.

    Args:
        quorum: who fences those that are silent for too long.
        session_us: ``broker.session.timeout.ms`` in us.
        kernel: time and timers.
        keeps_fenced: whether sessions of fenced brokers count (rule ``fenced_session``).

    Attributes:
        going_on: brokers whose sessions are kept by heartbeats that are left out.
        unfenced: the brokers that are.
    """

    def __init__(self, quorum: ControllerQuorum, session_us: int, kernel: Kernel, *, keeps_fenced: bool) -> None:
        self._quorum = quorum
        self._session_us = session_us
        self._kernel = kernel
        self._keeps_fenced = keeps_fenced
        self._registered: set[int] = set()
        self._heard_us: dict[int, int] = {}
        self._watched: set[int] = set()
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
        """A broker sent a heartbeat at a time."""
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
        self._heard_us = dict.fromkeys(sorted(self.unfenced), self._kernel.now_us)
        if self._keeps_fenced:
            for broker in self._heard_us:
                self.watch(broker)

    def touch(self) -> None:
        """All sessions get their full timeout."""
        for broker in self._heard_us:
            if self._keeps_fenced or broker in self.unfenced:
                self._heard_us[broker] = self._kernel.now_us

    def is_open(self, broker: int) -> bool:
        """Whether a broker was heard of within the timeout."""
        heard_us = self._heard_us.get(broker)
        return heard_us is not None and heard_us + self._session_us > self._kernel.now_us

    def outlasts(self, broker: int, arrives_us: int, interval_us: int) -> bool:
        """Whether a session cannot end while a heartbeat arrives then, and others follow at that interval."""
        return max(arrives_us - self._heard_us[broker], interval_us) < self._session_us

    def watch(self, broker: int) -> None:
        """See to it that a session ends in time."""
        if broker not in self._watched:
            self._watched.add(broker)
            due_us = self._heard_us[broker] + self._session_us
            self._kernel.call_at(due_us, self._quorum.life, self._check, broker)

    def _check(self, broker: int) -> None:
        """Fence brokers that were silent for too long, in order of ids: after `touch` several may be due at once."""
        self._watched.discard(broker)
        controller = self._quorum.active
        watched: Collection[int] = self._heard_us if self._keeps_fenced else self.unfenced
        if broker not in watched or broker in self.going_on:
            return
        last_us = self._kernel.now_us - self._session_us
        if self._heard_us[broker] > last_us:
            self.watch(broker)
            return
        self._quorum.end_omissions()
        for other in sorted(watched):
            if self._heard_us[other] <= last_us:
                self.end(other)
                controller.fence(other)
