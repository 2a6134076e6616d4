"""An operator adds a directory to ``log.dirs``: the broker is shut down in a controlled way and starts with one more.

The directory is empty, and no replica moves to it by itself. It has no clean-shutdown marker, so with ELR the
controller counts the shutdown as unclean (`LogManager.readBrokerEpochFromCleanShutdownFiles`).
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import Role
from faults.kinds.stops import BrokerStop
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class DirectoryAdded(BrokerStop):
    """See the module."""

    name: ClassVar[str] = "directory-added"
    meaning: ClassVar[str] = (
        "shut a broker down in a controlled way, and add an empty log directory to its log.dirs, unless it has one "
        "directory or sixteen; without restart_ms it stays down until a start"
    )

    roles: ClassVar[tuple[Role, ...]] = (Role.LEAVE_ISR,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Shut the broker down; False if it is down and gets no directory."""
        return cluster.add_directory(target)
