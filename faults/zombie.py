"""Zombie: a broker's session ends, and the broker neither notices nor registers anew for a while (KAFKA-6879).

Its pings or, in KRaft, its heartbeats do not arrive meanwhile, and nothing else is wrong: metadata and data flow as
ever (KIP-966, trade-off 3a: fenced though it could serve).
"""

from __future__ import annotations

import random

from faults.drawing import Limits, aim
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import integer

KIND = "zombie"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """One broker, or whoever leads then, for as long as a pause."""
    at_us = integer(stream, *limits.window_us)
    target = aim(stream, limits)
    return Fault(KIND, at_us, (target,), integer(stream, *limits.bounds.pause_us))


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001
    """End one session for good; False if there is none."""
    return cluster.zombie(target)


def undo(cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG001
    """Let the broker notice."""
    cluster.unzombie(target)
