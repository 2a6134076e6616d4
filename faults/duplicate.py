"""Duplicate: for a while requests to a broker arrive twice, as if their senders had missed the answer.

Only those arrive again that Kafka's senders repeat as they were: batches of a producer, and a controller's requests
(`sim.environment.network.RESENT`). Replicas and consumers that miss an answer ask from where they stand by then.
"""

from __future__ import annotations

import random

from faults.drawing import Limits, aim
from faults.plan import Fault
from sim.hosts.cluster import PRODUCER, Cluster
from sim.kernel.streams import integer

KIND = "duplicate"
STEP = "resent"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """One broker, or whoever leads then; any share of its requests, for as long as a cut."""
    at_us = integer(stream, *limits.window_us)
    target = aim(stream, limits)
    share = integer(stream, 1, 1_000)
    return Fault(KIND, at_us, (target,), integer(stream, *limits.bounds.cut_us), value=share)


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:
    """Let what the producer and other brokers, one of them the controller, send to it arrive twice."""
    for source in _senders(cluster, target):
        cluster.worsen(STEP, source, target, fault.value)
    return True


def undo(cluster: Cluster, fault: Fault, target: int) -> None:
    """Take that back, unless all links were healed meanwhile."""
    for source in _senders(cluster, target):
        cluster.mend(STEP, source, target, fault.value)


def _senders(cluster: Cluster, target: int) -> list[int]:
    return [PRODUCER, *(broker for broker in cluster.settings if broker != target)]
