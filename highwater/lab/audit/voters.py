"""The disks of a quorum's voters: what each has of the metadata log, its vote, and what a majority of them holds."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.audit import segments
from highwater.lab.audit.log import LOG, META, META_MOST
from scenarios.paths import read
from sim.errors import InputError, StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

QUORUM_STATE: Final = "quorum-state"
_NODE_ID: Final = re.compile(r"^node\.id=([0-9]{1,10})\s*$", re.MULTILINE)
_CLUSTER_ID: Final = re.compile(r"^cluster\.id=(\S+)", re.MULTILINE)
_NO_OP: Final = "NO_OP_RECORD"
NO_NODE: Final = -1


@dataclass(frozen=True, slots=True)
class StoredVote:
    """The file quorum-state. Kafka: FileQuorumStateStore.

    Attributes:
        leader: the leader that the voter knows, or `NO_NODE`.
        epoch: its epoch.
        voted: for whom it has voted in this epoch, or `NO_NODE`.
        voters: ids of all voters; empty where the metadata log has them (kraft.version 1).
    """

    leader: int
    epoch: int
    voted: int
    voters: tuple[int, ...]


@dataclass(slots=True)
class VoterDisk:
    """What one voter has on disk.

    Attributes:
        number: its ``node.id``.
        folder: the folder of its metadata log.
        cluster: its ``cluster.id``; "" if unknown.
        vote: its file quorum-state, None without one.
        start_offset: of its first record; before it, a snapshot has the state.
        end_offset: after its last record.
        epochs: (epoch of the quorum's leader, offset of its first record here), in order.
        time_ms: when the last record was appended, -1 without one.
        changes: offsets of the records with contents, all but NoOpRecords and control records.
    """

    number: int
    folder: Path
    cluster: str
    vote: StoredVote | None
    start_offset: int = 0
    end_offset: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)
    time_ms: int = -1
    changes: list[int] = field(default_factory=list)

    @property
    def last_epoch(self) -> int:
        """The epoch of its last record, -1 without one."""
        return self.epochs[-1][0] if self.epochs else -1

    def end_of(self, epoch: int) -> int:
        """The offset after the last record of the newest epoch up to this one; its start offset if it has none."""
        later = [start for one, start in self.epochs if one > epoch]
        return later[0] if later else self.end_offset

    def shares_with(self, other: VoterDisk) -> int:
        """The offset up to which this log and another one are the same.

        Two logs with a record of the same offset and epoch are the same up to it (Raft's log matching).
        """
        known = {epoch for epoch, _ in other.epochs}
        common = [epoch for epoch, _ in self.epochs if epoch in known]
        if common:
            return min(self.end_of(common[-1]), other.end_of(common[-1]))
        # One of them ends below a snapshot from which the other one begins, or is empty.
        shorter, longer = sorted((self, other), key=lambda one: one.end_offset)
        return shorter.end_offset if shorter.end_offset <= longer.start_offset else 0


def read_voter(folder: Path) -> VoterDisk:
    """Read a controller's metadata log, with its files quorum-state and meta.properties.

    Args:
        folder: ``__cluster_metadata-0``, or the log directory that contains it.

    Raises:
        InputError: this is no controller's folder.
        StorageError: a file cannot be read, or is corrupt.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    log = folder / LOG if (folder / LOG).is_dir() else folder
    meta = next((place / META for place in (log, log.parent) if (place / META).is_file()), None)
    if meta is None:
        raise InputError(f"{folder}: no {META} in it; give the log directory, with {META} and {LOG}")
    properties = read(meta, META_MOST).decode(errors="replace")
    node = _NODE_ID.search(properties)
    if node is None:
        raise InputError(f"{meta}: no node.id in it")
    cluster = _CLUSTER_ID.search(properties)
    disk = VoterDisk(int(node[1]), log, cluster[1] if cluster else "", _vote(log / QUORUM_STATE))
    _read_log(disk)
    return disk


def _read_log(disk: VoterDisk) -> None:
    try:
        names = sorted(disk.folder.iterdir())
    except OSError as error:
        raise StorageError(f"{disk.folder}: {error.strerror}") from None
    files = [path for path in names if segments.SEGMENT.fullmatch(path.name)]
    snapshots = [found for path in names if (found := segments.SNAPSHOT.fullmatch(path.name))]
    newest, newest_epoch = (int(snapshots[-1]["offset"]), int(snapshots[-1]["epoch"])) if snapshots else (0, -1)
    disk.start_offset = int(files[0].stem) if files else newest
    if disk.start_offset > newest:
        raise InputError(
            f"{disk.folder}: the log begins at record {disk.start_offset}, and no snapshot has what was before it"
        )
    for path in files:
        for batch in segments.read_batches(path):
            if batch.controller_epoch != disk.last_epoch:
                disk.epochs.append((batch.controller_epoch, batch.base_offset))
            disk.end_offset = batch.next_offset
            disk.time_ms = batch.time_ms
            disk.changes += [record.offset for record in batch.records if record.type != _NO_OP]
    if newest > disk.end_offset:  # The next start drops all that is before the snapshot.
        disk.start_offset = disk.end_offset = newest
        disk.epochs, disk.changes = [(newest_epoch, newest)], []


def _vote(path: Path) -> StoredVote | None:
    if not path.is_file():
        return None
    problem = f"{path}: this is no file quorum-state"
    try:
        told: Any = json.loads(read(path, META_MOST))
        voters = tuple(sorted(int(voter["voterId"]) for voter in told.get("currentVoters") or ()))
        return StoredVote(int(told["leaderId"]), int(told["leaderEpoch"]), int(told["votedId"]), voters)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(problem) from None


@dataclass(frozen=True, slots=True)
class QuorumDisks:
    """The disks of a quorum.

    Attributes:
        disks: voter -> its disk, in order of ids.
        voters: ids of all voters, also of those whose disks are not known.
        by_log: whether the metadata log has the voters (kraft.version 1), so that these may not be all.
    """

    disks: dict[int, VoterDisk]
    voters: tuple[int, ...]
    by_log: bool

    @property
    def majority(self) -> int:
        """How many voters elect a leader and commit a record."""
        return len(self.voters) // 2 + 1

    @property
    def longest(self) -> VoterDisk:
        """The disk with the newest log. It may have records that are not committed; to keep them does no harm."""
        return max(self.disks.values(), key=lambda disk: (disk.last_epoch, disk.end_offset))

    @property
    def needed(self) -> int:
        """The offset after the last record with contents of the newest log, or of its snapshot. Disks that were copied
        while controllers ran differ in the NoOpRecords behind it.
        """
        longest = self.longest
        return max(longest.changes[-1] + 1 if longest.changes else 0, longest.start_offset)

    @property
    def with_majority(self) -> int:
        """The offset up to which a majority has the newest log. What is behind it was committed only if a disk of that
        majority was replaced since.
        """
        shared = sorted((disk.shares_with(self.longest) for disk in self.disks.values()), reverse=True)
        return shared[self.majority - 1] if len(shared) >= self.majority else 0

    def has_all(self, disk: VoterDisk) -> bool:
        """Whether a voter has all that may be committed, but perhaps NoOpRecords."""
        return disk.shares_with(self.longest) >= self.needed

    def holders_without(self, voter: int) -> list[int]:
        """The voters that have all that may be committed, without one of them."""
        return [number for number, disk in self.disks.items() if number != voter and self.has_all(disk)]

    def replaced(self, disk: VoterDisk) -> tuple[int, int]:
        """First record of a voter in place of which the newest log has another one, and the voter's end offset; two
        equal offsets: there is none.
        """
        shared = disk.shares_with(self.longest)
        return (shared, disk.end_offset) if shared < min(disk.end_offset, self.longest.end_offset) else (shared, shared)


def read_quorum(folders: Sequence[Path]) -> QuorumDisks:
    """Read the disks of the voters of one cluster.

    Raises:
        InputError: a folder is not that of a voter, of another cluster, or a voter is there twice.
        StorageError: a file cannot be read, or is corrupt.
    """
    disks: dict[int, VoterDisk] = {}
    for disk in map(read_voter, folders):
        if disk.number in disks:
            raise InputError(f"{disk.folder} and {disks[disk.number].folder} are both of node {disk.number}")
        first = next(iter(disks.values()), disk)
        if {disk.cluster, first.cluster} - {""} != {disk.cluster or first.cluster} - {""}:
            raise InputError(
                f"{disk.folder} is of cluster {disk.cluster}, {first.folder} of cluster {first.cluster}; "
                "audit each quorum by itself"
            )
        disks[disk.number] = disk
    named = {disk.vote.voters for disk in disks.values() if disk.vote is not None and disk.vote.voters}
    if len(named) > 1:
        raise InputError("the files quorum-state name different voters: these are disks of different times")
    if not any(disk.end_offset for disk in disks.values()):
        raise InputError(f"{', '.join(str(disk.folder) for disk in disks.values())}: no metadata record in any of them")
    voters = next(iter(named), tuple(sorted(disks)))
    for number, disk in disks.items():
        if number not in voters:
            raise InputError(f"{disk.folder} is of node {number}, which is no voter: {', '.join(map(str, voters))}")
    return QuorumDisks(dict(sorted(disks.items())), voters, not named)
