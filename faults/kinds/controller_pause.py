"""Controller pause: the active controller's process is paused, and may resume as a zombie controller."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import STALLED, THE_CONTROLLER, Duration, FaultKind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class ControllerPause(FaultKind):
    """See the module."""

    name: ClassVar[str] = "controller-pause"
    meaning: ClassVar[str] = "pause the controller's process; without for_ms until the end"
    targets: ClassVar[Targets] = THE_CONTROLLER
    duration: ClassVar[Duration | None] = STALLED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Pause it; False if there is no controller."""
        return cluster.control.pause_controller(target, lambda broker: cluster.pause(broker, fault))

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Resume it; a quorum has another active controller by then."""
        if target > 0:
            cluster.resume(target, fault)
