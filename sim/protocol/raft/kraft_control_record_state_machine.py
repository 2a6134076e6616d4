"""What the control records of a member's log say: the voters, and the kraft.version."""

from __future__ import annotations

from typing import Final

from sim.protocol.raft.raft_log import RaftBatch, RaftLog, VotersBatch
from sim.protocol.raft.voter_set import VoterSet

BOOTSTRAP_OFFSET: Final = -1
"""Offset of the voters of the bootstrap snapshot: no log has them yet."""


class KRaftControlRecordStateMachine:
    """A member's voters and kraft.version. A record counts from its append on, and until it is truncated.

    Kafka: KRaftControlRecordStateMachine, VoterSetHistory.

    Args:
        static: the voters of the configuration, which count until a log or snapshot has others.
        log: the member's log.

    Attributes:
        voters: the latest voters. Kafka: KRaftControlRecordStateMachine#lastVoterSet.
        voters_offset: the offset of their record, `BOOTSTRAP_OFFSET` in a bootstrap snapshot; None for the
            configuration.
        kraft_version: the latest one. Kafka: KRaftControlRecordStateMachine#lastKraftVersion.
    """

    __slots__ = ("_log", "_static", "_versions", "_voters", "kraft_version", "voters", "voters_offset")

    def __init__(self, static: VoterSet, log: RaftLog) -> None:
        self._static = static
        self._log = log
        self._voters: list[tuple[int, VoterSet]] = []
        self._versions: list[tuple[int, int]] = []
        self.voters = static
        self.voters_offset: int | None = None
        self.kraft_version = 0
        self.load()

    def load(self) -> None:
        """Read the last snapshot and the log. Kafka: KRaftControlRecordStateMachine#updateState."""
        self._voters.clear()
        self._versions.clear()
        log, snapshot = self._log, self._log.latest_snapshot
        offset = 0
        if snapshot is not None:
            offset = snapshot.id.offset
            if snapshot.voters is not None:
                self._voters.append((offset - 1, snapshot.voters))
            if snapshot.kraft_version:
                self._versions.append((offset - 1, snapshot.kraft_version))
        for batch in log.read(max(offset, log.start_offset), log.end_offset):
            self._add(batch)
        self._note_last()

    def appended(self, batch: RaftBatch) -> None:
        """The log has one more batch. Kafka: KRaftControlRecordStateMachine#updateState."""
        if batch.is_control:
            self._add(batch)
            self._note_last()

    def _add(self, batch: RaftBatch) -> None:
        if isinstance(batch, VotersBatch):
            self._voters.append((batch.end_offset - 1, batch.voters))
            if batch.kraft_version:
                self._versions.append((batch.end_offset - 2, batch.kraft_version))

    def truncate_new_entries(self, end_offset: int) -> None:
        """The log ends here now. Kafka: KRaftControlRecordStateMachine#truncateNewEntries."""
        if self._voters or self._versions:
            self._voters = [entry for entry in self._voters if entry[0] < end_offset]
            self._versions = [entry for entry in self._versions if entry[0] < end_offset]
            self._note_last()

    def _note_last(self) -> None:
        self.voters_offset, self.voters = self._voters[-1] if self._voters else (None, self._static)
        self.kraft_version = self._versions[-1][1] if self._versions else 0

    def voter_set_at(self, offset: int) -> VoterSet | None:
        """The voters that a snapshot has whose last record has this offset, None without any.

        Kafka: KRaftControlRecordStateMachine#voterSetAtOffset.
        """
        found = [voters for at, voters in self._voters if at <= offset]
        return found[-1] if found else None

    def kraft_version_at(self, offset: int) -> int:
        """The kraft.version at an offset. Kafka: KRaftControlRecordStateMachine#kraftVersionAtOffset."""
        found = [version for at, version in self._versions if at <= offset]
        return found[-1] if found else 0
