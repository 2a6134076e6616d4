"""Disk stall: for a while a disk does not answer; its broker's partition stands still, its session lives on."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, STALLED, Kind, Lasting, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class DiskStall(Kind):
    """See the module."""

    name: ClassVar[str] = "disk-stall"
    meaning: ClassVar[str] = "stall a broker's disk; without for_ms until the end"
    strikes: ClassVar[Targets] = BROKER
    lasts: ClassVar[Lasting | None] = STALLED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Stall one disk; False if no process serves, or it stalls already."""
        return cluster.machines.stall_disk(target)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Let it answer again, unless its process ended."""
        cluster.machines.unstall_disk(target)
