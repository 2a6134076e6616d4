"""Deletion of records: an administrator sends DeleteRecords (KIP-107), which moves the log start inside a segment.

Unlike `faults.kinds.retention`, no segment ends or is deleted, so the records stay on the disk. A process that ends
before ``log.flush.start.offset.checkpoint.interval.ms`` has passed recovers them. The log start moves to the beginning
of a batch: after DeleteRecords inside one, a follower that truncates to the log start is stuck.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import PERMILLE, THE_LEADER, Amount, FaultKind, Role, Targets
from faults.kinds.retention import deletes_from
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class RecordDeletion(FaultKind):
    """See the module."""

    name: ClassVar[str] = "record-deletion"
    meaning: ClassVar[str] = (
        "delete the oldest permille/1000 of the committed records at the leader, but none of its segments"
    )
    targets: ClassVar[Targets] = THE_LEADER
    amount: ClassVar[Amount | None] = Amount("permille", PERMILLE, "1/1000", bounds=(1, 1_000), most=1_000)
    remains: ClassVar[str] = "deleted records stay deleted"
    of_partition: ClassVar[bool] = True
    roles: ClassVar[tuple[Role, ...]] = (Role.REQUEST,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Advance the log start; False if the target does not lead, or the log start did not move."""
        found = deletes_from(cluster, target, fault.value, fault.partition)
        return found is not None and cluster.administrator.delete_records(*found)
