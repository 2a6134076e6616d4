"""Change of min ISR: an operator sets ``min.insync.replicas`` to another value for a while, then back."""

from __future__ import annotations

import random

from faults.drawing import Limits
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import integer

KIND = "min-isr-change"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """Any value that the number of replicas allows, for as long as a cut."""
    at_us = integer(stream, *limits.window_us)
    value = integer(stream, 1, len(limits.brokers))
    return Fault(KIND, at_us, (0,), integer(stream, *limits.bounds.cut_us), value=value)


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001
    """Set it; False if it is so already."""
    return cluster.change_min_isr(fault.value)


def undo(cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG001
    """Set it to what it would be without this change."""
    cluster.restore_min_isr(fault.value)
