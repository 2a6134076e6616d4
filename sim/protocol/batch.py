"""Record batches: several records, one leader epoch, indivisible on the wire and on disk."""

from __future__ import annotations


class Batch:
    """A record batch as it stands in a log.

    Shared by reference between the logs of all replicas and never changed after it was appended. A record's identity
    is its id, unique in a run: record ``first_id + k`` stands at offset ``base_offset + k``.

    Attributes:
        base_offset: offset of the first record.
        last_offset: offset of the last record.
        leader_epoch: epoch of the leader that appended it (partitionLeaderEpoch).
        first_id: id of the first record.
    """

    __slots__ = ("base_offset", "first_id", "last_offset", "leader_epoch")

    def __init__(self, base_offset: int, last_offset: int, leader_epoch: int, first_id: int) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.leader_epoch = leader_epoch
        self.first_id = first_id

    @property
    def count(self) -> int:
        """Number of records."""
        return self.last_offset - self.base_offset + 1

    def ids(self) -> range:
        """Ids of the records, in offset order."""
        return range(self.first_id, self.first_id + self.last_offset - self.base_offset + 1)

    def __repr__(self) -> str:
        return f"[{self.base_offset}-{self.last_offset} e{self.leader_epoch} r{self.first_id}]"
