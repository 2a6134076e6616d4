"""Admin election: an operator of a KRaft cluster elects a leader where there is none, accepting losses.

Kafka's tool has UNCLEAN; KIP-966 adds elections of a named replica (designated) and of the longest log, Balanced or
Aggressive. Only the Balanced one, which needs the answers of all last known eligible replicas, keeps the promise. Under
ZooKeeper (where KIP-460 has UNCLEAN from 2.4 on) it has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from faults.bounds import Limits, aim
from faults.kind import KRAFT, Amount, FaultKind, Param, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.hosts.control_plane import ELECTIONS
from sim.kernel.streams import Stream, choice, integer

_WORDS: Final = tuple(ELECTIONS)
"""A plan stores their indices."""
_DRAWN: Final = (0, 0, 0, 1, 2, 3)


class AdminElection(FaultKind):
    """See the module."""

    name: ClassVar[str] = "admin-election"
    meaning: ClassVar[str] = (
        "in KRaft, elect a leader if there is none: longest-log-balanced, longest-log-aggressive, unclean or "
        "designated, which names a broker"
    )
    targets: ClassVar[Targets] = Targets("the cluster", {"broker": Param("broker")}, allows_zero=True)
    amount: ClassVar[Amount | None] = Amount(
        "election", Param("election", required=True), "index of the election", bounds=(0, 3), most=len(_WORDS) - 1
    )
    remains: ClassVar[str] = "the leader stays"
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)
    of_partition: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Elect; False if there is a leader, or no replica could be elected."""
        return cluster.control.elect_leader(ELECTIONS[_WORDS[fault.value]], target, fault.partition)

    def draw(self, stream: Stream, limits: Limits) -> Fault:
        """Draw an election; every second one is balanced. The designated replica is drawn like a target."""
        at_us = integer(stream, *limits.window_us)
        value = choice(stream, _DRAWN)
        return Fault(self.name, at_us, (aim(stream, limits),), value=value)

    def value_of(self, params: Mapping[str, Any]) -> int:
        """The index of the election."""
        return _WORDS.index(params["election"])

    def param_of(self, value: int) -> int | str:
        return _WORDS[value]
