"""Cut: messages between two nodes are lost, in one direction or both, for a while."""

from __future__ import annotations

import random

from faults.plan import Fault, Limits, aim
from sim.zookeeper import ZOOKEEPER
from sim.cluster import Cluster
from sim.streams import choice, integer

KIND = "cut"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """Two brokers (one may be whoever leads then), or a broker and ZooKeeper; one way or both."""
    at_us = integer(stream, *limits.window_us)
    source = aim(stream, limits.brokers)
    target = choice(stream, [node for node in (ZOOKEEPER, *limits.brokers) if node != source])
    turned = bool(stream.getrandbits(1))
    both_ways = bool(stream.getrandbits(1))
    targets = (target, source) if turned else (source, target)
    return Fault(KIND, at_us, targets, integer(stream, *limits.cut_us), both_ways=both_ways)


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG001 - a cut is one fault, not one per node
    """Cut the link; False if both ends turned out to be the same broker."""
    source, destination = fault.targets
    if source == destination:
        return False
    cluster.cut(source, destination)
    if fault.both_ways:
        cluster.cut(destination, source)
    return True


def undo(cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG001
    """Take the cut back, unless all cuts were healed meanwhile."""
    source, destination = fault.targets
    cluster.heal(source, destination)
    if fault.both_ways:
        cluster.heal(destination, source)
