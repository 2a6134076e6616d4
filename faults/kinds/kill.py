"""Kill: a broker's process ends at once (SIGKILL). Its page cache stays, and its session until it expires."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import MACHINE, Targets
from faults.kinds.stops import BrokerStop
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class Kill(BrokerStop):
    """See the module."""

    name: ClassVar[str] = "kill"
    targets: ClassVar[Targets] = MACHINE
    meaning: ClassVar[str] = "kill a process; without restart_ms it stays down until a start"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Kill the process; False if none ran."""
        return cluster.kill(target)
