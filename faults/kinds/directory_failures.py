"""A log directory fails while its broker lives, and comes back: with what had been written to it, or empty, or never.

The broker goes on with its other log directories and reports the failure to the controller, which elects other leaders
for the partitions in it (KIP-112, KIP-858). A broker whose last log directory fails exits. The operator repairs the
directory and restarts the broker, because a running broker does not use it again. A new disk may take days, and the
cluster has to work without it.
"""

from __future__ import annotations

from typing import ClassVar, Final

from faults.kind import BROKER, KRAFT, OTHER_REPLICA, Amount, Duration, FaultKind, Role, Targets
from faults.kinds.directories import NUMBER, numbered
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.native import mypyc_attr

REPAIRED: Final = Duration("restart_us", "repair_ms")
"""A log directory has failed; then it is repaired."""


@mypyc_attr(allow_interpreted_subclasses=True)
class LogDirectoryFault(FaultKind):
    """A failure of one log directory."""

    targets: ClassVar[Targets] = BROKER
    amount: ClassVar[Amount | None] = NUMBER
    moves_leader: ClassVar[bool] = True
    loses_records: ClassVar[bool] = True
    of_partition: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Fail the directory; False if it had failed."""
        place = numbered(cluster, fault, target, fault.value)
        return cluster.machines.fail_directory(target, place, by=fault)


@mypyc_attr(allow_interpreted_subclasses=True)
class RepairedDirectory(LogDirectoryFault):
    """A failure of one log directory, which comes back."""

    duration: ClassVar[Duration | None] = REPAIRED
    roles: ClassVar[tuple[Role, ...]] = (Role.LEAVE_ISR, Role.STRIKE_LAST)
    replaced: ClassVar[bool]
    """Whether it comes back empty."""

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Repair the directory that this fault struck, and restart the broker."""
        cluster.repair_directory(target, replaced=self.replaced, by=fault)


class DirectoryFailure(RepairedDirectory):
    """See the module."""

    name: ClassVar[str] = "directory-failure"
    meaning: ClassVar[str] = (
        "fail one log directory of a broker, which loses what had not been written to it; without directory that of "
        "the partition; after repair_ms it works again, and the broker is restarted"
    )
    replaced: ClassVar[bool] = False


class DirectoryReplaced(RepairedDirectory):
    """See the module."""

    name: ClassVar[str] = "directory-replaced"
    meaning: ClassVar[str] = (
        "fail one log directory of a broker; without directory that of the partition; after repair_ms it comes back "
        "empty, and the broker is restarted"
    )
    replaced: ClassVar[bool] = True


class DirectoryUnrepaired(LogDirectoryFault):
    """See the module."""

    name: ClassVar[str] = "directory-unrepaired"
    meaning: ClassVar[str] = (
        "fail one log directory of a broker for good; without directory that of the partition; not the broker's last "
        "one, and not if a partition would keep fewer than min.insync.replicas replicas"
    )
    remains: ClassVar[str] = "the directory stays failed"
    needs: ClassVar[tuple[str, ...]] = (KRAFT, OTHER_REPLICA)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Fail the directory; False if it had failed, or if the cluster would not work without it."""
        place = numbered(cluster, fault, target, fault.value)
        return cluster.fail_directory_for_good(target, place, by=fault)
