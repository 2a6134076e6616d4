"""Disk stall: a disk does not respond for a while; its broker's partitions are blocked, its session stays open.

Each log directory is a disk of its own: one that stalls alone blocks only what writes to it.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, STALLED, Duration, FaultKind, Targets
from faults.kinds.directories import struck_alone
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class DiskStall(FaultKind):
    """See the module."""

    name: ClassVar[str] = "disk-stall"
    meaning: ClassVar[str] = (
        "stall a broker's disk, with directory only writes to this log directory; without for_ms until the end"
    )
    targets: ClassVar[Targets] = BROKER
    duration: ClassVar[Duration | None] = STALLED
    of_directory: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Stall the disk; False if no process serves, or it is stalled already."""
        place = struck_alone(cluster, fault, target)
        return (
            cluster.machines.stall_directory(target, place, by=fault) if place else cluster.machines.stall_disk(target)
        )

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """End the stall, unless the process ended."""
        if struck_alone(cluster, fault, target):
            cluster.machines.unstall_directory(target, by=fault)
        else:
            cluster.machines.unstall_disk(target)
