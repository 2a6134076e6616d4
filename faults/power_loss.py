"""Power loss: one, several or all machines go off, nearly at the same instant; page caches are gone."""

from __future__ import annotations

import random

from faults.drawing import Limits, aim
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import integer, sample

KIND = "power-loss"
SPREAD_US = 50_000
"""Machines on one supply go off within this time."""


def draw(stream: random.Random, limits: Limits) -> Fault:
    """One broker (that which is given, or whoever leads then), several or all, started again after the same while."""
    at_us = integer(stream, *limits.window_us)
    count = integer(stream, 1, 1 if limits.target else len(limits.brokers))
    targets = [aim(stream, limits)] if count == 1 else sample(stream, limits.brokers, count)
    delays = tuple(integer(stream, 0, SPREAD_US) for _ in targets)
    return Fault(KIND, at_us, tuple(targets), integer(stream, *limits.bounds.restart_us), delays)


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001
    """Turn one machine off; False if that cost nothing, since no process ran and nothing was unsynced."""
    return cluster.lose_power(target)


def undo(cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG001
    """Start it again, unless it runs."""
    cluster.start(target)
