"""Controller pause: the active controller's process stands still for a while, and may go on as a zombie controller."""

from __future__ import annotations

import random

from faults.drawing import Limits
from faults.plan import CONTROLLER, Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import integer

KIND = "controller-pause"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """Whoever is the controller then, for a while."""
    at_us = integer(stream, *limits.window_us)
    return Fault(KIND, at_us, (CONTROLLER,), integer(stream, *limits.bounds.pause_us))


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001
    """Pause it; False while there is no controller."""
    return cluster.pause_controller(target)


def undo(cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG001
    """Let it go on."""
    cluster.resume_controller(target)
