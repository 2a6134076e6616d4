"""An operator takes a directory out of ``log.dirs``: the broker is shut down in a controlled way and starts without it.

The operator should move the replicas elsewhere first (KIP-113). If that is forgotten, or the path has changed, the
broker creates the replicas anew, empty, in its other directories: unlike a directory that has failed, one that is not
in ``log.dirs`` may not be missed (`LogManager.hasOfflineLogDirs`).
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import OTHER_REPLICA, Amount
from faults.kinds.directories import NUMBER, numbered
from faults.kinds.stops import BrokerStop
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class DirectoryRemoved(BrokerStop):
    """See the module."""

    name: ClassVar[str] = "directory-removed"
    meaning: ClassVar[str] = (
        "shut a broker down in a controlled way, and take one of its log directories out of log.dirs, unless "
        "it is the last one; without directory that of the partition; without restart_ms it stays down until a start"
    )
    amount: ClassVar[Amount | None] = NUMBER
    needs: ClassVar[tuple[str, ...]] = (OTHER_REPLICA,)
    loses_records: ClassVar[bool] = True
    of_partition: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Shut the broker down; False if it is down and keeps its directories."""
        return cluster.remove_directory(target, numbered(cluster, fault, target, fault.value))
