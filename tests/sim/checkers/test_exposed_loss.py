from __future__ import annotations

from sim.protocol.batch import Batch
from tests.sim.checkers.driven import check_exposed as check
from tests.sim.checkers.histories import kinds, log, shown

FIRST, SECOND = Batch(0, 2, 0, 10), Batch(3, 4, 0, 20)


def test_shown_record_that_is_there_is_not_lost() -> None:
    history = shown((FIRST, 1), (SECOND, 3))
    check(history, log(FIRST, SECOND), 9)
    assert kinds(history) == []


def test_an_equal_record_in_another_batch_object_counts() -> None:
    history = shown((FIRST, 0))
    check(history, log(Batch(0, 2, 5, 10)), 9)
    assert kinds(history) == []


def test_missing_or_other_record_is_a_loss_of_what_was_shown() -> None:
    history = shown((FIRST, 1), (SECOND, 4))
    check(history, log(Batch(0, 3, 1, 30)), 9)
    assert kinds(history) == ["exposed-loss"]
    assert history.findings.violations[0].ids == {11, 12, 21}
    assert "a consumer read 3 records from record 11 (offset 1) on" in history.findings.violations[0].detail


def test_offsets_below_the_log_start_are_not_judged() -> None:
    history = shown((FIRST, 0), (SECOND, 3))
    check(history, log(Batch(0, 2, 1, 30), SECOND, start=3), 9)
    assert kinds(history) == []


def test_records_deleted_by_retention_are_not_lost_with_a_new_disk() -> None:
    history = shown((FIRST, 0), (SECOND, 3))
    history.records.deleted = {10, 11, 12, 20}
    check(history, log(), 9)
    assert history.findings.violations[0].ids == {21}
