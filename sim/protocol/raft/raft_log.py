"""A member's copy of the metadata log: batches with the epochs in which leaders appended them, and snapshots.

A snapshot has the state that all records below its end offset lead to. It is a file of its own, which is on disk as a
whole once it has its name (`FileRawSnapshotWriter#freeze`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sim.protocol.raft.voter_set import VoterSet

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
        is_control: whether it has control records, as the LeaderChange record of a new leader.
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


class VotersBatch(RaftBatch):
    """A control batch that ends with a VotersRecord. Kafka: VotersRecord, KRaftVersionRecord.

    Attributes:
        voters: the voters from it on.
        kraft_version: that of the KRaftVersionRecord before it, 0 without one.
    """

    __slots__ = ("kraft_version", "voters")

    def __init__(self, base_offset: int, epoch: int, size: int, voters: VoterSet, kraft_version: int) -> None:
        super().__init__(base_offset, epoch, size, (), is_control=True)
        self.voters: Final = voters
        self.kraft_version: Final = kraft_version


class RaftSnapshot:
    """A snapshot of the metadata; immutable. Kafka: RawSnapshotReader, RawSnapshotWriter.

    Attributes:
        id: end offset of the records that it stands for, and the epoch of the last of them.
        content: the state that they lead to, which Raft does not read.
        last: the last batch that it stands for.
        made_us: when a member made it.
        voters: the voters at its end; None without a VotersRecord.
        kraft_version: that at its end.
    """

    __slots__ = ("content", "id", "kraft_version", "last", "made_us", "voters")

    def __init__(
        self,
        last: RaftBatch,
        content: object,
        made_us: int,
        voters: VoterSet | None = None,
        kraft_version: int = 0,
    ) -> None:
        self.id: Final = OffsetAndEpoch(last.end_offset, last.epoch)
        self.content: Final = content
        self.last: Final = last
        self.made_us: Final = made_us
        self.voters: Final = voters
        self.kraft_version: Final = kraft_version

    def __repr__(self) -> str:
        return f"RaftSnapshot({self.id.offset}, epoch {self.id.epoch})"


BOOTSTRAP_SNAPSHOT_ID: Final = OffsetAndEpoch(0, 0)
"""The snapshot that formatting makes; no leader sends it. Kafka: Snapshots#BOOTSTRAP_SNAPSHOT_ID."""


def bootstrap_snapshot(voters: VoterSet, content: object = None) -> RaftSnapshot:
    """What formatting writes to the disk of each of the first voters (kraft.version 1).

    Kafka: Formatter#writeDynamicQuorumSnapshot.
    """
    return RaftSnapshot(RaftBatch(0, 0, 0, ()), content, 0, voters, 1)


class RaftLog:
    """A log. The high watermark is in memory only: a process that starts does not know it.

    An epoch in which no record was appended is not part of it: a leader appends its LeaderChange record before it
    handles any message. All of it is one segment, which begins anew when a snapshot takes the place of the log. So the
    log that a process finds begins where that segment does, even if an earlier process had removed more of its
    beginning; but the file of leader epochs has lost what that process removed, and the recovery of a log adds to this
    file only epochs that are later than all that it has. Kafka: RaftLog (4.3-4.4), ReplicatedLog (3.9-4.2).

    Args:
        base_offset: where the segment begins.

    Attributes:
        base_offset: where the segment begins.
        batches: those of the segment, in the order of their offsets.
        snapshots: the snapshots, oldest first.
        start_offset: offset of the first record that can be read.
        epochs_offset: from where on the file of leader epochs knows the epochs of records.
        has_epochs: whether the file of leader epochs has an entry; of no meaning for a log without records.
        flushed_offset: end offset of what power loss keeps.
        high_watermark: end offset of what is committed as far as this process knows, `start_offset` at first.
    """

    __slots__ = (
        "base_offset",
        "batches",
        "epochs_offset",
        "flushed_offset",
        "has_epochs",
        "high_watermark",
        "snapshots",
        "start_offset",
    )

    def __init__(
        self, batches: Sequence[RaftBatch] = (), snapshots: Sequence[RaftSnapshot] = (), base_offset: int = 0
    ) -> None:
        self.batches = list(batches)
        self.snapshots = list(snapshots)
        self.base_offset = self.start_offset = self.high_watermark = base_offset
        self.epochs_offset = base_offset
        self.has_epochs = True
        self.flushed_offset = self.end_offset

    @property
    def misses_snapshot(self) -> bool:
        """Whether the snapshot that the log begins with is missing, so that no process starts.

        Kafka: KafkaRaftLog#recoverSnapshots (4.3-4.4).
        """
        latest = self.latest_snapshot
        return self.base_offset > 0 and (latest is None or latest.id.offset < self.base_offset)

    def reopened(self) -> RaftLog:
        """The log as a process finds it that starts. Kafka: KafkaRaftLog#createLog (4.3-4.4)."""
        log = self._with(self.batches, self.snapshots)
        log.flushed_offset = self.flushed_offset
        if log.has_epochs:
            log.truncate_to(log.end_offset)
        else:
            log.epochs_offset, log.has_epochs = log.base_offset, True
        log.truncate_to_latest_snapshot()
        return log

    def after_power_loss(self) -> RaftLog:
        """What the disk has of it."""
        return self._with([batch for batch in self.batches if batch.end_offset <= self.flushed_offset], self.snapshots)

    def without_snapshots(self) -> RaftLog:
        """The log after its snapshots were removed."""
        return self._with(self.batches, ())

    def _with(self, batches: Sequence[RaftBatch], snapshots: Sequence[RaftSnapshot]) -> RaftLog:
        log = RaftLog(batches, snapshots, self.base_offset)
        log.epochs_offset, log.has_epochs = self.epochs_offset, self.has_epochs
        return log

    def _forget_epochs(self) -> None:
        """The log ends here, so its file of leader epochs has no entry that begins here or later.

        Kafka: LeaderEpochFileCache#truncateFromEndAsyncFlush.
        """
        if self.epochs_offset >= self.end_offset > self.base_offset:
            self.has_epochs = False

    @property
    def end_offset(self) -> int:
        """Offset of the next record. Kafka: RaftLog#endOffset (4.3-4.4)."""
        return self.batches[-1].end_offset if self.batches else self.base_offset

    @property
    def latest_epoch(self) -> int:
        """The last epoch of the file of leader epochs, 0 without one. Kafka: UnifiedLog#latestEpoch (3.9-4.4)."""
        return self.batches[-1].epoch if self.batches and self.has_epochs else 0

    @property
    def last_fetched_epoch(self) -> int:
        """Epoch of the last record or, if none is known, of the last snapshot; 0 without either.

        Raises:
            IllegalRaftStateError: no epoch is known, and the log does not begin and end with the last snapshot.

        Kafka: RaftLog#lastFetchedEpoch (4.3-4.4).
        """
        if self.batches and self.has_epochs:
            return self.batches[-1].epoch
        latest, end = self.latest_snapshot, self.end_offset
        if latest is None:
            return 0
        if not latest.id.offset == self.start_offset == end:
            raise IllegalRaftStateError(f"a log from {self.start_offset} to {end} without epochs, and {latest}")
        return latest.id.epoch

    @property
    def end(self) -> OffsetAndEpoch:
        """End offset and last epoch. Kafka: KafkaRaftClient#endOffset."""
        return OffsetAndEpoch(self.end_offset, self.last_fetched_epoch)

    @property
    def latest_snapshot(self) -> RaftSnapshot | None:
        """The last snapshot, None without one. Kafka: RaftLog#latestSnapshot (4.3-4.4)."""
        return self.snapshots[-1] if self.snapshots else None

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Where the records of an epoch and of all earlier ones end, with the epoch of the last of them; if none is
        known, where the first known epoch begins, with the epoch asked for. What ends where the first snapshot does has
        the snapshot's epoch.

        Kafka: RaftLog#endOffsetForEpoch (4.3-4.4).
        """
        batches = self.batches
        if not batches or not self.has_epochs or batches[-1].epoch < epoch:
            return self.end
        found = OffsetAndEpoch(batches[-1].end_offset, epoch)
        if batches[-1].epoch > epoch:
            found = self._end_below(epoch)
        if self.snapshots:
            earliest = self.snapshots[0].id
            if found.epoch == epoch and found.offset == earliest.offset:
                return earliest
        return found

    def _end_below(self, epoch: int) -> OffsetAndEpoch:
        """See `end_offset_for_epoch`, of an epoch below that of the last record."""
        start, last = self.epochs_offset, epoch
        for batch in self._from(start) if start > self.base_offset else self.batches:
            if batch.epoch > epoch:
                return OffsetAndEpoch(batch.base_offset, last)
            last = batch.epoch
        return self.end

    def snapshot_instead(self, offset: int, epoch: int) -> OffsetAndEpoch | None:
        """The snapshot that a replica has to fetch whose log ends at an offset, with a last epoch; None if it may fetch
        records.

        Kafka: KafkaRaftClient#tryCompleteFetchRequest, RaftLog#validateOffsetAndEpoch (4.3-4.4).
        """
        snapshots = self.snapshots
        if not snapshots:
            return None
        earliest, start = snapshots[0].id, self.start_offset
        latest = snapshots[-1].id
        if offset == 0:
            return None if latest == BOOTSTRAP_SNAPSHOT_ID else latest
        if offset < start or epoch < earliest.epoch or (offset == start and epoch != earliest.epoch):
            return latest
        return None

    def diverging(self, offset: int, epoch: int) -> OffsetAndEpoch | None:
        """Where a log that ends at an offset, with a last epoch, parts from this one; None if it is a part of this one.

        Kafka: RaftLog#validateOffsetAndEpoch (4.3-4.4).
        """
        if offset == 0:
            return None
        batches = self.batches
        if self.has_epochs and not self.snapshots and batches:
            last = batches[-1]
            if last.epoch == epoch and offset <= last.end_offset:
                return None
        own = self.end_offset_for_epoch(epoch)
        return own if own.epoch != epoch or own.offset < offset else None

    def read(self, offset: int, end: int) -> list[RaftBatch]:
        """Batches from the one that holds an offset up to an end offset. Kafka: RaftLog#read (4.3-4.4).

        Raises:
            IllegalRaftStateError: the offset is not in the log.
        """
        if offset < self.start_offset:
            raise IllegalRaftStateError(f"read from {offset}, before the start {self.start_offset}")
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

    # Snapshots.

    def snapshot(self, id: OffsetAndEpoch) -> RaftSnapshot | None:  # noqa: A002 - Kafka's name
        """The snapshot with that id, None without it. Kafka: RaftLog#readSnapshot (4.3-4.4)."""
        for found in self.snapshots:
            if found.id == id:
                return found
        return None

    def add_snapshot(self, snapshot: RaftSnapshot) -> None:
        """Keep a snapshot that is on disk. Kafka: RaftLog#onSnapshotFrozen (4.3-4.4)."""
        snapshots = self.snapshots
        place = len(snapshots)
        while place and not snapshot.id.is_up_to_date(snapshots[place - 1].id):
            place -= 1
        if place and snapshots[place - 1].id == snapshot.id:
            snapshots[place - 1] = snapshot
        else:
            snapshots.insert(place, snapshot)

    def truncate_to_latest_snapshot(self) -> bool:
        """Let the last snapshot take the place of the log if that ends before; returns whether it does.

        Kafka: RaftLog#truncateToLatestSnapshot (4.3-4.4).
        """
        if not self.snapshots:
            return False
        latest = self.snapshots[-1]
        offset, epoch = latest.id
        if (epoch, offset) <= (self.latest_epoch, self.end_offset):
            return False
        self.batches.clear()
        self.base_offset = self.start_offset = self.high_watermark = self.flushed_offset = offset
        self.epochs_offset, self.has_epochs = offset, True
        self.snapshots = [latest]
        return True

    def delete_before_snapshot(self, id: OffsetAndEpoch) -> bool:  # noqa: A002
        """Let the log begin at a snapshot, and remove those before; returns whether anything is removed.

        Kafka: RaftLog#deleteBeforeSnapshot (4.3-4.4).
        """
        if self.snapshot(id) is None or id.offset <= self.start_offset or id.offset > self.high_watermark:
            return False
        self.start_offset = self.epochs_offset = id.offset
        kept = [snapshot for snapshot in self.snapshots if snapshot.id.is_up_to_date(id)]
        removed = len(kept) < len(self.snapshots)
        self.snapshots = kept
        return removed

    def append(self, batch: RaftBatch) -> None:
        """Append a batch at the end.

        Raises:
            IllegalRaftStateError: it belongs elsewhere.

        Kafka: RaftLog#appendAsLeader (4.3-4.4), RaftLog#appendAsFollower (4.3-4.4).
        """
        batches = self.batches
        if batch.base_offset != self.end_offset or (batches and batch.epoch < batches[-1].epoch):
            raise IllegalRaftStateError(f"{batch} does not follow {batches[-1:]} at {self.end_offset}")
        if not self.has_epochs:
            self.epochs_offset, self.has_epochs = batch.base_offset, True
        batches.append(batch)

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
        self._forget_epochs()

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
        """Set the high watermark; it is never below the start of the log, nor beyond its end.

        Kafka: RaftLog#updateHighWatermark (4.3-4.4).
        """
        self.high_watermark = min(max(offset, self.start_offset), self.end_offset)
