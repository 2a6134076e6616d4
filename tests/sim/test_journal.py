from __future__ import annotations

from sim.journal import Journal
from sim.kernel import Kernel
from tests.sim.checkers.histories import replica


def test_completed_truncations_are_counted_by_their_rounds() -> None:
    journal = Journal(Kernel())
    journal.divergence.loaded(1, replica())
    for rounds in (0, 1, 1, 2, 3, 7):
        journal.settled(1, 0, rounds)
    assert journal.rounds == [2, 1, 2]
