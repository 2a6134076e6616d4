"""Base of the kinds that strike a link, in one direction or both."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from faults.bounds import Limits, aim_link
from faults.kind import DISTURBED, LINK, Duration, FaultKind, Targets
from faults.plan import Fault, directions
from sim.history.steps import StepKind
from sim.hosts.cluster import Cluster
from sim.kernel.streams import Stream


class LinkFault(FaultKind):
    """A link has the condition that names the kind for a while, in one direction or both."""

    step: ClassVar[StepKind]
    targets: ClassVar[Targets] = LINK
    duration: ClassVar[Duration | None] = DISTURBED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002 - one fault, not one per node
        """Strike the link; False if both ends are the same broker."""
        for source, destination in directions(fault):
            cluster.links.worsen(self.step, source, destination, fault.value, fault)
        return bool(directions(fault))

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Undo it, unless all links were healed meanwhile."""
        for source, destination in directions(fault):
            cluster.links.mend(self.step, source, destination, fault.value, fault)

    def draw(self, stream: Stream, limits: Limits) -> Fault:
        fault = aim_link(self.name, stream, limits)
        return fault if self.amount is None else replace(fault, value=self.draw_value(stream, limits))
