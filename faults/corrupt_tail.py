"""Corrupt tail: a broker crashes, and the newest batches on its disk are unreadable, synced or not."""

from __future__ import annotations

import random

from faults.drawing import Limits, aim
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import integer

KIND = "corrupt-tail"
MOST_BATCHES = 3


def draw(stream: random.Random, limits: Limits) -> Fault:
    """One broker, or whoever leads then; a few batches; started again after a while."""
    at_us = integer(stream, *limits.window_us)
    target = aim(stream, limits)
    count = integer(stream, 1, MOST_BATCHES)
    return Fault(KIND, at_us, (target,), integer(stream, *limits.bounds.restart_us), value=count)


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:
    """Corrupt one log; False if no process ran and nothing is lost."""
    return cluster.corrupt_tail(target, fault.value)


def undo(cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG001
    """Start it again, unless it runs."""
    cluster.start(target)
