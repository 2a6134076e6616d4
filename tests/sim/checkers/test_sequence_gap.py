from __future__ import annotations

from sim.checkers.sequence_gap import SequenceGap
from sim.history.history import History
from sim.history.steps import BatchFailed
from sim.protocol.batch import NO_SEQUENCE, Batch, Sequence
from sim.protocol.messages import REQUEST_TIMED_OUT
from tests.sim.checkers.driven import end_of
from tests.sim.checkers.histories import commit, kinds, log

SECOND, THIRD = Batch(0, 1, 0, 12, (1, 0, 2)), Batch(2, 3, 0, 14, (1, 0, 4))


def judged(*batches: Batch, failed: Sequence = (1, 0, 0), committed: tuple[Batch, ...] = ()) -> History:
    """A final log, after the producer gave up a batch of records 10 and 11."""
    history = History()
    commit(history, list(committed), 1)
    checker = SequenceGap(history)
    checker.on_batch_failed(BatchFailed(10, 2, failed, REQUEST_TIMED_OUT))
    checker.final(end_of(log(*batches), now_us=9))
    return history


def test_what_follows_a_batch_that_never_came_is_behind_a_gap() -> None:
    history = judged(SECOND, THIRD)
    assert kinds(history) == ["sequence-gap"]
    found = history.findings.violations[0]
    assert found.ids == {12, 13, 14, 15}
    assert found.detail == (
        "2 records from record 10 on, which the producer gave up (REQUEST_TIMED_OUT), are not in the log, but record "
        "12, sent later, is at offset 0"
    )


def test_a_failed_batch_without_a_successor_leaves_no_gap() -> None:
    assert kinds(judged(Batch(0, 1, 0, 8, (1, 0, 0)), failed=(1, 0, 2))) == []
    assert kinds(judged()) == []


def test_a_failed_batch_that_stands_in_the_log_leaves_no_gap() -> None:
    assert kinds(judged(SECOND, Batch(2, 3, 0, 10, (1, 1, 0)))) == []


def test_another_epoch_or_producer_fills_no_gap_and_makes_none() -> None:
    assert kinds(judged(Batch(0, 1, 0, 12, (1, 1, 2)), Batch(2, 3, 0, 14, (2, 0, 4)))) == []


def test_sequences_that_later_batches_took_over_are_no_gap() -> None:
    """A producer before KIP-360 decrements the sequences of what follows a failed batch."""
    assert kinds(judged(Batch(0, 1, 0, 12, (1, 0, 0)), Batch(2, 3, 0, 14, (1, 0, 2)))) == []


def test_a_log_that_lacks_a_committed_batch_of_the_producer_is_not_judged() -> None:
    before = Batch(0, 1, 0, 8, (1, 0, 0))
    assert kinds(judged(THIRD, failed=(1, 0, 2), committed=(before,))) == []
    assert kinds(judged(THIRD, failed=(1, 0, 2), committed=(Batch(0, 1, 0, 8, (2, 0, 0)),))) == ["sequence-gap"]


def test_other_producers_are_promised_nothing() -> None:
    assert kinds(judged(SECOND, failed=NO_SEQUENCE)) == []
