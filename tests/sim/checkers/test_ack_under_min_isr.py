from __future__ import annotations

import pytest

from sim.history.recorder import Journal
from sim.kernel.scheduler import Kernel
from sim.protocol.messages import NONE, ProduceReply, ProduceRequest
from tests.sim.checkers.histories import kinds


def acknowledged(
    isr: tuple[int, ...], now: tuple[int, ...], first: int = 10, journal: Journal | None = None
) -> Journal:
    """A leader answers under one persisted ISR, with min ISR 2; the producer hears of it under another."""
    journal = journal or Journal(Kernel())
    reply = ProduceReply(ProduceRequest(1001, "t-0", first, 2, -1), NONE, 0)
    journal.ledger.isr_history.append((0, isr))
    journal.acknowledges(1, reply, 2)
    journal.ledger.isr_history.append((0, now))
    journal.ack(reply)
    return journal


@pytest.mark.parametrize(("isr", "now", "found"), [((1, 2), (1,), []), ((1,), (1, 2), ["ack-under-min-isr"])])
def test_it_is_judged_where_the_leader_answers(isr: tuple[int, ...], now: tuple[int, ...], found: list[str]) -> None:
    assert kinds(acknowledged(isr, now).ledger) == found


def test_one_violation_collects_all_records() -> None:
    journal = acknowledged((1,), (1,))
    ledger = acknowledged((3,), (1,), 20, journal).ledger
    assert kinds(ledger) == ["ack-under-min-isr"]
    assert ledger.violations[0].ids == {10, 11, 20, 21}
    assert ledger.violations[0].detail == "record 10 was acknowledged while the persisted ISR was [1]"
