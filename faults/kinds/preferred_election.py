"""Preferred election: an operator asks for the first replica to lead."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import CLUSTER, OTHER_REPLICA, Kind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class PreferredElection(Kind):
    """See the module."""

    name: ClassVar[str] = "preferred-election"
    meaning: ClassVar[str] = "elect the preferred leader, the first replica"
    strikes: ClassVar[Targets] = CLUSTER
    stays: ClassVar[str] = "the leader stays"
    needs: ClassVar[tuple[str, ...]] = (OTHER_REPLICA,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Ask for it; False if nothing came of it at once."""
        return cluster.control.prefer()
