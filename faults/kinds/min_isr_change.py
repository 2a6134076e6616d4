"""Change of min ISR: an operator sets ``min.insync.replicas`` to another value for a while, then back."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import CLUSTER, DISTURBED, REPLICAS, Amount, Duration, FaultKind, Param, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.protocol.kraft.metadata import MIN_ISR


class MinIsrChange(FaultKind):
    """See the module."""

    name: ClassVar[str] = "min-isr-change"
    meaning: ClassVar[str] = "set min.insync.replicas to a value; without for_ms until the end"
    targets: ClassVar[Targets] = CLUSTER
    amount: ClassVar[Amount | None] = Amount(
        "value", Param("count", required=True), "replicas", bounds=REPLICAS, least=1
    )
    duration: ClassVar[Duration | None] = DISTURBED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Set the value; False if it is set already."""
        return cluster.administrator.change_setting(MIN_ISR, fault.value, fault)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Set the value that applies without this change."""
        cluster.administrator.restore_setting(MIN_ISR, fault)
