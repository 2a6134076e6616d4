"""An administrator throttles a broker's copies between log directories.

The quota ``replica.alter.log.dirs.io.max.bytes.per.second`` is exceeded as soon as a future replica has copied its log,
so it copies nothing more until the quota is raised, and does not replace the log. kafka-reassign-partitions sets the
quota (``--replica-alter-log-dirs-throttle``).
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, DISTURBED, KRAFT, Duration, FaultKind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class MoveThrottle(FaultKind):
    """See the module."""

    name: ClassVar[str] = "move-throttle"
    meaning: ClassVar[str] = (
        "hold back a broker's copies between log directories once they have caught up; without for_ms until the end"
    )
    targets: ClassVar[Targets] = BROKER
    duration: ClassVar[Duration | None] = DISTURBED
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Begin it, also for later processes of the broker; False if it is throttled, or has one log directory."""
        return cluster.throttle_moves(target, throttled=True)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """End the quota."""
        cluster.throttle_moves(target, throttled=False)
