"""What a broker knows of the cluster, as it answers clients: states of partitions, and live brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sim.environment.network import Network
from sim.protocol.messages import LEADER_DURING_DELETE, NO_EPOCH, LeaderAndIsr
from sim.protocol.replica.isr import UNREGISTERED
from sim.protocol.replica.partition import NO_LEADER
from sim.protocol.replica.partition_host import MetadataCache

UNKNOWN_LEADER: Final = (NO_LEADER, NO_EPOCH)
"""Leader and leader epoch of a partition of which a broker knows no leader."""


class BrokerMetadataCache(MetadataCache):
    """See the module. Kafka: server.MetadataCache (0.10.2-3.9), metadata.MetadataCache (4.1-4.4).

    Attributes:
        known: the partitions' states.
        live: registered brokers with their broker epochs.
        leaders: partition -> leader and leader epoch in metadata responses; no leader if it is not listed as alive.
    """

    __slots__ = ("_network", "known", "leaders", "live")

    def __init__(self, network: Network) -> None:
        self._network = network
        self.known: dict[str, LeaderAndIsr] = {}
        self.live: dict[int, int] = {}
        self.leaders: dict[str, tuple[int, int]] = {}

    def is_alive(self, broker: int) -> bool:
        return broker in self.live

    def registered_epoch(self, broker: int) -> int:
        return self.live.get(broker, UNREGISTERED)

    def update(self, states: Iterable[LeaderAndIsr], live: Mapping[int, int]) -> None:
        """Adopt new states of partitions, and the live brokers, and forget partitions whose topic is being deleted; if
        that changes the answer to clients, release elided retries.
        """
        before = self.live
        about: Iterable[LeaderAndIsr] = states
        changes = False
        for state in states:
            if state.leader == LEADER_DURING_DELETE:
                self.forget(state.name)
                changes = True
            else:
                self.known[state.name] = state
        if live is not before and live != before:
            self.live = dict(live)
            other = before.keys() ^ live.keys()
            if other:
                about = [*states, *[state for state in self.known.values() if state.leader in other]]
        leaders = self.leaders
        for state in about:
            known = leaders.get(state.name, UNKNOWN_LEADER)
            if state.leader not in self.live:
                if known[0] != NO_LEADER:
                    leaders[state.name] = UNKNOWN_LEADER
                    changes = True
            elif known[1] != state.leader_epoch or known[0] != state.leader:
                leaders[state.name] = state.leader, state.leader_epoch
                changes = True
        if changes:
            self._network.note_broker_change()

    def forget(self, name: str) -> None:
        """Forget a partition whose topic is deleted."""
        self.known.pop(name, None)
        self.leaders.pop(name, None)
