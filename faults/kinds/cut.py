"""Cut: messages between two nodes are lost for a while, in one direction or both."""

from __future__ import annotations

from typing import ClassVar

from faults.kinds.links import LinkFault
from faults.plan import Fault, directions
from sim.history import steps
from sim.hosts.cluster import Cluster


class Cut(LinkFault):
    """See the module."""

    name: ClassVar[str] = "cut"
    step: ClassVar[steps.StepKind] = steps.CUT
    meaning: ClassVar[str] = "cut a link; without for_ms until a heal"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Cut the link; False if both ends are the same broker."""
        for source, destination in directions(fault):
            cluster.links.cut(source, destination, fault)
        return bool(directions(fault))

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Heal the cut, unless all cuts were healed meanwhile."""
        for source, destination in directions(fault):
            cluster.links.heal(source, destination, fault)
