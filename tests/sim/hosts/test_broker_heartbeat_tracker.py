from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from sim.hosts.broker_heartbeat_tracker import BrokerHeartbeatTracker
from sim.kernel.scheduler import Gate, Kernel
from sim.protocol.decisions import Decision

if TYPE_CHECKING:
    from sim.hosts.controller_server import ControllerServer

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


def tracker(
    quorum: Quorum, *, keeps_fenced: bool, ranks: dict[int, int], begins_sessions: bool = True
) -> BrokerHeartbeatTracker:
    owner, begins = cast("ControllerServer", quorum), Decision(answer=begins_sessions)
    return BrokerHeartbeatTracker(
        owner, SESSION_US, quorum.kernel, keeps_fenced=keeps_fenced, begins_sessions=begins, ranks=ranks
    )


@pytest.mark.parametrize(
    ("keeps_fenced", "begins", "fenced"), [(False, False, {1, 2}), (True, False, {2}), (True, True, {1, 2})]
)
def test_a_broker_that_a_new_controller_has_not_heard_is_fenced(
    keeps_fenced: bool, begins: bool, fenced: set[int]
) -> None:
    """KAFKA-18138: not if only those have sessions that have sent it a heartbeat."""
    quorum = Quorum(Kernel())
    sessions = tracker(quorum, keeps_fenced=keeps_fenced, ranks={1: 0, 2: 1}, begins_sessions=begins)
    for broker in (1, 2):
        sessions.take_over(broker, fenced=False)
    sessions.begin()
    for broker in (1, 2):
        sessions.schedule_check(broker)
    sessions.note_heartbeat(2, 0)
    quorum.kernel.run_until(2 * SESSION_US)
    assert {broker for broker, _ in quorum.fenced} == fenced


@pytest.mark.parametrize(("keeps_fenced", "fenced_us"), [(False, SESSION_US + 1), (True, SESSION_US * 9 // 8)])
def test_a_session_is_valid_at_exactly_its_timeout(keeps_fenced: bool, fenced_us: int) -> None:
    kernel = Kernel()
    quorum = Quorum(kernel)
    sessions = tracker(quorum, keeps_fenced=keeps_fenced, ranks={1: 0})
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


@pytest.mark.parametrize(("keeps_fenced", "order"), [(False, [1, 2, 3]), (True, [3, 1, 2])])
def test_of_sessions_that_end_together_kafka_4_ends_that_of_the_first_rank(
    keeps_fenced: bool, order: list[int]
) -> None:
    kernel = Kernel()
    quorum = Quorum(kernel)
    sessions = tracker(quorum, keeps_fenced=keeps_fenced, ranks={1: 6, 2: 7, 3: 5})
    sessions.begin()
    for broker in (2, 3, 1):
        sessions.registered(broker)
        sessions.unfenced.add(broker)
        sessions.note_heartbeat(broker, 0)
        sessions.schedule_check(broker)
    kernel.run_until(2 * SESSION_US)
    assert list(dict.fromkeys(broker for broker, _ in quorum.fenced)) == order
