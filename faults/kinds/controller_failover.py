"""Controller failover: the znode /controller is deleted, and the brokers elect another controller."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import THE_CONTROLLER, FaultKind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class ControllerFailover(FaultKind):
    """See the module."""

    name: ClassVar[str] = "controller-failover"
    meaning: ClassVar[str] = "delete the controller's znode, or make it resign in KRaft, so that another is elected"
    targets: ClassVar[Targets] = THE_CONTROLLER
    remains: ClassVar[str] = "the next controller stays"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Delete the znode; False if there was none."""
        return cluster.control.fail_over()
