"""Retention: the leader deletes its oldest batches; followers learn it as they fetch.

Whole batches, as the deletion of segments does. DeleteRecords can end within one, and a follower that then truncates to
the log start is stuck for ever: the batch that holds this offset begins below its LEO.
"""

from __future__ import annotations

import random

from faults.drawing import Limits
from faults.plan import LEADER, Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import integer

KIND = "retention"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """Whoever leads then, and how much of what is committed."""
    at_us = integer(stream, *limits.window_us)
    return Fault(KIND, at_us, (LEADER,), value=integer(stream, 1, 1_000))


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:
    """Move the log start up by that share of the way to the HW; False if the target does not lead, or nothing moved."""
    process = cluster.running.get(target)
    if process is None or process.frozen or process.holding:
        return False
    partition = process.partition
    if partition is None or not partition.is_leader:
        return False
    log_start = partition.log.log_start
    target = log_start + (partition.hw - log_start) * fault.value // 1_000
    holding = partition.log.read(target)
    return cluster.delete_records(partition, holding[0].base_offset if holding else target)


def undo(cluster: Cluster, fault: Fault, target: int) -> None:
    """What is deleted stays deleted."""
