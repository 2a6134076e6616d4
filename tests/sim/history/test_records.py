from __future__ import annotations

from sim.history.history import History
from sim.protocol.batch import Batch
from tests.sim.checkers.histories import log, make


def test_a_record_survives_in_any_copy_and_what_was_deleted_is_not_missed() -> None:
    first, again = Batch(0, 1, 0, 10), Batch(4, 5, 1, 10)
    history = History()
    records = history.records
    make(history, first, again)
    assert records.survive_in(log(again), first)
    assert not records.survive_in(log(Batch(0, 1, 0, 20)), first)
    records.deleted.add(10)
    assert not records.survive_in(log(), first)
    records.deleted.add(11)
    assert records.survive_in(log(), first)
