"""Metadata lag: a broker of a KRaft cluster replays the metadata log late.

What the active controller commits reaches the broker so much later, heartbeats and data as ever. Under ZooKeeper, where
a controller tells each broker what it is to know, `faults.kinds.slow` on that link does the same, and this
does nothing.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, DISTURBED, KRAFT, Amount, Kind, Lasting, Param, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class MetadataLag(Kind):
    """See the module."""

    name: ClassVar[str] = "metadata-lag"
    meaning: ClassVar[str] = (
        "in KRaft, delay a broker's replay of the metadata log by so many ms; without for_ms until the end"
    )
    strikes: ClassVar[Targets] = BROKER
    amount: ClassVar[Amount | None] = Amount("by_ms", Param("ms", required=True), "us", bounds="slow_us", scale=1_000)
    lasts: ClassVar[Lasting | None] = DISTURBED
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Let it be late; False under ZooKeeper. It stays so for a later process of the same broker."""
        return cluster.control.lag(target, fault.value)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """What is committed from now on arrives in time; what is on its way does not get faster."""
        cluster.control.lag(target, -fault.value)
