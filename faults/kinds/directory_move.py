"""An administrator moves a replica to another log directory of its broker (KIP-113).

A future replica copies the log, and replaces it when it has caught up. Balancing disks does this, or emptying one.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, KRAFT, Amount, FaultKind, Param, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class DirectoryMove(FaultKind):
    """See the module."""

    name: ClassVar[str] = "directory-move"
    meaning: ClassVar[str] = (
        "move a broker's replica of the partition to one of its log directories; without directory to the next one"
    )
    targets: ClassVar[Targets] = BROKER
    amount: ClassVar[Amount | None] = Amount(
        "directory", Param("directory"), "number of the log directory; 0: the next one", (0, 2)
    )
    remains: ClassVar[str] = "the replica stays there"
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)
    of_partition: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Begin the move; False if the broker is down, has no replica or has it there."""
        return cluster.move_replica(target, fault.partition or cluster.name, fault.value)
