"""An administrator cordons a log directory (``cordoned.log.dirs``, KIP-1066), as before its disk is removed.

The broker creates no new replicas there and moves none to it; the replicas in it stay. A broker whose directories are
all cordoned gets no replicas of new partitions. The setting is dynamic, and survives restarts.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, DISTURBED, KRAFT, Amount, Duration, FaultKind, Targets
from faults.kinds.directories import NUMBER, numbered
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class DirectoryCordoned(FaultKind):
    """See the module."""

    name: ClassVar[str] = "directory-cordoned"
    meaning: ClassVar[str] = (
        "cordon a log directory of a broker that runs, in a release from 4.3 on; without directory that of the "
        "partition; without for_ms until the end"
    )
    targets: ClassVar[Targets] = BROKER
    amount: ClassVar[Amount | None] = NUMBER
    duration: ClassVar[Duration | None] = DISTURBED
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)
    of_partition: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Cordon it; False if it is cordoned, the broker is down, or the release has no such setting."""
        return cluster.cordon_directory(target, numbered(cluster, fault, target, fault.value), by=fault)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """End it."""
        cluster.uncordon_directory(target, by=fault)
