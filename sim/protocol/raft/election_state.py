"""What a member of the quorum stores about elections."""

from __future__ import annotations

from typing import NamedTuple

from sim.protocol.raft.raft_messages import NO_NODE
from sim.protocol.raft.voter_set import NO_DIRECTORY, ReplicaKey


class ElectionState(NamedTuple):
    """Content of the file quorum-state. Kafka: ElectionState.

    Attributes:
        epoch: the member's epoch.
        leader: of the epoch, or `NO_NODE`.
        voted: candidate that got the member's vote in the epoch, or `NO_NODE`.
        voted_directory: the candidate's directory id, which the file has under kraft.version 1 only.
    """

    epoch: int
    leader: int = NO_NODE
    voted: int = NO_NODE
    voted_directory: int = NO_DIRECTORY

    def is_voted_candidate(self, candidate: ReplicaKey) -> bool:
        """Whether a replica got the vote. Kafka: ElectionState#isVotedCandidate."""
        return self.voted == candidate.id and self.voted_directory in (NO_DIRECTORY, candidate.directory)
