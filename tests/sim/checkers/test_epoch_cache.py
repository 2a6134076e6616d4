from __future__ import annotations

import pytest

from sim.checkers.epoch_cache import EpochCache
from sim.history import steps
from sim.history.history import History
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.modes import MODES
from sim.protocol.replica.partition import Partition
from tests.sim.checkers.driven import made
from tests.sim.checkers.histories import replica, warnings

FOUND = ["epoch-cache-mismatch"]
BATCHES = (Batch(0, 1, 0, 0), Batch(2, 3, 0, 2), Batch(4, 5, 2, 4), Batch(6, 7, 3, 6))
RIGHT = [(0, 0), (2, 4), (3, 6)]


class World:
    """Broker 1 has four batches of epochs 0, 0, 2 and 3."""

    def __init__(
        self,
        entries: list[tuple[int, int]],
        *,
        mode: str = "kip320",
        start: int = 0,
        batches: tuple[Batch, ...] = BATCHES,
    ) -> None:
        self.history = History()
        self.checker = EpochCache(self.history)
        one = replica(*batches, start=start)
        assert isinstance(one, Partition)
        self.replica = one
        one.decide = Decisions(MODES[mode].rules)
        self.has(entries)
        self.checker.on_recovered(made(steps.Recovered, broker=1, _replica=one, at_us=5))

    @property
    def found(self) -> list[str]:
        return warnings(self.history)

    def has(self, entries: list[tuple[int, int]]) -> None:
        self.replica.epochs.epochs = [epoch for epoch, _ in entries]
        self.replica.epochs.starts = [start for _, start in entries]

    def truncates(self) -> list[str]:
        step = steps.Truncate(1, self.replica, [])
        step.at_us = 6
        self.checker.on_truncate(step)
        return self.found


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        (RIGHT, []),
        ([*RIGHT, (5, 8)], []),  # An epoch in which nothing was written yet.
        ([(0, 0), (1, 4), (2, 4), (3, 6)], []),  # The older cache may have several entries at one offset.
        ([*RIGHT, (5, 9)], FOUND),
        (RIGHT[1:], FOUND),
        (RIGHT[:2], FOUND),
        ([(0, 0), (3, 6)], FOUND),
        ([(0, 0), (2, 3), (3, 6)], FOUND),
        ([(0, 0), (2, 5), (3, 6)], FOUND),
        ([(0, 0), (1, 4), (3, 6)], FOUND),
        ([], FOUND),
    ],
)
def test_entries_and_batches(entries: list[tuple[int, int]], found: list[str]) -> None:
    world = World(entries)
    assert world.found == found
    assert world.truncates() == found


def test_an_empty_log() -> None:
    assert World([], batches=()).found == []
    assert World([(4, 0)], batches=()).found == []


def test_a_log_start_within_an_epoch_or_a_batch() -> None:
    assert World([(0, 2), *RIGHT[1:]], start=2).found == []
    assert World([(0, 3), *RIGHT[1:]], start=3).found == []
    assert World([(0, 3), *RIGHT[1:]], start=2).found == FOUND


def test_the_detail() -> None:
    world = World([(0, 0), (3, 6)])
    detail = "broker 1 loaded its log; at offset 5 its log has a record of epoch 2, and its epoch cache has epoch 0"
    assert world.history.findings.warnings[0].detail == detail


def test_entries_that_change_between_truncations() -> None:
    world = World(RIGHT)
    assert world.truncates() == []
    world.replica.log.append(Batch(8, 9, 5, 8))
    world.has([*RIGHT, (5, 8)])
    assert world.truncates() == []
    world.replica.log.append(Batch(10, 11, 6, 10))
    assert world.truncates() == FOUND


def test_an_entry_in_place_of_one_that_was_right() -> None:
    world = World(RIGHT)
    world.has([(0, 0), (2, 4), (4, 6)])
    assert world.truncates() == FOUND


def test_a_release_before_leader_epochs_has_no_cache() -> None:
    assert World([], mode="hw").found == []


def test_a_log_that_was_deleted_begins_anew() -> None:
    world = World(RIGHT)
    empty = World([], batches=()).replica
    world.checker.on_deleted(made(steps.Deleted, broker=1, _replica=empty))
    assert world.truncates() == []


@pytest.mark.parametrize(
    ("entries", "found"),
    [([(2, 5), (3, 6)], []), ([(0, 0), (2, 4), (3, 6)], []), ([(3, 6)], FOUND), ([(2, 6)], FOUND)],
)
def test_a_move_of_the_log_start_is_compared(entries: list[tuple[int, int]], found: list[str]) -> None:
    world = World(RIGHT)
    world.replica.log.advance_start(5)
    world.has(entries)
    step = steps.LogStart(1, 5)
    step.at_us = 6
    world.checker.on_log_start(step)
    assert world.found == found
    if found:
        assert "broker 1 moved its log start" in world.history.findings.warnings[0].detail
