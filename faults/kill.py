"""Kill: a broker's process ends at once (SIGKILL). Its page cache stays, its session lives on until it times out."""

from __future__ import annotations

import random

from faults.drawing import Limits, aim
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import integer

KIND = "kill"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """One broker, or whoever leads then; started again after a while."""
    at_us = integer(stream, *limits.window_us)
    target = aim(stream, limits)
    return Fault(KIND, at_us, (target,), integer(stream, *limits.bounds.restart_us))


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001 - all injectors take the fault
    """Kill one target; False if no process ran."""
    return cluster.kill(target)


def undo(cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG001
    """Start it again, unless it runs."""
    cluster.start(target)
