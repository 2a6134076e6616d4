"""Controller failover: the /controller node is deleted, and the brokers elect a controller anew."""

from __future__ import annotations

import random

from faults.drawing import Limits
from faults.plan import CONTROLLER, Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import integer

KIND = "controller-failover"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """Whoever is the controller then."""
    return Fault(KIND, integer(stream, *limits.window_us), (CONTROLLER,))


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001
    """Delete the node; False if there was none."""
    return cluster.move_controller()


def undo(cluster: Cluster, fault: Fault, target: int) -> None:
    """The next controller stays."""
