from __future__ import annotations

from sim.history.clients import Shown
from sim.history.history import History
from sim.protocol.batch import Batch
from tests.sim.checkers.driven import ConsistentReads
from tests.sim.checkers.histories import log, warnings

FIRST, SECOND = Batch(0, 2, 0, 10), Batch(3, 4, 0, 20)
OTHER, COPY = Batch(3, 4, 1, 40), Batch(3, 4, 1, 20)


class World:
    """Broker 1 leads in epoch 0 and has both batches."""

    def __init__(self) -> None:
        self.history = History()
        self.checker = ConsistentReads(self.history)
        self.checker.elected(0)
        self.checker.lead(1, 0, log(FIRST, SECOND), 0)

    def read(self, *batches: Batch, epoch: int = 0, start: int = 0) -> list[str]:
        self.history.clients.shown += [Shown(batch, max(start, batch.base_offset), 5) for batch in batches]
        if epoch != self.checker.epoch:
            self.checker.read(len(batches), 5)
        return self.found

    def elect(self, *batches: Batch, epoch: int = 1, start: int = 0) -> list[str]:
        self.checker.elected(epoch)
        self.checker.lead(2, epoch, log(*batches, start=start), 6)
        return self.found

    @property
    def found(self) -> list[str]:
        return warnings(self.history)


def test_record_that_was_read_stays_where_it_was_read() -> None:
    world = World()
    assert world.read(FIRST, SECOND) == []
    assert world.elect(FIRST, SECOND) == []
    assert world.elect(FIRST, COPY, epoch=2) == []


def test_another_record_in_its_place_or_none() -> None:
    world = World()
    world.read(FIRST, SECOND)
    assert world.elect(FIRST, OTHER) == ["inconsistent-read"]
    assert world.history.findings.warnings[0].ids == {20, 21}
    assert "leader 2 (epoch 1) lacks 2 records from" in world.history.findings.warnings[0].detail
    assert "record 20 (offset 3)" in world.history.findings.warnings[0].detail
    assert world.elect(FIRST, epoch=2) == ["inconsistent-read"]
    assert world.elect(epoch=3) == ["inconsistent-read"] * 2


def test_records_before_the_position_were_not_shown() -> None:
    world = World()
    world.read(SECOND, start=4)
    world.elect(FIRST)
    assert world.history.findings.warnings[0].ids == {21}


def test_read_from_an_older_leader_is_compared_with_the_newest() -> None:
    world = World()
    assert world.elect(FIRST, OTHER) == []
    assert world.read(FIRST, epoch=0) == []
    assert world.read(OTHER, epoch=1) == []
    assert world.read(SECOND, epoch=0) == ["inconsistent-read"]


def test_read_between_two_leaders_is_compared_with_the_later() -> None:
    world = World()
    world.checker.elected(1)
    assert world.read(SECOND) == []
    world.checker.lead(2, 1, log(FIRST), 6)
    assert world.found == ["inconsistent-read"]
    world = World()
    world.checker.ended(1)
    assert world.elect(FIRST) == []
    world.checker.ended(2)
    assert world.read(SECOND) == []


def test_a_leader_of_an_older_epoch_that_begins_is_not_asked() -> None:
    world = World()
    world.read(FIRST, SECOND)
    world.checker.elected(2)
    world.checker.lead(2, 1, log(FIRST), 6)
    assert world.found == []


def test_records_that_retention_deleted_are_not_asked_for() -> None:
    world = World()
    world.read(FIRST, SECOND)
    assert world.elect(SECOND, start=3) == []
    world.history.records.deleted.update(range(20, 22))
    assert world.elect(FIRST, epoch=2) == []
