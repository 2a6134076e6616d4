"""Metadata lag: a broker of a KRaft cluster replays the metadata log late.

What the active controller commits reaches the broker so much later, heartbeats and data as ever. Under ZooKeeper, where
a controller tells each broker what it is to know, `faults.slow` on that link is the like of it, and this does nothing.
"""

from __future__ import annotations

import random

from faults.drawing import Limits, aim
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import integer

KIND = "metadata-lag"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """One broker, or whoever leads then, as late as a slow link makes it, for as long as a cut."""
    at_us = integer(stream, *limits.window_us)
    target = aim(stream, limits)
    by_us = integer(stream, *limits.bounds.slow_us)
    return Fault(KIND, at_us, (target,), integer(stream, *limits.bounds.cut_us), value=by_us)


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:
    """Let it be late; False under ZooKeeper. It stays so for a later process of the same broker."""
    return cluster.lag_metadata(target, fault.value)


def undo(cluster: Cluster, fault: Fault, target: int) -> None:
    """What is committed from now on arrives in time; what is on its way does not get faster."""
    cluster.lag_metadata(target, -fault.value)
