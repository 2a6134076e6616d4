"""One replica's data: log, leader-epoch cache and high watermark kept together.

`sim.protocol.replica.partition` adds leadership on top of it.
"""

from __future__ import annotations

from sim.protocol.batch import NO_SEQUENCE, Batch, Sequence
from sim.protocol.decisions import Decisions
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.replica.partition_host import PartitionHost


class Replica:
    """Log, epoch cache and HW of one partition on one broker. Kafka: UnifiedLog (3.9-4.4), Log (0.10.2-2.6).

    Args:
        name: the partition's name.
        log: its log, as recovery left it.
        epochs: its epoch cache.
        hw: initial HW, clamped to [log start, LEO] (the checkpoint, 0 without an entry).
        decide: the broker's rules.
        host: notified of changes.
    """

    __slots__ = ("decide", "epochs", "host", "hw", "log", "name")

    def __init__(
        self, name: str, log: Log, epochs: LeaderEpochFileCache, hw: int, decide: Decisions, host: PartitionHost
    ) -> None:
        self.name = name
        self.log = log
        self.epochs = epochs
        ignores_checkpoint = decide.mutants.hw_from_leo_at_restart.when(hw < log.leo)
        self.hw = log.leo if ignores_checkpoint else min(max(hw, log.log_start), log.leo)
        self.decide = decide
        self.host = host

    def append_new(self, first_id: int, count: int, leader_epoch: int, sequence: Sequence = NO_SEQUENCE) -> Batch:
        """Append records as leader; the epoch is added to the cache first. Returns the new batch.

        Kafka: UnifiedLog#append (3.9-4.4), Log#append (0.10.2-2.6).
        """
        self.note_epoch(leader_epoch)
        batch = self.log.append_new(first_id, count, leader_epoch, sequence)
        self.host.appended(self, batch)
        return batch

    def note_epoch(self, leader_epoch: int) -> None:
        """Add the start of a leader epoch to the cache, unless it is there; also for a batch that is then refused.

        Kafka: UnifiedLog#assignEpochStartOffset (4.1-4.4), UnifiedLog#maybeAssignEpochStartOffset (3.9),
        Log#maybeAssignEpochStartOffset (2.6).
        """
        epochs = self.epochs.epochs
        if not epochs or epochs[-1] != leader_epoch:
            self.epochs.assign(leader_epoch, self.log.leo)

    def append_fetched(self, batch: Batch) -> None:
        """Append a fetched batch; its epoch is added to the cache once its offset is checked.

        A batch that begins below the end of an empty log and ends above it restarts the log at its first offset
        (KAFKA-6975).
        Kafka: Partition#appendRecordsToFollowerOrFutureReplica (1.1-4.4).

        Raises:
            UnexpectedAppendOffsetError: see `Log.append`.
        """
        log = self.log
        if batch.base_offset < log.leo:
            if batch.last_offset >= log.leo and self.decide.checks_first_offset.yes() and log.leo == log.log_start:
                self.truncate_fully(batch.base_offset)
            log.check(batch)
        epochs = self.epochs.epochs
        is_new = not epochs or epochs[-1] != batch.leader_epoch
        if is_new and not self.decide.mutants.epoch_not_recorded_by_follower.differs():
            self.epochs.assign(batch.leader_epoch, batch.base_offset)
        log.append(batch)
        self.host.appended(self, batch)

    def replace_with_future_log(self) -> None:
        """The copy that a future replica has made in another log directory becomes the log, with records and HW.

        Its epoch cache has the epochs of the records; rule ``moved_log_epochs`` decides about others.
        Kafka: LogManager#replaceCurrentWithFutureLog (1.1-4.4), Partition#maybeReplaceCurrentWithFutureReplica
        (1.1-4.4).
        """
        copied = self.log.epoch_starts()
        if copied != self.epochs.entries and not self.decide.carries_epochs.yes():
            self.epochs.clear()
            for epoch, start in copied:
                self.epochs.assign(epoch, start)

    def truncate_to(self, offset: int) -> None:
        """Truncate log and cache; the HW is lowered to the LEO if above. Records below the HW are not protected.

        Kafka: UnifiedLog#truncateTo (3.9-4.4), Log#truncateTo (0.10.2-2.6).
        """
        log = self.log
        if offset < log.leo:
            removed = log.truncate_to(offset)
            starts = self.epochs.starts
            if self.decide.mutants.epochs_kept_at_truncation.keeps(bool(starts) and starts[-1] >= offset):
                self.epochs.truncate_from_end(offset)
        else:
            removed = []
            starts = self.epochs.starts
            if starts and starts[-1] >= log.leo and self.decide.drops_epochs_at_leo.yes():
                self.epochs.truncate_from_end(log.leo)
        self.host.truncated(self, removed)
        if self.hw > log.leo:
            self.set_hw(log.leo)

    def truncate_fully(self, offset: int) -> None:
        """Drop all data and restart at an offset, which becomes the HW (KAFKA-9491).

        Kafka: UnifiedLog#truncateFullyAndStartAt (3.9-4.4), Log#truncateFullyAndStartAt (0.10.2-2.6).
        """
        removed = self.log.truncate_fully(offset)
        self.epochs.clear()
        self.host.truncated(self, removed)
        if self.decide.mutants.hw_kept_at_full_truncation.keeps(self.hw != offset):
            self.set_hw(offset)

    def set_hw(self, hw: int) -> bool:
        """Set the HW within [log start, LEO]; returns whether it changed. Not monotonic: a lower HW of a leader is
        adopted.

        Kafka: UnifiedLog#updateHighWatermark (3.9-4.4), Log#updateHighWatermark (2.6).
        """
        previous, self.hw = self.hw, self._within_log(hw)
        if self.hw == previous:
            return False
        self.host.hw_moved(self, previous)
        return True

    def advance_log_start(self, offset: int) -> None:
        """Advance the log start, up to the HW (retention, DeleteRecords).

        Kafka: Partition#deleteRecordsOnLeader (1.1-4.4), UnifiedLog#maybeIncrementLogStartOffset (3.9-4.4),
        Log#maybeIncrementLogStartOffset (1.1-2.6).
        """
        self.apply_leader_offsets(self.hw, offset)

    def apply_leader_offsets(self, hw: int, log_start: int) -> None:
        """Apply HW and log start of a leader's response, in this order.

        The host is notified after both, so that no listener sees the new HW with the old log start.
        Kafka: ReplicaFetcherThread#processPartitionData.
        """
        log = self.log
        previous, self.hw = self.hw, hw if log.log_start <= hw <= log.leo else self._within_log(hw)
        moves = log_start > log.log_start and self._increment_log_start(log_start)
        if self.hw != previous:
            self.host.hw_moved(self, previous)
        if moves:
            self.host.log_start_moved(self)

    def _increment_log_start(self, offset: int) -> bool:
        """Advance the log start, if the HW lets it; returns whether it moves.

        Kafka: UnifiedLog#maybeIncrementLogStartOffset (3.9-4.4), Log#maybeIncrementLogStartOffset (1.1-2.6).
        """
        log = self.log
        passes_hw = self.decide.mutants.log_start_above_hw.when(offset > self.hw)
        begins = min(offset, log.leo if passes_hw else self.hw)
        if begins <= log.log_start:
            return False
        log.advance_start(begins)
        self.epochs.truncate_from_start(begins)
        return True

    def _within_log(self, hw: int) -> int:
        log = self.log
        if hw > log.leo:
            return log.leo
        return log.log_start if hw < log.log_start else hw
