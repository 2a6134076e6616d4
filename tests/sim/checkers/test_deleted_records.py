from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sim.checkers.checker import NOT_PROMISED
from sim.checkers.deleted_records import DeletedRecords
from sim.history import steps
from sim.history.history import History
from sim.protocol.batch import Batch
from tests.sim.checkers.driven import made
from tests.sim.checkers.histories import kinds, log, tell

OLD, NEW = Batch(0, 2, 0, 10), Batch(3, 4, 0, 20)


class Logs:
    """Brokers 1 and 2 are in the ISR; their log starts move."""

    def __init__(self) -> None:
        self.history = History()
        self.checker = DeletedRecords(self.history)
        self.checker.on_isr(steps.Isr((1, 2), 0))
        tell(self.history, steps.Retention(1, [10, 11, 12], 3), 0)

    def start(self, broker: int, offset: int) -> None:
        self.checker.on_log_start(steps.LogStart(broker, offset))

    def leads(self, broker: int, start: int, epoch: int = 1) -> list[str]:
        """Kinds that are found once a broker with this log start leads."""
        partition: Any = SimpleNamespace(log=log(OLD, NEW, start=start), broker=broker, leader_epoch=epoch)
        self.checker.on_lead(made(steps.Lead, partition=partition, broker=broker, epoch=epoch, at_us=9))
        return kinds(self.history)


def test_a_log_start_of_all_isr_members_does_not_go_back() -> None:
    logs = Logs()
    logs.start(1, 3)
    logs.start(2, 3)
    assert logs.leads(1, 3) == []
    assert logs.leads(2, 0) == ["deleted-records-back"]
    (found,) = logs.history.findings.violations
    assert (found.ids, found.promised) == ({10, 11, 12}, "")
    assert found.detail == (
        "leader 2 (epoch 1) begins its log at offset 0, although the records below 3 had been deleted: 3 records came "
        "back"
    )


def test_a_log_start_that_a_member_does_not_have_yet_may_go_back() -> None:
    logs = Logs()
    logs.start(1, 3)
    assert logs.leads(2, 0) == []


def test_broker_that_learns_late_of_its_election_brings_nothing_back() -> None:
    """A process that was paused goes on where it was, until it hears that another one leads."""
    logs = Logs()
    logs.start(1, 3)
    logs.start(2, 3)
    assert logs.leads(1, 3, epoch=4) == []
    assert logs.leads(2, 0, epoch=1) == []
    assert logs.leads(2, 0, epoch=5) == ["deleted-records-back"]


def test_a_smaller_isr_may_have_it() -> None:
    logs = Logs()
    logs.start(1, 3)
    logs.checker.on_isr(steps.Isr((1,), 0))
    assert logs.leads(2, 0) == ["deleted-records-back"]


def test_what_a_leader_answered_does_not_go_back() -> None:
    logs = Logs()
    logs.start(1, 3)
    logs.checker.on_position(steps.Position(steps.RESET, 1002, 3, policy="earliest"))
    assert logs.leads(2, 0) == ["deleted-records-back"]


def test_it_is_excused_once_every_broker_that_had_it_lost_records() -> None:
    logs = Logs()
    logs.start(1, 3)
    logs.start(2, 3)
    logs.checker.on_end(steps.End(1, steps.POWER_LOSS, [NEW]))
    logs.checker.on_end(steps.End(2, steps.POWER_LOSS, [NEW]))
    assert logs.leads(2, 0) == ["deleted-records-back"]
    assert logs.history.findings.violations[0].promised == NOT_PROMISED


def test_ends_that_lose_nothing_do_not_excuse_it() -> None:
    logs = Logs()
    logs.start(1, 3)
    logs.start(2, 3)
    logs.checker.on_end(steps.End(1, steps.KILL, []))
    logs.checker.on_end(steps.End(2, steps.KILL, []))
    assert logs.leads(2, 0) == ["deleted-records-back"]
    assert logs.history.findings.violations[0].promised == ""


def test_it_is_excused_once_the_last_isr_member_lost_records() -> None:
    logs = Logs()
    logs.start(1, 3)
    logs.start(2, 3)
    logs.checker.on_isr(steps.Isr((2,), 0))
    logs.checker.on_end(steps.End(2, steps.POWER_LOSS, [NEW]))
    assert logs.leads(2, 0) == ["deleted-records-back"]
    assert logs.history.findings.violations[0].promised == NOT_PROMISED


def test_other_records_at_these_offsets_are_no_deleted_ones() -> None:
    logs = Logs()
    logs.start(1, 3)
    logs.start(2, 3)
    logs.history.records.deleted.clear()
    assert logs.leads(2, 0) == []
