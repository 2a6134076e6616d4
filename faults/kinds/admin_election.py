"""Admin election: an operator of a KRaft cluster wants a leader where there is none, whatever that costs.

Kafka's tool knows UNCLEAN, and KIP-966 adds an election of a replica by name (designated) and of the one with the
longest log, Balanced or Aggressive. Of these only the Balanced one, which has to hear all last known eligible replicas,
keeps what is promised. Under ZooKeeper (where KIP-460 knows UNCLEAN, from 2.4 on) it does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from faults.bounds import Limits, aim
from faults.kind import KRAFT, Amount, Kind, Param, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.hosts.control_plane import ELECTIONS
from sim.kernel.streams import Stream, choice, integer

_WORDS: Final = tuple(ELECTIONS)
"""A plan holds their places."""
_DRAWN: Final = (0, 0, 0, 1, 2, 3)


class AdminElection(Kind):
    """See the module."""

    name: ClassVar[str] = "admin-election"
    meaning: ClassVar[str] = (
        "in KRaft, elect a leader if there is none: longest-log-balanced, longest-log-aggressive, unclean or "
        "designated, which names a broker"
    )
    strikes: ClassVar[Targets] = Targets("the cluster", {"broker": Param("broker")}, whole=True)
    amount: ClassVar[Amount | None] = Amount(
        "election", Param("election", required=True), "place among the elections", bounds=(0, 3), most=len(_WORDS) - 1
    )
    stays: ClassVar[str] = "the leader stays"
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Ask for it; False if there is a leader, or nobody could be elected."""
        return cluster.control.elect_leader(ELECTIONS[_WORDS[fault.value]], target)

    def draw(self, stream: Stream, limits: Limits) -> Fault:
        """At some time; every other one is balanced. Whom a designated one elects is drawn like whom faults strike."""
        at_us = integer(stream, *limits.window_us)
        value = choice(stream, _DRAWN)
        return Fault(self.name, at_us, (aim(stream, limits),), value=value)

    def value_of(self, params: Mapping[str, Any]) -> int:
        """The place of the election."""
        return _WORDS.index(params["election"])
