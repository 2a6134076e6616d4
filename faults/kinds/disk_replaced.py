"""Disk replaced: a machine dies and comes back with an empty disk.

Each log directory is a disk of its own: if one alone is replaced, the process is killed, and the other directories keep
their files.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import MACHINE, Targets
from faults.kinds.directories import struck_alone
from faults.kinds.machines import replace_disk
from faults.kinds.stops import BrokerStop
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class DiskReplaced(BrokerStop):
    """See the module."""

    name: ClassVar[str] = "disk-replaced"
    targets: ClassVar[Targets] = MACHINE
    meaning: ClassVar[str] = (
        "stop a machine and replace its disk by an empty one, with directory kill its process and replace only this "
        "log directory; without restart_ms it stays down until a start"
    )
    loses_records: ClassVar[bool] = True
    of_directory: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Replace the disk; False if no process ran and the disk was empty."""
        place = struck_alone(cluster, fault, target) if target in cluster.settings else 0
        return cluster.machines.replace_directory(target, place) if place else replace_disk(cluster, target)
