"""Session expiry: the control plane ends the session of a broker that lives, and comes back when it hears of it."""

from __future__ import annotations

import random

from faults.drawing import Limits, aim
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import integer

KIND = "session-expiry"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """One broker, or whoever leads then."""
    at_us = integer(stream, *limits.window_us)
    return Fault(KIND, at_us, (aim(stream, limits),))


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001
    """End one session; False if there is none."""
    return cluster.expire_session(target)


def undo(cluster: Cluster, fault: Fault, target: int) -> None:
    """Registering anew is the broker's business."""
