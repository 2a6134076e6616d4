"""What the control records of a member's log say: the voters, and the kraft.version."""

from __future__ import annotations

from typing import Final

from sim.protocol.raft.raft_log import IllegalRaftStateError, RaftBatch, RaftLog, VotersBatch
from sim.protocol.raft.voter_set import VoterSet

BOOTSTRAP_OFFSET: Final = -1
"""Offset of the voters of the bootstrap snapshot: no log has them yet."""


class KRaftControlRecordStateMachine:
    """A member's voters and kraft.version. A record counts from its append on, and until it is truncated.

    Kafka never reads an offset twice: what is appended after a truncation does not count below the end that the log had
    before it, until the process starts again. So does a snapshot that ends there.

    Kafka: KRaftControlRecordStateMachine, VoterSetHistory.

    Args:
        static: the voters of the configuration, which count until a log or snapshot has others.
        log: the member's log.
        refuses_jumps: whether voters of which more than one is another end the process, as in 3.9.

    Attributes:
        voters: the latest voters. Kafka: KRaftControlRecordStateMachine#lastVoterSet.
        voters_offset: the offset of their record, `BOOTSTRAP_OFFSET` in a bootstrap snapshot; None for the
            configuration.
        kraft_version: the latest one. Kafka: KRaftControlRecordStateMachine#lastKraftVersion.
    """

    __slots__ = (
        "_log",
        "_next_offset",
        "_refuses_jumps",
        "_static",
        "_versions",
        "_voters",
        "kraft_version",
        "voters",
        "voters_offset",
    )

    def __init__(self, static: VoterSet, log: RaftLog, *, refuses_jumps: bool = False) -> None:
        self._refuses_jumps = refuses_jumps
        self._static = static
        self._log = log
        self._voters: list[tuple[int, VoterSet]] = []
        self._versions: list[tuple[int, int]] = []
        self._next_offset = 0
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
        self._next_offset = max(offset, log.end_offset)
        if offset <= log.end_offset:
            for batch in log.read(max(offset, log.start_offset), log.end_offset):
                self._add(batch)
        self._note_last()

    def appended(self, batch: RaftBatch) -> None:
        """The log has one more batch.

        Raises:
            IllegalRaftStateError: see `refuses_jumps`.

        Kafka: KRaftControlRecordStateMachine#updateState, VoterSetHistory#addAt.
        """
        if batch.end_offset > self._next_offset:
            self._next_offset = batch.end_offset
            if batch.is_control:
                self._add(batch)
                self._note_last()

    def took_snapshot(self, end_offset: int) -> None:
        """A snapshot has taken the place of the log, which ended at `end_offset`.

        Kafka: KRaftControlRecordStateMachine#updateState.
        """
        self._next_offset = max(self._next_offset, end_offset)
        if self._next_offset < self._log.start_offset:
            self.load()

    def _add(self, batch: RaftBatch) -> None:
        if isinstance(batch, VotersBatch):
            last = self._voters[-1] if self._refuses_jumps and self._voters else None
            if last is not None and last[0] >= 0 and not last[1].has_overlapping_majority(batch.voters):
                raise IllegalRaftStateError(f"{batch.voters} and {last[1]} have disjoint majorities")
            self._voters.append((batch.end_offset - 1, batch.voters))
            if batch.kraft_version:
                self._versions.append((batch.end_offset - 2, batch.kraft_version))

    def truncate_new_entries(self, before: int, end_offset: int) -> None:
        """The log ends at `end_offset` now, and ended at `before`.

        Kafka: KRaftControlRecordStateMachine#truncateNewEntries.
        """
        self._next_offset = max(self._next_offset, before)
        if self._voters or self._versions:
            self._voters = [entry for entry in self._voters if entry[0] < end_offset]
            self._versions = [entry for entry in self._versions if entry[0] < end_offset]
            self._note_last()

    def truncate_old_entries(self, start_offset: int) -> None:
        """The member has made a snapshot that ends here. An entry at its end takes the place of those before it: if it
        is truncated, there is none.

        Kafka: KRaftControlRecordStateMachine#truncateOldEntries.
        """
        if len(self._voters) > 1 or len(self._versions) > 1:
            old = sum([at <= start_offset for at, _ in self._voters])
            del self._voters[: max(0, old - 1)]
            old = sum([at <= start_offset for at, _ in self._versions])
            del self._versions[: max(0, old - 1)]

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
