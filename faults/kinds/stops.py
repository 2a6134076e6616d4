"""Base of the kinds that stop a broker."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, STOPPED, Duration, FaultKind, Targets
from faults.plan import ALL_DIRECTORIES, Fault
from sim.hosts.cluster import Cluster


def struck_directory(cluster: Cluster, fault: Fault, target: int) -> int:
    """The number of the log directory of a broker that a fault strikes alone; `ALL_DIRECTORIES` if it names none, or if
    the broker has one.
    """
    if fault.directory == ALL_DIRECTORIES or not cluster.machines.directories[target].are_several:
        return ALL_DIRECTORIES
    return cluster.machines.place_of(target, fault.partition or cluster.name, max(0, fault.directory))


class BrokerStop(FaultKind):
    """A broker is down for a while, then started, whichever fault stopped it."""

    targets: ClassVar[Targets] = BROKER
    duration: ClassVar[Duration | None] = STOPPED
    moves_leader: ClassVar[bool] = True

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Start it, unless it is running."""
        cluster.start(target)
