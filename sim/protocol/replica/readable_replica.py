"""A replica's reads: Fetch, OffsetsForLeaderEpoch and ListOffsets."""

from __future__ import annotations

from collections.abc import Sequence

from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.log.leader_epoch_file_cache import UNDEFINED, UNDEFINED_OFFSET, LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import (
    AGREES,
    DIVERGING_EPOCH,
    LOG_TRUNCATION,
    NO_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNSUPPORTED_VERSION,
    Diverging,
    Position,
)
from sim.protocol.replica.fencing import LeaderEpochFencing
from sim.protocol.replica.partition_host import PartitionHost
from sim.protocol.replica.replica import Replica


class ReadableReplica(Replica):
    """A replica with leadership and leader epoch; only a leader serves reads, except those of consumers (KIP-392).

    Args: see `Replica`.

    Attributes:
        leader_epoch: the newest one it has received, -1 before the first.
        is_leader: whether it leads.
        epoch_start: LEO at the start of the leader epoch in which it leads, or last led.
        fencing: fences requests by leader epoch.
        agrees: the last field of a fetch result without divergence (see `messages.FetchResult`).
    """

    __slots__ = (
        "agrees",
        "epoch_start",
        "fencing",
        "is_leader",
        "leader_epoch",
    )

    def __init__(
        self, name: str, log: Log, epochs: LeaderEpochFileCache, hw: int, decide: Decisions, host: PartitionHost
    ) -> None:
        super().__init__(name, log, epochs, hw, decide, host)
        self.leader_epoch = -1
        self.is_leader = False
        self.epoch_start = 0
        self.fencing = LeaderEpochFencing(decide)
        # The fetcher has noted this decision before, see `ReplicaFetcherThread.add`.
        self.agrees: Diverging = AGREES if decide.truncates_on_fetch.answer else None

    def check_fetch(
        self,
        offset: int,
        current_leader_epoch: int,
        last_epoch: int = NO_EPOCH,
        client: bool = False,
        any_replica: bool = False,
    ) -> str:
        """Check a fetch: leader epoch, leadership, range, then the epoch of the last record.

        With `any_replica` it has client metadata (version 11), so that a follower may answer it (KIP-392).
        Kafka: Partition#fetchRecords (3.9-4.4), Partition#readRecords (2.6-4.4).

        Returns:
            An error, or `DIVERGING_EPOCH`: then `diverging` gives the response, and the fetch does not update the
            follower's state.
        """
        if current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            error = self.fencing.check(current_leader_epoch, self.leader_epoch, client=client)
            if error:
                return error
        if not self.is_leader and not (any_replica and self.decide.followers_serve_consumers.yes()):
            return NOT_LEADER_OR_FOLLOWER
        if last_epoch != NO_EPOCH and self.agrees is not None:
            return self._check_divergence(offset, last_epoch)
        log = self.log
        if not log.log_start <= offset <= log.leo:
            return OFFSET_OUT_OF_RANGE
        if last_epoch != NO_EPOCH and self.decide.compares_last_epoch.answer:
            own = self.epochs.epoch_for_offset(offset - 1)
            if own is not None and own != last_epoch:
                return LOG_TRUNCATION
        return NONE

    def has_all(self, position: Position) -> bool:
        """Whether a follower's fetch at this position finds nothing new: its log ends like this one, and `check_fetch`
        would not refuse it.
        """
        _, offset, epoch, last_epoch = position
        epochs = self.epochs.epochs
        return (
            self.is_leader
            and offset == self.log.leo
            and epoch in (NO_EPOCH, self.leader_epoch)
            and (last_epoch == NO_EPOCH or (bool(epochs) and epochs[-1] == last_epoch and self.agrees is not None))
        )

    def _check_divergence(self, offset: int, last_epoch: int) -> str:
        """Compare the epoch of the last record below a fetch offset with this log (KIP-595).

        A fetch below the log start is out of range, diverging or not; one beyond the LEO diverges.
        Kafka: Partition#readRecords (2.6-4.4).
        """
        log = self.log
        epochs = self.epochs.epochs
        if epochs and epochs[-1] == last_epoch and log.log_start <= offset <= log.leo:
            return NONE
        found, end_offset = self.diverging(last_epoch)
        if end_offset == UNDEFINED_OFFSET or offset < log.log_start:
            return OFFSET_OUT_OF_RANGE
        if found < last_epoch or end_offset < offset:
            return DIVERGING_EPOCH
        return NONE

    def diverging(self, last_epoch: int) -> tuple[int, int]:
        """The (epoch, end offset) in a diverging response: where the largest epoch up to that one ended."""
        epochs, leo = self.epochs, self.log.leo
        found, end_offset = epochs.end_offset_for(last_epoch, leo)
        starts = epochs.starts
        is_next = bool(starts) and UNDEFINED_OFFSET < end_offset <= starts[-1]
        if self.decide.mutants.end_of_next_epoch.when(is_next):
            return found, epochs.end_offset_for(epochs.epoch_for_offset(end_offset) or 0, leo)[1]
        return found, end_offset

    def read_uncommitted(self, offset: int) -> Sequence[Batch]:
        """Batches from an offset on, for a follower. Kafka: UnifiedLog#read (3.9-4.4), Log#read (0.10.2-2.6)."""
        return self.log.read(offset) if offset < self.log.leo else []

    def read_committed(self, offset: int) -> Sequence[Batch]:
        """Batches from an offset to the HW, for a consumer. Kafka: UnifiedLog#read (3.9-4.4), Log#read (0.10.2-2.6)."""
        above_hw = self.decide.mutants.read_above_hw.when(self.hw < self.log.leo)
        return self.log.read_up_to(offset, self.log.leo if above_hw else self.hw)

    def end_offset_for(
        self, current_leader_epoch: int, epoch: int, *, with_epoch: bool, client: bool = False
    ) -> tuple[str, int, int]:
        """Answer OffsetsForLeaderEpoch: (error, epoch, end offset), -1 where undefined.

        Version 0 (KIP-101) returns no epoch, nor does a leader without version 1 (KIP-279). The epoch check comes
        before the leadership check.
        Kafka: Partition#lastOffsetForLeaderEpoch (1.1-4.4).

        Args:
            current_leader_epoch: the leader epoch in the request.
            epoch: the requested epoch.
            with_epoch: whether the request has version 1.
            client: whether a client sent it.
        """
        error = self.fencing.check_epoch_end(current_leader_epoch, self.leader_epoch)
        if not error and not self.is_leader:
            error = NOT_LEADER_OR_FOLLOWER
        if not error and not self.decide.answers_epochs.yes():
            error = UNSUPPORTED_VERSION
        if error:
            return error, *UNDEFINED
        found, end_offset = self.diverging(epoch)
        names = self.decide.names_epochs
        if end_offset != UNDEFINED_OFFSET and (client or found != epoch):
            names.note()  # A follower learns nothing from the epoch it requested, which is its latest.
        return NONE, found if with_epoch and names.answer else -1, end_offset
