from __future__ import annotations

import pytest

from scenarios.format.catalogue import load
from sim.history import steps
from sim.history.history import History
from sim.history.last_standing import taken
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log
from tests.named import run_row
from tests.sim.checkers.histories import commit, replica, tell
from tests.sim.protocol.recording import Recorder, partition

RECORD = Batch(0, 1, 0, 10)
"""Records 10 and 11, which every history is about."""


class Story:
    """Three replicas that hold one committed batch, in an ISR of all three."""

    def __init__(self, *, committed: bool = True) -> None:
        self.history = History()
        self.isr(0, 1, 2, 3)
        for broker in (1, 2, 3):
            self.appends(broker, 1)
        if committed:
            commit(self.history, [RECORD], 5)

    def happens(self, step: steps.Step, at_us: int) -> Story:
        tell(self.history, step, at_us)
        return self

    def appends(self, broker: int, at_us: int) -> Story:
        return self.happens(steps.Append(broker, Log(), RECORD), at_us)

    def isr(self, at_us: int, *members: int) -> Story:
        return self.happens(steps.Isr(members, 0), at_us)

    def loses(self, broker: int, at_us: int) -> Story:
        return self.happens(steps.End(broker, steps.POWER_LOSS, [RECORD]), at_us)

    def elected(self, broker: int) -> set[int]:
        return taken(self.happens(steps.Elected(broker, 1), 50).history, frozenset(RECORD.ids()))


def test_the_last_member_of_the_isr_that_lost_what_another_has() -> None:
    assert Story().isr(10, 1).loses(1, 20).elected(1) == {10, 11}


def test_last_member_may_end_before_it_is_the_last_one() -> None:
    assert Story().isr(10, 1, 2).loses(1, 20).isr(30, 1).elected(1) == {10, 11}


def test_other_member_in_the_isr_makes_it_another_story() -> None:
    assert Story().isr(10, 1, 2).loses(1, 20).elected(1) == set()
    assert Story().isr(10, 1).isr(15, 1, 2).loses(1, 20).elected(1) == set()


def test_record_that_no_other_replica_has_was_lost_with_the_machine() -> None:
    history = Story().isr(10, 1).loses(1, 20).loses(2, 21)
    history.happens(steps.Truncate(3, partition(Recorder()), [RECORD]), 22)
    assert history.elected(1) == set()


def test_what_retention_dropped_or_went_with_its_replica_nobody_has() -> None:
    history = Story().isr(10, 1).loses(1, 20).happens(steps.LogStart(2, 1), 21)
    assert history.elected(1) == {10, 11}
    gone = Story().isr(10, 1).loses(1, 20)
    gone.happens(steps.LogStart(2, 2), 21).happens(steps.Deleted(3, replica(), []), 22)
    assert gone.elected(1) == set()


def test_record_that_was_not_committed_was_not_promised() -> None:
    history = Story(committed=False)
    assert history.isr(10, 1).loses(1, 20).elected(1) == set()


def test_replica_that_has_the_record_back_lacks_nothing() -> None:
    history = Story().isr(10, 1).loses(1, 20)
    history.appends(1, 30)
    assert history.elected(1) == set()


def test_another_leader_takes_nothing_along() -> None:
    history = Story().isr(10, 1).loses(1, 20)
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
