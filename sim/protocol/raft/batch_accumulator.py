"""Records that a leader has taken and not yet appended to its log."""

from __future__ import annotations

from collections.abc import Sequence

from sim.protocol.raft.raft_log import IllegalRaftStateError, RaftBatch, VotersBatch
from sim.protocol.raft.request_manager import NEVER
from sim.protocol.raft.voter_set import VoterSet


class NotLeaderError(Exception):
    """An append for an epoch that this member does not lead any more. Kafka: NotLeaderException."""


class BatchAccumulator:
    """What a leader is to append: records wait for others, up to ``append.linger.ms``, and become one batch with them.

    Sizes are not modelled: no batch reaches 8 MiB. Kafka: BatchAccumulator.

    Args:
        epoch: the leader's.
        base_offset: end offset of its log.
        linger_us: ``controller.quorum.append.linger.ms``.

    Attributes:
        next_offset: the offset that the next record will have.
    """

    __slots__ = ("_completed", "_drain_at_us", "_epoch", "_linger_us", "_records", "next_offset")

    def __init__(self, epoch: int, base_offset: int, linger_us: int) -> None:
        self._epoch = epoch
        self.next_offset = base_offset
        self._linger_us = linger_us
        self._completed: list[RaftBatch] = []
        self._records: list[object] = []
        self._drain_at_us = NEVER

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._completed and not self._records

    def append(self, epoch: int, records: Sequence[object], now_us: int) -> int:
        """Take records; returns the offset that the last of them will have. Kafka: BatchAccumulator#append.

        Raises:
            NotLeaderError: for an earlier epoch.
            IllegalRaftStateError: for a later one.
        """
        if epoch < self._epoch:
            raise NotLeaderError(f"append for epoch {epoch}, which is over: this is epoch {self._epoch}")
        if epoch > self._epoch:
            raise IllegalRaftStateError(f"append for epoch {epoch}, which is to come: this is epoch {self._epoch}")
        self._records += records
        self.next_offset += len(records)
        if self._drain_at_us == NEVER:
            self._drain_at_us = now_us + self._linger_us
        return self.next_offset - 1

    def append_control_message(self) -> None:
        """Take the LeaderChange record, before which all others are drained.

        Kafka: BatchAccumulator#appendControlMessages.
        """
        self._complete()
        self._completed.append(RaftBatch(self.next_offset, self._epoch, 1, (), is_control=True))
        self.next_offset += 1

    def append_voters(self, voters: VoterSet, *, kraft_version: int = 0, leader_change: bool = False) -> int:
        """Take a VotersRecord, before which all other records are drained; returns its offset.

        Args:
            voters: the voters.
            kraft_version: that of a KRaftVersionRecord before it; 0: none.
            leader_change: whether the LeaderChange record comes before both.

        Kafka: BatchAccumulator#appendVotersRecord, BatchAccumulator#appendControlMessages.
        """
        self._complete()
        size = 1 + (kraft_version > 0) + leader_change
        self._completed.append(VotersBatch(self.next_offset, self._epoch, size, voters, kraft_version))
        self.next_offset += size
        return self.next_offset - 1

    def skip(self, count: int) -> None:
        """Leave out records that were appended elsewhere."""
        self.next_offset += count

    def drain_at_us(self) -> int:
        """When the leader has to append; 0 for at once. Kafka: BatchAccumulator#timeUntilDrain."""
        return 0 if self._completed else self._drain_at_us

    def drain(self) -> list[RaftBatch]:
        """The batches to append, which wait no longer. Kafka: BatchAccumulator#drain."""
        self._complete()
        drained = self._completed
        self._completed = []
        return drained

    def _complete(self) -> None:
        """End the batch that is being filled. Kafka: BatchAccumulator#maybeCompleteDrain."""
        if self._records:
            base_offset = self.next_offset - len(self._records)
            self._completed.append(RaftBatch(base_offset, self._epoch, len(self._records), self._records))
            self._records = []
        self._drain_at_us = NEVER
