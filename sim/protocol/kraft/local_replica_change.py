"""What a new state of a partition makes of a broker's replica of it."""

from __future__ import annotations

from typing import Final

from sim.protocol.kraft.metadata import PartitionRegistration
from sim.protocol.replica.become_follower import stops_fetcher
from sim.protocol.replica.partition import Partition

OUTDATED: Final = 0
"""The replica knows a newer partition epoch, from an AlterPartition response."""
LEADS: Final = 1
LEADS_ON: Final = 2
"""It leads in this leader epoch already, and discards what it has proposed meanwhile."""
AWAITS: Final = 3
"""It stops fetching: see `stops_fetcher`."""
FOLLOWS: Final = 4
FOLLOWS_ON: Final = 5
"""It follows in this leader epoch already."""


def local_replica_change(
    broker: int, partition: Partition, state: PartitionRegistration, *, shutting_down: bool
) -> int:
    """What a new state of a partition makes of a broker's replica: `OUTDATED`, ...

    Kafka: ReplicaManager#applyDelta, ReplicaManager#applyLocalLeadersDelta, ReplicaManager#applyLocalFollowersDelta,
    LocalReplicaChanges (3.9-4.4).
    """
    if state.partition_epoch < partition.partition_epoch:
        return OUTDATED
    is_newer = state.leader_epoch > partition.leader_epoch
    if state.leader == broker:
        return LEADS if is_newer else LEADS_ON
    if stops_fetcher(broker, state, shutting_down=shutting_down):
        return AWAITS
    return FOLLOWS if is_newer else FOLLOWS_ON
