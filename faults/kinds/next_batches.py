"""Next batches: the producer sends the next batches of its workload now, ahead of their times.

At their own times, hardly any batch is acknowledged in the milliseconds in which an ISR is proposed, a leader elected,
or a replica back.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import CLUSTER, Amount, FaultKind, Param, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class NextBatches(FaultKind):
    """See the module."""

    name: ClassVar[str] = "next-batches"
    meaning: ClassVar[str] = "send so many of the next batches of the workload now, ahead of their times"
    targets: ClassVar[Targets] = CLUSTER
    amount: ClassVar[Amount | None] = Amount(
        "batches", Param("count", required=True), "batches", bounds=(1, 3), least=1
    )
    remains: ClassVar[str] = "the batches are sent"
    of_partition: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Send them, so many of each producer; False if none has any left."""
        for partition in cluster.partitions:
            if partition.name == (fault.partition or cluster.name) and partition.has_clients and not partition.deleted:
                sent = [producer.send_next(fault.value) for producer in partition.producers]
                return any(sent)
        return False
