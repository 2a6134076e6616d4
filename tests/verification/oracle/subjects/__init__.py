"""The subjects, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.verification.oracle.subjects import (
    alter_partition_manager,
    broker_lifecycle,
    checkpoints,
    consumer_position,
    epoch_cache,
    fetcher,
    follower,
    kraft_controller,
    log,
    log_directories,
    metadata_publisher,
    partition,
    partition_change,
    partitions,
    producer,
    raft_client,
    replica_manager,
    zk_controller,
    zk_election,
)

if TYPE_CHECKING:
    from tests.verification.oracle.subject import Subject

SUBJECTS: Final[dict[str, Subject]] = {
    module.SUBJECT.name: module.SUBJECT
    for module in (
        epoch_cache,
        partition_change,
        kraft_controller,
        broker_lifecycle,
        alter_partition_manager,
        partition,
        partitions,
        log,
        log_directories,
        checkpoints,
        metadata_publisher,
        replica_manager,
        follower,
        fetcher,
        producer,
        consumer_position,
        raft_client,
        zk_election,
        zk_controller,
    )
}
