"""Zombie: a broker's session ends, and the broker neither notices nor registers anew for a while (KAFKA-6879).

Its pings or, in KRaft, its heartbeats do not arrive meanwhile, and nothing else is wrong: metadata and data flow as
ever (KIP-966, trade-off 3a: fenced though it could serve).
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, STALLED, Kind, Lasting, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class Zombie(Kind):
    """See the module."""

    name: ClassVar[str] = "zombie"
    meaning: ClassVar[str] = (
        "end a broker's session unnoticed by the broker: only its pings or heartbeats are lost; without for_ms until "
        "the end"
    )
    strikes: ClassVar[Targets] = BROKER
    lasts: ClassVar[Lasting | None] = STALLED
    moves_leader: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """End one session for good; False if there is none."""
        return cluster.zombie(target)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Let the broker notice."""
        cluster.unzombie(target)
