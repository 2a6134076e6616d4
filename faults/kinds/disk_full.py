"""Disk full: the file system of a broker's log directories has no space for a while.

The first write to a log directory without space fails it: an append, a truncation, or the high watermarks that are
written every replica.high.watermark.checkpoint.interval.ms. A broker with other directories goes on with these; one
without halts, its supervisor starts it again, and it halts at its next write. Nothing that was written is lost. Once
there is space again, the operator restarts the broker.
"""

from __future__ import annotations

from typing import ClassVar, Final

from faults.kind import BROKER, Duration, FaultKind, Role, Targets
from faults.kinds.directories import struck_alone
from faults.plan import Fault
from sim.hosts.cluster import Cluster

FULL: Final = Duration("restart_us", "for_ms")
"""A disk is full; then it has space, and the broker is restarted."""


class DiskFull(FaultKind):
    """See the module."""

    name: ClassVar[str] = "disk-full"
    meaning: ClassVar[str] = (
        "leave no space on a broker's disk, with directory only in this log directory: the first write fails, and all "
        "that was written stays; after for_ms there is space, and the broker is restarted; without for_ms until the end"
    )
    targets: ClassVar[Targets] = BROKER
    duration: ClassVar[Duration | None] = FULL
    of_directory: ClassVar[bool] = True
    moves_leader: ClassVar[bool] = True
    roles: ClassVar[tuple[Role, ...]] = (Role.LEAVE_ISR,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Fill the disk; False if it is full already, or has failed."""
        alone = struck_alone(cluster, fault, target)
        places = [alone] if alone else range(1, len(cluster.machines.directories[target].all) + 1)
        filled = [place for place in places if cluster.full_disks.fill(target, place, fault)]
        return bool(filled)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Make space, and start the broker again if it does not use the disk."""
        cluster.full_disks.free(target, fault)
