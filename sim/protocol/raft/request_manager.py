"""Requests of one member to the others: at most one in flight to each, with timeout and back-off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sim.protocol.raft.raft_messages import RaftRequest

NEVER: Final = 1 << 62
"""A time that does not come."""


class ConnectionState:
    """The connection to one member, from its first request on. Kafka: RequestManager.ConnectionState.

    Attributes:
        request: in flight, or None while the connection backs off.
        since_us: when the request was sent, or the last one failed.
    """

    __slots__ = ("request", "since_us")

    def __init__(self, request: RaftRequest, since_us: int) -> None:
        self.request: RaftRequest | None = request
        self.since_us = since_us


class RequestManager:
    """All connections of a member. Kafka: raft.RequestManager.

    Args:
        bootstrap_servers: the members that are asked for a leader.
        retry_backoff_us: ``controller.quorum.retry.backoff.ms``.
        request_timeout_us: ``controller.quorum.request.timeout.ms``.
        random_below: draws a number from 0 to below its argument.
    """

    __slots__ = ("_backoff_us", "_bootstrap", "_connections", "_random_below", "_timeout_us")

    def __init__(
        self,
        bootstrap_servers: Sequence[int],
        retry_backoff_us: int,
        request_timeout_us: int,
        random_below: Callable[[int], int],
    ) -> None:
        self._bootstrap = bootstrap_servers
        self._backoff_us = retry_backoff_us
        self._timeout_us = request_timeout_us
        self._random_below = random_below
        self._connections: dict[int, ConnectionState] = {}

    @property
    def in_flight(self) -> dict[int, RaftRequest]:
        """Member -> the request to it whose response is expected."""
        return {node: state.request for node, state in self._connections.items() if state.request is not None}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in flight, and no connection backs off."""
        return not self._connections

    def is_only(self, node: int, request: RaftRequest) -> bool:
        """Whether a request is all that is in flight, and no connection backs off."""
        return len(self._connections) == 1 and self.is_response_expected(node, request)

    def is_ready(self, node: int, now_us: int) -> bool:
        """Whether a request may be sent to a member. Kafka: RequestManager#isReady."""
        if node not in self._connections:
            return True
        if self._ends_us(node) > now_us:
            return False
        self.reset(node)
        return True

    def is_backing_off(self, node: int, now_us: int) -> bool:
        """Whether the last request failed a moment ago. Kafka: RequestManager#isBackingOff."""
        state = self._connections.get(node)
        return state is not None and state.request is None and self._ends_us(node) > now_us

    def has_request_timed_out(self, node: int, now_us: int) -> bool:
        """Whether a request had no response in time. Kafka: RequestManager#hasRequestTimedOut."""
        state = self._connections.get(node)
        return state is not None and state.request is not None and self._ends_us(node) <= now_us

    def ready_at_us(self, node: int, now_us: int) -> int:
        """When a request may be sent to a member, now at the earliest.

        Kafka: RequestManager#remainingBackoffMs, RequestManager#remainingRequestTimeMs.
        """
        return max(now_us, self._ends_us(node)) if node in self._connections else now_us

    def has_any_inflight_request(self, now_us: int) -> bool:
        """Whether a request to any member is in flight. Kafka: RequestManager#hasAnyInflightRequest."""
        if len(self._connections) > 1 and self._bootstrap[0] < 0:
            return self._finds_request(now_us)
        self._drop_ended(now_us)
        return any(state.request is not None for state in self._connections.values())

    def _finds_request(self, now_us: int) -> bool:
        """Whether a request is in flight; what has ended after it stays, and so may still be answered.

        Kafka's map has connections to bootstrap servers after those to members.
        """
        for node in sorted(self._connections, key=lambda node: (node < 0, abs(node))):
            if self._ends_us(node) <= now_us:
                self.reset(node)
            elif self._connections[node].request is not None:
                return True
        return False

    def find_ready_bootstrap_server(self, now_us: int) -> int | None:
        """A member that may be asked for the leader. Kafka: RequestManager#findReadyBootstrapServer."""
        if self.has_any_inflight_request(now_us):
            return None
        servers = self._bootstrap
        first = self._random_below(len(servers))
        for place in range(len(servers)):
            node = servers[(first + place) % len(servers)]
            if self.is_ready(node, now_us):
                return node
        return None

    def bootstrap_server_at_us(self, now_us: int) -> int:
        """When a member may be asked for the leader. Kafka: RequestManager#backoffBeforeAvailableBootstrapServer."""
        if len(self._connections) > 1 and self._bootstrap[0] < 0:
            self._finds_request(now_us)
        else:
            self._drop_ended(now_us)
        at_us = now_us + self._backoff_us
        for node, state in self._connections.items():
            if state.request is not None and self._ends_us(node) > now_us:
                return self._ends_us(node)
            at_us = min(at_us, self._ends_us(node))
        if any(node not in self._connections for node in self._bootstrap):
            return now_us
        return at_us

    def is_response_expected(self, node: int, request: RaftRequest) -> bool:
        """Whether a member's response to a request is still awaited. Kafka: RequestManager#isResponseExpected."""
        state = self._connections.get(node)
        return state is not None and state.request is request

    def on_request_sent(self, node: int, request: RaftRequest, now_us: int) -> None:
        """A request was sent. Kafka: RequestManager#onRequestSent."""
        self._connections[node] = ConnectionState(request, now_us)

    def replace(self, node: int, request: RaftRequest, sent_us: int) -> None:
        """Have another request in flight, which was sent at that time."""
        state = self._connections[node]
        state.request = request
        state.since_us = sent_us

    def since_us(self, node: int) -> int:
        """When the request in flight to a member was sent."""
        return self._connections[node].since_us

    def on_response_result(self, node: int, request: RaftRequest, now_us: int, *, success: bool) -> None:
        """A response was handled; an error makes the connection back off. Kafka: RequestManager#onResponseResult."""
        if not self.is_response_expected(node, request):
            return
        if success:
            self.reset(node)
        else:
            state = self._connections[node]
            state.request = None
            state.since_us = now_us

    def reset(self, node: int) -> None:
        """Forget what is in flight to a member. Kafka: RequestManager#reset."""
        self._connections.pop(node, None)

    def reset_all(self) -> None:
        """Forget what is in flight. Kafka: RequestManager#resetAll."""
        self._connections.clear()

    def _ends_us(self, node: int) -> int:
        state = self._connections[node]
        return state.since_us + (self._backoff_us if state.request is None else self._timeout_us)

    def _drop_ended(self, now_us: int) -> None:
        for node, state in list(self._connections.items()):
            if state.since_us + (self._backoff_us if state.request is None else self._timeout_us) <= now_us:
                self.reset(node)
