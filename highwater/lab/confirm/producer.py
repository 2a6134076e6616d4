"""A producer of a partition: it sends batches to real brokers, waits and retries as Kafka's does.

The simulated `Sender` decides which batch is sent next, which are sent again and in which order, and which fail; so a
batch waits behind those before it as long as there is no leader. What is here takes the place of the network.

As in Kafka, it has one connection to each broker, which handles one request of it at a time (Kafka: SocketServer), and
it gives a connection up before the broker answers that a batch has waited too long.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm import files, wire
from highwater.lab.confirm.partitions import FIRST, KafkaPartition
from sim.config import integer
from sim.history.steps import ACK, REFUSED
from sim.protocol.batch import NO_SEQUENCE
from sim.protocol.client.producer_sequences import ProducerIdAndEpoch, ProducerSequences
from sim.protocol.client.sender import ProducerBatch, Sender
from sim.protocol.decisions import Decisions
from sim.protocol.messages import (
    INVALID_PRODUCER_EPOCH,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
    ProduceRequest,
    ProduceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from highwater.lab.confirm.cluster import KafkaCluster
    from highwater.lab.confirm.observer import Observer
    from sim.config import Value
    from sim.protocol.batch import Sequence
    from sim.protocol.rules import Rules

REQUEST: Final = ProduceRequest.__name__
RESPONSE: Final = ProduceResponse.__name__
RETRY_S: Final = 0.1
ANSWER_S: Final = 6.0
REQUEST_S: Final = 5.0
"""The least ``request.timeout.ms`` here, at any pace."""
_LOOK_S: Final = 0.005
_GZIP: Final = 1
_VALUE_BYTES: Final = 64
_SMALL_BYTES: Final = 1_000
"""Records that are not larger do not fill a segment, and have values of at most 64 bytes."""
_DUPLICATE: Final = 46
_SEQUENCE_ERRORS: Final = {45: OUT_OF_ORDER_SEQUENCE_NUMBER, 47: INVALID_PRODUCER_EPOCH, 59: UNKNOWN_PRODUCER_ID}
"""Error codes that concern an idempotent producer's sequence numbers."""
_NOW_MS: Final = int(time.time() * 1000)


@dataclass(slots=True)
class Send:
    """A batch that the script sends: `count` records from `first_id` on.

    Attributes:
        offset: offset at which it was acknowledged; None: not yet.
        by: broker that acknowledged it.
        failed: whether the application got an error for it.
        sequence: its sequence number, from an idempotent producer.
    """

    name: str
    first_id: int
    count: int
    acks: int
    offset: int | None = None
    by: int = 0
    failed: bool = False
    sequence: Sequence = NO_SEQUENCE


@dataclass(slots=True, eq=False)
class InFlight:
    """A request without a response."""

    batch: ProducerBatch
    broker: int
    encoded: Any
    sent_s: float
    connection: ProducerConnection


class ProducerConnection:
    """A connection to a broker, which answers requests in their order.

    `answered` receives each request with its answer, and the connection with None when it breaks.
    """

    def __init__(self, port: int, answered: SimpleQueue[tuple[Any, Any]]) -> None:
        self._wire = wire.Connection(port, ANSWER_S)
        self._wire.wait_for_ever()
        self._answered = answered
        self._asked: SimpleQueue[InFlight | None] = SimpleQueue()
        self.is_closed = False
        threading.Thread(target=self._receive, daemon=True, name="produce-answers").start()

    def send(self, request: InFlight) -> None:
        """Send a request."""
        try:
            self._wire.send(request.encoded)
        except OSError:
            self._answered.put((self, None))
        else:
            self._asked.put(request)

    def close(self) -> None:
        """Close it."""
        self.is_closed = True
        self._asked.put(None)
        self._wire.close()

    def _receive(self) -> None:
        while (request := self._asked.get()) is not None:
            try:
                answer = self._wire.answer_to(request.encoded)
            except (*wire.RETRIABLE, ValueError):
                self._answered.put((self, None))
                return
            if answer is not None:
                self._answered.put((request, answer))


@dataclass(slots=True)
class _Hold:
    """Messages of a type that are held back on their way to or from a broker, and how many more are to pass at once."""

    held: deque[Callable[[], None]] = field(default_factory=deque)
    passing: int = 0


class KafkaProducer:
    """See the module. `rules` say how an idempotent producer reacts to responses."""

    def __init__(
        self,
        cluster: KafkaCluster,
        observer: Observer,
        config: Mapping[str, Value],
        rules: Rules,
        partition: KafkaPartition = FIRST,
    ) -> None:
        self._cluster = cluster
        self._observer = observer
        self._partition = partition
        self._config = config
        self._decide = Decisions(rules)
        self._old = cluster.release.number < (1,)
        self._is_idempotent = bool(config["enable.idempotence"])
        self._most = integer(config, "max.in.flight.requests.per.connection")
        self._sender: Sender | None = None
        self._named: dict[int, Send] = {}
        self._new: list[ProducerBatch] = []
        self._pending: list[ProducerBatch] = []
        """Batches whose results the application does not have yet."""
        self._requests: list[InFlight] = []
        self._out: dict[int, deque[InFlight]] = defaultdict(deque)
        """Broker -> requests on their way to it, in order."""
        self._connections: dict[tuple[int, int], ProducerConnection] = {}
        """Broker and its incarnation -> the connection."""
        self._holds: dict[tuple[str, int], _Hold] = {}
        self._leader = self._told_leader = 0
        self._refresh_s = 0.0
        self._answered: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
        self._orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="producer")

    def send(self, send: Send) -> None:
        """Send a batch, and retry until it is acknowledged or fails."""
        self._orders.put(lambda: self._queue(send))
        if not self._thread.is_alive() and not self._closed.is_set():
            self._thread.start()

    def restart(self) -> None:
        """Replace the process by a new one, with another producer id; what was queued or in flight is forgotten."""
        self._orders.put(self._restart)

    def _restart(self) -> None:
        for connection in [*self._connections.values(), *(request.connection for request in self._requests)]:
            connection.close()
        self._connections.clear()
        self._requests.clear()
        self._out.clear()
        self._new.clear()
        self._pending.clear()
        self._sender = None

    def close(self) -> None:
        """Stop it."""
        self._closed.set()

    @property
    def timeout_s(self) -> float:
        """How long a leader may wait for followers before it answers (``request.timeout.ms``)."""
        return max(REQUEST_S, self._cluster.paced_ms(integer(self._config, "request.timeout.ms")) / 1000)

    # Messages that are held back.

    def hold(self, name: str, broker: int) -> None:
        """Hold back `REQUEST` to a broker, or `RESPONSE` from it."""
        self._orders.put(lambda: self._holds.update({(name, broker): _Hold()}))

    def deliver(self, name: str, broker: int, *, newest: bool = False) -> None:
        """Let the oldest or newest message go on that is held back; if there is none yet, the next one passes."""

        def deliver() -> None:
            hold = self._holds[name, broker]
            if hold.held:
                (hold.held.pop if newest else hold.held.popleft)()()
            else:
                hold.passing += 1

        self._orders.put(deliver)

    def release(self, name: str, broker: int) -> None:
        """Let all messages go on that are held back, and hold back no further ones."""

        def release() -> None:
            hold = self._holds.pop((name, broker), _Hold())
            for go_on in hold.held:
                go_on()

        self._orders.put(release)

    def release_all(self) -> None:
        """End all holds."""
        for name, broker in list(self._holds):
            self.release(name, broker)

    def _pass(self, name: str, broker: int, go_on: Callable[[], None]) -> None:
        """Let a message go on, unless it is held back."""
        hold = self._holds.get((name, broker))
        if hold is None:
            go_on()
        elif hold.passing:
            hold.passing -= 1
            go_on()
        else:
            hold.held.append(go_on)

    # The thread.

    def _work(self) -> None:
        while not self._closed.wait(_LOOK_S):
            self.look()
        for request in self._requests:
            request.connection.close()

    def look(self) -> None:
        """Handle what has happened, and send what may be sent."""
        while not self._orders.empty():
            self._orders.get()()
        while not self._answered.empty():
            what, answer = self._answered.get()
            if isinstance(what, InFlight):
                self._pass(RESPONSE, what.broker, partial(self._take, what, answer))
            elif not what.is_closed:
                self._connection_lost(what)
        self._drop_held_by_ended()
        now_s = self._cluster.time_s
        oldest = self._requests[0] if self._requests else None
        if oldest is not None and now_s >= oldest.sent_s + self.timeout_s:
            self._give_up(oldest.broker, "no answer")
        if now_s >= self._refresh_s:
            if any(node.alive and not node.paused for node in self._cluster.brokers.values()):
                self._told_leader = self._cluster.leader_of(self._partition)
            self._leader = self._told_leader  # Where no broker answers, the one that it was told before.
            age_s = self._cluster.paced_ms(integer(self._config, "metadata.max.age.ms")) / 1000
            self._refresh_s = now_s + (max(age_s, RETRY_S) if self._leader else RETRY_S)
        if self._sender is None:
            self._sender = self._new_sender()
        if self._sender is not None:
            self._sender.queue += self._new
            self._new.clear()
            self._run(self._sender)
        for broker in list(self._out):
            self._send_out(broker)
        for batch in [batch for batch in self._pending if batch.is_done]:
            self._pending.remove(batch)
            self._named[batch.first_id].failed = batch.error != ""

    def _drop_held_by_ended(self) -> None:
        """Break the connections of brokers that have ended while responses of theirs are held: these never arrive.

        A connection without a request that waits for its answer is not read, so its end would not be noticed.
        """
        for (name, broker), hold in self._holds.items():
            node = self._cluster.node(broker)
            if name == RESPONSE and hold.held and not (node.alive or node.silent):
                hold.held.clear()
                self._give_up(broker, "the connection broke")

    @property
    def is_idle(self) -> bool:
        """Whether the application has the results of all batches."""
        return self._orders.empty() and not self._pending

    def _new_sender(self) -> Sender | None:
        """A sender; None as long as an idempotent one gets no producer id."""
        sequences = None
        if self._is_idempotent:
            try:
                sequences = ProducerSequences(
                    self._decide, ProducerIdAndEpoch(self._new_producer_id), lambda _id, _epoch: None
                )
            except wire.RETRIABLE:
                return None
        paced_ms = self._cluster.paced_ms(integer(self._config, "delivery.timeout.ms"))
        return Sender(self._decide, sequences, keeps_order=self._most == 1, delivery_timeout_us=1_000 * paced_ms)

    @property
    def _now_us(self) -> int:
        return int(self._cluster.time_s * 1_000_000)

    def _queue(self, send: Send) -> None:
        self._named[send.first_id] = send
        self._new.append(ProducerBatch(send.first_id, send.count, send.acks, self._now_us))
        self._pending.append(self._new[-1])

    def _run(self, sender: Sender) -> None:
        """Give requests to the network as long as the sender has some. Kafka: producer.internals.Sender#run."""
        while True:
            leader, connection = self._leader, None
            if leader and sender.queue and sum(flight.broker == leader for flight in self._requests) < self._most:
                connection = self._connection_to(leader)
                if connection is None:
                    self._refresh_later()
            try:
                batch = sender.run_once(self._now_us, ready=connection is not None)
            except wire.RETRIABLE:
                batch = None  # There is no producer id at present.
            if batch is None or connection is None:
                break
            send = self._named[batch.first_id]
            send.sequence = batch.sequence
            request = InFlight(batch, leader, self.request(send), self._cluster.time_s, connection)
            if batch.acks:
                self._requests.append(request)
            self._pass(REQUEST, leader, partial(self._out[leader].append, request))
        if sender.sequences is not None and sender.sequences.producer.is_dead:
            self._sender = None
            self._requests.clear()

    def _connection_to(self, broker: int) -> ProducerConnection | None:
        """A connection for the next request to a broker; None if it takes none."""
        node = self._cluster.node(broker)
        kept = self._connections.get((broker, node.incarnation))
        if not node.alive:
            return None
        if kept is not None and not kept.is_closed:
            return kept
        try:
            connection = ProducerConnection(node.client_port, self._answered)
        except OSError:
            return None
        self._connections[broker, node.incarnation] = connection
        return connection

    def _send_out(self, broker: int) -> None:
        """Send requests to a broker in their order."""
        waiting = self._out[broker]
        while waiting:
            request = waiting[0]
            if request.batch.acks and request not in self._requests:
                waiting.popleft()  # It was given up.
                continue
            waiting.popleft()
            request.connection.send(request)

    # Responses.

    def _take(self, request: InFlight, answer: Any) -> None:
        """Handle a response. Kafka: Sender#handleProduceResponse."""
        sender = self._sender
        if request not in self._requests or sender is None:
            return
        self._requests.remove(request)
        told = answer.responses[0].partition_responses[0]
        batch, offset = request.batch, int(told.base_offset)
        if told.error_code in (0, _DUPLICATE):
            if sender.completed(batch, offset if told.error_code == 0 else -1):
                send = self._named[batch.first_id]
                send.offset, send.by = offset, request.broker
                fields = {"record": send.first_id, "count": send.count, "offset": offset}
                self._observer.add_step(ACK.name, **fields, acks=send.acks, **self._partition.tag)
            return
        self._refused(request, f"error {told.error_code}")
        error = _SEQUENCE_ERRORS.get(told.error_code, f"error {told.error_code}")
        sender.refused(batch, error, int(getattr(told, "log_start_offset", -1)), self._now_us)
        self._refresh_later()

    def _refused(self, request: InFlight, problem: str) -> None:
        fields = {"record": request.batch.first_id, "by": request.broker, "problem": problem}
        self._observer.add_step(REFUSED.name, **fields, **self._partition.tag)

    def _connection_lost(self, connection: ProducerConnection) -> None:
        """A connection broke. That of a machine without power does not: its silence is noticed by timeout."""
        broker = next((request.broker for request in self._requests if request.connection is connection), 0)
        connection.close()
        if broker and not self._cluster.node(broker).silent:
            self._give_up(broker, "the connection broke")

    def _give_up(self, broker: int, problem: str) -> None:
        """No request to a broker will be answered. Kafka: NetworkClient#handleTimedOutRequests."""
        lost = [request for request in self._requests if request.broker == broker]
        self._requests = [request for request in self._requests if request.broker != broker]
        for request in lost:
            request.connection.close()
            self._refused(request, problem)
        if self._sender is not None:
            self._sender.connection_lost([request.batch for request in lost], self._now_us)
        self._refresh_later()

    def _refresh_later(self) -> None:
        """Ask for the leader again after the back-off."""
        self._leader = 0
        self._refresh_s = self._cluster.time_s + RETRY_S

    # Requests.

    def _new_producer_id(self) -> int:
        """Get a new producer id; its epoch is 0.

        Raises:
            OSError: no broker returns one at present.
        """
        from kafka.protocol.producer import InitProducerIdRequest

        brokers = [node for node in self._cluster.brokers.values() if node.alive and not node.paused]
        if not brokers:
            raise OSError("no broker runs")
        request = InitProducerIdRequest(version=0, transactional_id=None, transaction_timeout_ms=60_000)
        told = wire.ask(brokers[0].client_port, request, ANSWER_S)
        if told.error_code:
            raise OSError(f"error {told.error_code}")
        return int(told.producer_id)

    def request(self, send: Send) -> Any:
        """The request that produces a batch to the partition."""
        from kafka.protocol.producer import ProduceRequest as KafkaProduceRequest
        from kafka.record import MemoryRecordsBuilder

        # Without batches in the format, compressed records are what is appended as a whole.
        whole = _GZIP if self._old and send.count > 1 else 0
        producer_id, producer_epoch, base_sequence = send.sequence
        builder = MemoryRecordsBuilder(
            magic=1 if self._old else 2,
            compression_type=whole,
            batch_size=1 << 20,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
        record_bytes = integer(self._config, "sim.record.bytes")
        size = record_bytes if record_bytes > _SMALL_BYTES else min(_VALUE_BYTES, record_bytes)
        for record in range(send.first_id, send.first_id + send.count):
            builder.append(
                timestamp=_NOW_MS, key=files.key_of(send.name), value=files.value_of(record, size), headers=[]
            )
        builder.close()
        topic = KafkaProduceRequest.TopicProduceData
        partition = topic.PartitionProduceData(index=self._partition.number, records=bytes(builder.buffer()))
        return KafkaProduceRequest(
            version=2 if self._old else 3 if send.sequence == NO_SEQUENCE else 5,
            transactional_id=None,
            acks=send.acks,
            timeout_ms=int(self.timeout_s * 1000),
            topic_data=[topic(name=self._partition.topic, partition_data=[partition])],
        )
