from __future__ import annotations

import pytest

from sim.checkers.checker import ALWAYS
from sim.checkers.registry import Checkers
from sim.history import steps
from sim.history.recorder import Recorder
from sim.kernel.scheduler import Kernel
from sim.protocol.messages import NONE, ProduceRequest, ProduceResponse
from tests.sim.checkers.histories import kinds


def acknowledged(
    isr: tuple[int, ...], now: tuple[int, ...], first: int = 10, recorder: Recorder | None = None
) -> Recorder:
    """A leader answers under one persisted ISR, with min ISR 2; the producer hears of it under another."""
    if recorder is None:
        recorder = Recorder(Kernel())
        Checkers(recorder)
    reply = ProduceResponse(ProduceRequest(1001, "t-0", first, 2, -1), NONE, 0)
    recorder.record(steps.Isr(isr, 0))
    recorder.record(steps.Acknowledges(1, reply, 2))
    recorder.record(steps.Isr(now, 0))
    recorder.record(steps.Ack(reply))
    return recorder


@pytest.mark.parametrize(("isr", "now", "found"), [((1, 2), (1,), []), ((1,), (1, 2), ["ack-under-min-isr"])])
def test_success_under_min_isr_is_judged_where_the_leader_answers(
    isr: tuple[int, ...], now: tuple[int, ...], found: list[str]
) -> None:
    assert kinds(acknowledged(isr, now).history) == found


@pytest.mark.parametrize(
    ("known", "promised"), [((1,), ALWAYS), ((1, 2), ""), (None, "")], ids=["known", "in flight", "proposed another"]
)
def test_a_leader_that_knew_the_persisted_isr_breaks_its_promise(known: tuple[int, ...] | None, promised: str) -> None:
    recorder = Recorder(Kernel())
    Checkers(recorder)
    reply = ProduceResponse(ProduceRequest(1001, "t-0", 10, 2, -1), NONE, 0)
    recorder.record(steps.Isr((1,), 0))
    recorder.record(steps.Acknowledges(1, reply, 2, known))
    recorder.record(steps.Ack(reply))
    assert [violation.promised for violation in recorder.history.findings.violations] == [promised]


def test_one_violation_collects_all_records() -> None:
    recorder = acknowledged((1,), (1,))
    history = acknowledged((3,), (1,), 20, recorder).history
    assert kinds(history) == ["ack-under-min-isr"]
    assert history.findings.violations[0].ids == {10, 11, 20, 21}
    assert history.findings.violations[0].detail == "record 10 was acknowledged while the persisted ISR was [1]"
