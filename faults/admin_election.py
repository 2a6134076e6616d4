"""Admin election: an operator of a KRaft cluster wants a leader where there is none, whatever that costs.

Kafka's tool knows UNCLEAN, and KIP-966 adds an election of a replica by name (designated) and of the one with the
longest log, Balanced or Aggressive. Of these only the Balanced one, which has to hear all last known eligible replicas,
keeps what is promised. Under ZooKeeper (where KIP-460 knows UNCLEAN, from 2.4 on) it does nothing.
"""

from __future__ import annotations

import random
from typing import Final

from faults.drawing import Limits, aim
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.hosts.control_plane import ELECTIONS
from sim.kernel.streams import choice, integer

KIND = "admin-election"
_WORDS: Final = tuple(ELECTIONS)
"""A plan holds their places."""
_DRAWN: Final = (0, 0, 0, 1, 2, 3)


def draw(stream: random.Random, limits: Limits) -> Fault:
    """At some time; every other one is balanced. Whom a designated one elects is drawn like whom faults strike."""
    at_us = integer(stream, *limits.window_us)
    kind = choice(stream, _DRAWN)
    return Fault(KIND, at_us, (aim(stream, limits),), value=kind)


def strike(cluster: Cluster, fault: Fault, target: int) -> bool:
    """Ask for it; False if there is a leader, or nobody could be elected."""
    return cluster.elect(ELECTIONS[_WORDS[fault.value]], target)


def undo(cluster: Cluster, fault: Fault, target: int) -> None:
    """Who leads is left as it is."""
