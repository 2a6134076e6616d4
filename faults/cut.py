"""Cut: messages between two nodes are lost, in one direction or both, for a while."""

from __future__ import annotations

import random

from faults.drawing import Limits, aim_link
from faults.plan import Fault, directions
from sim.hosts.cluster import Cluster

KIND = "cut"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """Two brokers (one may be whoever leads then), or a broker and the control plane; one way or both."""
    return aim_link(KIND, stream, limits)


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001 - a cut is one fault, not one per node
    """Cut the link; False if both ends turned out to be the same broker."""
    for source, destination in directions(fault):
        cluster.cut(source, destination)
    return bool(directions(fault))


def undo(cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG001
    """Take the cut back, unless all cuts were healed meanwhile."""
    for source, destination in directions(fault):
        cluster.heal(source, destination)
