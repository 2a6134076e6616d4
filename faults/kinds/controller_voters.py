"""Controllers that are removed from the voters of the metadata quorum, and added to them (KIP-853).

An administrator does both (``kafka-metadata-quorum.sh remove-controller``, ``add-controller``), and the tool repeats a
request that times out, for a minute. A removed controller runs on as an observer, and so does one with an empty disk,
whose directory id is no voter's: to replace a disk, remove the controller and add it again. With static voters
(kraft.version 0), neither has an effect.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import DISTURBED, KRAFT, REPLICATED, Duration, FaultKind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class RemoveController(FaultKind):
    """See the module."""

    name: ClassVar[str] = "remove-controller"
    targets: ClassVar[Targets] = REPLICATED
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)
    duration: ClassVar[Duration | None] = DISTURBED
    meaning: ClassVar[str] = (
        "with controllers.dynamic, remove a controller from the voters of the quorum; after for_ms add it again"
    )

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Begin to request it; False if it is no voter, or voters are static."""
        return cluster.quorum is not None and cluster.quorum.change_voters(target, adds=False)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Begin to request that it is added again, with the disk that it has then."""
        if cluster.quorum is not None:
            cluster.quorum.change_voters(target, adds=True)


class AddController(FaultKind):
    """See the module."""

    name: ClassVar[str] = "add-controller"
    targets: ClassVar[Targets] = REPLICATED
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)
    remains: ClassVar[str] = "the controller is a voter until it is removed"
    meaning: ClassVar[str] = (
        "with controllers.dynamic, add a controller to the voters of the quorum, with the disk that it has"
    )

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Begin to request it; False if it is a voter, or voters are static."""
        return cluster.quorum is not None and cluster.quorum.change_voters(target, adds=True)
