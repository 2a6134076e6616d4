"""Base of the kinds that stop a broker."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, STOPPED, Duration, FaultKind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class BrokerStop(FaultKind):
    """A broker is down for a while, then started, whichever fault stopped it."""

    targets: ClassVar[Targets] = BROKER
    duration: ClassVar[Duration | None] = STOPPED
    moves_leader: ClassVar[bool] = True

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Start it, unless it is running."""
        cluster.start(target)
