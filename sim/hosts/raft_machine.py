"""The machine of a member of the metadata quorum: what its disk has of the metadata log and its snapshots, and the file
quorum-state.
"""

from __future__ import annotations

from sim.protocol.kraft.metadata import MetadataImage
from sim.protocol.raft.election_state import ElectionState
from sim.protocol.raft.raft_log import RaftLog, bootstrap_snapshot
from sim.protocol.raft.voter_set import ReplicaKey, VoterSet


class RaftMachine:
    """See the module.

    Attributes:
        log: the log and its snapshots as the running process sees them, page cache included.
        election: content of quorum-state, which is written with fsync; None without the file.
        has_power: whether the machine answers a connection that no process accepts.
        incarnation: number of processes that it has run.
        directory: the directory id of its disk, which formatting makes: the number of the disk.
    """

    __slots__ = ("directory", "election", "has_power", "incarnation", "log")

    def __init__(self) -> None:
        self.log = RaftLog()
        self.election: ElectionState | None = None
        self.has_power = True
        self.incarnation = 0
        self.directory = 1

    def format(self, voters: VoterSet) -> None:
        """Write the first voters to the disk (``kafka-storage.sh format --initial-controllers``)."""
        self.log.add_snapshot(bootstrap_snapshot(voters, MetadataImage()))

    def key(self, node: int) -> ReplicaKey:
        """The key of the replica that a node has on this disk."""
        return ReplicaKey(node, self.directory)

    def start(self) -> None:
        """Start a process, which opens the log: what the page cache or the disk has is there."""
        self.incarnation += 1
        self.has_power = True
        self.log = self.log.reopened()

    def lose_power(self) -> int:
        """Lose the page cache. Returns the offset from which batches are gone, -1 if none is.

        quorum-state is fsynced before its content takes effect. Kafka: FileQuorumStateStore#writeElectionState.
        """
        self.has_power = False
        log = self.log
        lost = log.flushed_offset if log.flushed_offset < log.end_offset else -1
        self.log = log.after_power_loss()
        return lost

    def lose_snapshots(self) -> None:
        """Remove all snapshots."""
        self.log = self.log.without_snapshots()

    def replace_disk(self) -> None:
        """Replace the disk by an empty one, formatted with the same id and without voters (``kafka-storage.sh format``,
        with kraft.version 1 ``--no-initial-controllers``).
        """
        self.log = RaftLog()
        self.directory += 1
        self.election = None
