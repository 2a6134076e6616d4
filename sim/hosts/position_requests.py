"""The requests of a consumer about its position, and its fetches: which are due, and which responses count."""

from __future__ import annotations

from typing import Final

from sim.environment.network import Channel
from sim.hosts.client import ClientSetup
from sim.hosts.consumer_coordinator import GroupMember
from sim.hosts.peers import Server
from sim.protocol.client.consumer_position import FETCHING, ConsumerPosition, FetchPosition
from sim.protocol.client.offset_reset import OffsetReset
from sim.protocol.messages import (
    NO_EPOCH,
    OFFSET_OUT_OF_RANGE,
    FetchRequest,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
)
from sim.protocol.replica.partition import NO_LEADER

USABLE_EPOCH_END_VERSION: Final = 3
"""Lowest version of OffsetsForLeaderEpoch that consumers use (2.3)."""


class PositionRequests(GroupMember):
    """A consumer's position and the requests that are in flight for it; several may be, if it has changed since.

    Kafka: OffsetFetcher (3.9-4.4), AbstractFetch (3.9-4.4).

    Attributes:
        cursor: its position.
        has_error: whether the application received an error that only a seek or a restart clears.
    """

    __slots__ = (
        "_failed_at",
        "_fetch",
        "_late_fetches",
        "_preferred",
        "_preferred_until_us",
        "_reset",
        "_reset_request",
        "_resets",
        "_validation",
        "_validations",
        "cursor",
        "has_error",
    )

    def __init__(self, node: int, setup: ClientSetup) -> None:
        super().__init__(node, setup)
        self.cursor = ConsumerPosition(self.settings.offset_reset)
        self.has_error = False
        self._preferred = NO_LEADER
        """The follower to fetch from, `NO_LEADER` for the leader; until `_preferred_until_us`."""
        self._preferred_until_us = 0
        self._fetch: FetchRequest | None = None
        self._late_fetches: dict[int, FetchRequest] = {}
        """By broker, fetches from before the position or the leader changed; their responses count if they fit."""
        self._reset_request: tuple[ListOffsetsRequest, int] | None = None
        """The last request, and `ConsumerPosition.changes` when it was sent."""
        self._resets: list[ListOffsetsRequest] = []
        self._reset = OffsetReset(self.settings.reset_duration_us, setup.created)
        self._validation: tuple[OffsetsForLeaderEpochRequest, int] | None = None
        self._validations: list[tuple[OffsetsForLeaderEpochRequest, FetchPosition]] = []
        self._failed_at = -1
        """`ConsumerPosition.changes` when a request last failed, -1 since the last metadata."""

    def can_validate(self, channel: Channel[Server]) -> bool:
        """Whether the position may be validated at a broker.

        Kafka: OffsetFetcherUtils#hasUsableOffsetForLeaderEpochVersion (3.9-4.4).
        """
        version: int = channel.target.epoch_end_version
        return self.decide.validates_position.answer and version >= USABLE_EPOCH_END_VERSION

    def fetch(self, *, again: bool = False) -> None:
        """Fetch, or do what has to be done before."""
        raise NotImplementedError

    # Fetches.

    def _read_replica(self) -> int:
        """The broker to fetch from. Kafka: AbstractFetch#selectReadReplica (3.9-4.4)."""
        if self._preferred != NO_LEADER and self.kernel.now_us > self._preferred_until_us:
            self._preferred = NO_LEADER
        return self.leader if self._preferred == NO_LEADER else self._preferred

    def _position_leader(self) -> int:
        """The leader to fetch from: that of the position, which stays while metadata knows none. Kafka:
        AbstractFetch#maybeNodeForPosition (4.1-4.4), AbstractFetch#prepareFetchRequests (3.9-4.4).
        """
        return self.cursor.leader if self.decide.validates_position.answer else self.leader

    def _epoch(self) -> int:
        """The leader epoch in requests about offsets: that of the metadata."""
        return self.leader_epoch if self.decide.fences_clients.answer else NO_EPOCH

    def _fetch_epoch(self) -> int:
        """The leader epoch in fetches: that of the metadata with which the position was set."""
        if self.decide.fences_clients.answer and self.decide.validates_position.answer:
            return self.cursor.leader_epoch
        return self._epoch()

    def _fits(self, request: FetchRequest, error: str) -> bool:
        """Whether the response to a fetch counts: Kafka compares its offset with the position, and nothing else.

        Kafka: FetchCollector#handleInitializeSuccess (3.9-4.4), FetchCollector#handleInitializeErrors (3.9-4.4).
        """
        if self.cursor.state != FETCHING or self.has_error:
            return False
        return bool(error and error != OFFSET_OUT_OF_RANGE) or self.cursor.offset == request.positions[0][1]

    def _leave_fetch(self) -> None:
        """The position or its leader has changed: a fetch that waits goes on waiting, and its broker gets no other one
        meanwhile.
        """
        fetch = self._fetch
        if fetch is not None:
            self.end_elision()
            self._fetch = None
            self._late_fetches[fetch.leader] = fetch
            self.kernel.call_at(self.kernel.now_us + self.timeout_us, self.life, self._late_fetch_timed_out, fetch)

    def _waits_for_late_fetch(self) -> bool:
        """Whether the broker to fetch from has not answered an earlier fetch, which times out."""
        leader = self._position_leader()
        return (leader if self._read_replica() == self.leader else self._preferred) in self._late_fetches

    def _late_fetch_timed_out(self, fetch: FetchRequest) -> None:
        if self._late_fetches.get(fetch.leader) is fetch:
            del self._late_fetches[fetch.leader]
            self.fetch()

    # Validations and resets.

    def _is_due(self, last: tuple[object, int] | None) -> bool:
        """Whether a request is due, though the last one may have no response yet; after an error it is with the next
        metadata.
        """
        changes = self.cursor.changes
        return changes != self._failed_at and (last is None or last[1] != changes)

    def _request_failed(self) -> None:
        """Kafka: SubscriptionState#requestFailed (2.6-4.4), SubscriptionState#setNextAllowedRetry (2.6-4.4)."""
        self._failed_at = self.cursor.changes
        self._reset.from_us = 0

    def _try_again(self) -> None:
        """Repeat what has failed: metadata has come since."""
        if self._failed_at == self.cursor.changes:
            self._reset_request = self._validation = None
        self._failed_at = -1
