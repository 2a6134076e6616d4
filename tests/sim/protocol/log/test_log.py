from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sim.protocol.batch import Batch
from sim.protocol.log.log import MANY, BatchRange, Log, UnexpectedAppendOffsetError

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTS = st.integers(1, 5)


class LogModel(RuleBasedStateMachine):
    """A log against a flat list of (offset, record, batch) and two numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.log = Log()
        self.model: list[tuple[int, int, int]] = []
        self.start = self.leo = self.next_id = self.batches = 0

    def _add(self, count: int) -> None:
        self.batches += 1
        self.model += [(self.leo + position, self.next_id + position, self.batches) for position in range(count)]
        self.leo += count
        self.next_id += count

    @rule(count=COUNTS)
    def append_as_leader(self, count: int) -> None:
        assert self.log.append_new(self.next_id, count, 0).base_offset == self.leo
        self._add(count)

    @rule(count=COUNTS)
    def append_as_follower(self, count: int) -> None:
        self.log.append(Batch(self.leo, self.leo + count - 1, 0, self.next_id))
        self._add(count)

    @rule(back=st.integers(0, 8))
    def truncate(self, back: int) -> None:
        offset = max(0, self.leo - back)
        gone = {batch for at, _, batch in self.model if at >= offset}
        removed = self.log.truncate_to(offset)
        assert len(removed) == len(gone)
        self.model = [entry for entry in self.model if entry[2] not in gone]
        self.leo = offset
        self.start = min(self.start, offset)

    @rule(ahead=st.integers(0, 4))
    def truncate_fully(self, ahead: int) -> None:
        self.log.truncate_fully(self.leo + ahead)
        self.model = []
        self.leo += ahead
        self.start = self.leo

    @precondition(lambda self: self.leo > self.start)
    @rule(data=st.data())
    def move_start(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.leo))
        kept = {batch for at, _, batch in self.model if at >= offset}
        self.log.advance_start(offset)
        self.model = [entry for entry in self.model if entry[2] in kept]
        self.start = offset

    @rule()
    def restart(self) -> None:
        self.log.reload()
        self.leo = max(self.start, self.model[-1][0] + 1 if self.model else self.start)

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        log = self.log
        found = [
            (batch.base_offset + position, record)
            for batch in log.batches
            for position, record in enumerate(batch.ids())
        ]
        assert found == [(offset, record) for offset, record, _ in self.model]
        assert (log.log_start, log.leo) == (self.start, self.leo)
        assert log.lasts == [batch.last_offset for batch in log.batches]

    @invariant()
    def finds_what_the_model_finds(self) -> None:
        at = {offset: record for offset, record, _ in self.model}
        for offset in range(self.leo + 2):
            batch = self.log.batch_at(offset)
            assert (None if batch is None else batch.first_id + offset - batch.base_offset) == at.get(offset)
            rest = [record for batch in self.log.read(offset) for record in batch.ids()]
            assert [record for record in rest if record in at.values()] == rest
            assert set(rest) >= {record for at, record, _ in self.model if at >= offset}

    @invariant()
    def finds_batches_without_looking_at_all(self) -> None:
        log = self.log
        strangers = [Batch(batch.base_offset, batch.last_offset, 0, batch.first_id) for batch in log.batches]
        assert all(map(log.contains, log.batches))
        assert not any(map(log.contains, strangers))
        for few in (1, len(strangers)):
            assert log.missing([*log.batches[:1], *strangers[:few]]) == strangers[:few]
        for offset in range(self.leo + 1):
            for end in range(offset + 1, self.leo + 2):
                rest = log.read(offset)
                assert log.between(offset, end) == [batch for batch in rest if batch.base_offset < end]
                assert log.read_below(offset, end) == [batch for batch in rest if batch.last_offset < end]


TestLog = LogModel.TestCase
TestLog.settings = settings(max_examples=60, stateful_step_count=20)


def test_truncation_into_a_batch_removes_it_and_keeps_the_leo() -> None:
    log = Log()
    log.append_new(0, 10, 0)
    log.append_new(10, 10, 0)
    assert [batch.base_offset for batch in log.truncate_to(15)] == [10]
    assert (log.leo, log.lasts) == (15, [9])
    log.reload()
    assert log.leo == 10


@pytest.mark.parametrize(
    ("rolls", "base", "recovery_point", "place"),
    [(False, 5, 0, 0), (False, 6, 0, -1), (True, 5, 0, -1), (True, 5, 9, -1)],
)
def test_recovery_of_0_10_fails_at_overlapping_batches(rolls: bool, base: int, recovery_point: int, place: int) -> None:
    log = Log(check_first_offset=False)
    log.append_new(0, 5, 0)  # The first of a segment is in no index.
    log.append_new(5, 5, 0)
    if rolls:
        log.roll(10)
    log.append(Batch(base, 12, 0, 30))
    assert log.misindexed_segment(recovery_point) == place
    if not rolls and place == 0:
        log.roll(13)
        assert log.misindexed_segment(12) == 0
        assert log.misindexed_segment(13) == -1


def test_follower_takes_below_its_leo_what_the_checked_offset_allows() -> None:
    by_first, by_last = Log(), Log(check_first_offset=False)
    for log in (by_first, by_last):
        log.append_new(0, 20, 0)
    with pytest.raises(UnexpectedAppendOffsetError, match="10-24 begins below the log end offset 20"):
        by_first.append(Batch(10, 24, 1, 30))
    by_last.append(Batch(10, 24, 1, 30))
    assert by_last.overlaps()
    assert not by_first.overlaps()
    assert [batch.base_offset for batch in by_last.between(0, 10)] == [0]
    assert [batch.base_offset for batch in by_last.between(12, 15)] == [0, 10]
    with pytest.raises(UnexpectedAppendOffsetError, match="ends below"):
        by_last.append(Batch(15, 23, 2, 60))


def test_the_start_may_lie_inside_a_batch() -> None:
    log = Log()
    log.append_new(0, 4, 0)
    for offset in (2, 2, 1):
        log.advance_start(offset)
        assert (log.log_start, len(log.batches), log.below) == (2, 1, [])
    log.advance_start(4)
    assert (log.log_start, log.leo, log.batches, len(log.below)) == (4, 4, [], 1)


def test_segments_are_deleted_if_they_end_at_or_below_the_start() -> None:
    log = Log()
    for base in range(4):
        log.append_new(base, 1, 0)
        log.end_segment(base)
    for offset, segments in ((1, [1, 2, 3]), (3, [3]), (4, [3])):
        log.advance_start(offset)
        log.delete_segments()
        assert (log.segments, log.deleted) == (segments, segments[0])


def test_truncation_below_the_start_takes_the_start_along() -> None:
    log = Log()
    log.append_new(0, 4, 0)
    log.advance_start(2)
    log.truncate_to(1)
    assert (log.log_start, log.leo) == (1, 1)


def long_log(count: int) -> Log:
    """A log of batches of two records."""
    log = Log()
    for number in range(count):
        log.append_new(2 * number, 2, 0)
    return log


@pytest.mark.parametrize("offset", [0, 1, 2, 7, 2 * MANY - 1, 2 * MANY, 4 * MANY - 1, 4 * MANY])
@pytest.mark.parametrize("end", [0, 1, 2, 9, 2 * MANY, 2 * MANY + 1, 4 * MANY])
def test_a_read_has_the_batches_from_its_offset_to_its_end(offset: int, end: int) -> None:
    log = long_log(2 * MANY)
    assert list(log.read(offset)) == [batch for batch in log.batches if batch.last_offset >= offset]
    below = [batch for batch in log.batches if offset <= batch.last_offset < end]
    assert list(log.read_up_to(offset, end)) == log.read_below(offset, end) == below


def test_a_long_read_is_no_copy_but_a_sequence_like_one() -> None:
    log = long_log(2 * MANY)
    assert isinstance(log.read(2 * MANY + 1), BatchRange)
    assert isinstance(log.read(2 * MANY + 2), list)
    found, copy = log.read(10), log.batches[5:]
    assert isinstance(found, BatchRange)
    assert (len(found), found[0], found[-1], found[3:9:2]) == (len(copy), copy[0], copy[-1], copy[3:9:2])
    assert list(found) == copy == found[:]
    for place in (len(copy), -len(copy) - 1):
        with pytest.raises(IndexError):
            found[place]


def test_a_long_read_keeps_its_batches_whatever_happens_to_the_log() -> None:
    changes: list[Callable[[Log], object]] = [
        lambda log: log.append_new(1_000, 2, 1),
        lambda log: log.truncate_to(20),
        lambda log: log.truncate_fully(7),
        lambda log: log.advance_start(MANY),
        lambda log: log.set_batches(log.batches[3:]),
    ]
    for change in changes:
        log = long_log(2 * MANY)
        expected = log.batches[5:]
        found = log.read(10)
        change(log)
        assert list(found) == expected
        after = [*log.batches]
        log.truncate_to(log.leo - 1)
        assert log.batches == after[:-1]
        assert list(found) == expected


def test_a_log_that_lent_no_batches_keeps_its_list() -> None:
    log = long_log(2 * MANY)
    batches = log.batches
    log.read(3 * MANY)
    log.truncate_to(3 * MANY)
    assert log.batches is batches
    log.read(0)
    log.truncate_to(2 * MANY)
    assert log.batches is not batches
