from __future__ import annotations

import pytest

from sim.history import steps
from sim.history.history import History
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.modes import MODES
from sim.protocol.replica.partition import Partition
from tests.sim.checkers.driven import MaximalIsr
from tests.sim.checkers.histories import replica, warnings
from tests.sim.protocol.recording import Recorder, partition

ALL = (1, 2, 3)


def decision(isr: tuple[int, ...], epoch: int = 4, leader: int = 1) -> LeaderAndIsr:
    return LeaderAndIsr("t-0", leader, epoch, isr, epoch, ALL)


class World:
    """A leader that has adopted an ISR."""

    def __init__(self, isr: tuple[int, ...], *, epoch: int = 4) -> None:
        self.history = History()
        self.checker = MaximalIsr(self.history)
        one = replica()
        assert isinstance(one, Partition)
        self.leader = one
        self.checker.elected(epoch)
        self.checker.persisted(isr, (), epoch, 0)
        self.checker.lead(one, decision(isr, epoch), 0)
        one.become_leader(decision(isr, epoch), 0)

    def commit(self) -> list[str]:
        step = steps.HighWatermark(1, self.leader, 0)
        step.committed = []
        step.at_us = 5
        self.checker.on_hw(step)
        return warnings(self.history)


def test_a_leader_that_waits_for_the_persisted_isr_or_more() -> None:
    world = World(ALL)
    assert world.commit() == []
    world.checker.persisted((1, 2), (), 4, 5)
    assert world.commit() == []


def test_a_leader_that_does_not_know_a_member() -> None:
    world = World((1, 2))
    assert world.commit() == []
    world.checker.persisted(ALL, (), 4, 5)
    assert warnings(world.history) == ["quorum-not-superset"]
    assert "waits for [1, 2], while the persisted ISR is [1, 2, 3]" in world.history.findings.warnings[0].detail
    assert world.commit() == ["quorum-not-superset", "hw-without-isr-member"]
    assert "without [3] of the persisted ISR [1, 2, 3]" in world.history.findings.warnings[1].detail
    assert world.commit() == ["quorum-not-superset", "hw-without-isr-member"]


def test_an_isr_in_memory_that_shrinks_alone() -> None:
    world = World(ALL)
    assert world.commit() == []
    world.leader.state.isr = (1, 2)
    world.leader.followers.states[3].in_maximal_isr = False
    assert world.commit() == ["quorum-not-superset", "hw-without-isr-member"]


def test_a_member_outside_the_assignment_is_not_waited_for() -> None:
    """A reassignment has removed it, and the persisted ISR still has it."""
    world = World(ALL)
    world.leader.become_leader(LeaderAndIsr("t-0", 1, 5, ALL, 5, (1, 2)), 6)
    world.checker.persisted(ALL, (), 5, 6)
    assert warnings(world.history) == []
    assert world.commit() == ["hw-without-isr-member"]


def test_a_member_that_is_waited_for_because_it_was_proposed() -> None:
    world = World((1, 2))
    world.leader.followers.states[3].in_maximal_isr = True
    world.checker.persisted(ALL, (), 4, 5)
    assert world.commit() == []


def test_a_stale_leader_and_one_whose_write_is_under_way_are_not_judged() -> None:
    world = World((1, 2))
    world.leader.state.locked = True
    world.checker.persisted(ALL, (), 4, 5)
    assert warnings(world.history) == []
    world.leader.state.locked = False
    world.checker.persisted((2, 3), (), 5, 6)
    assert world.commit() == []


@pytest.mark.parametrize(("adopted", "found"), [(ALL, []), ((1, 2), ["quorum-not-superset"])])
def test_a_leader_that_begins_with_another_isr(adopted: tuple[int, ...], found: list[str]) -> None:
    world = World(ALL)
    world.checker.elected(5)
    world.checker.lead(world.leader, decision(adopted, 5), 6)
    assert warnings(world.history) == found


def test_a_leader_of_an_older_decision_begins() -> None:
    world = World(ALL)
    world.checker.elected(6)
    world.checker.lead(world.leader, decision((1, 2), 5), 6)
    assert warnings(world.history) == []


def test_elr_member_is_waited_for_where_the_hw_may_move() -> None:
    world = World((1, 2))
    world.leader.min_insync_replicas = 2
    world.checker.persisted((1, 2), (3,), 4, 5)
    assert warnings(world.history) == ["quorum-not-superset"]
    assert "the persisted ISR is [1, 2], the ELR [3]" in world.history.findings.warnings[0].detail


def test_a_leader_below_min_isr_need_not_know_the_elr_unless_its_hw_moves() -> None:
    world = World((1,))
    world.leader.set_min_isr(2)
    world.checker.persisted((1,), (2,), 4, 5)
    world.checker.lead(world.leader, decision((1,)), 5)
    assert warnings(world.history) == []
    assert world.commit() == ["quorum-not-superset"]


def test_an_elr_member_that_is_still_waited_for() -> None:
    world = World((1, 2))
    world.leader.min_insync_replicas = 2
    world.checker.persisted((1,), (2,), 4, 5)
    assert world.commit() == []


@pytest.mark.parametrize(("replicas", "warned"), [(ALL, []), ((1, 2), ["quorum-not-superset"])])
def test_min_isr_of_a_new_leader_goes_by_the_assignment_that_it_is_about_to_adopt(
    replicas: tuple[int, ...], warned: list[str]
) -> None:
    """It knew fewer replicas before a reassignment, so that fewer ISR members were enough."""
    history = History()
    checker = MaximalIsr(history)
    later = partition(Recorder(), MODES["elr-4.3"].rules, min_insync_replicas=3)
    later.become_follower(LeaderAndIsr("t-0", 2, 3, (1, 2), 3, (1, 2)))
    assert later.min_insync_replicas == 2
    checker.elected(4)
    checker.persisted((1, 2), (3,), 4, 0)
    checker.lead(later, LeaderAndIsr("t-0", 1, 4, (1, 2), 4, replicas), 0)
    assert warnings(history) == warned
