from __future__ import annotations

from sim.history.history import History
from sim.protocol.batch import NO_SEQUENCE, Batch, Sequence
from tests.sim.checkers.driven import check_idempotence as check
from tests.sim.checkers.histories import kinds, log


def written(*batches: tuple[int, Sequence]) -> History:
    """A final log of batches of two records each: (first id, sequence)."""
    history = History()
    entries = [Batch(2 * place, 2 * place + 1, 0, first, sequence) for place, (first, sequence) in enumerate(batches)]
    check(history.findings, log(*entries), 9)
    return history


def test_each_once_and_in_order_is_what_was_promised() -> None:
    assert kinds(written((10, (1, 0, 0)), (12, (1, 0, 2)), (14, (1, 0, 4)))) == []


def test_a_record_at_two_offsets_is_a_duplicate() -> None:
    history = written((10, (1, 0, 0)), (12, (1, 0, 2)), (10, (1, 0, 0)))
    assert kinds(history) == ["duplicate"]
    assert history.findings.violations[0].ids == {10, 11}
    assert "offsets 0 and 4" in history.findings.violations[0].detail


def test_a_record_behind_a_later_one_is_reordered() -> None:
    history = written((12, (1, 0, 2)), (10, (1, 0, 0)), (14, (1, 0, 4)))
    assert kinds(history) == ["reordered"]
    assert history.findings.violations[0].ids == {10, 11}


def test_a_new_epoch_or_producer_id_ends_the_promise() -> None:
    assert kinds(written((10, (1, 0, 0)), (12, (1, 0, 2)), (10, (1, 1, 0)))) == []
    assert kinds(written((10, (1, 0, 0)), (12, (1, 0, 2)), (10, (2, 0, 0)))) == []


def test_other_producers_are_promised_nothing() -> None:
    assert kinds(written((12, NO_SEQUENCE), (10, NO_SEQUENCE), (12, NO_SEQUENCE))) == []
