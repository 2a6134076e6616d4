"""Sessions that heartbeats keep, as the active controller of a quorum has them.

Kafka classes: BrokerHeartbeatManager, QuorumController.maybeFenceStaleBrokers.
"""

from __future__ import annotations

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

    Attributes:
        unfenced: the brokers that are.
    """

    def __init__(self, quorum: ControllerQuorum, session_us: int, kernel: Kernel) -> None:
        self._quorum = quorum
        self._session_us = session_us
        self._kernel = kernel
        self._heard_us: dict[int, int] = {}
        self._watched: set[int] = set()
        self.unfenced: set[int] = set()

    @property
    def brokers(self) -> list[int]:
        """All that ever registered, in order of ids."""
        return sorted(self._heard_us)

    def heard(self, broker: int, at_us: int) -> None:
        """A broker gave a sign of life at a time."""
        self._heard_us[broker] = max(self._heard_us.get(broker, 0), at_us)

    def touch(self) -> None:
        """All sessions get their full timeout."""
        for broker in self._heard_us:
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
        controller, pings = self._quorum.active, self._quorum.network.idle.pings
        if controller.image.brokers[broker].fenced or broker in pings:
            return
        last_us = self._kernel.now_us - self._session_us
        if self._heard_us[broker] > last_us:
            self.watch(broker)
            return
        for other in sorted(self.unfenced):
            if self._heard_us[other] <= last_us and other not in pings:
                controller.fence(other)
