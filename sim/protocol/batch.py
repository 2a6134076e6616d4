"""Record batches: several records, one leader epoch, indivisible on the wire and on disk."""

from __future__ import annotations

from typing import Final

Sequence = tuple[int, int, int]
"""(producer id, producer epoch, sequence of the first record) of an idempotent producer's batch"""
NO_SEQUENCE: Final[Sequence] = (-1, -1, -1)
"""For a batch whose producer is not idempotent."""


class Batch:
    """A record batch in a log.

    Immutable, and shared by reference between the logs of all replicas. A record's identity is its id, unique in a
    partition: record ``first_id + k`` has offset ``base_offset + k``.
    Kafka: record.RecordBatch (1.1-4.2), record.internal.RecordBatch (4.3-4.4).

    Attributes:
        base_offset: offset of the first record.
        last_offset: offset of the last record.
        leader_epoch: epoch of the leader that appended it.
        first_id: id of the first record.
        producer_id: id of the idempotent producer that sent it, else -1.
        producer_epoch: that producer's epoch, else -1.
        base_sequence: sequence number of the first record within that epoch, else -1.
    """

    __slots__ = (
        "base_offset",
        "base_sequence",
        "first_id",
        "last_offset",
        "leader_epoch",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self, base_offset: int, last_offset: int, leader_epoch: int, first_id: int, sequence: Sequence = NO_SEQUENCE
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.leader_epoch = leader_epoch
        self.first_id = first_id
        self.producer_id, self.producer_epoch, self.base_sequence = sequence

    @property
    def count(self) -> int:
        """Number of records."""
        return self.last_offset - self.base_offset + 1

    def ids(self) -> range:
        """Ids of the records, in offset order."""
        return range(self.first_id, self.first_id + self.last_offset - self.base_offset + 1)

    def __repr__(self) -> str:
        return f"[{self.base_offset}-{self.last_offset} e{self.leader_epoch} r{self.first_id}]"
