"""Session expiry: the control plane ends the session of a broker that lives, and comes back when it hears of it."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, Kind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class SessionExpiry(Kind):
    """See the module."""

    name: ClassVar[str] = "session-expiry"
    meaning: ClassVar[str] = "end a broker's session while its process lives"
    strikes: ClassVar[Targets] = BROKER
    stays: ClassVar[str] = "the broker registers again by itself"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """End one session; False if there is none."""
        return cluster.control.expire(target)
