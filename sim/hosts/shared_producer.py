"""A producer that sends to all partitions: one producer id, one connection to each broker, requests of several batches.

Each partition has a node, metadata and a queue of its own, and `SharedProducer` what they share. All requests leave
from the node of its first partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sim.environment.network import Channel
from sim.history import steps
from sim.hosts.client import Client, ClientSetup
from sim.hosts.peers import Server
from sim.hosts.producer import Producer
from sim.kernel.build import COMPILED
from sim.kernel.scheduler import Event, Gate
from sim.protocol import probes
from sim.protocol.client.producer_sequences import ProducerIdAndEpoch
from sim.protocol.client.record_accumulator import NONE_STOPS, RecordAccumulator
from sim.protocol.client.sender import NEVER_US, ProducerBatch, Sender
from sim.protocol.decisions import Decisions
from sim.protocol.messages import MetadataResponse, ProduceRequest, ProduceResponse
from sim.protocol.replica.partition import NO_LEADER


class _Sent:
    """A request in flight.

    Attributes:
        broker: to which it was sent.
        sent_us: when.
        parts: its batches, as sent and as queued before, with their partitions.
    """

    __slots__ = ("broker", "parts", "sent_us")

    def __init__(
        self, broker: int, sent_us: int, parts: list[tuple[ProduceRequest, ProducerBatch, PartitionProducer]]
    ) -> None:
        self.broker = broker
        self.sent_us = sent_us
        self.parts = parts


class _Timeout(Event):
    """Checks for timed-out requests and expired batches."""

    __slots__ = ("_due_us", "_producer")
    elision_safe = True

    def __init__(self, producer: SharedProducer, due_us: int) -> None:
        self._producer = producer
        self._due_us = due_us

    def happen(self, _: Gate) -> None:
        self._producer.time_out(self._due_us)


class SharedProducer:
    """See the module. Kafka: KafkaProducer.

    Args:
        ids: the producer ids that are not assigned yet, which all producers share.
        decide: its rules.

    Attributes:
        partitions: to which it sends, in the order of their creation; from the node of the first all requests leave.
        epoch: its producer id and epoch, if it is idempotent.
    """

    __slots__ = ("_accumulator", "_closed", "_ids", "_sent", "_timer_us", "epoch", "partitions")

    def __init__(self, ids: Iterator[int], decide: Decisions) -> None:
        self._ids = ids
        self.partitions: list[PartitionProducer] = []
        self.epoch = self._new_epoch()
        self._sent: list[_Sent] = []
        self._closed: dict[int, int] = {}
        """Broker -> number of connections to it that were closed."""
        self._accumulator = RecordAccumulator(decide)
        self._timer_us = NEVER_US

    def _new_epoch(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(partial(next, self._ids))

    def unanswered(self, partition: PartitionProducer) -> int:
        """Number of a partition's batches in requests without an answer."""
        return sum([part is partition for sent in self._sent for _, _, part in sent.parts])

    def run(self) -> None:
        """Send all that may be sent, and fail expired batches. Kafka: Sender#runOnce (2.6-4.4)."""
        for partition in self.partitions:
            partition.resolve()
        self.epoch.go_on()
        if self.epoch.is_dead:
            for partition in self.partitions:
                partition.sender.abort()
            self.replace()
        now_us = self.partitions[0].kernel.now_us
        for broker in self._ready_brokers():
            self._send_to(broker, now_us)
        for partition in self.partitions:
            partition.sender.expire(now_us)
        self._set_timer()

    def _ready_brokers(self) -> list[int]:
        """The leaders to which something may be sent. Kafka: RecordAccumulator#ready."""
        brokers = []
        for partition in self.partitions:
            if partition.has_ready:
                if partition.channel() is None:
                    partition.retry_later()
                elif partition.leader not in brokers:
                    brokers.append(partition.leader)
        brokers.sort()
        return brokers

    def _has_room(self, broker: int) -> bool:
        """Whether another request may be sent to a broker. Kafka: InFlightRequests#canSendMore."""
        most = self.partitions[0].settings.max_in_flight
        return len(self._sent) < most or sum([sent.broker == broker for sent in self._sent]) < most

    def _send_to(self, broker: int, now_us: int) -> None:
        """Send all that may be sent to a broker. A round that a partition ends at once may be followed by one that
        begins with another partition, so there are as many of them as partitions.
        """
        empty = 0
        while self._has_room(broker) and empty < len(self.partitions):
            batches, is_stopped = self._drain(broker)
            if batches:
                empty = 0
                self._send(broker, batches, now_us)
            elif is_stopped:
                empty += 1
            else:
                break

    def _drain(self, broker: int) -> tuple[list[tuple[PartitionProducer, ProducerBatch]], bool]:
        """The batches of the next request to a broker, and whether a partition had to wait and may hold others back."""
        led = [partition for partition in self.partitions if partition.leader == broker]
        senders = [partition.sender for partition in led]
        drained = self._accumulator.drain(broker, senders, [partition.has_ready for partition in led])
        is_stopped = drained.stopped != NONE_STOPS
        if is_stopped:
            for partition in led:
                if partition.has_ready and not partition.sender.muted and not partition.sender.is_stopped:
                    partition.hold_back(led[drained.stopped].topic)
        return [(led[index], batch) for index, batch in drained.batches], is_stopped

    def _send(self, broker: int, taken: list[tuple[PartitionProducer, ProducerBatch]], now_us: int) -> None:
        others = tuple([self._request(broker, partition, batch) for partition, batch in taken[1:]])
        first = self._request(broker, *taken[0], others)
        channel = self.partitions[0].reach(broker)
        assert channel is not None
        channel.send(first)
        if others:
            self.partitions[0].reached(probes.REQUEST_OF_SEVERAL)
        if first.acks:
            parts = [(request, batch, part) for request, (part, batch) in zip((first, *others), taken, strict=True)]
            self._sent.append(_Sent(broker, now_us, parts))
            for _, batch in taken:
                batch.leader = broker
                batch.sent_us = now_us
        for partition, batch in taken:
            partition.note_sent(batch)

    def _request(
        self,
        broker: int,
        partition: PartitionProducer,
        batch: ProducerBatch,
        others: tuple[ProduceRequest, ...] = (),
    ) -> ProduceRequest:
        first = self.partitions[0]
        return ProduceRequest(
            first.node,
            partition.topic,
            batch.first_id,
            batch.count,
            batch.acks,
            batch.sequence,
            self._closed.get(broker, 0),
            first.timeout_us,
            others,
        )

    def answered(self, response: ProduceResponse) -> None:
        """Handle a response. Kafka: Sender#handleProduceResponse."""
        for sent in self._sent:
            if sent.parts[0][0] is response.request:
                break
        else:
            return
        self._sent.remove(sent)
        responses = (response, *response.others)
        for request, batch, partition in sent.parts:
            partition.handle(next(one for one in responses if one.request is request), batch)
            if partition.sender.threw:
                break
        self.run()

    def requeue(self, broker: int) -> None:
        """Requeue the batches of all requests to a broker, which will not be answered."""
        lost = [sent for sent in self._sent if sent.broker == broker]
        if not lost:
            return
        self._closed[broker] = self._closed.get(broker, 0) + 1
        self._sent = [sent for sent in self._sent if sent.broker != broker]
        for partition in self.partitions:
            batches = [batch for sent in lost for _, batch, part in sent.parts if part is partition]
            if batches:
                partition.take_back(batches)

    def lost(self, broker: int) -> None:
        """The connection to a broker broke."""
        self.requeue(broker)
        for partition in self.partitions:
            if partition.leader == broker:
                partition.retry_later(always=True)

    def replace(self) -> None:
        """Replace a fatally fenced producer, as the application would; what was queued or in flight is forgotten."""
        self.epoch = self._new_epoch()
        for broker in sorted({sent.broker for sent in self._sent}):
            self._closed[broker] = self._closed.get(broker, 0) + 1
        self._sent.clear()
        for partition in self.partitions:
            partition.begin_anew()

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        self.partitions.clear()
        self._sent.clear()

    def stop(self) -> None:
        """Send no further batches of any plan; see `Producer.stop`."""
        for partition in self.partitions:
            partition.schedule([])

    def least_loaded(self, brokers: tuple[int, ...], since: int) -> int:
        """The index, from `since` on, of a broker with the fewest requests in flight, which is asked for metadata.

        Kafka: NetworkClient#leastLoadedNode.
        """
        sent = [sum([one.broker == broker for one in self._sent]) for broker in brokers]
        return min(range(since, since + len(brokers)), key=lambda place: sent[place % len(brokers)])

    def _set_timer(self) -> None:
        """Set the timer for the earliest request timeout or batch expiry; one timer serves all."""
        first = self.partitions[0]
        due_us = min([partition.sender.next_expiry_us for partition in self.partitions])
        if self._sent:
            due_us = min(due_us, self._sent[0].sent_us + first.timeout_us)
        if due_us < self._timer_us:
            self._timer_us = due_us
            first.kernel.schedule(due_us, first.life, _Timeout(self, due_us))

    def time_out(self, due_us: int) -> None:
        """Time out requests, and with each all others on the same connection. Kafka:
        NetworkClient#handleTimedOutRequests.
        """
        if due_us != self._timer_us:
            return  # The timer was set again for an earlier time.
        self._timer_us = NEVER_US
        first = self.partitions[0]
        latest_us = first.kernel.now_us - first.timeout_us
        for broker in sorted({sent.broker for sent in self._sent if sent.sent_us <= latest_us}):
            first.reached(probes.WRITE_TIMES_OUT)
            self.requeue(broker)
        self.run()


class PartitionProducer(Producer):
    """What a producer has of its own for one of the partitions to which it sends.

    Args:
        shared: the producer.

    Attributes:
        has_begun: whether it has requested metadata.
    """

    __slots__ = ("_held_back", "_shared", "has_begun")

    def __init__(self, node: int, setup: ClientSetup, shared: SharedProducer) -> None:
        self._shared = shared
        self.has_begun = False
        self._held_back: tuple[int, int, str] | None = None
        """Leader, since when its batches are held back because of another partition, and that partition."""
        super().__init__(node, setup, iter(()))
        shared.partitions.append(self)

    def epoch(self) -> ProducerIdAndEpoch:
        return self._shared.epoch

    @property
    def sender(self) -> Sender:
        """Its queue."""
        return self._sender

    @property
    def has_ready(self) -> bool:
        """Whether a batch waits to be sent to a known leader, and not for a back-off."""
        return bool(self._sender.queue) and not self._paused

    @property
    def idle(self) -> bool:
        return not (self._sender.queue or self._sender.in_flight or self._shared.unanswered(self))

    @property
    def size(self) -> int:
        return len(self._sender.queue) + len(self._sender.in_flight) + self._shared.unanswered(self)

    def resolve(self) -> None:
        """See `ProducerSequences.resolve`."""
        if self._sender.sequences is not None:
            self._sender.sequences.resolve()

    def take_back(self, batches: list[ProducerBatch]) -> None:
        """Requeue batches that will not be answered."""
        self._paused = True
        self._sender.connection_lost(batches, self.kernel.now_us)
        self.retry_later(always=True)

    def hold_back(self, because_of: str) -> None:
        """Note that a batch could be sent now but for one of another partition."""
        if self._held_back is None or self._held_back[0] != self.leader:
            self._held_back = self.leader, self.kernel.now_us, because_of

    def note_sent(self, batch: ProducerBatch) -> None:
        """Note that a batch was sent."""
        held, self._held_back = self._held_back, None
        if held is not None and held[0] == self.leader and held[1] < self.kernel.now_us:
            self.reached(probes.PARTITION_STOPS_OTHERS)
            held_us = self.kernel.now_us - held[1]
            self.recorder.record(steps.HeldBack(self.leader, batch.first_id, batch.count, held_us, held[2]))

    def begin_anew(self) -> None:
        """Forget all batches, as a new process does."""
        self._sender.dispose()
        self._sender = self._new_sender()
        self._held_back = None
        self.note_producer_id()

    def channel(self) -> Channel[Server] | None:
        return None if self.leader == NO_LEADER else self._shared.partitions[0].reach(self.leader)

    def begin(self) -> None:
        self.has_begun = True
        super().begin()

    def refresh(self) -> None:
        """Request the metadata of all partitions, as a producer does when it needs those of one."""
        self.refresh_alone()
        for other in self._shared.partitions:
            if other is not self and other.has_begun:
                other.refresh_alone()

    def refresh_alone(self) -> None:
        """Request the metadata of this partition."""
        self._next_broker = self._shared.least_loaded(self.bootstrap, self._next_broker)
        super().refresh()

    def run(self) -> None:
        self._shared.run()

    def on_produce_reply(self, reply: ProduceResponse) -> None:
        self._shared.answered(reply)

    def disconnected(self, peer: int) -> None:
        if self is self._shared.partitions[0]:
            self._shared.lost(peer)
        Client.disconnected(self, peer)

    def requeue(self, broker: int) -> None:
        self._shared.requeue(broker)

    def dispose(self) -> None:
        super().dispose()
        self._shared.dispose()

    def restart(self) -> None:
        self._shared.replace()

    def stop(self) -> None:
        self._shared.stop()


if not COMPILED:
    PartitionProducer.handlers = {
        ProduceResponse: PartitionProducer.on_produce_reply,
        MetadataResponse: PartitionProducer.on_metadata_reply,
    }
