"""The position in a follower's fetch, and the leader's fetch session (KIP-227)."""

from __future__ import annotations

from sim.protocol.decisions import Decisions
from sim.protocol.messages import NO_EPOCH, Incremental, Position
from sim.protocol.replica.partition_fetch_state import AWAITING, PartitionFetchState


class FetchSessionHandler:
    """A follower's fetch session with one leader. Kafka: FetchSessionHandler (1.1-4.4).

    Args:
        decide: the follower's rules, of which ``fetch_fencing``, ``session_epoch`` and ``follower_truncation`` apply.

    Attributes:
        is_open: whether a fetch was answered on this connection.
        fences: whether requests carry the follower's leader epoch (KIP-320).
        is_plain: whether a fetch has only the LEO, and perhaps that epoch.
        incremental: what the fetch that is being sent changes in the leader's session, if it continues one.
    """

    __slots__ = (
        "_carries_last_epoch",
        "_first_fetch_only",
        "_names_latest_epoch",
        "fences",
        "incremental",
        "is_open",
        "is_plain",
    )

    def __init__(self, decide: Decisions) -> None:
        self.is_open = False
        self.incremental: Incremental | None = None
        self.fences = decide.fences_fetches.answer
        self._first_fetch_only = decide.fences_first_fetch_only.answer
        self._names_latest_epoch = decide.truncates_on_fetch.answer
        self._carries_last_epoch = decide.compares_last_epoch.answer
        self.is_plain = not (
            self._names_latest_epoch or self._carries_last_epoch or (self.fences and self._first_fetch_only)
        )

    def position(self, name: str, fetch: PartitionFetchState) -> Position:
        """The position of a partition in a fetch.

        Leaders up to 2.4 forget the leader epoch of a session's first fetch (KAFKA-9338), so later fetches are treated
        as having none. With rule ``follower_truncation=on-fetch`` a fetch has the latest epoch of the follower's log
        (lastFetchedEpoch, KIP-595).
        Kafka: RemoteLeaderEndPoint#buildFetch (3.9-4.4), ReplicaFetcherThread#buildFetch (2.6),
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
