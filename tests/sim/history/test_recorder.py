from __future__ import annotations

import pytest

from sim.history.recorder import Journal
from sim.kernel.scheduler import BudgetError, Kernel
from sim.protocol.batch import Batch
from tests.sim.checkers.histories import replica


def test_completed_truncations_are_counted_by_their_rounds() -> None:
    journal = Journal(Kernel())
    journal.divergence.loaded(1, replica())
    for rounds in (0, 1, 1, 2, 3, 7):
        journal.settled(1, 0, rounds)
    assert journal.rounds == [2, 1, 2]


def test_records_are_counted_wherever_they_come_to() -> None:
    journal, one, first, second = Journal(Kernel(), 7), replica(), Batch(0, 2, 0, 0), Batch(3, 3, 0, 3)
    for broker, batch in ((1, first), (2, first)):
        one.log.batches, one.log.lasts = [batch], [batch.last_offset]
        journal.append(broker, one, batch)
    digest = journal.digest()
    with pytest.raises(BudgetError, match=r"^sim\.record\.budget: 7 records by 0\.000000 s$"):
        journal.read(1002, [first], 1, 0)
    assert journal.digest() == digest
    with pytest.raises(BudgetError):
        journal.append(1, one, second)
    with pytest.raises(BudgetError):
        journal.replayed_metadata(1, 0, [])
