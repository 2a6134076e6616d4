"""Pause: a process stands still for a while (SIGSTOP, a long garbage collection), then makes up for it."""

from __future__ import annotations

import random

from faults.drawing import Limits, aim
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import integer

KIND = "pause"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """One broker, or whoever leads then, for a while."""
    at_us = integer(stream, *limits.window_us)
    target = aim(stream, limits)
    return Fault(KIND, at_us, (target,), integer(stream, *limits.bounds.pause_us))


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001
    """Pause one broker (0: the control plane); False if no process runs."""
    return cluster.pause(target)


def undo(cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG001
    """Let it go on, unless it ended."""
    cluster.resume(target)
