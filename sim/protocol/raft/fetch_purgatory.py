"""Fetches that wait at a leader for records."""

from __future__ import annotations

from typing import Final

from sim.protocol.raft.raft_messages import RaftFetchRequest, RaftFetchResponse
from sim.protocol.raft.request_manager import NEVER


class ParkedFetch:
    """A fetch that waits.

    Attributes:
        request: the request.
        response: the answer computed when it arrived, which it gets if it expires.
        expires_us: when it expires.
    """

    __slots__ = ("expires_us", "request", "response")

    def __init__(self, request: RaftFetchRequest, response: RaftFetchResponse, expires_us: int) -> None:
        self.request: Final = request
        self.response: Final = response
        self.expires_us: Final = expires_us


class FetchPurgatory:
    """All fetches that wait. Kafka: ThresholdPurgatory, KafkaRaftClient#fetchPurgatory."""

    __slots__ = ("_first_us", "_parked")

    def __init__(self) -> None:
        self._parked: list[ParkedFetch] = []
        self._first_us = NEVER

    @property
    def is_empty(self) -> bool:
        """Whether none waits."""
        return not self._parked

    def wait(self, request: RaftFetchRequest, response: RaftFetchResponse, expires_us: int) -> None:
        """Let a fetch wait. Kafka: ThresholdPurgatory#await."""
        self._parked.append(ParkedFetch(request, response, expires_us))
        self._first_us = min(self._first_us, expires_us)

    def _keep(self, parked: list[ParkedFetch]) -> None:
        self._parked = parked
        self._first_us = min([one.expires_us for one in parked]) if parked else NEVER

    def take_below(self, end_offset: int) -> list[ParkedFetch]:
        """Remove the fetches for which there are records. Kafka: ThresholdPurgatory#maybeComplete."""
        taken = [parked for parked in self._parked if parked.request.fetch_offset < end_offset]
        self._keep([parked for parked in self._parked if parked.request.fetch_offset >= end_offset])
        return taken

    def take_all(self) -> list[ParkedFetch]:
        """Remove all. Kafka: ThresholdPurgatory#completeAll, ThresholdPurgatory#completeAllExceptionally."""
        taken = self._parked
        self._keep([])
        return taken

    def take_expired(self, now_us: int) -> list[ParkedFetch]:
        """Remove those whose time is over."""
        if self._first_us > now_us:
            return []
        taken = [parked for parked in self._parked if parked.expires_us <= now_us]
        self._keep([parked for parked in self._parked if parked.expires_us > now_us])
        return taken

    @property
    def parked(self) -> list[ParkedFetch]:
        """Those that wait."""
        return self._parked

    def expires_us(self) -> int:
        """When the first one expires."""
        return self._first_us
