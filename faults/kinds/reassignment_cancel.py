"""Cancel of a reassignment: an operator of a KRaft cluster wants the former replicas back (KIP-455).

Kafka: ReplicationControlManager.cancelPartitionReassignment. Under ZooKeeper (where KIP-455 has it from 2.4 on) it does
nothing.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import CLUSTER, KRAFT, OTHER_BROKER, Kind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class ReassignmentCancel(Kind):
    """See the module."""

    name: ClassVar[str] = "reassignment-cancel"
    meaning: ClassVar[str] = "in KRaft, cancel the reassignment that is under way"
    strikes: ClassVar[Targets] = CLUSTER
    stays: ClassVar[str] = "the former replicas stay"
    needs: ClassVar[tuple[str, ...]] = (KRAFT, OTHER_BROKER)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Ask for it; False if none is under way, or it was refused."""
        return cluster.control.cancel_reassignment()
