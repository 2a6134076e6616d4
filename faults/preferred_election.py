"""Preferred election: an operator asks for the first replica to lead."""

from __future__ import annotations

import random

from faults.drawing import Limits
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import integer

KIND = "preferred-election"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """At some time."""
    return Fault(KIND, integer(stream, *limits.window_us), (0,))


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001
    """Ask for it; False if nothing came of it at once."""
    return cluster.preferred_election()


def undo(cluster: Cluster, fault: Fault, target: int) -> None:
    """Who leads is left as it is."""
