from __future__ import annotations

from sim.history.history import History
from tests.sim.checkers.driven import EpochLeaders
from tests.sim.checkers.histories import warnings


def led(*leads: tuple[int, int]) -> list[str]:
    history = History()
    checker = EpochLeaders(history)
    for broker, epoch in leads:
        checker.lead(broker, epoch, 5)
    return warnings(history)


def test_one_leader_for_each_epoch() -> None:
    assert led((1, 0), (2, 1), (1, 2), (2, 1)) == []


def test_a_leader_that_returns() -> None:
    assert led((1, 0), (1, 0)) == []


def test_another_leader_in_the_same_epoch_is_reported_once() -> None:
    assert led((1, 0), (2, 0), (1, 0), (3, 0)) == ["two-leaders-one-epoch"]
