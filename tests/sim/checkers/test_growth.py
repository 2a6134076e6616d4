"""What checkers look at grows with the run, not with its square: batches of logs that are looked at are counted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from sim.history.clients import Shown
from sim.history.history import History
from sim.protocol.batch import Batch
from tests.sim.checkers.driven import Completeness, ConsistentReads, Divergence, GlobalLoss, check_answer
from tests.sim.checkers.histories import commit, make, replica, warnings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sim.protocol.replica.replica import Replica

SIZES = (64, 256, 1_024)


class Watched(list[Batch]):
    """A log's batches that count how many of them are looked at."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.looks += len(found) if isinstance(place, slice) else 1
        return found

    def __iter__(self) -> Iterator[Batch]:
        self.looks += len(self)
        return super().__iter__()


def batches(count: int) -> list[Batch]:
    return [Batch(offset, offset, 0, offset) for offset in range(count)]


def watched(*held: Batch, hw: int = 0) -> tuple[Replica, Watched]:
    one = replica(*held)
    one.hw = hw
    one.log.batches = seen = Watched(one.log.batches)
    return one, seen


def commits_that_a_candidate_lacks(count: int) -> int:
    """The ISR's other member is one batch behind at each commit."""
    made, history = batches(count), History()
    make(history, *made)
    checker = Completeness(history)
    checker.isr((1, 2), (), 0)
    leader, seen = watched()
    follower, seen_too = watched()
    for broker, one in ((1, leader), (2, follower)):
        checker.loaded(broker, one)
        checker.session(broker)
        checker.told(broker, 0)
    for batch in made:
        leader.log.append(batch)
        checker.committed(1, 0, [batch], 5)
        follower.log.append(batch)
    assert len(warnings(history)) == count
    return seen.looks + seen_too.looks


def elections(count: int) -> int:
    """Somebody else begins to lead after each batch, which was committed and shown."""
    made, history = batches(count), History()
    make(history, *made)
    complete, consistent = Completeness(history), ConsistentReads(history)
    complete.isr((1, 2), (), 0)
    replicas = {broker: watched() for broker in (1, 2)}
    for broker, (one, _) in replicas.items():
        complete.loaded(broker, one)
        complete.session(broker)
    for epoch, batch in enumerate(made):
        for one, _ in replicas.values():
            one.log.append(batch)
        leader = 1 + epoch % 2
        complete.lead(leader, epoch, 5)
        consistent.lead(leader, epoch, replicas[leader][0].log, 5)
        complete.committed(leader, epoch, [batch], 5)
        history.clients.shown.append(Shown(batch, batch.base_offset, 5))
    assert warnings(history) == []
    return sum(seen.looks for _, seen in replicas.values())


def high_watermarks(count: int) -> int:
    """Two replicas whose logs go on, each beyond the other's HW, which moves by one batch at a time."""
    made, history = batches(count), History()
    checker = Divergence(history)
    replicas = {1: watched(*made, hw=0), 2: watched(*made[:-1], Batch(count - 1, count - 1, 1, 99), hw=0)}
    for broker, (one, _) in replicas.items():
        checker.loaded(broker, one)
        checker.settled(broker, 0, 5)
    for hw in range(1, count):
        for broker, (one, _) in replicas.items():
            one.hw = hw
            checker.compare(broker, 5)
    assert history.findings.violations == []
    return sum(seen.looks for _, seen in replicas.values())


def truncations(count: int) -> int:
    """A batch after the other is cut off one log, and stands in the other one."""
    made, history = batches(count), History()
    make(history, *made)
    commit(history, made, 1)
    checker = GlobalLoss(history)
    replicas = {broker: watched(*made) for broker in (1, 2)}
    for broker, (one, _) in replicas.items():
        checker.loaded(broker, one)
    for batch in reversed(made):
        checker.removed(replicas[1][0].log.truncate_to(batch.base_offset), 5)
    assert warnings(history) == []
    return sum(seen.looks for _, seen in replicas.values())


def regressions(count: int) -> int:
    """An end offset before the last batch is told after each of many commits."""
    history = History()
    history.commits.batches = seen = Watched()
    for batch in batches(count):
        seen.append(batch)
        history.clients.expose(0, batch.last_offset + 1)
        check_answer(history, history.clients.exposed, batch.base_offset, 0, 5)
    assert [violation.ids for violation in history.findings.violations] == [
        frozenset({record}) for record in range(count)
    ]
    return seen.looks


@pytest.mark.parametrize(
    "history", [commits_that_a_candidate_lacks, elections, high_watermarks, truncations, regressions]
)
def test_looks_grow_no_faster_than_n_log_n(history: Callable[[int], int]) -> None:
    per_batch = [history(size) / (size * math.log2(size)) for size in SIZES]
    assert per_batch[0] > 0
    assert per_batch[-1] <= 1.5 * per_batch[0], per_batch
