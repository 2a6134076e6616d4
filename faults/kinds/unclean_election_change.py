"""Change of unclean election: an administrator sets ``unclean.leader.election.enable`` to true for a while.

Operators do so to get a leader when no member of the ISR returns. A KRaft controller then elects any live replica at
its next check (``unclean.leader.election.interval.ms``). Under ZooKeeper it has no effect.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import CLUSTER, DISTURBED, KRAFT, Duration, FaultKind, Role, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.protocol.kraft.replication_control_manager import UNCLEAN_ELECTION


class UncleanElectionChange(FaultKind):
    """See the module."""

    name: ClassVar[str] = "unclean-election-change"
    meaning: ClassVar[str] = "in KRaft, set unclean.leader.election.enable to true; without for_ms until the end"
    targets: ClassVar[Targets] = CLUSTER
    duration: ClassVar[Duration | None] = DISTURBED
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)
    roles: ClassVar[tuple[Role, ...]] = (Role.REQUEST,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Set it; False if it is true already."""
        return cluster.control.is_quorum and cluster.administrator.change_setting(UNCLEAN_ELECTION, True, fault)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Set the value that applies without this change."""
        cluster.administrator.restore_setting(UNCLEAN_ELECTION, fault)
