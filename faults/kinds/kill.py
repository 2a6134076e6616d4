"""Kill: a broker's process ends at once (SIGKILL). Its page cache stays, its session lives on until it times out."""

from __future__ import annotations

from typing import ClassVar

from faults.kinds.stops import Stop
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class Kill(Stop):
    """See the module."""

    name: ClassVar[str] = "kill"
    meaning: ClassVar[str] = "kill a process; without restart_ms it stays down until a start"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Kill one target; False if no process ran."""
        return cluster.kill(target)
