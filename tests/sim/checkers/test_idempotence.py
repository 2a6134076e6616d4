from __future__ import annotations

from sim.history.history import History
from sim.history.records import VALIDATION_IDS
from sim.protocol.batch import NO_SEQUENCE, Batch, Sequence
from tests.sim.checkers.driven import check_idempotence as check
from tests.sim.checkers.histories import commit, kinds, log


def written(*batches: tuple[int, Sequence]) -> History:
    """A final log of batches of two records each: (first id, sequence)."""
    history = History()
    entries = [Batch(2 * place, 2 * place + 1, 0, first, sequence) for place, (first, sequence) in enumerate(batches)]
    check(history, log(*entries), 9)
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


def test_a_record_in_two_epochs_of_a_producer_is_a_duplicate_across_epochs() -> None:
    history = written((10, (1, 0, 0)), (12, (1, 0, 2)), (10, (1, 1, 0)), (14, (2, 0, 0)))
    assert kinds(history) == ["duplicate-across-epochs"]
    found = history.findings.violations[0]
    assert found.ids == {10, 11}
    assert found.detail == "record 10 is at offset 0 in producer epoch 0, and again at offset 4 in producer epoch 1"


def test_a_duplicate_across_epochs_is_excused_by_lost_records_of_that_producer() -> None:
    history = History()
    lost, other = Batch(0, 1, 0, 20, (1, 0, 0)), Batch(2, 3, 0, 30, (2, 0, 0))
    commit(history, [lost, other], 1)
    check(history, log(Batch(0, 1, 0, 10, (1, 0, 2)), Batch(2, 3, 0, 10, (1, 1, 0))), 9)
    assert history.findings.violations[0].unless_lost == {20, 21}


def test_a_record_behind_a_later_one_of_another_epoch_is_reordered_across_epochs() -> None:
    history = written((10, (1, 0, 0)), (14, (1, 0, 4)), (12, (1, 1, 0)), (16, (1, 1, 2)))
    assert kinds(history) == ["reordered-across-epochs"]
    found = history.findings.violations[0]
    assert found.ids == {12, 13}
    assert found.detail == (
        "record 12 is at offset 4 in producer epoch 1, behind record 14, sent later, at offset 2 in producer epoch 0"
    )


def test_the_order_across_epochs_is_that_of_first_copies() -> None:
    assert kinds(written((10, (1, 0, 0)), (12, (1, 0, 2)), (14, (1, 1, 0)), (16, (1, 1, 2)))) == []
    assert kinds(written((10, (1, 0, 0)), (12, (1, 0, 2)), (10, (1, 1, 0)))) == ["duplicate-across-epochs"]
    assert kinds(written((12, (1, 0, 2)), (10, (2, 1, 0)))) == []


def test_a_write_that_tests_a_healed_cluster_may_be_sent_before_others() -> None:
    assert kinds(written((VALIDATION_IDS, (1, 0, 0)), (12, (1, 1, 0)))) == []


def test_an_order_across_epochs_is_excused_by_lost_records_of_that_producer() -> None:
    history = History()
    commit(history, [Batch(0, 1, 0, 20, (1, 0, 0)), Batch(2, 3, 0, 30, (2, 0, 0))], 1)
    check(history, log(Batch(0, 1, 0, 12, (1, 0, 2)), Batch(2, 3, 0, 10, (1, 1, 0))), 9)
    assert history.findings.violations[0].unless_lost == {20, 21}


def test_a_new_producer_id_ends_the_promise() -> None:
    assert kinds(written((10, (1, 0, 0)), (12, (1, 0, 2)), (10, (2, 0, 0)))) == []


def test_other_producers_are_promised_nothing() -> None:
    assert kinds(written((12, NO_SEQUENCE), (10, NO_SEQUENCE), (12, NO_SEQUENCE))) == []
