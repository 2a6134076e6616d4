"""Pause: a process does not run for a while (SIGSTOP, a long garbage collection), then handles what it missed."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import PROCESS, STALLED, Duration, FaultKind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class PauseFault(FaultKind):
    """See the module."""

    name: ClassVar[str] = "pause"
    meaning: ClassVar[str] = "pause a process; without for_ms until a resume"
    targets: ClassVar[Targets] = PROCESS
    duration: ClassVar[Duration | None] = STALLED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Pause a broker (0: the control plane); False if no process runs."""
        return cluster.pause(target, fault)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Resume it, unless it ended."""
        cluster.resume(target, fault)
