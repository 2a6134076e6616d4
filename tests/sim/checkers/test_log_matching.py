from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sim.history import steps
from sim.history.history import History
from sim.protocol.batch import Batch
from tests.sim.checkers.driven import LogMatching
from tests.sim.checkers.histories import replica, warnings

if TYPE_CHECKING:
    from sim.protocol.log.log import Log

A0, A1 = Batch(0, 1, 0, 10), Batch(2, 2, 0, 20)
B1 = Batch(2, 2, 1, 30)
NEXT = Batch(3, 3, 1, 40)


class World:
    """Two empty logs."""

    def __init__(self) -> None:
        self.history = History()
        self.checker = LogMatching(self.history)
        self.logs: dict[int, Log] = {}
        for broker in (1, 2):
            loaded = replica()
            self.logs[broker] = loaded.log
            self.checker.loaded(broker, loaded)

    def append(self, broker: int, *batches: Batch) -> list[str]:
        log = self.logs[broker]
        for batch in batches:
            log.append(batch)
            step = steps.Append(broker, log, batch)
            step.at_us = 5
            self.checker.on_append(step)
        return warnings(self.history)


def test_a_log_that_follows_another() -> None:
    world = World()
    world.append(1, A0, A1)
    assert world.append(2, A0, A1) == []


def test_ends_that_differ_may_until_they_are_truncated() -> None:
    world = World()
    world.append(1, A0, A1)
    world.append(2, A0, B1, NEXT)
    world.logs[1].truncate_to(2)
    assert world.append(1, B1, NEXT) == []


def test_a_record_after_another_one_than_where_it_was_made() -> None:
    world = World()
    world.append(1, A0, A1)
    world.append(2, A0, B1, NEXT)
    assert world.append(1, NEXT) == ["log-mismatch"]
    assert world.history.findings.warnings[0].ids == {20, 30}
    assert world.append(1, Batch(4, 4, 1, 50)) == ["log-mismatch"]


@pytest.mark.parametrize("holder", [1, 2])
def test_a_hole_on_either_side(holder: int) -> None:
    world = World()
    other = 3 - holder
    world.append(holder, A0, A1)
    world.append(other, A0)
    world.append(holder, NEXT)
    assert world.append(other, NEXT) == ["log-mismatch"]


def test_an_empty_log_that_should_hold_what_came_before() -> None:
    world = World()
    world.append(1, A0, A1)
    assert world.append(2, A1) == ["log-mismatch"]


def test_offsets_below_a_log_start_are_not_compared() -> None:
    world = World()
    world.append(1, A0, A1)
    world.logs[2].truncate_fully(2)
    assert world.append(2, A1) == []
    world = World()
    world.append(1, A0, A1)
    world.append(2, A0, A1)
    world.logs[1].advance_start(3)
    world.append(1, tail := Batch(3, 3, 0, 60))
    assert world.append(2, tail) == []


def test_another_record_at_an_offset_that_the_epoch_has_used() -> None:
    world = World()
    world.append(1, A0, A1)
    world.append(2, A0, A1)
    world.logs[1].truncate_to(2)
    assert world.append(1, Batch(2, 3, 0, 70)) == ["log-mismatch"]
    assert (
        "at offset 2 of epoch 0 broker 1 has record 70 and broker 2 has record 20"
        in world.history.findings.warnings[0].detail
    )


def test_an_offset_that_everybody_has_lost_may_be_used_again() -> None:
    world = World()
    world.append(1, A0, A1)
    world.append(2, A0)
    world.logs[1].truncate_to(2)
    assert world.append(1, Batch(2, 2, 0, 70)) == []


def test_a_disk_that_was_replaced_holds_nothing() -> None:
    world = World()
    world.append(1, A0)
    world.append(2, A0)
    world.checker.lost(2, [A0])
    world.logs[1].truncate_to(0)
    assert world.append(1, Batch(0, 1, 0, 70)) == []
