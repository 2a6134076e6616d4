from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sim.checkers.ack_above_hw import AckAboveHw
from sim.history import steps
from sim.history.history import History
from sim.protocol.messages import NONE, ProduceRequest, ProduceResponse
from tests.sim.checkers.driven import made
from tests.sim.checkers.histories import replica, warnings


class World:
    """A leader with HW 5."""

    def __init__(self) -> None:
        self.history = History()
        self.checker = AckAboveHw(self.history)
        self.checker.on_hw(made(steps.HighWatermark, broker=1, offset=5))

    def answer(self, offset: int, first: int = 10, broker: int = 1) -> list[str]:
        reply = ProduceResponse(ProduceRequest(1001, "t-0", first, 2, -1), NONE, offset)
        step = steps.Acknowledges(broker, reply, 2)
        step.at_us = 7
        self.checker.on_acknowledges(step)
        return warnings(self.history)


@pytest.mark.parametrize(("offset", "found"), [(3, []), (4, ["ack-above-hw"]), (5, ["ack-above-hw"])])
def test_the_last_record_must_be_below_the_hw(offset: int, found: list[str]) -> None:
    assert World().answer(offset) == found


def test_one_warning_collects_all_records() -> None:
    world = World()
    world.answer(4)
    world.answer(6, first=20)
    (entry,) = world.history.findings.warnings
    assert entry.ids == {10, 11, 20, 21}
    assert entry.detail == "broker 1 answered success for record 10 at offset 4 (acks=all) with HW 5"


def test_the_hw_is_the_leaders_own() -> None:
    assert World().answer(3, broker=2) == ["ack-above-hw"]


def test_the_hw_after_a_restart_a_deletion_and_an_election() -> None:
    world = World()
    world.checker.on_recovered(made(steps.Recovered, broker=1, other=9))
    assert world.answer(7) == []
    world.checker.on_lead(made(steps.Lead, broker=1, other=11))
    assert world.answer(9) == []
    deleted: Any = SimpleNamespace(broker=1, replica=replica())
    world.checker.on_deleted(deleted)
    assert world.answer(0) == ["ack-above-hw"]
