from __future__ import annotations

from sim.checkers.committed_offsets import CommittedOffsets
from sim.history import steps
from sim.history.history import History
from sim.protocol.messages import NONE, ProduceRequest, ProduceResponse
from tests.sim.checkers.histories import kinds


class Told:
    """What consumers are told."""

    def __init__(self) -> None:
        self.history = History()
        self.checker = CommittedOffsets(self.history)

    def committed(self, record: int, offset: int, consumer: int = 1002) -> Told:
        reply = ProduceResponse(ProduceRequest(consumer, "t-0", record, 1, -1), NONE, record)
        step = steps.CommitAck(reply, consumer, offset)
        step.at_us = 5
        self.checker.on_ack(step)
        return self

    def answered(self, record: int, offset: int, consumer: int = 1002) -> Told:
        step = steps.OffsetsAnswer(consumer, record, offset)
        step.at_us = 9
        self.checker.on_offsets_answer(step)
        return self


def test_the_newest_commit_or_one_of_which_the_application_heard_nothing_is_right() -> None:
    told = Told().answered(0, -1)
    assert not told.checker.decided
    told.committed(1, 4).answered(1, 4).committed(2, 3).answered(3, 5).answered(3, 5)
    assert told.checker.decided
    assert kinds(told.history) == []


def test_an_older_commit_or_none_is_a_violation_once() -> None:
    told = Told().committed(1, 4).committed(2, 6).answered(1, 4).answered(1, 4).answered(0, -1)
    assert kinds(told.history) == ["committed-offset-back"] * 2
    first, second = told.history.findings.violations
    assert (first.ids, second.ids) == ({2}, {1})
    assert first.detail == "consumer 1002 committed offset 6 at 0.000 s; its next process was answered offset 4"
    assert second.detail.endswith("its next process was answered no offset")


def test_other_consumers_do_not_matter() -> None:
    told = Told().committed(1, 4).committed(2, 6, consumer=1005).answered(1, 4)
    assert kinds(told.history) == []
