"""Who may be elected where no setting and no administrator allows an unclean election."""

from __future__ import annotations

import pytest

from sim.checkers.clean_elections import CleanElections
from sim.history import steps
from sim.history.history import History
from tests.sim.checkers.driven import made


def found(leader: int, *before: steps.Step, recovers: bool = False, recovering: bool = False) -> list[str]:
    """The violations if a leader is elected after these steps; the ISR was [1, 2] at first."""
    history = History()
    checker = CleanElections(history, recovers=recovers)
    for step in (steps.Isr((1, 2), 0), *before, steps.Elected(leader, 1, recovering=recovering)):
        step.at_us = 5
        step.tell([checker])
    return [violation.kind for violation in history.findings.violations]


@pytest.mark.parametrize("leader", [0, 1, 2])
def test_a_member_of_the_isr_or_none_may_be_elected(leader: int) -> None:
    assert found(leader) == []


def test_a_replica_from_outside_may_not() -> None:
    assert found(3) == ["forbidden-election"]
    assert found(2, steps.Isr((1,), 0)) == ["forbidden-election"]


def test_the_elr_and_the_last_known_leader_may_be_elected() -> None:
    assert found(2, steps.Isr((1,), 0, (1, 2), (2,))) == []
    assert found(2, steps.Isr((), 0), steps.Elr((), (2,), 0)) == []


def test_the_isr_that_a_leader_has_proposed_counts_until_another_one_is_persisted() -> None:
    proposed = made(steps.IsrSent, broker=1, isr=(1, 3), before=(1, 2))
    assert found(3, proposed) == []
    assert found(3, proposed, steps.Isr((1, 2), 0)) == ["forbidden-election"]
    assert found(3, proposed, steps.Elected(1, 0)) == ["forbidden-election"]


def test_an_administrator_may_accept_the_loss() -> None:
    assert found(3, steps.Fact(steps.UNCLEAN_ELECTION, 0)) == []
    assert found(3, made(steps.MetadataLost)) == []


def test_a_controller_that_recovers_uncleanly_may_elect_a_leader_that_recovers_and_no_other() -> None:
    assert found(3, recovers=True, recovering=True) == []
    assert found(3, recovers=True) == ["forbidden-election"]
    assert found(3, recovering=True) == ["forbidden-election"]
