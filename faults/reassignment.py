"""Reassignment: an operator gives the partition another list of replicas."""

from __future__ import annotations

import random

from faults.drawing import Limits
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import integer, sample

KIND = "reassignment"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """As many replicas as before, on any brokers, in any order."""
    at_us = integer(stream, *limits.window_us)
    replicas = sample(stream, limits.all_brokers, len(limits.brokers))
    return Fault(KIND, at_us, (0,), replicas=tuple(replicas))


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001
    """Ask for it; False if it was refused."""
    return cluster.reassign(fault.replicas)


def undo(cluster: Cluster, fault: Fault, target: int) -> None:
    """It is left to come to its end."""
