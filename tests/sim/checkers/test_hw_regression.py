from __future__ import annotations

import pytest

from sim.history.history import History
from sim.history.steps import Exposed
from sim.kernel.scheduler import BudgetError
from sim.protocol.batch import Batch
from tests.sim.checkers.driven import check_answer
from tests.sim.checkers.histories import commit, kinds

KNOWN = Exposed(5, 12, Exposed(3, 10, None))
"""End offsets exposed when the request was sent, by epoch."""


@pytest.mark.parametrize(
    ("epoch", "end", "found", "stale"),
    [
        (5, 12, [], 0),
        (6, 12, [], 0),
        (5, 11, ["hw-regression"], 0),
        (6, 9, ["hw-regression"], 0),
        (4, 10, [], 1),
        (4, 9, ["hw-regression"], 0),
        (2, 0, [], 1),
    ],
)
def test_answers_are_compared_with_exposures_up_to_their_epoch(
    epoch: int, end: int, found: list[str], stale: int
) -> None:
    history = History()
    check_answer(history, KNOWN, end, epoch, 9)
    assert (kinds(history), history.findings.stale_reads) == (found, stale)


def test_the_first_answer_of_all_regresses_from_nothing() -> None:
    history = History()
    check_answer(history, None, 0, 0, 9)
    assert kinds(history) == []


def test_the_records_concerned_are_those_between_the_two_ends() -> None:
    history = History()
    commit(history, [Batch(8, 10, 3, 80), Batch(11, 12, 3, 90)], 1)
    check_answer(history, KNOWN, 9, 5, 9)
    assert history.findings.violations[0].ids == {81, 82, 90}


def test_answers_about_the_same_records_share_them_and_count_once() -> None:
    history = History(record_budget=3)
    commit(history, [Batch(8, 10, 3, 80), Batch(11, 12, 3, 90)], 1)
    for at_us in range(5):
        check_answer(history, KNOWN, 9, 5, at_us)
    found = history.findings.violations
    assert len(found) == 5
    assert all(violation.ids is found[0].ids for violation in found)
    with pytest.raises(BudgetError, match=r"^sim\.record\.budget: 3 records by 0\.000007 s$"):
        check_answer(history, KNOWN, 8, 5, 7)
