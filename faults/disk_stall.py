"""Disk stall: for a while a disk does not answer; its broker's partition stands still, its session lives on."""

from __future__ import annotations

import random

from faults.drawing import Limits, aim
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import integer

KIND = "disk-stall"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """One broker, or whoever leads then, for as long as a pause."""
    at_us = integer(stream, *limits.window_us)
    target = aim(stream, limits)
    return Fault(KIND, at_us, (target,), integer(stream, *limits.bounds.pause_us))


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001
    """Stall one disk; False if no process serves, or it stalls already."""
    return cluster.stall_disk(target)


def undo(cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG001
    """Let it answer again, unless its process ended."""
    cluster.unstall_disk(target)
