"""Feature change: an administrator of a KRaft cluster sets ``eligible.leader.replicas.version`` to its other level.

After a while the former level is set again. A partition keeps its ELR until its next change
(FeatureControlManager.updateFeature, 4.1 to 4.3). In a release without the feature, and under ZooKeeper, it has no
effect.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import CLUSTER, DISTURBED, KRAFT, Duration, FaultKind, Role, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.protocol.kraft.metadata import ELR_FEATURE


class FeatureChange(FaultKind):
    """See the module."""

    name: ClassVar[str] = "feature-change"
    meaning: ClassVar[str] = (
        "in KRaft, set eligible.leader.replicas.version to 0 if it is 1, and to 1 if it is 0; without for_ms until the "
        "end"
    )
    targets: ClassVar[Targets] = CLUSTER
    duration: ClassVar[Duration | None] = DISTURBED
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)
    roles: ClassVar[tuple[Role, ...]] = (Role.REQUEST,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Set the other level; False if the release does not have the feature."""
        if not cluster.control.has_elr_feature():
            return False
        level = int(not cluster.administrator.setting(ELR_FEATURE))
        return cluster.administrator.change_setting(ELR_FEATURE, level, fault)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Set the level that applies without this change."""
        cluster.administrator.restore_setting(ELR_FEATURE, fault)
