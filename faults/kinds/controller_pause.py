"""Controller pause: the active controller's process stands still for a while, and may go on as a zombie controller."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import STALLED, THE_CONTROLLER, Kind, Lasting, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class ControllerPause(Kind):
    """See the module."""

    name: ClassVar[str] = "controller-pause"
    meaning: ClassVar[str] = "pause the controller's process; without for_ms until the end"
    strikes: ClassVar[Targets] = THE_CONTROLLER
    lasts: ClassVar[Lasting | None] = STALLED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Pause it; False while there is no controller."""
        return cluster.control.pause_controller(target, lambda broker: cluster.pause(broker, fault))

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Let it go on; that of a quorum finds that another one is active."""
        if target > 0:
            cluster.resume(target, fault)
