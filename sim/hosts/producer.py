"""A producer: sends batches at intended times, retries, and gives up after ``delivery.timeout.ms``.

Without ``enable.idempotence`` a retry is appended twice if its first copy had arrived. `sim.protocol.client.sender`
decides what is sent and retried.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sim.history import steps
from sim.hosts.client import Client, ClientSetup
from sim.kernel.build import COMPILED
from sim.kernel.scheduler import Event, Gate
from sim.protocol import probes
from sim.protocol.client.producer_sequences import SEQUENCE_ERRORS, ProducerIdAndEpoch, ProducerSequences
from sim.protocol.client.sender import NEVER_US, ProducerBatch, Sender
from sim.protocol.messages import NONE, MetadataResponse, ProduceRequest, ProduceResponse


class _Due(Event):
    """Timer of the next planned batch."""

    __slots__ = ("_plan", "_position", "_producer")

    def __init__(self, producer: Producer, plan: list[ProducerBatch], position: int) -> None:
        self._producer = producer
        self._plan = plan
        self._position = position

    def happen(self, _: Gate) -> None:
        self._producer.send_planned(self._plan, self._position)


class _ProduceTimeout(Event):
    """Checks for timed-out requests and expired batches."""

    __slots__ = ("_due_us", "_producer")
    elision_safe = True

    def __init__(self, producer: Producer, due_us: int) -> None:
        self._producer = producer
        self._due_us = due_us

    def happen(self, _: Gate) -> None:
        self._producer.time_out(self._due_us)


class Producer(Client):
    """Sends to one partition; `sim.hosts.shared_producer` has one that sends to several. Kafka: KafkaProducer.

    Args:
        ids: the producer ids that are not assigned yet, which all producers of the partition share.

    Attributes:
        sent: number of scheduled batches that it has sent, or queued.
    """

    __slots__ = (
        "_closed",
        "_created",
        "_ids",
        "_paused",
        "_plan",
        "_position",
        "_requests",
        "_sender",
        "_timer_us",
        "sent",
    )

    def __init__(self, node: int, setup: ClientSetup, ids: Iterator[int]) -> None:
        super().__init__(node, setup)
        self._plan: list[ProducerBatch] = []
        self._position = 0
        """Index of the next batch of the plan."""
        self.sent = 0
        self._requests: list[tuple[ProduceRequest, ProducerBatch]] = []
        self._closed: dict[int, int] = {}
        """Broker -> number of connections to it that were closed."""
        self._timer_us = NEVER_US
        self._paused = False
        self._ids = ids
        self._created = setup.created
        self._sender = self._new_sender()

    def receive(self, message: Event) -> None:
        if isinstance(message, ProduceResponse):
            self.on_produce_reply(message)
        else:
            super().receive(message)

    def _new_sender(self) -> Sender:
        sequences = None
        if self.settings.idempotence:
            sequences = ProducerSequences(self.decide, self.epoch(), self._record_producer_id)
        return Sender(
            self.decide,
            sequences,
            keeps_order=self.settings.max_in_flight == 1,
            delivery_timeout_us=self.settings.delivery_timeout_us,
            failed=self._batch_failed,
        )

    def _batch_failed(self, send: ProducerBatch) -> None:
        """Pass the exception to the application, which may send nothing more."""
        self.recorder.record(steps.BatchFailed(send.first_id, send.count, send.sequence, send.error))
        if self.settings.stops_after_failure:
            self.stop()

    def stop(self) -> None:
        """Send no further batches of the plan: the application closes its producer, which sends what is queued.

        Kafka: KafkaProducer#close.
        """
        self.schedule([])

    def epoch(self) -> ProducerIdAndEpoch:
        """The producer id and epoch of a new sender."""
        return ProducerIdAndEpoch(partial(next, self._ids))

    def _record_producer_id(self, producer_id: int, producer_epoch: int) -> None:
        self.reached(probes.PRODUCER_ANEW)
        self.recorder.record(steps.ProducerId(self.node, producer_id, producer_epoch))

    def schedule(self, sends: list[ProducerBatch]) -> None:
        """Send batches at their due times, which ascend. They replace those scheduled before that are not due yet."""
        self._plan = sends
        self._position = 0
        if sends:
            self.kernel.schedule(sends[0].due_us, self.life, _Due(self, sends, 0))

    def send_planned(self, plan: list[ProducerBatch], position: int) -> None:
        """Send a batch and schedule the next one, unless other batches replaced them."""
        if plan is not self._plan:
            return
        following = position + 1
        self._position = following
        if following < len(plan):
            self.kernel.schedule(plan[following].due_us, self.life, _Due(self, plan, following))
        self.sent += 1
        self.send(plan[position])

    def send_next(self, batches: int) -> bool:
        """Send the next scheduled batches now instead of at their times; False if none is left."""
        plan, position = self._plan, self._position
        following = plan[position : position + batches]
        self.schedule(plan[position + batches :])
        now_us = self.kernel.now_us
        self.sent += len(following)
        for send in following:
            self.send(ProducerBatch(send.first_id, send.count, send.acks, now_us))
        return bool(following)

    def send(self, send: ProducerBatch) -> None:
        """Send a batch now. Kafka: KafkaProducer#send, RecordAccumulator#append."""
        if self._created is not None:
            self._created.add(send.due_us, send.first_id, send.count)
        self._sender.queue.append(send)
        self._pump()

    @property
    def idle(self) -> bool:
        """Whether no batch waits to be sent and no request is in flight."""
        return not (self._sender.queue or self._sender.in_flight or self._requests)

    @property
    def size(self) -> int:
        """Number of batches queued or in flight."""
        return len(self._sender.queue) + len(self._sender.in_flight) + len(self._requests)

    def _pump(self) -> None:
        """Run the sender, if there is anything to send."""
        if self._sender.queue or self._sender.sequences is not None:
            self.run()

    def run(self) -> None:
        """Run the sender until nothing more may be sent. Kafka: producer.internals.Sender#run."""
        sender = self._sender
        queue = sender.queue
        now_us = self.kernel.now_us
        channel = None
        if queue and not self._paused:
            channel = self.channel()
            if channel is None:
                self.retry_later()
        ready = channel is not None and self._has_room()
        is_old = False
        while (send := sender.run_once(now_us, ready=ready)) is not None:
            assert channel is not None
            request = ProduceRequest(
                self.node,
                self.topic,
                send.first_id,
                send.count,
                send.acks,
                send.sequence,
                self._closed.get(self.leader, 0),
                self.timeout_us,
            )
            channel.send(request)
            if send.acks:
                send.leader = self.leader
                send.sent_us = now_us
                self._requests.append((request, send))
                is_old = is_old or send.is_retry
            if not (queue and self._has_room()):
                break
        if sender.sequences is not None and sender.sequences.producer.is_dead:
            self._replace_sender()
        # A batch sent for the first time is younger than those that the timer is set for.
        if is_old or queue or now_us + self.timeout_us < self._timer_us:
            self._set_timer()

    def _has_room(self) -> bool:
        """Whether another request may be sent to the current leader. Kafka: InFlightRequests#canSendMore."""
        most = self.settings.max_in_flight
        if len(self._requests) < most:
            return True
        leader = self.leader
        count = 0
        for _, send in self._requests:
            if send.leader == leader:
                count += 1
        return count < most

    def restart(self) -> None:
        """Replace the process by a new one, with another producer id; what was queued or in flight is forgotten."""
        self._replace_sender()

    def _replace_sender(self) -> None:
        """Replace a fatally fenced producer, as the application would."""
        self._sender.dispose()
        self._sender = self._new_sender()
        for broker in sorted({send.leader for _, send in self._requests}):
            self._closed[broker] = self._closed.get(broker, 0) + 1
        self._requests.clear()
        self.note_producer_id()

    def note_producer_id(self) -> None:
        """Record the producer id of a new sender."""
        sequences = self._sender.sequences
        if sequences is not None:
            self._record_producer_id(sequences.producer.producer_id, sequences.producer.producer_epoch)

    def dispose(self) -> None:
        self._sender.dispose()

    def _set_timer(self) -> None:
        """Set the timer for the earliest request timeout or batch expiry; one timer serves all."""
        due_us = self._sender.next_expiry_us
        for _, send in self._requests:
            due_us = min(due_us, send.sent_us + self.timeout_us)
            break
        if due_us < self._timer_us:
            self._timer_us = due_us
            self.kernel.schedule(due_us, self.life, _ProduceTimeout(self, due_us))

    def time_out(self, due_us: int) -> None:
        """Time out a request, and with it all others on the same connection.

        The connection may be to a former leader; the timeout is no evidence about the current one.
        Kafka: NetworkClient#handleTimedOutRequests.
        """
        if due_us != self._timer_us:
            return  # The timer was set again for an earlier time.
        self._timer_us = NEVER_US
        oldest = self._requests[0][1] if self._requests else None
        if oldest is not None and oldest.sent_us + self.timeout_us <= self.kernel.now_us:
            self.reached(probes.WRITE_TIMES_OUT)
            self.requeue(oldest.leader)
        self.run()

    def on_produce_reply(self, reply: ProduceResponse) -> None:
        """Handle a produce response. Kafka: Sender#handleProduceResponse."""
        send = self._answered(reply.request)
        if send is not None:
            self.handle(reply, send)
            self._pump()

    def handle(self, reply: ProduceResponse, send: ProducerBatch) -> None:
        """Handle the result of a batch."""
        if reply.error == NONE:
            self.reset_backoff()
            if self._sender.completed(send, reply.base_offset):
                self.recorder.record(steps.Ack(reply))
                if send.done is not None:
                    send.done(reply.base_offset)
        else:
            self.recorder.refused(reply.request, reply.error)
            probe = probes.WRITES.get(reply.error)
            if probe is not None:
                self.reached(probe)
            if self._sender.refused(send, reply.error, reply.base_offset, self.kernel.now_us):
                self._paused = True
            # A refused batch succeeds later with a new sequence, or when its turn comes: no broker has to change.
            self.retry_later(always=reply.error in SEQUENCE_ERRORS)

    def _answered(self, request: ProduceRequest) -> ProducerBatch | None:
        """Remove a request from those in flight; its batch, or None if it was not in flight."""
        for place, (sent, send) in enumerate(self._requests):
            if sent is request:
                del self._requests[place]
                return send
        return None

    def leader_known(self) -> None:
        self._paused = False
        self._pump()

    def disconnected(self, peer: int) -> None:
        """See `Client.disconnected`: requests to a former leader are lost, too."""
        if peer != self.leader:
            self.requeue(peer)
        super().disconnected(peer)

    def connection_lost(self) -> None:
        """See `Client.connection_lost`: all batches in flight to the leader are resent."""
        self._paused = True
        self.requeue(self.leader)

    def requeue(self, broker: int) -> None:
        """Requeue the batches of all requests to a broker, which will not be answered."""
        lost = [send for _, send in self._requests if send.leader == broker]
        if lost:
            self._closed[broker] = self._closed.get(broker, 0) + 1
            self._paused = True
            self._requests = [entry for entry in self._requests if entry[1].leader != broker]
            self._sender.connection_lost(lost, self.kernel.now_us)
            self.retry_later(always=True)


if not COMPILED:
    Producer.handlers = {
        ProduceResponse: Producer.on_produce_reply,
        MetadataResponse: Producer.on_metadata_reply,
    }
