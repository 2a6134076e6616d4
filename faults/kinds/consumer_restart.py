"""Consumer restart: an application's process ends, and another one goes on from what was committed.

A deployment, a crash, or a member of a group that takes a partition over from another one. Here each partition has one
consumer at a time, and the next one begins at once: the time until a group notices is not modelled.
Kafka: ConsumerCoordinator#onJoinComplete.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import CLUSTER, FaultKind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.protocol.group.group_messages import OFFSETS


class ConsumerRestart(FaultKind):
    """See the module."""

    name: ClassVar[str] = "consumer-restart"
    meaning: ClassVar[str] = (
        "replace the process of a partition's consumer by another one, which goes on from what was committed"
    )
    targets: ClassVar[Targets] = CLUSTER
    remains: ClassVar[str] = "the next process goes on"
    of_partition: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Replace it; False if it has not begun."""
        name = cluster.name if fault.partition in ("", OFFSETS) else fault.partition
        for partition in cluster.partitions:
            if partition.name == name and partition.has_clients and not partition.deleted:
                return partition.consumer.restart()
        return False
