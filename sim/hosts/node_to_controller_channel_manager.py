"""A broker's requests of one kind to the active controller: one at a time, each with a timeout."""

from __future__ import annotations

from collections.abc import Callable

from sim.hosts.broker_node import BrokerNode
from sim.kernel.message import Message
from sim.kernel.scheduler import Event, Gate, noop


class _ResponseTimeout(Event):
    """Timeout of a request to the controller."""

    __slots__ = ("_channel", "_request")
    elision_safe = True

    def __init__(self, channel: NodeToControllerChannelManager, request: Message) -> None:
        self._channel = channel
        self._request = request

    def happen(self, _: Gate) -> None:
        self._channel.time_out(self._request)


class NodeToControllerChannelManager:
    """A request in flight and its timeout. Kafka: NodeToControllerChannelManager.

    Args:
        broker: the broker.
        timeout_us: how long it waits for a response.
        timed_out: called when the request in flight has timed out.

    Attributes:
        in_flight: the request in flight.
        timeout_us: see above.
    """

    __slots__ = ("_broker", "_timed_out", "in_flight", "timeout_us")

    def __init__(self, broker: BrokerNode, timeout_us: int, timed_out: Callable[[], object]) -> None:
        self._broker = broker
        self._timed_out = timed_out
        self.timeout_us = timeout_us
        self.in_flight: Message | None = None

    def end(self) -> None:
        """Stop, because the process ended."""
        self.in_flight = None
        self._timed_out = noop

    def send(self, request: Message) -> None:
        """Send a request."""
        self._broker.to_control(request)
        self.await_response(request, self._broker.kernel.now_us)

    def await_response(self, request: Message, sent_us: int) -> None:
        """Wait for the response to a request that was sent at that time."""
        self.in_flight = request
        self._broker.kernel.schedule(sent_us + self.timeout_us, self._broker.life, _ResponseTimeout(self, request))

    def is_answered_by(self, response_to: Message) -> bool:
        """Whether a response is that to the request in flight, which is answered then."""
        if response_to is not self.in_flight:
            return False
        self.in_flight = None
        return True

    def time_out(self, request: Message) -> None:
        """Give up a request, if it is still in flight."""
        if request is self.in_flight:
            self._broker.end_elision()
            self.in_flight = None
            self._timed_out()
