"""A broker's disk with its page cache and checkpoint files: the state that survives a process.

A process kill keeps the page cache. A power loss truncates the log to the prefix that an fsync or the kernel's
write-back had reached. Checkpoint files survive whole in their last version, because Kafka writes a temporary file,
fsyncs and renames it (CheckpointFile). A truncation reaches the disk at once.

There are no timers here: write-back and periodic checkpoints are computed from phase and period when a process or
machine ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.log.leader_epoch_file_cache import Entry, LeaderEpochCheckpointFile, LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import NO_BROKER_EPOCH

INITIAL_DELAY_US: Final = 30_000_000
"""Delay before LogManager first writes recovery points and log starts: InitialTaskDelayMs, since 3.6 the internal key
``log.initial.task.delay.ms``.
"""


NEVER_US: Final = 1 << 55
"""No run is that long."""


class RecoveryError(Exception):
    """The log cannot be loaded, so the broker exits at start-up."""


@dataclass(slots=True)
class StorageSettings:
    """Settings of the disk; times in us. Kafka: LogConfig.

    Attributes:
        flush_interval_messages: ``log.flush.interval.messages``.
        flush_interval_us: ``log.flush.interval.ms``.
        flush_scheduler_us: ``log.flush.scheduler.interval.ms``; from `NEVER_US` on never a second time.
        segment_bytes: ``log.segment.bytes``.
        record_bytes: ``sim.record.bytes``.
        writeback_interval_us: ``sim.writeback.interval.ms``.
        writeback_expire_us: ``sim.writeback.expire.ms``.
        hw_checkpoint_us: ``replica.high.watermark.checkpoint.interval.ms``.
        recovery_point_us: ``log.flush.offset.checkpoint.interval.ms``.
        log_start_us: ``log.flush.start.offset.checkpoint.interval.ms``.
    """

    flush_interval_messages: int
    flush_interval_us: int
    flush_scheduler_us: int
    segment_bytes: int
    record_bytes: int
    writeback_interval_us: int
    writeback_expire_us: int
    hw_checkpoint_us: int
    recovery_point_us: int
    log_start_us: int


class PeriodicFile:
    """A checkpoint file that a process rewrites periodically with the current value.

    Kafka: OffsetCheckpointFile (1.1-4.4), OffsetCheckpoint (0.10.2-3.9).

    Attributes:
        content: the file's content as of the last change or `catch_up`; None before the first write.
        before: its content before the last write.
    """

    __slots__ = ("_first_us", "_interval_us", "_writes", "before", "content")

    def __init__(self, interval_us: int) -> None:
        self.content: int | None = None
        self.before: int | None = None
        self._interval_us = interval_us
        self._first_us = -1
        self._writes = 0

    def begin(self, first_us: int, now_us: int) -> None:
        """Start periodic writes, the first of which is due at `first_us`. Writes due before now are not made; one that
        is due exactly now is.
        """
        self._first_us = first_us
        self._writes = self._due(now_us - 1)

    def end(self) -> None:
        """Stop writing, because the process ended."""
        self._first_us = -1

    def catch_up(self, value: int | None, now_us: int) -> None:
        """Apply the writes up to now; call before the value changes."""
        if self._first_us < 0:
            return
        writes = (now_us - self._first_us) // self._interval_us + 1  # Zero or less before the first write is due.
        if writes > self._writes:
            self.before = self.content if writes == self._writes + 1 else value
            self._writes = writes
            self.content = value

    def write(self, value: int | None) -> None:
        """Write a value now."""
        self.before = self.content
        self.content = value

    def _due(self, now_us: int) -> int:
        """Number of writes due up to a time."""
        return max(0, (now_us - self._first_us) // self._interval_us + 1)


class LogDirectory:
    """A broker's log directory: a disk, the files of its replicas, and the marker of a clean shutdown.

    Args:
        settings: settings of the disk.
        names: the partitions that have a replica here from the start.
        writeback_phase_us: time of the kernel's first write-back.
        number: the directory's id, which is that of its disk: the number of disks that the machine had before.

    Attributes:
        storages: the files of each replica, by partition.
        number: see above.
        failed: whether it has failed, so that no process uses it.
        cordoned: whether it gets no new replicas (``cordoned.log.dirs``, KIP-1066).
        cordoned_by: the cause of that.
        stalled_us: since when it does not answer, while other directories do; -1: it does.
        full_us: since when its file system has had no space; -1: it has space.
        full_by: the cause of that.
        is_new: whether no process has used it since its disk was replaced or the directory added.
        clean_shutdown: whether the marker ``.kafka_cleanshutdown`` exists.
        clean_broker_epoch: the broker epoch in the marker (KIP-966); `NO_BROKER_EPOCH` without a marker, or if the
            process that wrote it had no broker epoch.
        epoch_before_failure: of a directory that fails over a half-written file, the broker epoch in the marker, which
            the next process reads before it does; `NO_BROKER_EPOCH` afterwards.
    """

    __slots__ = (
        "_former_marks",
        "_settings",
        "_writeback_phase_us",
        "clean_broker_epoch",
        "clean_shutdown",
        "cordoned",
        "cordoned_by",
        "epoch_before_failure",
        "failed",
        "full_by",
        "full_us",
        "is_new",
        "number",
        "stalled_us",
        "storages",
    )

    def __init__(
        self, settings: StorageSettings, names: Iterable[str], writeback_phase_us: int = 0, number: int = 0
    ) -> None:
        self._settings = settings
        self._writeback_phase_us = writeback_phase_us
        self.number = number
        self.failed = self.is_new = self.cordoned = False
        self.cordoned_by: object = None
        self.stalled_us = self.full_us = -1
        self.full_by: object = None
        self.clean_shutdown = True
        self.clean_broker_epoch = self.epoch_before_failure = NO_BROKER_EPOCH
        self._former_marks: list[int] = []
        """The broker epochs in the last two markers, oldest first."""
        self.storages = {name: Storage(settings, writeback_phase_us) for name in names}

    def add(self, name: str) -> Storage:
        """Create the files of a replica. Kafka: LogManager#getOrCreateLog (1.1-4.4)."""
        storage = self.storages[name] = Storage(self._settings, self._writeback_phase_us)
        return storage

    def take_marker(self) -> bool:
        """Remove the marker with its broker epoch, as a new process does before it loads any log. Returns whether there
        was a marker. (The process has already read the broker epoch for its registration.)

        Kafka: LogManager#loadLogs, LogManager#readBrokerEpochFromCleanShutdownFiles (3.9-4.4).
        """
        clean, self.clean_shutdown = self.clean_shutdown, False
        self.clean_broker_epoch = NO_BROKER_EPOCH
        self.is_new = False
        return clean

    def writable_us(self, now_us: int) -> int:
        """When something could be written to it last: now, or before its stall."""
        return now_us if self.stalled_us < 0 else min(self.stalled_us, now_us)

    def checkpointable_us(self, now_us: int) -> int:
        """When a checkpoint file could be written last: each is written anew, which needs space."""
        written_us = self.writable_us(now_us)
        return written_us if self.full_us < 0 else min(self.full_us, written_us)

    def power_lost(self, now_us: int) -> dict[str, list[Batch]]:
        """Lose what had not been written; returns the lost batches by partition."""
        written_us = self.writable_us(now_us)
        return {name: storage.power_lost(written_us) for name, storage in self.storages.items()}

    def mark_clean(self, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Write the marker; `broker_epoch` is that of the process's registration, `NO_BROKER_EPOCH` before it received
        one.

        Kafka: CleanShutdownFileHandler#write (3.9-4.4).
        """
        self.clean_shutdown = True
        self.clean_broker_epoch = broker_epoch
        self._former_marks = [*self._former_marks[-1:], broker_epoch]

    def restore_marker(self) -> None:
        """Put the former version of the marker in its place: that before the present one, or the last one if there is
        none at present. Nothing changes if there never was one.
        """
        former = self._former_marks[:-1] if self.clean_shutdown else self._former_marks[-1:]
        if former:
            self.clean_shutdown = True
            self.clean_broker_epoch = former[-1]

    def close_unloaded(self, decide: Decisions, broker_epoch: int) -> None:
        """Apply the controlled shutdown of a process that has not loaded its logs.

        A marker that existed at start-up is written back. With rule ``clean_shutdown_file=always`` a marker is written
        in any case, and is wrong: recovery will be skipped although the log was not checked, and a registration with
        its broker epoch counts as clean (KAFKA-15375). Nothing is flushed.
        Kafka: LogManager#shutdown.

        Args:
            decide: the process's rules.
            broker_epoch: see `mark_clean`.
        """
        if self.clean_shutdown or decide.marks_unloaded_clean.yes():
            self.mark_clean(broker_epoch)

    def corrupt_tails(self, count: int) -> dict[str, list[Batch]]:
        """Make the newest batches of each log unreadable: see `Storage.corrupt_tail`. Returns them.

        A no-op after a clean shutdown: LogLoader then skips recovery, which would find the damage.
        """
        if self.clean_shutdown:
            return {name: [] for name in self.storages}
        return {name: storage.corrupt_tail(count) for name, storage in self.storages.items()}

    def new_empty_disk(self, number: int, *, keeps_names: bool = True) -> LogDirectory:
        """An empty directory in place of this one, with another id. With `keeps_names` it has empty files for each
        replica, otherwise none.
        """
        names = tuple(self.storages) if keeps_names else ()
        empty = LogDirectory(self._settings, names, self._writeback_phase_us, number)
        empty.clean_shutdown = False
        empty.is_new = True
        empty.cordoned, empty.cordoned_by = self.cordoned, self.cordoned_by
        return empty


class Storage:
    """The files of one replica in a log directory.

    Args:
        settings: settings of the disk.
        writeback_phase_us: time of the kernel's first write-back.

    Attributes:
        log: the log, including batches that are only in the page cache. Each process has its own `Log` object, with the
            same batches.
        recovery_point: offset below which everything is known to be fsynced.
        epoch_checkpoint: ``leader-epoch-checkpoint``.
        hw_file: ``replication-offset-checkpoint``.
        recovery_point_file: ``recovery-point-offset-checkpoint``.
        log_start_file: ``log-start-offset-checkpoint``.
        start_before_damage: the log start when that file was lost or replaced by its former version; -1: it was not.
    """

    __slots__ = (
        "_first_flush_us",
        "_flush_interval_us",
        "_flush_records",
        "_flushed_us",
        "_is_new",
        "_log_start_entry",
        "_replaces",
        "_segment_bytes",
        "_settings",
        "_synced",
        "_unflushed",
        "_writeback_phase_us",
        "_written_us",
        "epoch_checkpoint",
        "hw_file",
        "log",
        "log_start_file",
        "recovery_point",
        "recovery_point_file",
        "start_before_damage",
    )

    def __init__(self, settings: StorageSettings, writeback_phase_us: int = 0) -> None:
        self._settings = settings
        self._writeback_phase_us = writeback_phase_us
        self.log = Log()
        self._is_new = True
        """Whether no process has loaded the log."""
        self._replaces = False
        """Whether the next process creates it in place of another one, whose entries the checkpoint files have."""
        self._written_us: list[int] = []
        """When each batch was appended, including those below the log start."""
        self._synced = 0
        """How many of these batches, from the first, were fsynced."""
        self._log_start_entry: int | None = None
        self._unflushed = 0
        # No log is that long, and compiled code compares larger integers slowly.
        self._flush_records = min(settings.flush_interval_messages, 1 << 60)
        self._flush_interval_us = settings.flush_interval_us if settings.flush_interval_us < NEVER_US else -1
        """Time since the last fsync after which the flusher acts; -1: it never does."""
        self._first_flush_us = -1
        """When the flusher of the process runs first; -1: without a process."""
        self._flushed_us = 0
        """When the log was last fsynced, or loaded by the process. Kafka: LocalLog#lastFlushTime (3.9-4.4)."""
        self._segment_bytes = 0
        self.recovery_point = 0
        self.epoch_checkpoint = LeaderEpochCheckpointFile()
        self.hw_file = PeriodicFile(settings.hw_checkpoint_us)
        self.recovery_point_file = PeriodicFile(settings.recovery_point_us)
        self.log_start_file = PeriodicFile(settings.log_start_us)
        self.start_before_damage = -1

    # While a process runs.

    def log_manager_started(self, now_us: int, started_us: int | None = None) -> None:
        """Start checkpoints of recovery points and log starts, scheduled when logs were loaded: now or at `started_us`.

        Kafka: LogManager#startup.
        """
        began_us = now_us if started_us is None else started_us
        for file in (self.recovery_point_file, self.log_start_file):
            file.begin(began_us + INITIAL_DELAY_US, now_us)
        self._first_flush_us = began_us + INITIAL_DELAY_US
        self._flushed_us = now_us

    def begin_hw_checkpoints(self, first_us: int, now_us: int) -> None:
        """Start writing the HW (task `highwatermark-checkpoint`), because the broker now hosts a partition.

        Kafka: ReplicaManager#startHighWaterMarksCheckPointThread (0.10.2-2.0),
        ReplicaManager#startHighWatermarkCheckPointThread (2.6-4.4).

        Args:
            first_us: when the task was first due; it starts without a delay.
            now_us: the time.
        """
        self.hw_file.begin(first_us, now_us)

    def appended(self, batch: Batch, now_us: int) -> None:
        """Note a batch written to the page cache; flush or roll as the settings require.

        Kafka: UnifiedLog#append (3.9-4.4), Log#append (0.10.2-2.6), UnifiedLog#maybeRoll (3.9-4.4), Log#maybeRoll
        (0.10.2-2.6).
        """
        if self._flush_interval_us >= 0:
            self._flush_by_time(now_us)
        self._written_us.append(now_us)
        count = batch.last_offset - batch.base_offset + 1
        settings = self._settings
        self._unflushed += count
        self._segment_bytes += count * settings.record_bytes
        if self._unflushed >= self._flush_records:
            self._flush(now_us)
        if self._segment_bytes > settings.segment_bytes:
            self.roll(batch, now_us)

    def roll(self, batch: Batch, now_us: int) -> None:
        """Begin a segment with this batch; earlier segments are fsynced (task flush-log).

        Kafka: UnifiedLog#roll (3.9-4.4), Log#roll (0.10.2-2.6).
        """
        self.log.roll(batch.base_offset)
        self._synced = max(self._synced, len(self._written_us) - 1)
        self._move_recovery_point(max(self.recovery_point, batch.base_offset), now_us)
        self._flushed_us = now_us
        self._recount()

    def _recount(self) -> None:
        """Recompute unflushed records and the size of the active segment from offsets."""
        leo = self.log.leo
        self._unflushed = leo - self.recovery_point
        self._segment_bytes = (leo - self.log.segments[-1]) * self._settings.record_bytes

    def _flush(self, now_us: int) -> None:
        """Kafka: UnifiedLog#flush (3.9-4.4), Log#flush (0.10.2-2.6)."""
        self._synced = len(self._written_us)
        self._unflushed = 0
        self._flushed_us = now_us
        self._move_recovery_point(self.log.leo, now_us)

    def _flush_by_time(self, now_us: int) -> None:
        """Apply the run of the flusher, if one was due by now, that has flushed what was appended last; call before the
        log changes. Nothing else depends on the flusher, so it needs no timer.

        Kafka: LogManager#flushDirtyLogs.
        """
        first_us, unflushed = self._first_flush_us, self._unflushed
        if first_us < 0 or unflushed <= 0:
            return
        appended_us = self._written_us[-1] if self._written_us else -1
        due_us = max(first_us, self._flushed_us + self._flush_interval_us, appended_us + 1)
        period_us = self._settings.flush_scheduler_us
        if due_us > first_us and period_us >= NEVER_US:
            return
        run_us = first_us + -(-(due_us - first_us) // period_us) * period_us
        if run_us <= now_us:
            self._synced = len(self._written_us)
            self._unflushed = 0
            self._flushed_us = run_us
            # Scheduled before the task that writes the file, it runs first at the same time.
            self.recovery_point_file.catch_up(self.recovery_point, run_us - 1)
            self.recovery_point += unflushed

    def _move_recovery_point(self, offset: int, now_us: int) -> None:
        """Kafka: LocalLog#updateRecoveryPoint (3.9-4.4)."""
        self.recovery_point_file.catch_up(self.recovery_point, now_us)
        self.recovery_point = offset

    def truncated(self, now_us: int) -> None:
        """Note that the log was truncated; if that removed anything, the recovery point is written at once.

        Kafka: LogManager#truncateTo.
        """
        log = self.log
        if self._flush_interval_us >= 0:
            self._flush_by_time(now_us)
        count = len(log.below) + len(log.batches)
        # A truncation into a batch has left the LEO above the data.
        is_cut = count < len(self._written_us) or log.leo < self.recovery_point + self._unflushed
        del self._written_us[count:]
        self._synced = min(self._synced, len(self._written_us))
        leo = log.leo
        self._move_recovery_point(min(self.recovery_point, leo), now_us)
        if is_cut:
            self.recovery_point_file.write(self.recovery_point)
        self.log_start_file.catch_up(self._log_start_entry, now_us)
        self._note_log_start()
        self._recount()

    def moved(self, now_us: int) -> None:
        """Note that the log was copied to another directory just now: to its page cache, up to what was flushed while
        it was appended. The checkpoint files there have no entry yet.

        Kafka: LogManager#replaceCurrentWithFutureLog (1.1-4.4).
        """
        log = self.log
        self._written_us = [now_us] * len(self._written_us)
        self.recovery_point = log.log_start
        if self._flush_records > 1:
            self._synced = 0
        for file in (self.hw_file, self.recovery_point_file, self.log_start_file):
            file.catch_up(None, now_us)
            file.content = None
        if self._synced == len(self._written_us):
            self.recovery_point = log.leo
        self._flushed_us = now_us
        self._recount()

    def future_copy(self, epochs: list[Entry], copied_us: int) -> Storage:
        """The files of a future replica that has copied the log by `copied_us` and followed it since, at the end of its
        process: its epoch cache has these entries, and the HW file has none yet.

        Kafka: Partition#maybeCreateFutureReplica (1.1-4.4).
        """
        copy = Storage(self._settings, self._writeback_phase_us)
        copy.log = self.log.copied()
        copy._is_new = False
        copy._written_us = [max(written_us, copied_us) for written_us in self._written_us]
        if self._flush_records <= 1:
            copy._synced = self._synced
        copy.epoch_checkpoint.write(epochs)
        copy.log_start_file.content = copy._log_start_entry = self._log_start_entry
        return copy

    def log_start_moved(self, now_us: int, *, written: bool = False) -> None:
        """Note that the log start or first segment moved; data below it stays on disk until `delete_segments`.

        Args:
            now_us: the time.
            written: whether the file is written now, too (rule ``log_start_checkpoint``).

        Kafka: UnifiedLog#updateLogStartOffset (3.9-4.4), LogManager#checkpointLogStartOffsets (1.1-4.4).
        """
        if self._flush_interval_us >= 0:
            self._flush_by_time(now_us)
        self.log_start_file.catch_up(self._log_start_entry, now_us)
        self._note_log_start()
        if written:
            self.log_start_file.write(self._log_start_entry)
        if self.recovery_point < self.log.log_start:
            self._move_recovery_point(self.log.log_start, now_us)
            self._unflushed = self.log.leo - self.recovery_point

    def _note_log_start(self) -> None:
        """Update the file's entry: the log start, or no entry if the first segment begins there.

        Kafka: LogManager#checkpointLogStartOffsetsInDir (1.1-4.4).
        """
        log = self.log
        self._log_start_entry = log.log_start if log.log_start > log.segments[0] else None

    def delete_segments(self, now_us: int) -> None:
        """Delete the segments below the log start for good (retention).

        Kafka: UnifiedLog#deleteOldSegments (3.9-4.4), Log#deleteOldSegments (0.10.2-2.6).
        """
        self.log.delete_segments()
        self.log_start_moved(now_us)

    # When a process ends, and when the next one starts.

    def catch_up(self, hw: int, now_us: int) -> None:
        """Apply the checkpoint writes that the process has made so far.

        Kafka: ReplicaManager#checkpointHighWatermarks, LogManager#checkpointLogRecoveryOffsets (1.1-4.4),
        LogManager#checkpointRecoveryPointOffsets (0.10.2), LogManager#checkpointLogStartOffsets (1.1-4.4).
        """
        if self._flush_interval_us >= 0:
            self._flush_by_time(now_us)
        self.hw_file.catch_up(hw, now_us)
        self.recovery_point_file.catch_up(self.recovery_point, now_us)
        self.log_start_file.catch_up(self._log_start_entry, now_us)

    def process_ended(self, hw: int, now_us: int) -> None:
        """Stop checkpoints, because the process ended; the files keep their present contents."""
        self.catch_up(hw, now_us)
        self._first_flush_us = -1
        for file in (self.hw_file, self.recovery_point_file, self.log_start_file):
            file.end()

    @property
    def is_flushed(self) -> bool:
        """Whether the whole log was fsynced."""
        return self._synced == len(self._written_us)

    @property
    def most_unflushed(self) -> int:
        """Most records that may not be fsynced, by ``log.flush.interval.messages`` and ``log.segment.bytes``: earlier
        segments are, and a batch that fills a segment begins the next one.
        """
        batches = self.log.batches
        newest = batches[-1].last_offset - batches[-1].base_offset + 1 if batches else 0
        return min(self._flush_records - 1, self._settings.segment_bytes // self._settings.record_bytes + newest)

    def close_cleanly(self, hw: int | None, *, flushes: bool = True) -> None:
        """Flush the log and write all checkpoints, as a controlled shutdown does before it writes the marker.

        Kafka: LogManager#shutdown, ReplicaManager#checkpointHighWatermarks.

        Args:
            hw: the HW; None if no LeaderAndIsr had arrived: such a broker does not write the HW file.
            flushes: whether the log is flushed; False for a mutant only.
        """
        if flushes:
            self._synced = len(self._written_us)
        self.recovery_point = self.log.leo
        self.log.producers.take_snapshot(self.log.leo)
        if hw is not None:
            self.hw_file.write(hw)
        self.recovery_point_file.write(self.recovery_point)
        self.log_start_file.write(self._log_start_entry)

    def power_lost(self, now_us: int) -> list[Batch]:
        """Remove the suffix of the log that neither fsync nor write-back had reached; returns the lost batches.

        Write-back runs once an interval, and writes pages that have been dirty for longer than the expiry.
        """
        settings = self._settings
        last_run_us = now_us - (now_us - self._writeback_phase_us) % settings.writeback_interval_us
        durable_since_us = last_run_us - settings.writeback_expire_us
        kept = self._synced
        while kept < len(self._written_us) and self._written_us[kept] <= durable_since_us:
            kept += 1
        return self._keep_prefix(kept)

    def _keep_prefix(self, kept: int) -> list[Batch]:
        log = self.log
        del self._written_us[kept:]
        readable = max(0, kept - len(log.below))
        lost = log.batches[readable:]
        log.detach()
        del log.batches[readable:]
        del log.lasts[readable:]
        del log.below[kept:]
        return lost

    def corrupt_tail(self, count: int) -> list[Batch]:
        """Make the newest batches unreadable, synced or not: recovery finds wrong CRCs and truncates. Returns them."""
        lost = self._keep_prefix(max(self.log.deleted, len(self._written_us) - count))
        self._synced = min(self._synced, len(self._written_us))
        if lost:
            segments = self.log.segments
            while len(segments) > 1 and segments[-1] > lost[0].base_offset:
                segments.pop()
        return lost

    @property
    def synced(self) -> int:
        """Number of readable batches that were fsynced; write-back may have reached later ones."""
        return max(0, self._synced - len(self.log.below))

    @property
    def is_renamed(self) -> bool:
        """Whether the log was renamed, so that the next process that comes so far makes an empty one."""
        return self._replaces

    def keep_entries_of(self, former: Storage) -> None:
        """Keep the entries that the checkpoint files of the directory have of a log of the same name that was renamed:
        they stay until the files are written, and are read by a process that starts before.
        """
        self._replaces = True
        self.hw_file.content = former.hw_file.content
        self.recovery_point_file.content = former.recovery_point_file.content
        self.log_start_file.content = former.log_start_file.content

    def delete_log(self, decide: Decisions) -> tuple[Log, LeaderEpochFileCache, int]:
        """Delete the partition's log and checkpoint entries; the partition may be recreated empty.

        Returns what `recover` returns.
        Kafka: LogManager#asyncDelete.
        """
        self.log.truncate_fully(0)
        self._written_us.clear()
        self._synced = self.recovery_point = 0
        self.epoch_checkpoint.write([])
        for file in (self.hw_file, self.recovery_point_file, self.log_start_file):
            file.content = None
        return self.recover(decide, clean=False)

    def recover(self, decide: Decisions, *, clean: bool) -> tuple[Log, LeaderEpochFileCache, int]:
        """Load the log for a new process; `clean` is whether the directory had the marker (`LogDirectory.take_marker`).

        Without the marker, segments are scanned from the one with the recovery point on, and epochs missing from the
        cache are taken from the batches. In any case the LEO is recomputed from the data, and the cache is cut to
        [log start, LEO]. The log start is that of its file, but not below the first segment: if the file is out of
        date, deleted records reappear while their segments exist.
        Kafka: LogManager#loadLogs, LogManager#loadLog (1.1-4.4), LogLoader#load (3.9-4.4), LogLoader#recoverLog
        (3.9-4.4), Log#recoverLog (0.10.2-2.6).

        Returns:
            Log, epoch cache, and the checkpointed HW (0 without an entry).

        Raises:
            RecoveryError: overlapping offsets were found, and rule ``overlap_recovery`` is ``fails``.
        """
        known, checkpoint = self.log, self.log_start_file.content or 0
        segments = known.segments
        has_data = known.batches or known.below or checkpoint or segments[-1] or known.producers.snapshots
        if self._replaces or not has_data:
            return self._recover_empty(decide, clean=clean)
        self._is_new = False
        log = Log(check_first_offset=decide.checks_first_offset.answer, log_start=max(checkpoint, segments[0]))
        log.segments, log.producers = segments, known.producers
        log.producers.snapshots_reloads = decide.snapshots_reloads.answer
        log.set_batches([*known.below, *known.batches])
        reaches_start = log.reload()
        recovery_point = self.recovery_point_file.content or 0
        is_misindexed = not clean and log.misindexed_segment(recovery_point) >= 0
        if is_misindexed and decide.recovery_fails_on_overlaps.yes():
            raise RecoveryError("attempt to append an offset no larger than the last offset appended")
        epochs = LeaderEpochFileCache(self.epoch_checkpoint, strict=decide.records_epoch_at_election.answer)
        if clean:
            self.recovery_point = log.leo
        else:
            self.recovery_point = min(recovery_point, log.leo)
            first = max((place for place, base in enumerate(segments) if base <= self.recovery_point), default=0)
            latest = epochs.epochs
            mutant = decide.mutants.epoch_0_not_recovered
            mutant.took = True
            for batches in (log.below, log.batches):
                for batch in batches:
                    is_new = batch.base_offset >= segments[first] and (not latest or batch.leader_epoch > latest[-1])
                    if is_new and (batch.leader_epoch or not mutant.differs()):
                        epochs.assign(batch.leader_epoch, batch.base_offset)
            for place in range(first, len(segments)):
                end = segments[place + 1] if place + 1 < len(segments) else log.leo
                log.producers.recover_segment(checkpoint, segments[0], segments[place], log.end_below(end))
        if not reaches_start:
            self._restart_log(log)
            epochs.clear()
        if clean and not log.producers.snapshots:
            log.producers.begin_empty(log.log_start, log.leo, segments)
        else:
            log.producers.load(log.log_start, log.leo, segments, keeps_all=decide.keeps_all_snapshots.answer)
        epochs.truncate_from_end(log.leo)
        # LogLoader takes the offset of the file, which may be below the first segment.
        epochs.truncate_from_start(checkpoint if decide.has_quorum.answer else log.log_start)
        self.log = log
        self.recovery_point = max(self.recovery_point, log.log_start)
        self._note_log_start()
        self._recount()
        return log, epochs, self.hw_file.content or 0

    def _recover_empty(self, decide: Decisions, *, clean: bool) -> tuple[Log, LeaderEpochFileCache, int]:
        """`recover` of a log that never had a record, such as that of an idle partition."""
        known = self.log
        self._replaces = False
        if self._is_new:
            log = known
            log.check_first_offset = decide.checks_first_offset.answer
            self._is_new = False
        else:
            log = Log(check_first_offset=decide.checks_first_offset.answer)
            log.segments, log.producers = known.segments, known.producers
            log.producers.reload(0, 0)
        log.producers.snapshots_reloads = decide.snapshots_reloads.answer
        epochs = LeaderEpochFileCache(self.epoch_checkpoint, strict=decide.records_epoch_at_election.answer)
        epochs.truncate_from_end(0)
        if not clean:
            decide.mutants.epoch_0_not_recovered.took = True
        self.recovery_point = self._unflushed = self._segment_bytes = 0
        self._log_start_entry = None
        self.log = log
        return log, epochs, self.hw_file.content or 0

    def misses_files(self, log: Log, epochs: LeaderEpochFileCache) -> bool:
        """Whether a new process, which has loaded this log and epoch cache, lacks something of a damaged file that
        Kafka does not promise to do without: leader epochs, the log start, or the state of producers.

        A comment in LeaderEpochFileCache says that it relies on a checkpoint without missing entries; without the other
        two, deleted records reappear and retries are appended again.

        Kafka: LeaderEpochFileCache#truncateFromEndAsyncFlush (3.9-4.4).
        """
        missing = bool(self.epoch_checkpoint.take_missing(epochs.entries, log.log_start, log.leo))
        start, self.start_before_damage = self.start_before_damage, -1
        began_empty, log.producers.began_empty = log.producers.began_empty, False
        return missing or log.log_start < start or began_empty

    def _restart_log(self, log: Log) -> None:
        """Delete all data, because it ends below the log start.

        Kafka: LogLoader#deleteSegmentsIfLogStartGreaterThanLogEnd (4.1-4.4).
        """
        log.truncate_fully(log.log_start)
        self._written_us.clear()
        self._synced = 0
