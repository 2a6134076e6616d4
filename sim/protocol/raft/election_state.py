"""What a member of the quorum stores about elections."""

from __future__ import annotations

from typing import NamedTuple

from sim.protocol.raft.raft_messages import NO_NODE


class ElectionState(NamedTuple):
    """Content of the file quorum-state. Kafka: ElectionState.

    Voters are known by their ids only, as under kraft.version 0.

    Attributes:
        epoch: the member's epoch.
        leader: of the epoch, or `NO_NODE`.
        voted: candidate that got the member's vote in the epoch, or `NO_NODE`.
    """

    epoch: int
    leader: int = NO_NODE
    voted: int = NO_NODE
