"""Quorum-state lost: a controller's file quorum-state is gone, and with it its epoch and its vote.

The file is on the disk of the metadata log, and written anew at each change (FileQuorumStateStore#writeElectionState):
a damaged file system, or a restored image, may lose it alone. Without it, a controller begins in the epoch of its log,
and may vote a second time.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import KRAFT, REPLICATED, Targets
from faults.kinds.stops import BrokerStop
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class QuorumStateLost(BrokerStop):
    """See the module."""

    name: ClassVar[str] = "quorum-state-lost"
    targets: ClassVar[Targets] = REPLICATED
    moves_leader: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)
    meaning: ClassVar[str] = (
        "kill a controller of a replicated quorum and remove its file quorum-state; without restart_ms it stays down "
        "until a start"
    )

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Remove the file; False if there is none, or controllers are no processes."""
        quorum = cluster.quorum
        return quorum is not None and target in cluster.controllers and quorum.controllers.lose_election(target)
