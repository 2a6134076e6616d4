"""What a follower's fetch says of a partition, and the session that its leader keeps of that (KIP-227)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.protocol.messages import NO_EPOCH
from sim.protocol.replica.partition_fetch_state import AWAITING

if TYPE_CHECKING:
    from sim.protocol.decisions import Decisions
    from sim.protocol.messages import Position
    from sim.protocol.replica.partition_fetch_state import PartitionFetchState


class FetchSessionHandler:
    """A follower's fetch session with one leader. Kafka: FetchSessionHandler (1.1-4.3).

    Args:
        decide: the follower's rules, of which ``fetch_fencing``, ``session_epoch`` and ``follower_truncation`` decide
            where its leader, or a new fetcher, asks.

    Attributes:
        is_open: whether a fetch was answered since the connection stands.
        fences: whether requests carry the leader epoch that the follower knows (KIP-320).
        is_plain: whether a fetch says nothing but the LEO, and perhaps that epoch.
    """

    __slots__ = ("_carries_last_epoch", "_first_fetch_only", "_names_latest_epoch", "fences", "is_open", "is_plain")

    def __init__(self, decide: Decisions) -> None:
        self.is_open = False
        self.fences = decide.fences_fetches.answer
        self._first_fetch_only = decide.fences_first_fetch_only.answer
        self._names_latest_epoch = decide.truncates_on_fetch.answer
        self._carries_last_epoch = decide.compares_last_epoch.answer
        self.is_plain = not (
            self._names_latest_epoch or self._carries_last_epoch or (self.fences and self._first_fetch_only)
        )

    def position(self, name: str, fetch: PartitionFetchState) -> Position:
        """What a fetch says of a partition.

        Leaders to 2.4 forget the leader epoch that came with the first fetch of a session (KAFKA-9338), so that later
        fetches are as good as without one. With rule ``follower_truncation=on-fetch`` a fetch names the latest epoch of
        the follower's log (lastFetchedEpoch, KIP-595).
        Kafka: RemoteLeaderEndPoint#buildFetch (3.9-4.3), ReplicaFetcherThread#buildFetch (2.6),
        ReplicaFetcherThread#buildFetchRequest (0.10.2-2.0).
        """
        log = fetch.replica.log
        if fetch.state is AWAITING:
            return name, fetch.fetch_offset, NO_EPOCH, NO_EPOCH
        epoch = last = NO_EPOCH
        if self.fences and not (self._first_fetch_only and self.is_open):
            epoch = fetch.leader_epoch
        if self._names_latest_epoch:
            epochs = fetch.replica.epochs.epochs
            if epochs:
                last = epochs[-1]
        elif self._carries_last_epoch and not self.fences and log.batches:
            last = log.batches[-1].leader_epoch
        return name, log.leo, epoch, last
