"""What a leader answers to a fetch of its partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sim.protocol.batch import Batch
from sim.protocol.messages import (
    DIVERGING_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    Diverging,
    FetchResult,
    Position,
)
from sim.protocol.replica.partition import Partition

READ: Final = 0
"""The follower's state is to be updated by its fetch (`Partition.follower_fetched`)."""
REFUSED: Final = 1
"""The fetch was refused, and counts as none (`Partition.note_refused_fetch`)."""
IGNORED: Final = 2
"""The follower's state stays as it is."""


def fetch_result(
    partition: Partition, error: str, batches: Sequence[Batch], diverging: Diverging = None
) -> FetchResult:
    """A fetch result with the current HW, log start and leader epoch."""
    log_start, epoch = partition.log.log_start, partition.leader_epoch
    return partition.name, error, batches, partition.hw, log_start, epoch, diverging or partition.agrees


def fetch_refusal(partition: Partition, error: str, last_epoch: int) -> FetchResult:
    """The result of a fetch that `Partition.check_fetch` refused: an error, or where the logs diverge."""
    if error == DIVERGING_EPOCH:
        return fetch_result(partition, NONE, [], partition.diverging(last_epoch))
    return fetch_result(partition, error, [])


def read_for_follower(
    partition: Partition, follower: int, broker_epoch: int, position: Position
) -> tuple[FetchResult, int]:
    """The result for a follower's fetch that has just arrived, and what it does to the follower's state: `READ`, ...

    Kafka: ReplicaManager#readFromLog (3.9-4.4), ReplicaManager#readFromLocalLog (0.10.2-2.6), Partition#fetchRecords
    (3.9-4.4).
    """
    _, offset, epoch, last_epoch = position
    if follower not in partition.followers.states:
        error = partition.check_unassigned(offset, epoch, last_epoch)
        return fetch_refusal(partition, error, last_epoch) if error else fetch_result(partition, NONE, []), IGNORED
    error = partition.check_fetch(offset, epoch, last_epoch)
    if error:
        if error == DIVERGING_EPOCH:
            return fetch_refusal(partition, error, last_epoch), IGNORED
        partition.note_refused_fetch(follower)
        return fetch_refusal(partition, error, last_epoch), REFUSED
    if partition.refuses_registration(follower, broker_epoch):
        return fetch_result(partition, NOT_LEADER_OR_FOLLOWER, []), IGNORED
    return fetch_result(partition, NONE, partition.read_uncommitted(offset)), READ
