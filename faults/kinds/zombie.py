"""Zombie: a broker's session ends, and for a while the broker neither notices nor registers again (KAFKA-6879).

Only its pings or, in KRaft, its heartbeats are lost meanwhile; metadata and data arrive (KIP-966, trade-off 3a: fenced
though it could serve).
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, STALLED, Duration, FaultKind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class Zombie(FaultKind):
    """See the module."""

    name: ClassVar[str] = "zombie"
    meaning: ClassVar[str] = (
        "end a broker's session unnoticed by the broker: only its pings or heartbeats are lost; without for_ms until "
        "the end"
    )
    targets: ClassVar[Targets] = BROKER
    duration: ClassVar[Duration | None] = STALLED
    moves_leader: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """End the session and block its renewal; False if there is none."""
        return cluster.zombie(target)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Let the broker notice."""
        cluster.unzombie(target)
