from __future__ import annotations

import pytest

from sim.checkers.flushed_loss import FlushedLoss
from sim.history import steps
from sim.history.history import History
from sim.protocol.batch import Batch
from tests.sim.checkers.driven import made
from tests.sim.checkers.histories import log, replica, warnings

FOUND = ["flushed-loss"]
BATCHES = [Batch(2 * place, 2 * place + 1, 0, 2 * place) for place in range(5)]
OTHER = Batch(4, 5, 1, 99)


class World:
    """Broker 1 has five batches of two records."""

    def __init__(self, start: int = 0) -> None:
        self.history = History()
        self.checker = FlushedLoss(self.history)
        self.starts(*BATCHES, start=start)

    def flushed(self, count: int, *, start: int = 0, damaged: bool = False) -> None:
        one = log(*BATCHES, start=start)
        self.checker.on_flushed(steps.Flushed(1, one, count, damaged=damaged))

    def ends(self, kind: steps.StepKind = steps.POWER_LOSS, *, unclean: bool = True) -> None:
        self.checker.on_end(steps.End(1, kind, [], unclean=unclean))

    def starts(self, *batches: Batch, start: int = 0, lost: tuple[Batch, ...] = ()) -> list[str]:
        one = replica(*batches, start=start)
        self.checker.on_recovered(made(steps.Recovered, broker=1, _replica=one, lost=list(lost), at_us=5))
        return warnings(self.history)


@pytest.mark.parametrize(("most", "found"), [(4, []), (3, ["unflushed"])])
def test_no_more_is_unflushed_than_the_settings_allow(most: int, found: list[str]) -> None:
    world = World()
    step = steps.Flushed(1, log(*BATCHES), 3, damaged=False, most_unflushed=most)
    step.at_us = 5
    world.checker.on_flushed(step)
    assert warnings(world.history) == found


def test_a_damaged_disk_may_lack_more() -> None:
    world = World()
    world.checker.on_flushed(steps.Flushed(1, log(*BATCHES), 0, damaged=True, most_unflushed=0))
    assert warnings(world.history) == []


@pytest.mark.parametrize(("kept", "found"), [(5, []), (3, []), (2, FOUND), (0, FOUND)])
def test_what_was_flushed_is_there_after_a_restart(kept: int, found: list[str]) -> None:
    world = World()
    world.flushed(3)
    world.ends()
    assert world.starts(*BATCHES[:kept]) == found


def test_the_records_that_are_gone() -> None:
    world = World()
    world.flushed(3)
    world.ends()
    world.starts(BATCHES[0], lost=tuple(BATCHES[1:]))
    (entry,) = world.history.findings.warnings
    assert entry.ids == {2, 3, 4, 5}
    assert entry.detail == (
        "broker 1 loaded a log with LEO 2 that lacks flushed records; 3 batches up to offset 5 had been flushed"
    )


@pytest.mark.parametrize("batches", [(*BATCHES[:2], OTHER), (BATCHES[0], BATCHES[2]), (BATCHES[2],)])
def test_another_batch_or_a_gap_before_the_last_flushed_one(batches: tuple[Batch, ...]) -> None:
    world = World()
    world.flushed(3)
    world.ends()
    assert world.starts(*batches) == FOUND


def test_deleted_batches_may_be_gone_or_come_back() -> None:
    for start in (0, 2, 4, 6):
        world = World(4)
        world.flushed(1, start=4)
        world.ends()
        assert world.starts(*BATCHES, start=start) == []
    world = World(4)
    world.flushed(1, start=4)
    world.ends()
    assert world.starts(*BATCHES[:2], start=2) == FOUND


def test_nothing_was_flushed() -> None:
    world = World()
    world.flushed(0)
    world.ends()
    assert world.starts() == []


def test_a_second_end_does_not_hide_what_the_first_one_lost() -> None:
    world = World()
    world.flushed(3)
    world.ends()
    world.flushed(1)
    world.ends()
    assert world.starts(BATCHES[0]) == FOUND


def test_a_disk_that_was_damaged_keeps_less() -> None:
    world = World()
    world.flushed(3)
    world.flushed(1, damaged=True)
    assert world.starts(BATCHES[0]) == []
    world.flushed(1)
    world.flushed(0, damaged=True)
    assert world.starts() == []


@pytest.mark.parametrize(("unclean", "found"), [(False, FOUND), (True, [])])
def test_a_controlled_shutdown_flushes_the_whole_log(*, unclean: bool, found: list[str]) -> None:
    world = World()
    world.flushed(3)
    world.ends(steps.SHUTDOWN, unclean=unclean)
    assert world.starts(*BATCHES[:4]) == found
