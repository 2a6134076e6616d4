"""What kinds have in common that concern a link: one direction of it, or both."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from faults.bounds import Limits, aim_link
from faults.kind import DISTURBED, LINK, Kind, Lasting, Targets
from faults.plan import Fault, directions
from sim.history.steps import StepKind
from sim.hosts.cluster import Cluster
from sim.kernel.streams import Stream


class OfLink(Kind):
    """A directed link, or both directions, are worse for a while.

    Attributes:
        step: in which way.
    """

    step: ClassVar[StepKind]
    strikes: ClassVar[Targets] = LINK
    lasts: ClassVar[Lasting | None] = DISTURBED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002 - one fault, not one per node
        """Make the link worse; False if both ends turned out to be the same broker."""
        for source, destination in directions(fault):
            cluster.links.worsen(self.step, source, destination, fault.value, fault)
        return bool(directions(fault))

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Take that back, unless all links were healed meanwhile."""
        for source, destination in directions(fault):
            cluster.links.mend(self.step, source, destination, fault.value, fault)

    def draw(self, stream: Stream, limits: Limits) -> Fault:
        """Two brokers (one may be whoever leads then), or a broker and the control plane; one way or both."""
        fault = aim_link(self.name, stream, limits)
        return fault if self.amount is None else replace(fault, value=self.draw_value(stream, limits))
