"""The fetch state of one partition of a follower."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sim.protocol.messages import FetchResult
    from sim.protocol.replica.replica import Replica


class ReplicaState(IntEnum):
    """The state of a fetcher's partition. Kafka: server.ReplicaState (2.6-4.4)."""

    TRUNCATING = 0
    FETCHING = 1
    ASKING_LATEST = 2
    ASKING_EARLIEST = 3
    AWAITING = 4
    """Truncates once records from the HW on arrive (rule ``follower_truncation=high-watermark-delayed``)."""
    COMPARING = 5
    """Fetching, but the leader has not yet confirmed the log in this leader epoch by a response without a diverging
    epoch, so truncation may follow (rule ``follower_truncation=on-fetch``). Kafka calls this fetching.
    """


TRUNCATING: Final = ReplicaState.TRUNCATING
FETCHING: Final = ReplicaState.FETCHING
AWAITING: Final = ReplicaState.AWAITING
COMPARING: Final = ReplicaState.COMPARING
ASKS: Final = (ReplicaState.ASKING_LATEST, ReplicaState.ASKING_EARLIEST)
"""States in which the next request is ListOffsets."""
FETCHES: Final = (FETCHING, AWAITING, COMPARING)
"""States in which the next request is a fetch."""


class PartitionFetchState:
    """Fetch state of one partition. Kafka: PartitionFetchState.

    Attributes:
        replica: the local replica.
        leader_epoch: the leader epoch in which the fetcher was started.
        fetch_offset: truncation offset if the leader knows no end offset: the HW when the partition was added, then
            where the previous round truncated to (KIP-279 has the HW in every round).
        state: what it does next.
        delayed_until_us: back-off after an error.
        rounds: OffsetsForLeaderEpoch responses since truncation began.
        out_of_range_epoch: leader epoch of the last out-of-range fetch.
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

    def learns_nothing(self, offset: int, leader_epoch: int, result: FetchResult) -> bool:
        """Whether processing this result of a fetch at an offset changes nothing."""
        if self.state is not FETCHING or leader_epoch != self.leader_epoch or result[1] or result[2] or result[6]:
            return False
        replica, hw = self.replica, result[3]
        log = replica.log
        return offset == log.leo and hw == replica.hw and result[4] <= log.log_start <= hw <= offset
