"""A producer: sends batches at intended times, retries, and gives up after ``delivery.timeout.ms``.

Without ``enable.idempotence`` a retry whose first copy survived is appended twice. Kafka classes: KafkaProducer,
Sender, RecordAccumulator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import count

from sim.history import steps
from sim.hosts.client import Access, Client
from sim.protocol import probes
from sim.protocol.batch import NO_SEQUENCE, Sequence
from sim.protocol.client.producer_sequences import SEQUENCE_ERRORS, ProducerSequences
from sim.protocol.messages import NONE, ProduceReply, ProduceRequest
from sim.protocol.probes import branch
from sim.protocol.replica.partition import NO_LEADER


class Send:
    """A batch that the application handed over.

    Attributes:
        first_id: id of its first record.
        count: number of records.
        acks: 0, 1 or -1 (all).
        due_us: intended time.
        done: called with the base offset when it is acknowledged.
        sequence: what an idempotent producer gave it.
        rewritten: see `sim.protocol.client.producer_sequences.Sequenced`.
        number: in the order of handing over.
        leader: to which broker it was sent last.
        sent_us: when.
    """

    __slots__ = (
        "acks",
        "count",
        "done",
        "due_us",
        "first_id",
        "leader",
        "number",
        "rewritten",
        "sent_us",
        "sequence",
    )

    def __init__(
        self, first_id: int, count: int, acks: int, due_us: int, done: Callable[[int], None] | None = None
    ) -> None:
        self.first_id = first_id
        self.count = count
        self.acks = acks
        self.due_us = due_us
        self.done = done
        self.sequence: Sequence = NO_SEQUENCE
        self.rewritten = False
        self.number = 0
        self.leader = NO_LEADER
        self.sent_us = 0


class Producer(Client):
    """Sends to one partition.

    Args:
        node: see `Client`.
        access: see `Client`.
    """

    __slots__ = (
        "_handed_over",
        "_in_flight",
        "_oldest_us",
        "_paused",
        "_plan",
        "_queue",
        "_sequences",
        "_watching",
    )

    def __init__(self, node: int, access: Access) -> None:
        super().__init__(node, access)
        self._plan: list[Send] = []
        self._queue: deque[Send] = deque()
        self._in_flight: dict[ProduceRequest, Send] = {}
        self._handed_over = 0
        self._watching = False
        self._paused = False
        self._sequences = self._idempotence() if self.settings.idempotence else None

    def _idempotence(self) -> ProducerSequences:
        ids = count(1)
        return ProducerSequences(self.rules, lambda: next(ids), self._go_on_as)

    def _go_on_as(self, producer_id: int, producer_epoch: int) -> None:
        self.reached(probes.PRODUCER_ANEW)
        self.reached(branch(self.rules, "producer_recovery"))
        self.recorder.record(steps.ProducerId(self.node, producer_id, producer_epoch))

    def schedule(self, sends: list[Send]) -> None:
        """Hand over batches at their due times, which ascend."""
        if sends:
            self._plan = sends
            self.kernel.call_at(sends[0].due_us, self.life, self._due, 0)

    def _due(self, position: int) -> None:
        plan = self._plan
        following = position + 1
        if following < len(plan):
            self.kernel.call_at(plan[following].due_us, self.life, self._due, following)
        self.send(plan[position])

    def send(self, send: Send) -> None:
        """Hand over a batch now."""
        self._handed_over += 1
        send.number = self._handed_over
        self._queue.append(send)
        self._pump()

    @property
    def idle(self) -> bool:
        """Nothing queued, nothing in flight."""
        return not self._queue and not self._in_flight

    def _pump(self) -> None:
        """Send what may be sent: one leader, so many requests in flight."""
        queue = self._queue
        if self._paused or not queue:
            return
        channel = self.channel()
        if channel is None:
            self.retry_later()
            return
        now_us = self.kernel.now_us
        sequences = self._sequences
        while queue and len(self._in_flight) < self.settings.max_in_flight:
            send = queue[0]
            given_up = now_us - send.due_us >= self.settings.delivery_timeout_us
            if sequences is not None:
                if not (given_up or sequences.may_send(send)):
                    break
                given_up = sequences.leave(send, given_up=given_up)
            queue.popleft()
            if given_up:
                continue
            request = ProduceRequest(self.node, self.topic, send.first_id, send.count, send.acks, send.sequence)
            channel.send(channel.target.on_produce, request)
            if send.acks:
                send.leader = self.leader
                send.sent_us = now_us
                self._in_flight[request] = send
        if not self._watching:
            self._watch()

    def _watch(self) -> None:
        """One timer serves all requests: it is that of the oldest."""
        for send in self._in_flight.values():
            self._watching = True
            due_us = send.sent_us + self.settings.request_timeout_us
            self.kernel.call_at(due_us, self.life, self._time_out, None)
            break

    def _time_out(self, _: object) -> None:
        """Give up requests that went unanswered, with all others on the same connection.

        That may be one to a former leader: whether the present one answers is another matter.
        """
        self._watching = False
        oldest = next(iter(self._in_flight.values()), None)
        if oldest is not None and oldest.sent_us + self.settings.request_timeout_us <= self.kernel.now_us:
            self.reached(probes.WRITE_TIMES_OUT)
            if oldest.leader == self.leader:
                self.connection_lost()
            else:
                late = [request for request, send in self._in_flight.items() if send.leader == oldest.leader]
                self._requeue([self._in_flight.pop(request) for request in late])
            self.retry_later(always=True)
        self._watch()

    def on_produce_reply(self, reply: ProduceReply) -> None:
        """A leader answered."""
        send = self._in_flight.pop(reply.request, None)
        if send is None:
            return
        sequences = self._sequences
        if reply.error == NONE:
            self.succeeded()
            if sequences is not None:
                sequences.completed(send, reply.base_offset)
            self.recorder.record(steps.Ack(reply))
            if send.done is not None:
                send.done(reply.base_offset)
            self._pump()
        else:
            self.recorder.record(steps.Refused(reply.request, reply.error))
            probe = probes.WRITES.get(reply.error)
            if probe is not None:
                self.reached(probe)
            if sequences is None or sequences.refused(send, reply.error, reply.base_offset):
                self._requeue([send])
            self._paused = True
            # A refused sequence is another one next time, or its turn has come: no broker has to change for that.
            self.retry_later(always=reply.error in SEQUENCE_ERRORS)

    def leader_known(self) -> None:
        """See `Client.leader_known`."""
        self._paused = False
        self._pump()

    def connection_lost(self) -> None:
        """See `Client.connection_lost`: everything in flight is sent again."""
        sends = list(self._in_flight.values())
        self._in_flight.clear()
        self._requeue(sends)
        self._paused = True

    def _requeue(self, sends: list[Send]) -> None:
        for send in sorted(sends, key=lambda entry: entry.number, reverse=True):
            self._queue.appendleft(send)
