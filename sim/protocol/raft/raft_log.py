"""A member's copy of the metadata log: batches with the epochs in which leaders appended them, and what is flushed.

Snapshots are not modelled: the log starts at offset 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

UNKNOWN: Final = -1


class IllegalRaftStateError(Exception):
    """Kafka throws here on its Raft thread, which ends the process (KAFKA-14644)."""


class OffsetAndEpoch(NamedTuple):
    """An end offset of a log, and the epoch of the record before it. Kafka: common.OffsetAndEpoch."""

    offset: int
    epoch: int

    def is_up_to_date(self, other: OffsetAndEpoch) -> bool:
        """Whether a log that ends here is as good as another one. Kafka: OffsetAndEpoch#compareTo."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)


class RaftBatch:
    """Records that a leader appends at once, and that no log has in part. Immutable; logs share batches.

    Attributes:
        base_offset: offset of its first record.
        epoch: of the leader that appended it.
        size: number of its records.
        records: what they are, which Raft does not read; empty in a control batch.
        is_control: whether it is the LeaderChange record of a new leader.
        end_offset: offset after its last record.
    """

    __slots__ = ("base_offset", "end_offset", "epoch", "is_control", "records", "size")

    def __init__(
        self, base_offset: int, epoch: int, size: int, records: Sequence[object], *, is_control: bool = False
    ) -> None:
        self.base_offset: Final = base_offset
        self.epoch: Final = epoch
        self.size: Final = size
        self.records: Final = records
        self.is_control: Final = is_control
        self.end_offset: Final = base_offset + size

    def __repr__(self) -> str:
        return f"RaftBatch({self.base_offset}, epoch {self.epoch}, {self.size}{', control' * self.is_control})"


class RaftLog:
    """A log. The high watermark is in memory only: a process that starts does not know it.

    An epoch in which no record was appended is not part of it: a leader appends its LeaderChange record before it
    handles any message. Kafka: RaftLog (4.3-4.4), ReplicatedLog (3.9-4.2).

    Attributes:
        batches: all of them, in the order of their offsets.
        flushed_offset: end offset of what power loss keeps.
        high_watermark: end offset of what is committed as far as this process knows, 0 at first.
    """

    __slots__ = ("batches", "flushed_offset", "high_watermark")

    def __init__(self, batches: Sequence[RaftBatch] = ()) -> None:
        self.batches = list(batches)
        self.flushed_offset = self.end_offset
        self.high_watermark = 0

    @property
    def end_offset(self) -> int:
        """Offset of the next record. Kafka: RaftLog#endOffset (4.3-4.4)."""
        return self.batches[-1].end_offset if self.batches else 0

    @property
    def last_fetched_epoch(self) -> int:
        """Epoch of the last record, 0 without one. Kafka: RaftLog#lastFetchedEpoch (4.3-4.4)."""
        return self.batches[-1].epoch if self.batches else 0

    @property
    def end(self) -> OffsetAndEpoch:
        """End offset and last epoch. Kafka: KafkaRaftClient#endOffset."""
        batches = self.batches
        return OffsetAndEpoch(batches[-1].end_offset, batches[-1].epoch) if batches else OffsetAndEpoch(0, 0)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Where the records of an epoch and of all earlier ones end, with the epoch of the last of them.

        Kafka: RaftLog#endOffsetForEpoch (4.3-4.4).
        """
        if not self.batches or self.batches[-1].epoch <= epoch:
            return self.end
        found = 0
        for batch in self.batches:
            if batch.epoch > epoch:
                return OffsetAndEpoch(batch.base_offset, found)
            found = batch.epoch
        return self.end

    def diverging(self, offset: int, epoch: int) -> OffsetAndEpoch | None:
        """Where a log that ends at an offset, with a last epoch, parts from this one; None if it is a part of this one.

        Kafka: RaftLog#validateOffsetAndEpoch (4.3-4.4).
        """
        if offset == 0:
            return None
        batches = self.batches
        if batches and batches[-1].epoch == epoch and offset <= batches[-1].end_offset:
            return None
        own = self.end_offset_for_epoch(epoch)
        return own if own.epoch != epoch or own.offset < offset else None

    def read(self, offset: int, end: int) -> list[RaftBatch]:
        """Batches from the one that holds an offset up to an end offset. Kafka: RaftLog#read (4.3-4.4).

        Raises:
            IllegalRaftStateError: the offset is beyond the end of the log.
        """
        batches = self.batches
        if not batches or batches[-1].end_offset <= offset:
            if offset > self.end_offset:
                raise IllegalRaftStateError(f"read from {offset}, beyond the end {self.end_offset}")
            return []
        return [batch for batch in self._from(offset) if batch.end_offset <= end]

    def _from(self, offset: int) -> list[RaftBatch]:
        """Batches from the one that holds an offset; most readers are near the end."""
        batches = self.batches
        place = len(batches)
        while place and batches[place - 1].end_offset > offset:
            place -= 1
        return batches[place:]

    def append(self, batch: RaftBatch) -> None:
        """Append a batch at the end.

        Raises:
            IllegalRaftStateError: it belongs elsewhere.

        Kafka: RaftLog#appendAsLeader (4.3-4.4), RaftLog#appendAsFollower (4.3-4.4).
        """
        if batch.base_offset != self.end_offset or batch.epoch < self.last_fetched_epoch:
            raise IllegalRaftStateError(f"{batch} does not follow {self.end}")
        self.batches.append(batch)

    def flush(self) -> None:
        """Write everything to disk. Kafka: RaftLog#flush (4.3-4.4)."""
        self.flushed_offset = self.end_offset

    def truncate_to(self, offset: int) -> None:
        """Remove the batches that reach beyond an offset. The truncation itself is not flushed.

        Raises:
            IllegalRaftStateError: the offset is below the high watermark.

        Kafka: RaftLog#truncateTo (4.3-4.4).
        """
        if offset < self.high_watermark:
            raise IllegalRaftStateError(f"truncation to {offset} below the high watermark {self.high_watermark}")
        while self.batches and self.batches[-1].end_offset > offset:
            self.batches.pop()
        self.flushed_offset = min(self.flushed_offset, self.end_offset)

    def truncate_to_end_offset(self, leaders: OffsetAndEpoch) -> int:
        """Truncate where the leader's response shows that the logs part; returns the new end offset.

        Kafka: RaftLog#truncateToEndOffset (4.3-4.4).
        """
        own = self.end if leaders.epoch == 0 else self.end_offset_for_epoch(leaders.epoch)
        offset = own.offset
        if leaders.epoch == 0 or own.epoch == leaders.epoch:
            offset = min(own.offset, leaders.offset)
        self.truncate_to(offset)
        return offset

    def update_high_watermark(self, offset: int) -> None:
        """Raise the high watermark.

        Raises:
            IllegalRaftStateError: it would go back, or exceed the end offset.

        Kafka: RaftLog#updateHighWatermark (4.3-4.4).
        """
        if offset < self.high_watermark or offset > self.end_offset:
            raise IllegalRaftStateError(f"high watermark {self.high_watermark} -> {offset}, end {self.end_offset}")
        self.high_watermark = offset

    def reopen(self, *, keeps: int) -> None:
        """Start a process: the high watermark is unknown, and records from an offset on are gone.

        Args:
            keeps: end offset of what the disk has; batches that reach beyond it are lost.
        """
        self.high_watermark = 0
        self.truncate_to(keeps)
        self.flush()
