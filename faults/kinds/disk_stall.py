"""Disk stall: a disk does not respond for a while; its broker's partition is blocked, its session stays open."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, STALLED, Duration, FaultKind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class DiskStall(FaultKind):
    """See the module."""

    name: ClassVar[str] = "disk-stall"
    meaning: ClassVar[str] = "stall a broker's disk; without for_ms until the end"
    targets: ClassVar[Targets] = BROKER
    duration: ClassVar[Duration | None] = STALLED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Stall the disk; False if no process serves, or it is stalled already."""
        return cluster.machines.stall_disk(target)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """End the stall, unless the process ended."""
        cluster.machines.unstall_disk(target)
