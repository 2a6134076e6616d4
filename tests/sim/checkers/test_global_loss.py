from __future__ import annotations

import pytest

from sim.history.history import History
from sim.protocol.batch import Batch
from tests.sim.checkers.driven import GlobalLoss
from tests.sim.checkers.histories import commit, make, replica, warnings

FIRST, SECOND = Batch(0, 2, 0, 10), Batch(3, 4, 0, 20)


class World:
    """Three brokers with logs of their own; both batches are committed."""

    def __init__(self, *logs: tuple[Batch, ...]) -> None:
        self.history = History()
        commit(self.history, [FIRST, SECOND], 0)
        self.checker = GlobalLoss(self.history)
        self.replicas = {broker: replica(*log) for broker, log in enumerate(logs, 1)}
        for broker, loaded in self.replicas.items():
            make(self.history, *loaded.log.batches)
            self.checker.loaded(broker, loaded)

    def truncate(self, broker: int, offset: int) -> list[str]:
        self.checker.removed(self.replicas[broker].log.truncate_to(offset), 5)
        return warnings(self.history)

    def lose(self, broker: int, kept: int) -> list[str]:
        """As a machine does whose log ends there after the crash."""
        log = self.replicas[broker].log
        lost = log.batches[kept:]
        del log.batches[kept:], log.lasts[kept:]
        self.checker.lost(broker, lost, 5)
        return warnings(self.history)

    def replace(self, broker: int) -> list[str]:
        """The old disk's log stays as it was."""
        self.checker.lost(broker, self.replicas[broker].log.batches, 5)
        return warnings(self.history)


def test_one_replica_is_enough() -> None:
    world = World((FIRST, SECOND), (FIRST, SECOND), (FIRST,))
    assert world.truncate(1, 3) == []
    assert world.replace(3) == []


@pytest.mark.parametrize("how", ["truncates", "loses", "has its disk replaced"])
def test_the_last_replica_loses_it(how: str) -> None:
    world = World((FIRST, SECOND), (FIRST, SECOND), (FIRST,))
    assert world.lose(1, 1) == []
    found = world.truncate(2, 3) if how == "truncates" else world.lose(2, 1) if how == "loses" else world.replace(2)
    assert found == ["global-loss"]
    assert world.history.findings.warnings[0].ids == {20, 21}
    assert "2 committed records from record 20 (offset 3) on are in no broker's log any more" in (
        world.history.findings.warnings[0].detail
    )


def test_each_batch_is_reported_once() -> None:
    world = World((FIRST, SECOND), (), ())
    assert world.lose(1, 1) == ["global-loss"]
    world.replicas[2].log.append(SECOND)
    assert world.truncate(2, 0) == ["global-loss"]
    assert world.lose(1, 0) == ["global-loss"] * 2
    assert world.history.findings.warnings[1].ids == {10, 11, 12}


def test_another_copy_of_a_record_counts() -> None:
    world = World((FIRST, SECOND), (FIRST, Batch(3, 4, 1, 20)), ())
    assert world.truncate(1, 3) == []


def test_record_that_was_not_committed_or_was_deleted_may_go() -> None:
    world = World((FIRST, Batch(3, 4, 0, 30)), (FIRST,), ())
    assert world.truncate(1, 3) == []
    world = World((FIRST, SECOND), (), ())
    world.history.records.deleted.update(range(20, 22))
    assert world.truncate(1, 3) == []


def test_deleted_record_may_go_with_the_only_log() -> None:
    world = World((FIRST, SECOND))
    world.history.records.deleted.update((*FIRST.ids(), *SECOND.ids()))
    assert world.replace(1) == []
