from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from sim.hosts.broker_heartbeat_tracker import BrokerHeartbeatTracker
from sim.kernel.scheduler import Gate, Kernel

if TYPE_CHECKING:
    from sim.hosts.controller_quorum import ControllerQuorum

SESSION_US = 9_000_000


class Quorum:
    """Notes who is fenced when, in place of a controller."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.life = Gate(0)
        self.active = self
        self.fenced: list[tuple[int, int]] = []

    def end_elision(self) -> None:
        pass

    def fence(self, broker: int) -> None:
        self.fenced.append((broker, self.kernel.now_us))


@pytest.mark.parametrize(("keeps_fenced", "fenced_us"), [(False, SESSION_US + 1), (True, SESSION_US * 9 // 8)])
def test_a_session_is_valid_at_exactly_its_timeout(keeps_fenced: bool, fenced_us: int) -> None:
    kernel = Kernel()
    quorum = Quorum(kernel)
    sessions = BrokerHeartbeatTracker(cast("ControllerQuorum", quorum), SESSION_US, kernel, keeps_fenced=keeps_fenced)
    sessions.begin()
    sessions.registered(1)
    sessions.unfenced.add(1)
    sessions.note_heartbeat(1, 0)
    sessions.schedule_check(1)
    kernel.run_until(SESSION_US)
    assert sessions.is_open(1)
    assert quorum.fenced == []
    kernel.run_until(2 * SESSION_US)
    assert not sessions.is_open(1)
    assert quorum.fenced == [(1, fenced_us)]
