"""Lossy link: between two nodes some messages are lost for a while."""

from __future__ import annotations

import random
from dataclasses import replace

from faults.plan import Fault, Limits, aim_link, directions
from sim.cluster import Cluster
from sim.streams import integer

KIND = "lossy"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """A link as for a cut, and how bad it is."""
    fault = aim_link(KIND, stream, limits)
    return replace(fault, value=integer(stream, *limits.loss_permille))


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001
    """Let the link lose messages; False if both ends turned out to be the same broker."""
    for source, destination in directions(fault):
        cluster.worsen(KIND, source, destination, fault.value)
    return bool(directions(fault))


def undo(cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG001
    """Take that back, unless all links were healed meanwhile."""
    for source, destination in directions(fault):
        cluster.mend(KIND, source, destination, fault.value)
