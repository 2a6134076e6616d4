"""How a broker reads the requests of producers: one of each connection at a time.

A connection is not read while the broker has not answered a request of it. So while a batch with acks=all waits for
followers, the next one of the same producer is not appended; and a request with batches for several partitions is
answered when all of them are. ``request.timeout.ms`` of the producer, which is in the
request, ends the wait with REQUEST_TIMED_OUT. The producer has then given the connection up, because it counts the same
time from an earlier moment. So the answer reaches no one; the broker still reads the next request, whose answer cannot
be sent, and then closes the connection.

Followers and consumers have one request to a broker in flight, except for those of consumers that wait for offsets or
leader epochs, which are as if on a connection of their own.

Kafka: Processor#processCompletedReceives, network.KafkaChannel.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from sim.kernel.scheduler import Event, Gate, Kernel
from sim.protocol.messages import ProduceRequest, ProduceResponse

_ALL: Final = -1


class ProduceHandler:
    """What handles the requests."""

    def on_produce(self, request: ProduceRequest) -> None:
        """Handle a request that was read."""
        raise NotImplementedError

    def expire_produce(self, request: ProduceRequest) -> None:
        """End the wait of a batch for followers."""
        raise NotImplementedError


class _Channel:
    """A connection that the broker does not read.

    Attributes:
        request: the request that is not answered; None between an answer and the next request.
        since_us: when it was read.
        responses: those of its batches that are dealt with, if it has several.
        waiting: the requests behind it.
        is_closed: whether the producer has closed the connection.
    """

    __slots__ = ("is_closed", "request", "responses", "since_us", "waiting")

    def __init__(self, request: ProduceRequest, since_us: int) -> None:
        self.request: ProduceRequest | None = request
        self.since_us = since_us
        self.responses: list[ProduceResponse] = []
        self.waiting: list[ProduceRequest] = []
        self.is_closed = False

    def waits_for(self, batch: ProduceRequest) -> bool:
        """Whether this batch is of the request that is not answered.

        A method, because mypyc takes `request` for never None behind an assignment, also after a call that clears it.
        """
        return self.request is not None and self.request.has(batch)


class _Next(Event):
    """The next request of a connection is read."""

    __slots__ = ("_request", "_server")
    elision_safe = True
    needs_partition = True

    def __init__(self, server: SocketServer, request: ProduceRequest) -> None:
        self._server = server
        self._request = request

    def writes_to(self, names: Container[str]) -> bool:
        return self._request.writes_to(names)

    def needs(self, names: Container[str]) -> bool:
        """See `Event.needs`."""
        return self._request.needs(names)

    def happen(self, _: Gate) -> None:
        self._server.read_next(self._request)


class _Expiry(Event):
    """Timeout of a batch that waits for followers, while others wait behind it."""

    __slots__ = ("_request", "_server")
    elision_safe = True

    def __init__(self, server: SocketServer, request: ProduceRequest) -> None:
        self._server = server
        self._request = request

    def happen(self, _: Gate) -> None:
        self._server.expire(self._request)


class SocketServer:
    """See the module. Kafka: Processor#processCompletedReceives."""

    __slots__ = ("_channels", "_handler", "_kernel", "_life")

    def __init__(self, kernel: Kernel, life: Gate) -> None:
        self._kernel = kernel
        self._life = life
        self._handler: ProduceHandler | None = None
        self._channels: dict[tuple[int, int], _Channel] = {}

    def serve(self, handler: ProduceHandler | None) -> None:
        """Give requests to a handler; None: the process has ended."""
        self._handler = handler
        self._channels.clear()

    def receive(self, request: ProduceRequest) -> None:
        """Handle a request that arrives, or let it wait for those before it."""
        key = request.client, request.connection
        channel = self._channels.get(key)
        if channel is not None:
            channel.waiting.append(request)
            if channel.request is not None and len(channel.waiting) == 1:
                self._await_expiry(channel)
            return
        if request.acks == _ALL or (request.acks and request.others):
            self._channels[key] = _Channel(request, self._kernel.now_us)
        assert self._handler is not None
        self._handler.on_produce(request)

    def read_next(self, request: ProduceRequest) -> None:
        """Handle the first of the requests that wait, after the one before was answered."""
        channel = self._channels[request.client, request.connection]
        channel.waiting.remove(request)
        if channel.is_closed:
            channel.waiting.clear()
        channel.request = request
        channel.responses = []
        channel.since_us = self._kernel.now_us
        assert self._handler is not None
        self._handler.on_produce(request)
        if request.acks != _ALL and not (request.acks and request.others):
            self.answered(request)
        elif channel.waits_for(request) and channel.waiting:
            self._await_expiry(channel)

    def whole(self, response: ProduceResponse) -> ProduceResponse | None:
        """The response to the whole request of which this one answers a batch; None if others are not dealt with."""
        request = response.request
        channel = self._channels.get((request.client, request.connection))
        if channel is None or not channel.waits_for(request):
            return response
        whole = channel.request
        assert whole is not None
        if not whole.others:
            return response
        channel.responses.append(response)
        if len(channel.responses) <= len(whole.others):
            return None
        first = next(one for one in channel.responses if one.request is whole)
        others = [one for one in channel.responses if one is not first]
        return ProduceResponse(whole, first.error, first.base_offset, response.answered_us, others)

    def answered(self, request: ProduceRequest) -> None:
        """Read a connection again, whose request was answered, or needs no answer.

        Kafka: KafkaChannel#maybeUnmute (2.0-4.4).
        """
        key = request.client, request.connection
        channel = self._channels.get(key)
        if channel is None or not channel.waits_for(request):
            return
        if channel.waiting:
            channel.request = None
            self._kernel.schedule(self._kernel.now_us, self._life, _Next(self, channel.waiting[0]))
        else:
            del self._channels[key]

    def is_late(self, request: ProduceRequest) -> bool:
        """Whether a batch waited until its timeout, so that the broker has answered it before now."""
        channel = self._channels.get((request.client, request.connection))
        return (
            channel is not None
            and channel.waits_for(request)
            and channel.since_us + request.timeout_us <= self._kernel.now_us
        )

    def _await_expiry(self, channel: _Channel) -> None:
        request = channel.request
        assert request is not None
        due_us = max(self._kernel.now_us, channel.since_us + request.timeout_us)
        self._kernel.schedule(due_us, self._life, _Expiry(self, request))

    def expire(self, request: ProduceRequest) -> None:
        """End the wait of a batch at its timeout, unless it was answered. Kafka: DelayedProduce#onExpiration."""
        channel = self._channels.get((request.client, request.connection))
        if channel is None or not channel.waits_for(request):
            return
        channel.is_closed = True
        assert self._handler is not None
        self._handler.expire_produce(request)
        self.answered(request)
