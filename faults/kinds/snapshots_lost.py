"""Snapshots lost: a controller's snapshots of the metadata log are gone.

They are files beside the segments of that log. A log that begins with its first record does without them. One whose
beginning was replaced by a snapshot does not: the controller refuses to start (KafkaRaftLog#recoverSnapshots) until its
disk is formatted anew, which happens when the cluster is healed.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import KRAFT, REPLICATED, Targets
from faults.kinds.stops import BrokerStop
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class SnapshotsLost(BrokerStop):
    """See the module."""

    name: ClassVar[str] = "snapshots-lost"
    targets: ClassVar[Targets] = REPLICATED
    moves_leader: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)
    meaning: ClassVar[str] = (
        "kill a controller of a replicated quorum and remove its snapshots of the metadata log; without restart_ms it "
        "stays down until a start"
    )

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Remove them; False if there are none, or controllers are no processes."""
        quorum = cluster.quorum
        return quorum is not None and target in cluster.controllers and quorum.controllers.lose_snapshots(target)
