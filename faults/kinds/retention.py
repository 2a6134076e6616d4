"""Retention: the leader deletes its oldest batches; followers learn of it as they fetch, and keep their segments.

Whole batches are deleted, as with segments. DeleteRecords can end inside one, and a follower that then truncates to the
log start is stuck: the batch with this offset begins below its LEO.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import PERMILLE, THE_LEADER, Amount, FaultKind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.protocol.replica.partition import Partition


class RetentionFault(FaultKind):
    """See the module."""

    name: ClassVar[str] = "retention"
    meaning: ClassVar[str] = "delete the oldest permille/1000 of the committed records at the leader"
    targets: ClassVar[Targets] = THE_LEADER
    amount: ClassVar[Amount | None] = Amount("permille", PERMILLE, "1/1000", bounds=(1, 1_000), most=1_000)
    remains: ClassVar[str] = "deleted records stay deleted"
    of_partition: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Advance the log start by that share of the distance to the HW.

        Returns:
            False if the target does not lead, or the log start did not move.
        """
        found = deletes_from(cluster, target, fault.value, fault.partition)
        if found is None:
            return False
        partition, before = found
        if partition.hw < partition.log.leo and partition.decide.mutants.log_start_above_hw.differs():
            before = partition.log.leo  # UnifiedLog#deletableSegments (3.9-4.4) stops at the high watermark.
        if not cluster.administrator.delete_records(partition, before):
            return False
        partition.log.end_segment(partition.log.log_start)
        cluster.machines.directories[target].files(partition.name).delete_segments(cluster.kernel.now_us)
        return True


def deletes_from(cluster: Cluster, broker: int, permille: int, name: str = "") -> tuple[Partition, int] | None:
    """A partition of a broker that leads it, the first by default, and the offset before which to delete this share of
    the committed records, the start of a batch; None if the broker does not lead.
    """
    process = cluster.running.get(broker)
    if process is None or process.frozen or process.waiting is not None:
        return None
    replica = process.replica(name or cluster.name)
    if replica is None or not replica.partition.is_leader:
        return None
    partition = replica.partition
    log_start = partition.log.log_start
    before = log_start + (partition.hw - log_start) * permille // 1_000
    holding = partition.log.read(before)
    return partition, holding[0].base_offset if holding else before
