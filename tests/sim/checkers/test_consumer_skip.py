from __future__ import annotations

from sim.checkers.consumer_skip import check
from sim.history.ledger import Ledger, Shown
from sim.protocol.batch import Batch
from tests.sim.checkers.histories import kinds, log

FIRST, SECOND, OTHER, LAST = Batch(0, 2, 0, 10), Batch(3, 4, 0, 20), Batch(3, 4, 1, 30), Batch(5, 5, 1, 40)


def read(ledger: Ledger, batch: Batch, offset: int) -> None:
    ledger.passed_over(1002, offset, batch.last_offset + 1)
    ledger.shown.append(Shown(batch, max(offset, batch.base_offset), 5, 1002))


def reader(*reads: tuple[Batch, int]) -> Ledger:
    """A consumer that was shown batches, from these positions."""
    ledger = Ledger()
    for batch, offset in reads:
        read(ledger, batch, offset)
    return ledger


def skipped(ledger: Ledger, hw: int = 6, start: int = 0) -> set[int]:
    """Records that it skips if it also reads the end of the final log."""
    read(ledger, LAST, 5)
    check(ledger, log(FIRST, OTHER, LAST, start=start), hw, 9)
    assert kinds(ledger) in ([], ["consumer-skip"])
    return set(ledger.violations[0].ids) if ledger.violations else set()


def test_who_was_shown_everything_skipped_nothing() -> None:
    assert skipped(reader((FIRST, 0), (OTHER, 3))) == set()
    assert skipped(reader((Batch(0, 2, 7, 10), 0))) == set()


def test_what_was_replaced_behind_its_position_is_skipped() -> None:
    ledger = reader((FIRST, 0), (SECOND, 3))
    assert skipped(ledger) == {30, 31}
    assert "consumer 1002 passed 2 records unseen, the first record 30 at offset 3" in ledger.violations[0].detail


def test_a_gap_that_was_filled_is_skipped() -> None:
    ledger = reader((FIRST, 0), (LAST, 3))
    assert skipped(ledger) == {30, 31}


def test_from_inside_a_batch_only_what_follows_was_passed() -> None:
    assert skipped(reader((SECOND, 4))) == {31}


def test_another_consumer_does_not_help() -> None:
    ledger = reader((FIRST, 0), (SECOND, 3))
    ledger.shown.append(Shown(OTHER, 3, 5, 1003))
    assert skipped(ledger) == {30, 31}


def test_who_was_told_skipped_nothing() -> None:
    ledger = reader((FIRST, 0), (SECOND, 3))
    ledger.told(1002)
    assert skipped(ledger) == set()


def test_what_it_went_back_over_is_ahead_again() -> None:
    ledger = reader((FIRST, 0), (SECOND, 3))
    ledger.rewound(1002, 4)
    assert skipped(ledger) == {30}


def test_who_has_read_nothing_of_what_came_after_may_still_find_out() -> None:
    ledger = reader((FIRST, 0), (SECOND, 3))
    check(ledger, log(FIRST, OTHER, LAST), 6, 9)
    assert kinds(ledger) == []
    before = reader((FIRST, 0), (LAST, 5))
    before.told(1002)
    read(before, SECOND, 3)
    check(before, log(FIRST, OTHER, LAST), 6, 9)
    assert kinds(before) == []


def test_what_came_to_its_old_offset_once_more_was_not_read_there() -> None:
    ledger = reader((FIRST, 0), (SECOND, 3), (Batch(5, 5, 0, 40), 5))
    check(ledger, log(FIRST, OTHER, LAST), 6, 9)
    assert kinds(ledger) == []
    assert skipped(ledger) == {30, 31}


def test_beyond_the_hw_and_below_the_log_start_nothing_is_judged() -> None:
    assert skipped(reader((FIRST, 0), (SECOND, 3)), hw=4) == {30}
    assert skipped(reader((FIRST, 0), (SECOND, 3)), start=4) == {31}
