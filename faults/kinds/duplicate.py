"""Duplicate: requests to a broker arrive twice for a while, as if their senders had missed the response.

Only messages that Kafka's senders resend unchanged are duplicated: a producer's batches and a controller's requests
(`sim.environment.network.RESENT`). Replicas and consumers build a new request instead.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, DISTURBED, PERMILLE, Amount, Duration, FaultKind, Targets
from faults.plan import Fault
from sim.history import steps
from sim.hosts.cluster import Cluster


class Duplicate(FaultKind):
    """See the module."""

    name: ClassVar[str] = "duplicate"
    meaning: ClassVar[str] = (
        "deliver requests that senders resend unchanged to a broker twice, with a probability of permille/1000"
    )
    targets: ClassVar[Targets] = BROKER
    amount: ClassVar[Amount | None] = Amount("permille", PERMILLE, "1/1000", bounds=(1, 1_000), most=1_000)
    duration: ClassVar[Duration | None] = DISTURBED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Duplicate requests of producers and of other brokers, one of which is the controller."""
        for source in _senders(cluster, target):
            cluster.links.worsen(steps.RESENT, source, target, fault.value, fault)
        return True

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Undo it, unless all links were healed meanwhile."""
        for source in _senders(cluster, target):
            cluster.links.mend(steps.RESENT, source, target, fault.value, fault)


def _senders(cluster: Cluster, target: int) -> list[int]:
    return [*cluster.producers, *(broker for broker in cluster.settings if broker != target)]
