"""Session expiry: the session of a live broker ends; the broker registers again when it learns of it."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import BROKER, FaultKind, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class SessionExpiry(FaultKind):
    """See the module."""

    name: ClassVar[str] = "session-expiry"
    meaning: ClassVar[str] = "end a broker's session while its process lives"
    targets: ClassVar[Targets] = BROKER
    remains: ClassVar[str] = "the broker registers again by itself"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Expire the session; False if there is none."""
        return cluster.control.expire_session(target)
