"""Duplicate: for a while requests to a broker arrive twice, as if their senders had missed the answer.

Only those arrive again that Kafka's senders repeat as they were: batches of a producer, and a controller's requests
(`sim.environment.network.RESENT`). Replicas and consumers that miss an answer ask from where they stand by then.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, DISTURBED, PERMILLE, Amount, Kind, Lasting, Targets
from faults.plan import Fault
from sim.history import steps
from sim.hosts.cluster import PRODUCER, Cluster


class Duplicate(Kind):
    """See the module."""

    name: ClassVar[str] = "duplicate"
    meaning: ClassVar[str] = "deliver so many of a thousand requests to a broker twice, of types that senders repeat"
    strikes: ClassVar[Targets] = BROKER
    amount: ClassVar[Amount | None] = Amount("permille", PERMILLE, "of a thousand", bounds=(1, 1_000), most=1_000)
    lasts: ClassVar[Lasting | None] = DISTURBED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Let what the producer and other brokers, one of them the controller, send to it arrive twice."""
        for source in _senders(cluster, target):
            cluster.links.worsen(steps.RESENT, source, target, fault.value, fault)
        return True

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Take that back, unless all links were healed meanwhile."""
        for source in _senders(cluster, target):
            cluster.links.mend(steps.RESENT, source, target, fault.value, fault)


def _senders(cluster: Cluster, target: int) -> list[int]:
    return [PRODUCER, *(broker for broker in cluster.settings if broker != target)]
