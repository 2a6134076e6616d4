"""A broker's requests on their way to the active controller of a replicated quorum.

A broker sends to the leader that its own Raft client knows, and keeps to that controller until it answers
NOT_CONTROLLER, the connection breaks, or a request times out. Such a request is sent again.
"""

from __future__ import annotations

from typing import Final

from sim.environment.network import Node
from sim.hosts.raft_member import RaftMember
from sim.kernel.message import Message
from sim.kernel.scheduler import Event, Gate, Kernel
from sim.protocol.kraft.quorum_messages import (
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
)
from sim.protocol.raft.raft_messages import NO_NODE

UNKNOWN_US: Final = 100_000
"""How soon a broker that knows no leader looks again. Kafka: NodeToControllerRequestThread#doWork."""
RECONNECT_US: Final = 50_000
"""How soon it tries the same controller again: ``reconnect.backoff.ms``."""
_LANES: Final = 3


class _Retry(Event):
    """Time to send a request again."""

    __slots__ = ("_lane", "_request", "_sender")
    elision_safe = True

    def __init__(self, thread: NodeToControllerRequestThread, lane: int, request: Message) -> None:
        self._sender = thread
        self._lane = lane
        self._request = request

    def happen(self, _: Gate) -> None:
        self._sender.retry(self._lane, self._request)


def _lane_of(request: Message) -> int:
    """The channel of a request, of which a broker has three; -1 for a response to a controller's request."""
    if isinstance(request, BrokerHeartbeatRequest | BrokerRegistrationRequest):
        return 0
    if isinstance(request, AlterPartitionRequest):
        return 1
    return 2 if isinstance(request, AssignReplicasToDirsRequest) else -1


class NodeToControllerRequestThread:
    """See the module. Kafka: NodeToControllerRequestThread."""

    __slots__ = ("_addresses", "_broker", "_kernel", "_member", "_pending")

    def __init__(self, broker: Node, kernel: Kernel, member: RaftMember) -> None:
        self._broker = broker
        self._kernel = kernel
        self._member = member
        self._addresses = [NO_NODE] * _LANES
        """For each channel, the controller that it keeps to."""
        self._pending: list[Message | None] = [None] * _LANES
        """For each channel, the request that was not answered."""

    def end(self) -> None:
        """Drop all requests, because the process ended."""
        self._pending = [None] * _LANES

    def may_ping(self, node: int) -> bool:
        """Whether the next heartbeat would go to a node, and none waits for its response."""
        return self._pending[0] is None and self._addresses[0] in (node, NO_NODE)

    def send(self, request: Message) -> None:
        """Send a request. If an earlier one was not answered, it has timed out."""
        lane = _lane_of(request)
        if lane < 0:
            self._transmit(self._member.leader, request)
            return
        if self._pending[lane] is not None:
            self._addresses[lane] = NO_NODE
        self._pending[lane] = request
        self._send(lane, request)

    def _send(self, lane: int, request: Message) -> None:
        if self._addresses[lane] == NO_NODE:
            self._addresses[lane] = self._member.leader
        address = self._addresses[lane]
        if address == NO_NODE:
            self._retry_after(UNKNOWN_US, lane, request)
        elif not self._transmit(address, request):
            self._addresses[lane] = NO_NODE
            self._retry_after(RECONNECT_US, lane, request)

    def _transmit(self, node: int, request: Message) -> bool:
        """Send to a node; False if that is down."""
        broker = self._broker
        channel = broker.out.get(node) or broker.reach(node)
        if channel is None:
            return False
        if isinstance(request, BrokerHeartbeatRequest):
            channel.send_usually(request)
        else:
            channel.send(request)
        return True

    def _retry_after(self, after_us: int, lane: int, request: Message) -> None:
        self._kernel.schedule(self._kernel.now_us + after_us, self._broker.life, _Retry(self, lane, request))

    def retry(self, lane: int, request: Message) -> None:
        """Send a request again, unless it was answered or replaced."""
        if self._pending[lane] is request:
            self._send(lane, request)

    def answered(self, request: Message) -> None:
        """A request was answered."""
        lane = _lane_of(request)
        if lane >= 0 and self._pending[lane] is request:
            self._pending[lane] = None

    def refused(self, request: Message) -> None:
        """A controller is not active (NOT_CONTROLLER): send the request to the one that is, once it is known."""
        lane = _lane_of(request)
        if self._pending[lane] is not request:
            return
        before, self._addresses[lane] = self._addresses[lane], NO_NODE
        if self._member.leader not in (before, NO_NODE):
            self._send(lane, request)
        else:
            self._retry_after(RECONNECT_US, lane, request)

    def disconnected(self, node: int) -> None:
        """The connection to a node broke."""
        for lane, address in enumerate(self._addresses):
            if address == node:
                self._addresses[lane] = NO_NODE
                request = self._pending[lane]
                if request is not None:
                    self._retry_after(RECONNECT_US, lane, request)
