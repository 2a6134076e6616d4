"""Preferred election: an operator elects the preferred leader, the first replica."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import CLUSTER, OTHER_REPLICA, FaultKind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class PreferredElection(FaultKind):
    """See the module."""

    name: ClassVar[str] = "preferred-election"
    meaning: ClassVar[str] = "elect the preferred leader, the first replica"
    targets: ClassVar[Targets] = CLUSTER
    remains: ClassVar[str] = "the leader stays"
    needs: ClassVar[tuple[str, ...]] = (OTHER_REPLICA,)
    of_partition: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Elect it; False if that changed nothing at once."""
        return cluster.control.elect_preferred(fault.partition)
