"""Faults of what brokers share: a power domain, a host or a rack (`sim.environment.topology`).

Each strikes the group of one broker, which is drawn like any other target: mostly the leader's.
"""

from __future__ import annotations

from collections.abc import Container
from typing import ClassVar, Final

from faults.kind import BROKER, DISTURBED, Duration, FaultKind, Role, Targets
from faults.kinds.machines import lose_power
from faults.kinds.stops import BrokerStop
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.hosts.control_plane import CONTROL


class GroupPowerLoss(BrokerStop):
    """Machines that share something lose power at the same instant, and their page caches with it."""

    loses_records: ClassVar[bool] = True
    roles: ClassVar[tuple[Role, ...]] = (Role.STOP_LEADER,)

    def group(self, cluster: Cluster, target: int) -> tuple[int, ...]:
        """The brokers that the fault strikes together with one of them."""
        raise NotImplementedError

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Cut their power; False if no process ran and all data was fsynced."""
        struck = [lose_power(cluster, broker) for broker in self.group(cluster, target)]
        return any(struck)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Start those that are not running."""
        for broker in self.group(cluster, target):
            cluster.start(broker)


class PowerDomainLoss(GroupPowerLoss):
    """See the module."""

    name: ClassVar[str] = "power-domain-loss"
    meaning: ClassVar[str] = "cut the power of a broker's power domain; without restart_ms it stays down until a start"

    def group(self, cluster: Cluster, target: int) -> tuple[int, ...]:
        return _existing(cluster, cluster.topology.power_domain(target))


class HostLoss(GroupPowerLoss):
    """See the module."""

    name: ClassVar[str] = "host-loss"
    meaning: ClassVar[str] = "cut the power of a broker's host; without restart_ms it stays down until a start"

    def group(self, cluster: Cluster, target: int) -> tuple[int, ...]:
        return _existing(cluster, cluster.topology.host(target))


class RackCut(FaultKind):
    """See the module."""

    name: ClassVar[str] = "rack-cut"
    meaning: ClassVar[str] = (
        "cut all links between a broker's rack and other brokers and the control plane; without for_ms until a heal"
    )
    targets: ClassVar[Targets] = BROKER
    duration: ClassVar[Duration | None] = DISTURBED
    moves_leader: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Cut the rack off. Clients reach it, and all brokers."""
        for source, destination in _links(cluster, target):
            cluster.links.cut(source, destination, (fault, target))
        return True

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Heal the cuts, unless all were healed meanwhile."""
        for source, destination in _links(cluster, target):
            cluster.links.heal(source, destination, (fault, target))


def _existing(cluster: Cluster, group: Container[int]) -> tuple[int, ...]:
    """The brokers and controllers of a group that the cluster has."""
    return tuple([node for node in (*cluster.settings, *cluster.controllers) if node in group])


def _links(cluster: Cluster, target: int) -> list[tuple[int, int]]:
    """The links across the border of a broker's rack, in both directions."""
    inside = _existing(cluster, cluster.topology.rack(target))
    outside = [node for node in (*(cluster.controllers or (CONTROL,)), *cluster.settings) if node not in inside]
    pairs = [(one, other) for one in inside for other in outside]
    return [link for one, other in pairs for link in ((one, other), (other, one))]


GROUPINGS: Final = {
    PowerDomainLoss.name: "power_domains",
    HostLoss.name: "hosts",
    RackCut.name: "racks",
}
"""Kind of fault -> the grouping of a topology without which it strikes one broker only."""
