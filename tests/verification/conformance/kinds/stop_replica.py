"""Driver of kind ``stop_replica``: which StopReplica requests a broker accepts, each in the given state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.verification.conformance.driving import Kind, Seen
from tests.verification.conformance.simulated import ScriptedBroker
from tests.verification.conformance.world import FOLLOWER, LEADER

if TYPE_CHECKING:
    from sim.protocol.rules import Rules
    from tests.verification.conformance.cases import Fields


class Stopping:
    """The state of a case: what is given."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        self.leader_epoch = given["leader_epoch"]
        self.rules = rules

    def stop(self, op: Fields) -> Seen:
        """One request, to a broker that follows."""
        broker = ScriptedBroker(self.rules, FOLLOWER)
        broker.decide(LEADER, self.leader_epoch)
        error = broker.stop_replica(op["leader_epoch"], delete=False)
        return Seen(error=error or "NONE")


KIND = Kind(begin=Stopping, ops={"stop_replica": Stopping.stop})
