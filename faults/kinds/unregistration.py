"""Unregistration: an administrator of a KRaft cluster unregisters a broker that is down (KIP-631).

The partition keeps its replica. If the broker returns, the controller knows nothing of its former process, so that its
shutdown counts as unclean. Unregistering a broker that runs is not modelled: ``kafka-cluster.sh unregister`` is meant
for brokers that were stopped. Under ZooKeeper it has no effect.
Kafka: ReplicationControlManager#handleBrokerUnregistered.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, KRAFT, FaultKind, Role, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class Unregistration(FaultKind):
    """See the module."""

    name: ClassVar[str] = "unregistration"
    meaning: ClassVar[str] = "in KRaft, unregister a broker that is down"
    targets: ClassVar[Targets] = BROKER
    remains: ClassVar[str] = "the broker registers anew when it starts"
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)
    roles: ClassVar[tuple[Role, ...]] = (Role.WHILE_DOWN,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Unregister it; False if its process runs, or it is not registered."""
        return target not in cluster.running and cluster.control.unregister(target)
