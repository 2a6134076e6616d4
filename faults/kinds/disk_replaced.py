"""Disk replaced: a machine dies and comes back with an empty disk."""

from __future__ import annotations

from typing import ClassVar

from faults.kinds.stops import BrokerStop
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class DiskReplaced(BrokerStop):
    """See the module."""

    name: ClassVar[str] = "disk-replaced"
    meaning: ClassVar[str] = (
        "stop a machine and replace its disk by an empty one; without restart_ms it stays down until a start"
    )
    loses_records: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Replace the disk; False if no process ran and the disk was empty."""
        return cluster.machines.replace_disk(target)
