"""Controlled restart: a broker closes its session and its log, stops, and is started again."""

from __future__ import annotations

from typing import ClassVar

from faults.kinds.stops import BrokerStop
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class ControlledRestart(BrokerStop):
    """See the module."""

    name: ClassVar[str] = "controlled-restart"
    meaning: ClassVar[str] = "shut a broker down in a controlled way; without restart_ms it stays down until a start"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Start the controlled shutdown; False if no process runs."""
        return cluster.shut_down(target)
