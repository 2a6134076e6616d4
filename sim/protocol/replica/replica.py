"""One replica's data: log, leader-epoch cache and high watermark kept together.

`sim.protocol.replica.partition` adds leadership on top of it.
"""

from __future__ import annotations

from typing import Protocol

from sim.protocol.batch import NO_SEQUENCE, Batch, Sequence
from sim.protocol.decisions import Decisions
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochFileCache
from sim.protocol.log.log import Log


class ReplicaHost(Protocol):
    """What a replica tells its broker; every call comes after the change."""

    def appended(self, replica: Replica, batch: Batch) -> None:
        """A batch entered the log."""

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """The log was cut at its present LEO, perhaps removing nothing."""

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """The high watermark has a new value, higher or lower than the previous one."""

    def log_start_moved(self, replica: Replica) -> None:
        """The log start has a new value, higher than the one before."""

    def reached(self, probe: int) -> None:
        """A probe was reached (`sim.protocol.probes`)."""


class Replica:
    """Log, epoch cache and HW of one partition on one broker. Kafka: UnifiedLog (3.9-4.3), Log (0.10.2-2.6).

    Args:
        name: the partition's name.
        log: its log, as recovery left it.
        epochs: its epoch cache.
        hw: initial HW, clamped to [log start, LEO] (the checkpoint, 0 without an entry).
        decide: the broker's rules.
        host: who is told of changes.
    """

    __slots__ = ("decide", "epochs", "host", "hw", "log", "name")

    def __init__(
        self, name: str, log: Log, epochs: LeaderEpochFileCache, hw: int, decide: Decisions, host: ReplicaHost
    ) -> None:
        self.name = name
        self.log = log
        self.epochs = epochs
        self.hw = min(max(hw, log.log_start), log.leo)
        self.decide = decide
        self.host = host

    def append_new(self, first_id: int, count: int, leader_epoch: int, sequence: Sequence = NO_SEQUENCE) -> Batch:
        """Append records as leader; the epoch is noted in the cache first.

        Kafka: UnifiedLog#append (3.9-4.3), Log#append (0.10.2-2.6).

        Returns:
            The new batch.
        """
        self.note_epoch(leader_epoch)
        batch = self.log.append_new(first_id, count, leader_epoch, sequence)
        self.host.appended(self, batch)
        return batch

    def note_epoch(self, leader_epoch: int) -> None:
        """Note that a leader epoch begins here, unless it has begun; of a batch that is then refused, too.

        Kafka: UnifiedLog#assignEpochStartOffset (4.1-4.3), UnifiedLog#maybeAssignEpochStartOffset (3.9),
        Log#maybeAssignEpochStartOffset (2.6).
        """
        epochs = self.epochs.epochs
        if not epochs or epochs[-1] != leader_epoch:
            self.epochs.assign(leader_epoch, self.log.leo)

    def append_fetched(self, batch: Batch) -> None:
        """Append a fetched batch; its epoch is noted in the cache once its offset is found right.

        A batch that begins below the end of an empty log, and ends above it, starts the log anew at its first offset
        (KAFKA-6975).
        Kafka: Partition#appendRecordsToFollowerOrFutureReplica (1.1-4.3).

        Raises:
            UnexpectedAppendOffsetError: see `Log.append`.
        """
        log = self.log
        if batch.base_offset < log.leo:
            if batch.last_offset >= log.leo and self.decide.checks_first_offset.yes() and log.leo == log.log_start:
                self.truncate_fully(batch.base_offset)
            log.check(batch)
        epochs = self.epochs.epochs
        if not epochs or epochs[-1] != batch.leader_epoch:
            self.epochs.assign(batch.leader_epoch, batch.base_offset)
        log.append(batch)
        self.host.appended(self, batch)

    def truncate_to(self, offset: int) -> None:
        """Truncate log and cache; the HW follows the LEO down. Nothing protects what lies below the HW.

        Kafka: UnifiedLog#truncateTo (3.9-4.3), Log#truncateTo (0.10.2-2.6).
        """
        log = self.log
        if offset < log.leo:
            removed = log.truncate_to(offset)
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
        """Drop all data and start anew at an offset; the HW becomes that offset (KAFKA-9491).

        Kafka: UnifiedLog#truncateFullyAndStartAt (3.9-4.3), Log#truncateFullyAndStartAt (0.10.2-2.6).
        """
        removed = self.log.truncate_fully(offset)
        self.epochs.clear()
        self.host.truncated(self, removed)
        self.set_hw(offset)

    def set_hw(self, hw: int) -> bool:
        """Set the HW within [log start, LEO]. Not monotonic: a lower HW of a leader is adopted.

        Kafka: UnifiedLog#updateHighWatermark (3.9-4.3), Log#updateHighWatermark (2.6).

        Returns:
            Whether it changed.
        """
        previous, self.hw = self.hw, self._within_log(hw)
        if self.hw == previous:
            return False
        self.host.hw_moved(self, previous)
        return True

    def advance_log_start(self, offset: int) -> None:
        """Move the log start up, as far as the HW (retention, DeleteRecords).

        Kafka: Partition#deleteRecordsOnLeader (1.1-4.3), UnifiedLog#maybeIncrementLogStartOffset (3.9-4.3),
        Log#maybeIncrementLogStartOffset (1.1-2.6).
        """
        self.take(self.hw, offset)

    def take(self, hw: int, log_start: int) -> None:
        """Take HW and log start of one answer of the leader, in this order.

        The host hears of them when both are taken: nobody sees a follower in between, with records below its HW that
        the leader has deleted.
        Kafka: ReplicaFetcherThread#processPartitionData.
        """
        log = self.log
        previous, self.hw = self.hw, hw if log.log_start <= hw <= log.leo else self._within_log(hw)
        begins = min(log_start, self.hw)
        moves = begins > log.log_start
        if moves:
            log.advance_start(begins)
            self.epochs.truncate_from_start(begins)
        if self.hw != previous:
            self.host.hw_moved(self, previous)
        if moves:
            self.host.log_start_moved(self)

    def _within_log(self, hw: int) -> int:
        log = self.log
        if hw > log.leo:
            return log.leo
        return log.log_start if hw < log.log_start else hw
