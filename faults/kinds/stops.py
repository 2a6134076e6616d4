"""What kinds have in common that stop a broker: when their time is over, it is started again."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, STOPPED, Kind, Lasting, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class Stop(Kind):
    """A broker is down for a while. If it is somebody else's doing, it is started all the same."""

    strikes: ClassVar[Targets] = BROKER
    lasts: ClassVar[Lasting | None] = STOPPED
    moves_leader: ClassVar[bool] = True

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Start it again, unless it runs (still)."""
        cluster.start(target)
