"""Pause: a process stands still for a while (SIGSTOP, a long garbage collection), then makes up for it."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import PROCESS, STALLED, Kind, Lasting, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class Pause(Kind):
    """See the module."""

    name: ClassVar[str] = "pause"
    meaning: ClassVar[str] = "pause a process; without for_ms until a resume"
    strikes: ClassVar[Targets] = PROCESS
    lasts: ClassVar[Lasting | None] = STALLED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Pause one broker (0: the control plane); False if no process runs."""
        return cluster.pause(target, fault)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Let it go on, unless it ended."""
        cluster.resume(target, fault)
