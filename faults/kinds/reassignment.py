"""Reassignment: an operator assigns other replicas to the partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from faults.bounds import Limits
from faults.kind import CLUSTER, OTHER_BROKER, FaultKind, Param, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import Stream, integer, sample


class ReassignmentFault(FaultKind):
    """See the module."""

    name: ClassVar[str] = "reassignment"
    meaning: ClassVar[str] = "reassign the partition to other replicas"
    targets: ClassVar[Targets] = CLUSTER
    remains: ClassVar[str] = "it continues until it completes"
    needs: ClassVar[tuple[str, ...]] = (OTHER_BROKER,)
    of_partition: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Submit it; False if it was refused."""
        return cluster.control.reassign(fault.replicas, fault.partition)

    def draw(self, stream: Stream, limits: Limits) -> Fault:
        """Draw as many replicas as before, on any brokers, in any order."""
        at_us = integer(stream, *limits.window_us)
        replicas = sample(stream, limits.all_brokers, len(limits.brokers))
        return Fault(self.name, at_us, (self.targets.implied,), replicas=tuple(replicas))

    def params(self) -> dict[str, Param]:
        """The new replicas, and the partition."""
        return {"replicas": Param("brokers", required=True), **super().params()}

    def scripted(self, params: Mapping[str, Any], at_us: int) -> Fault:
        partition = params.get("partition", "")
        replicas = tuple(params["replicas"])
        return Fault(self.name, at_us, (self.targets.implied,), replicas=replicas, partition=partition)
