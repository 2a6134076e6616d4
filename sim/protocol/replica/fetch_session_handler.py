"""The position in a follower's fetch, and the leader's fetch session (KIP-227)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sim.protocol.decisions import Decisions
from sim.protocol.messages import AGREES, NO_EPOCH, FetchResult, Incremental, Position
from sim.protocol.replica.partition_fetch_state import AWAITING, PartitionFetchState

NO_HW: Final = -1
"""In place of the HW that was told: the next response without an error has the partition in any case."""


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
        "_told",
        "fences",
        "incremental",
        "is_open",
        "is_plain",
    )

    def __init__(self, decide: Decisions) -> None:
        self.is_open = False
        self.incremental: Incremental | None = None
        self._told: dict[str, tuple[int, int]] = {}
        """HW and log start of each partition in the session's last response, whether they could be used or not."""
        self.fences = decide.fences_fetches.answer
        self._first_fetch_only = decide.fences_first_fetch_only.answer
        self._names_latest_epoch = decide.truncates_on_fetch.answer
        self._carries_last_epoch = decide.compares_last_epoch.answer
        self.is_plain = not (
            self._names_latest_epoch or self._carries_last_epoch or (self.fences and self._first_fetch_only)
        )

    def forget_others(self, positions: Sequence[Position]) -> None:
        """Note that the next fetch has these partitions: the leader's session forgets all others."""
        told = self._told
        if told and not (len(told) == len(positions) == 1 and positions[0][0] in told):
            names = {position[0] for position in positions}
            self._told = {name: known for name, known in told.items() if name in names}

    def close(self) -> None:
        """Forget the session: the next fetch begins another one."""
        self.is_open = False
        self._told.clear()

    def tells(self, result: FetchResult) -> bool:
        """Note a partition's result in a response; returns whether Kafka's response has the partition.

        An incremental response lacks a partition that has neither records nor an error nor a diverging epoch, and the
        same HW and log start as in the response before. It does not matter whether the follower could use that one: it
        ignores these with a diverging epoch (KAFKA-14704), and all of a response to a fetch in an earlier leader epoch.
        The follower then learns the HW when the leader's moves.
        Kafka: CachedPartition#maybeUpdateResponseData (2.0-4.4).
        """
        name, error, batches, hw, log_start, _, diverging = result
        if not self._names_latest_epoch:
            return True
        known, self._told[name] = self._told.get(name), (NO_HW if error else hw, log_start)
        return known != (hw, log_start) or bool(error or batches or (diverging is not None and diverging != AGREES))

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
