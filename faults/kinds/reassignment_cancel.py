"""Reassignment cancel: an operator of a KRaft cluster cancels a reassignment (KIP-455).

Kafka: ReplicationControlManager.cancelPartitionReassignment. Under ZooKeeper (where KIP-455 has it from 2.4 on) it has
no effect.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import CLUSTER, KRAFT, OTHER_BROKER, FaultKind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class ReassignmentCancel(FaultKind):
    """See the module."""

    name: ClassVar[str] = "reassignment-cancel"
    meaning: ClassVar[str] = "in KRaft, cancel the reassignment that is under way"
    targets: ClassVar[Targets] = CLUSTER
    remains: ClassVar[str] = "the former replicas stay"
    needs: ClassVar[tuple[str, ...]] = (KRAFT, OTHER_BROKER)
    of_partition: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Cancel it; False if none is under way, or the cancellation was refused."""
        return cluster.control.cancel_reassignment(fault.partition)
