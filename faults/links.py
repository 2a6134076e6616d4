"""What slow and lossy links have in common: a directed link or both directions are worse for a while."""

from __future__ import annotations

from faults.plan import Fault, directions
from sim.hosts.cluster import Cluster


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001 - all injectors take the target
    """Make the link worse, as the fault's kind says; False if both ends turned out to be the same broker."""
    for source, destination in directions(fault):
        cluster.worsen(fault.kind, source, destination, fault.value)
    return bool(directions(fault))


def undo(cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG001
    """Take that back, unless all links were healed meanwhile."""
    for source, destination in directions(fault):
        cluster.mend(fault.kind, source, destination, fault.value)
