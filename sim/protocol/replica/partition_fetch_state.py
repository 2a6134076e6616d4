"""Where a follower stands with one partition that it fetches."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sim.protocol.replica.replica import Replica


class ReplicaState(IntEnum):
    """What a partition of a fetcher is doing. Kafka: server.ReplicaState (2.6-4.3)."""

    TRUNCATING = 0
    FETCHING = 1
    ASKING_LATEST = 2
    ASKING_EARLIEST = 3
    AWAITING = 4
    """The log is kept until records from the HW on have come (rule ``follower_truncation=high-watermark-delayed``)."""
    COMPARING = 5
    """Fetches, but no fetch of this leader epoch was answered yet that the leader agreed with: what is there may have
    to go (rule ``follower_truncation=on-fetch``). Kafka calls it fetching.
    """


TRUNCATING: Final = ReplicaState.TRUNCATING
FETCHING: Final = ReplicaState.FETCHING
AWAITING: Final = ReplicaState.AWAITING
COMPARING: Final = ReplicaState.COMPARING
FETCHES: Final = (FETCHING, AWAITING, COMPARING)
"""States in which the next request is a fetch."""


class PartitionFetchState:
    """Fetch state of one partition. Kafka: PartitionFetchState.

    Attributes:
        replica: the local replica.
        leader_epoch: the epoch under which the fetcher was started.
        fetch_offset: where it falls back to when the leader has no answer: the HW when it was added, then where the
            round before truncated to (KIP-279 has the HW in every round).
        state: what comes next.
        delayed_until_us: back-off after an error.
        rounds: questions for an epoch's end that were answered since truncation began.
        out_of_range_epoch: leader epoch of the fetch that was out of range last.
    """

    __slots__ = (
        "delayed_until_us",
        "fetch_offset",
        "leader_epoch",
        "out_of_range_epoch",
        "replica",
        "rounds",
        "state",
    )

    def __init__(self, replica: Replica, leader_epoch: int, fetch_offset: int, state: ReplicaState) -> None:
        self.replica = replica
        self.leader_epoch = leader_epoch
        self.fetch_offset = fetch_offset
        self.state = state
        self.delayed_until_us = 0
        self.rounds = 0
        self.out_of_range_epoch = -1
