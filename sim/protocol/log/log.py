"""A partition's log: batches between the log start and the log end offset (LEO).

The log is independent of disks: `sim.environment.storage` shares its lists and decides what survives a crash.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import abc
from typing import Final, overload

from sim.kernel.build import COMPILED
from sim.protocol.batch import NO_SEQUENCE, Batch, Sequence
from sim.protocol.log.producer_state_manager import ProducerStateManager

NO_OFFSET: Final = -1
place_of: Final = bisect_left
"""Index of the batch with an offset, by last offsets. An alias: compiled code looks up imports at each call."""
MANY: Final = 64
"""Batches from which on a read returns a `BatchRange` instead of a copy."""
_NEAR: Final = 8
"""Batches that are compared one by one, from the end of the log, before bisecting."""


class UnexpectedAppendOffsetError(Exception):
    """A fetched batch begins (older check: ends) below the LEO. Kafka: UnexpectedAppendOffsetException (1.1-4.4)."""


class BatchRange(abc.Sequence[Batch]):
    """Consecutive batches of a log as they were at the time of a read, without a copy of them.

    A follower whose fetches time out reads the same batches again and again; copies cost more than all else of such a
    run.

    Args:
        batches: a list from which nothing is removed, see `Log.detach`.
        start: place of the first batch.
        stop: place after the last one.
    """

    def __init__(self, batches: list[Batch], start: int, stop: int) -> None:
        self._batches = batches
        self._start = start
        self._stop = stop

    def __len__(self) -> int:
        return self._stop - self._start

    @overload
    def __getitem__(self, place: int) -> Batch: ...

    @overload
    def __getitem__(self, place: slice) -> list[Batch]: ...

    def __getitem__(self, place: int | slice) -> Batch | list[Batch]:
        places = range(self._start, self._stop)[place]
        if isinstance(places, int):
            return self._batches[places]
        return [self._batches[each] for each in places]

    def __iter__(self) -> abc.Iterator[Batch]:
        return iter(self._batches[self._start : self._stop])


class Log:
    """Batches in offset order. Kafka: LocalLog (3.9-4.4), Log (0.10.2-2.6).

    Attributes:
        batches: the batches, oldest first.
        lasts: their last offsets, strictly ascending; the index for look-ups.
        below: batches that end below the log start and are not read. A restart finds those still in a segment, and the
            producer state covers the others.
        segments: base offsets of the segments; the first is at or below the log start.
        producers: the state of idempotent producers.
        log_start: first offset that may be read.
        leo: offset of the next record. May be beyond the data after a truncation into a batch (see `truncate_to`).
        check_first_offset: rule ``append_check``: compare a fetched batch's first offset, not its last.
    """

    __slots__ = (
        "_is_lent",
        "batches",
        "below",
        "check_first_offset",
        "lasts",
        "leo",
        "log_start",
        "producers",
        "segments",
    )

    def __init__(self, *, check_first_offset: bool = True, log_start: int = 0) -> None:
        self.batches: list[Batch] = []
        self._is_lent = False
        """Whether a `BatchRange` may refer to `batches`."""
        self.lasts: list[int] = []
        self.below: list[Batch] = []
        self.segments: list[int] = [log_start]
        self.producers = ProducerStateManager(log_start)
        self.log_start = log_start
        self.leo = log_start
        self.check_first_offset = check_first_offset

    @property
    def end(self) -> tuple[int, int]:
        """Leader epoch of the last record (-1 without one) and LEO, by which logs are compared."""
        return (self.batches[-1].leader_epoch if self.batches else -1), self.leo

    def append_new(self, first_id: int, count: int, leader_epoch: int, sequence: Sequence = NO_SEQUENCE) -> Batch:
        """Append as leader: records get the next offsets. Returns the new batch.

        Kafka: UnifiedLog#appendAsLeader (3.9-4.4), Log#appendAsLeader (1.1-2.6).
        """
        base = self.leo
        last = base + count - 1
        batch = Batch(base, last, leader_epoch, first_id, sequence)
        self.batches.append(batch)
        self.lasts.append(last)
        self.leo = last + 1
        return batch

    def check(self, batch: Batch) -> None:
        """Refuse a fetched batch below the LEO, as rule ``append_check`` defines it.

        Kafka: UnifiedLog#append (3.9-4.4), Log#append (0.10.2-2.6).

        Raises:
            UnexpectedAppendOffsetError: the batch is below the LEO.
        """
        base, last = batch.base_offset, batch.last_offset
        if base < self.leo and self.check_first_offset:
            raise UnexpectedAppendOffsetError(f"batch {base}-{last} begins below the log end offset {self.leo}")
        if last < self.leo:
            raise UnexpectedAppendOffsetError(f"batch {base}-{last} ends below the log end offset {self.leo}")

    def append(self, batch: Batch) -> None:
        """Append a fetched batch as follower.

        Kafka: UnifiedLog#appendAsFollower (3.9-4.4), Log#appendAsFollower (1.1-2.6).

        Raises:
            UnexpectedAppendOffsetError: see `check`.
        """
        if batch.base_offset < self.leo:
            self.check(batch)
        self.batches.append(batch)
        self.lasts.append(batch.last_offset)
        self.leo = batch.last_offset + 1

    def truncate_to(self, offset: int) -> list[Batch]:
        """Remove everything at and after an offset; returns the removed batches, oldest first.

        The whole batch that contains the offset is removed, yet the LEO becomes the offset itself: data may end before
        the LEO. A no-op if the offset is at or beyond the LEO. Below the first segment the log restarts at the offset.
        Kafka: LogSegment#truncateTo, LocalLog#truncateTo (3.9-4.4), UnifiedLog#truncateTo (3.9-4.4), Log#truncateTo
        (0.10.2-2.6).
        """
        if offset >= self.leo:
            return []
        keep = place_of(self.lasts, offset)
        removed = self.batches[keep:]
        self.detach()
        del self.batches[keep:]
        del self.lasts[keep:]
        self.leo = max(offset, 0)
        if self.leo < self.log_start:
            self.log_start = self.leo
            while self.below and self.below[-1].last_offset >= self.leo:
                self.below.pop()
        segments = self.segments
        while len(segments) > 1 and segments[-1] > self.leo:
            segments.pop()
        segments[0] = min(segments[0], self.leo)
        if self.producers.empty_from >= 0:
            self.producers.reload_truncated(self, removed)
        else:
            self.producers.reload(self.log_start, self.leo)
        return removed

    def truncate_fully(self, offset: int) -> list[Batch]:
        """Drop all batches, which are returned, oldest first, and start at an offset.

        Kafka: LocalLog#truncateFullyAndStartAt (3.9-4.4), Log#truncateFullyAndStartAt (0.10.2-2.6).
        """
        removed = self.batches[:]
        self.detach()
        self.batches.clear()
        self.lasts.clear()
        self.below.clear()
        self.log_start = self.leo = offset
        self.segments[:] = [offset]
        self.producers.truncate_fully(offset)
        return removed

    def roll(self, base_offset: int) -> None:
        """Begin a segment, in place of an empty one there. Kafka: LocalLog#roll (3.9-4.4), Log#roll (0.10.2-2.6)."""
        if self.segments[-1] != base_offset:
            self.segments.append(base_offset)
        self.producers.take_snapshot(base_offset)

    def advance_start(self, offset: int) -> None:
        """Advance the log start (retention, DeleteRecords); whole batches below it are no longer read.

        Kafka: UnifiedLog#maybeIncrementLogStartOffset (3.9-4.4), Log#maybeIncrementLogStartOffset (1.1-2.6).
        """
        if offset <= self.log_start:
            return
        self.log_start = offset
        self.producers.raise_log_start(offset)
        gone = place_of(self.lasts, offset)
        self.below += self.batches[:gone]
        self.detach()
        del self.batches[:gone]
        del self.lasts[:gone]
        self.leo = max(self.leo, offset)

    def end_segment(self, offset: int) -> None:
        """Begin a segment at an offset that no batch spans."""
        if offset not in self.segments:
            insort(self.segments, offset)

    def delete_segments(self) -> None:
        """Delete segments below the log start.

        Kafka: UnifiedLog#deleteLogStartOffsetBreachedSegments (3.9-4.4), Log#deleteLogStartOffsetBreachedSegments
        (1.1-2.6).
        """
        segments = self.segments
        while len(segments) > 1 and segments[1] <= self.log_start:
            del segments[0]

    @property
    def deleted(self) -> int:
        """Number of batches below the log start whose segments are deleted."""
        return sum(batch.last_offset < self.segments[0] for batch in self.below)

    def epoch_starts(self) -> list[tuple[int, int]]:
        """(leader epoch, start offset) of the batches, as a copy of this log by fetches would record them."""
        starts: list[tuple[int, int]] = []
        for batch in self.batches:
            if not starts or starts[-1][0] != batch.leader_epoch:
                starts.append((batch.leader_epoch, max(batch.base_offset, self.log_start)))
        return starts

    def copied(self) -> Log:
        """A copy with the same batches, segments and producers."""
        copy = Log(check_first_offset=self.check_first_offset, log_start=self.log_start)
        copy.segments, copy.producers = self.segments[:], self.producers
        copy.set_batches([*self.below, *self.batches])
        copy.leo = self.leo
        return copy

    def detach(self) -> None:
        """Leave the list of batches to earlier reads and continue with a copy; called before batches are removed."""
        if self._is_lent:
            self.batches = self.batches[:]
            self._is_lent = False

    def read(self, offset: int) -> abc.Sequence[Batch]:
        """Whole batches from `offset`, or the next, on. Kafka: LocalLog#read (3.9-4.4), Log#read (0.10.2-2.6)."""
        lasts = self.lasts
        stop = len(lasts)
        if not lasts or lasts[-1] < offset:
            return []
        return self._range(self._place_from_end(offset, stop), stop)

    def read_up_to(self, offset: int, end: int) -> abc.Sequence[Batch]:
        """Batches of `read` that end below `end`."""
        lasts = self.lasts
        if COMPILED:
            stop = self._place_from_end(end, len(lasts))
            return self._range(self._place_from_end(offset, stop), stop)
        stop = place_of(lasts, end)
        return self._range(place_of(lasts, offset, 0, stop), stop)

    def _range(self, start: int, stop: int) -> abc.Sequence[Batch]:
        if stop - start < MANY:
            return self.batches[start:stop]
        self._is_lent = True
        return BatchRange(self.batches, start, stop)

    def _place_from_end(self, offset: int, stop: int) -> int:
        """`place_of` among the first `stop` batches: mostly near the end, where compiled code compares faster than it
        searches.
        """
        lasts = self.lasts
        if not COMPILED:
            return place_of(lasts, offset, 0, stop)
        place = stop
        while place and lasts[place - 1] >= offset:
            place -= 1
            if stop - place > _NEAR:
                return place_of(lasts, offset, 0, place)
        return place

    def between(self, offset: int, end: int) -> list[Batch]:
        """Whole batches with records at or above `offset` and below `end`."""
        lasts, batches = self.lasts, self.batches
        stop = place_of(lasts, end - 1)
        while stop < len(batches) and batches[stop].base_offset < end:  # More than one where batches overlap.
            stop += 1
        return batches[place_of(lasts, offset) : stop]

    def read_below(self, offset: int, end: int) -> list[Batch]:
        """A copy of the batches of `read_up_to`."""
        lasts = self.lasts
        if COMPILED:
            stop = self._place_from_end(end, len(lasts))
            return self.batches[self._place_from_end(offset, stop) : stop]
        stop = place_of(lasts, end)
        return self.batches[place_of(lasts, offset, 0, stop) : stop]

    def contains(self, batch: Batch) -> bool:
        """Whether this very batch is in the log."""
        index = place_of(self.lasts, batch.last_offset)
        return index < len(self.lasts) and self.batches[index] is batch

    def missing(self, batches: list[Batch]) -> list[Batch]:
        """The given batches that are not in the log; the cost depends on their number, not on the log's."""
        if not batches:
            return []
        # Mostly they are in the log, one after the other.
        held, first = self.batches, place_of(self.lasts, batches[0].last_offset)
        if first + len(batches) <= len(held):
            place = first
            for batch in batches:
                if held[place] is not batch:
                    break
                place += 1
            else:
                return []
        if len(batches) * 4 < len(self.batches):
            return [batch for batch in batches if not self.contains(batch)]
        in_log = set(held)
        return [batch for batch in batches if batch not in in_log]

    def batch_at(self, offset: int) -> Batch | None:
        """The batch that holds an offset, None where there is no data."""
        index = place_of(self.lasts, offset)
        if index == len(self.lasts) or self.batches[index].base_offset > offset:
            return None
        return self.batches[index]

    @property
    def data_end(self) -> int:
        """End of the data: the LEO, or below it (see `truncate_to`); data below the log start counts."""
        if self.lasts:
            return self.lasts[-1] + 1
        return self.below[-1].last_offset + 1 if self.below else self.segments[0]

    def end_below(self, offset: int) -> int:
        """End of the data in segments before the one that begins at an offset."""
        place = place_of(self.lasts, offset)
        if place:
            return self.lasts[place - 1] + 1
        return max((batch.last_offset + 1 for batch in self.below if batch.last_offset < offset), default=0)

    def set_batches(self, data: list[Batch]) -> None:
        """Set the batches, oldest first; those that end below the log start are not read."""
        lasts = [batch.last_offset for batch in data]
        below = place_of(lasts, self.log_start)
        self.below, self.batches, self.lasts = data[:below], data[below:], lasts[below:]
        self._is_lent = False

    def reload(self) -> bool:
        """Recompute the LEO from the data, as a restart does: the end of the data, or the base of an empty last
        segment.

        Returns:
            Whether the data reaches the log start; otherwise the LEO is the log start.
        """
        end = max(self.data_end, self.segments[-1])
        self.leo = max(end, self.log_start)
        return end >= self.log_start

    def overlaps(self) -> bool:
        """Whether a batch begins at or below the last offset of the one before it."""
        return any(batch.base_offset <= last for batch, last in zip(self.batches[1:], self.lasts, strict=False))

    def misindexed_segment(self, recovery_point: int) -> int:
        """The index of the first segment where recovery finds a batch that begins no later than its predecessor; -1 if
        none.

        The offset index refuses such a batch; it has an entry for each batch of a segment but the first, if larger than
        ``index.interval.bytes``. Segments below the recovery point's are not scanned. Kafka: LogSegment#recover,
        OffsetIndex#append.
        """
        segments = self.segments
        place, indexed = 0, NO_OFFSET
        is_first = True
        for batch in self.batches:
            while place + 1 < len(segments) and segments[place + 1] <= batch.last_offset:
                place += 1
                indexed, is_first = NO_OFFSET, True
            if is_first:
                is_first = False
            elif place + 1 == len(segments) or segments[place + 1] > recovery_point:
                if batch.base_offset <= indexed:
                    return place
                indexed = batch.base_offset
        return -1
