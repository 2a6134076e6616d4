from __future__ import annotations

from sim.history import steps
from sim.protocol.batch import Batch
from tests.sim.checkers.driven import check_committed as check
from tests.sim.checkers.histories import acked, kinds, log

FIRST, SECOND = Batch(0, 2, 0, 10), Batch(3, 4, 0, 20)


def test_acknowledged_record_that_is_there_is_not_lost() -> None:
    history = acked((10, 3, 0), (20, 2, 3))
    assert check(history, [log(FIRST, SECOND)], 9).lost == 0
    assert kinds(history) == []


def test_acknowledged_record_that_is_gone_is_lost() -> None:
    history = acked((10, 3, 0), (20, 2, 3))
    assert check(history, [log(FIRST, Batch(3, 4, 1, 30))], 9).lost == 2
    assert kinds(history) == ["committed-loss"]
    assert history.findings.violations[0].ids == {20, 21}
    assert "lost: 2 records from record 20 (offset 3) on, acknowledged at" in history.findings.violations[0].detail


def test_loss_with_acks_1_is_counted_only() -> None:
    history = acked((20, 2, 3), acks_all=False)
    count = check(history, [log(FIRST)], 9)
    assert (count.lost, count.acks1_lost, kinds(history)) == (0, 2, [])


def test_elsewhere_is_relocated() -> None:
    history = acked((10, 3, 3))
    history.steps.append(steps.Append(1, log(), Batch(3, 5, 0, 10)))
    count = check(history, [log(FIRST)], 9)
    assert (count.relocated, kinds(history)) == (3, [])


def test_a_producer_is_told_no_offset_that_no_log_had() -> None:
    history = acked((10, 3, 3), acks_all=False)
    history.steps.append(steps.Append(1, log(), FIRST))
    assert check(history, [log(FIRST)], 9).relocated == 3
    assert kinds(history) == ["wrong-offset"]
    assert "was told offset 3 for record 10" in history.findings.violations[0].detail


def test_deleted_records_are_not_missing_and_a_cut_batch_keeps_its_end() -> None:
    history = acked((10, 3, 0), (20, 2, 3))
    assert check(history, [log(FIRST, SECOND, start=4)], 9).lost == 0
    gone = acked((10, 3, 0), (20, 2, 3))
    assert check(gone, [log(Batch(0, 3, 1, 40), Batch(4, 4, 1, 44), start=4)], 9).lost == 1
    assert kinds(gone) == ["committed-loss"]
    assert gone.findings.violations[0].ids == {21}


def test_any_replica_will_do_without_a_leader() -> None:
    history = acked((10, 3, 0), (20, 2, 3))
    assert check(history, [log(FIRST), log(Batch(0, 2, 1, 50), SECOND)], 9).lost == 0


def test_records_deleted_by_retention_are_not_lost_with_a_new_disk() -> None:
    history = acked((10, 3, 0), (20, 2, 3))
    history.records.deleted = {10, 11, 12, 20}
    count = check(history, [log()], 9)
    assert (count.lost, count.relocated) == (1, 0)
    assert history.findings.violations[0].ids == {21}
