from __future__ import annotations

import pytest

from scenarios.format.catalogue import load
from sim.history.last_standing import LastStanding
from sim.history.ledger import End, Ledger
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log
from tests.named import run_row

RECORD = Batch(0, 1, 0, 10)
"""Records 10 and 11, which every history is about."""


class History:
    """Three replicas that hold one committed batch, in an ISR of all three."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.ledger.isr_history.append((0, (1, 2, 3)))
        self.ledger.commit([RECORD], 5)
        self.standing = LastStanding(self.ledger)
        self.logs = {broker: Log() for broker in (1, 2, 3)}
        for broker, log in self.logs.items():
            log.append(RECORD)
            self.standing.loaded(broker, log)

    def isr(self, at_us: int, *members: int) -> History:
        self.ledger.isr_history.append((at_us, members))
        return self

    def loses(self, broker: int, at_us: int) -> History:
        lost = {RECORD.first_id: RECORD}
        self.ledger.ended(End(broker, at_us, "power-loss", lost, broker in self.ledger.isr))
        return self

    def elected(self, broker: int) -> set[int]:
        self.standing.elected(broker)
        return self.standing.taken


def test_the_last_member_of_the_isr_that_lost_what_another_has() -> None:
    assert History().isr(10, 1).loses(1, 20).elected(1) == {10, 11}


def test_it_may_end_before_it_is_the_last_one() -> None:
    assert History().isr(10, 1, 2).loses(1, 20).isr(30, 1).elected(1) == {10, 11}


def test_with_another_member_in_the_isr_it_is_another_story() -> None:
    assert History().isr(10, 1, 2).loses(1, 20).elected(1) == set()
    assert History().isr(10, 1).isr(15, 1, 2).loses(1, 20).elected(1) == set()


def test_what_nobody_else_has_was_lost_with_the_machine() -> None:
    history = History().isr(10, 1).loses(1, 20).loses(2, 21)
    history.logs[3].truncate_fully(0)
    assert history.elected(1) == set()


def test_what_was_not_committed_was_promised_to_nobody() -> None:
    history = History()
    history.ledger.commits.clear()
    assert history.isr(10, 1).loses(1, 20).elected(1) == set()


def test_who_has_it_back_lacks_nothing() -> None:
    history = History().isr(10, 1).loses(1, 20)
    history.ledger.appended(1, RECORD, 30)
    assert history.elected(1) == set()


def test_another_leader_takes_nothing_along() -> None:
    history = History().isr(10, 1).loses(1, 20)
    assert history.elected(2) == set()
    assert history.elected(0) == set()


@pytest.mark.parametrize("mode", ["kip101", "kip320"])
def test_the_textbook_story_is_recognised(mode: str) -> None:
    row = run_row(load("last-replica-standing"), mode, 0)
    assert (row["records_lost"], row["last_standing"]) == (1, 1)


def test_other_losses_are_not_called_so() -> None:
    row = run_row(load("canary"), "hw", 0)
    assert row["records_lost"] > 0
    assert row["last_standing"] == 0
