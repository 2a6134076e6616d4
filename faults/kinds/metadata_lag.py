"""Metadata lag: a broker of a KRaft cluster replays the metadata log late.

Committed metadata reaches the broker late; heartbeats and data are not delayed. Under ZooKeeper it has no effect:
`faults.kinds.slow` on the link between controller and broker does the same.
"""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, DISTURBED, KRAFT, Amount, Duration, FaultKind, Param, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class MetadataLag(FaultKind):
    """See the module."""

    name: ClassVar[str] = "metadata-lag"
    meaning: ClassVar[str] = (
        "in KRaft, delay a broker's replay of the metadata log by by_ms; without for_ms until the end"
    )
    targets: ClassVar[Targets] = BROKER
    amount: ClassVar[Amount | None] = Amount("by_ms", Param("ms", required=True), "us", bounds="slow_us", scale=1_000)
    duration: ClassVar[Duration | None] = DISTURBED
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Delay metadata to the broker, also to later processes of it; False under ZooKeeper."""
        return cluster.control.delay_metadata(target, fault.value)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Stop delaying metadata that is committed from now on."""
        cluster.control.delay_metadata(target, -fault.value)
