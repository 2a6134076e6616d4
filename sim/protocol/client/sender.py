"""A producer's sender: which batch is sent next, which are retried in which order, and which fail.

It is for one partition, of which a producer may have several. The host decides when to send and over which connection:
back-off, requests in flight to a broker, their timeouts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sim.protocol.batch import NO_SEQUENCE
from sim.protocol.batch import Sequence as BatchSequence
from sim.protocol.client.producer_sequences import SEQUENCE_ERRORS, ProducerSequences
from sim.protocol.decisions import Decisions
from sim.protocol.messages import INVALID_PRODUCER_EPOCH, REQUEST_TIMED_OUT
from sim.protocol.replica.partition import NO_LEADER

NETWORK_EXCEPTION: Final = "NETWORK_EXCEPTION"
"""The connection was lost before the response; set by the client, not sent by brokers."""
NEVER_US: Final = 1 << 60


class ProducerBatch:
    """A batch from the application. Kafka: ProducerBatch (1.1-4.4), internals.RecordBatch (0.10.2).

    Attributes:
        acks: 0, 1 or -1 (all).
        due_us: intended time.
        done: called with the base offset when it is acknowledged.
        sequence: its sequence, with an idempotent producer.
        rewritten: see `sim.protocol.client.producer_sequences.Sequenced`; so for `is_retry`.
        is_done: whether the application got its result.
        error: the error with which it failed, or "".
        leader: the broker to which it was last sent.
    """

    __slots__ = (
        "acks",
        "count",
        "done",
        "due_us",
        "error",
        "first_id",
        "is_done",
        "is_retry",
        "leader",
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
        self.sequence: BatchSequence = NO_SEQUENCE
        self.rewritten = False
        self.is_retry = False
        self.is_done = False
        self.error = ""
        self.leader = NO_LEADER
        self.sent_us = 0


class Sender:
    """Batches of one partition. Kafka: producer.internals.Sender, RecordAccumulator.

    Args:
        decide: rule ``lost_requests`` decides in which order requests of a lost connection are requeued.
        sequences: of an idempotent producer.
        keeps_order: one batch in flight at a time (``max.in.flight.requests.per.connection=1``).
        delivery_timeout_us: after which a batch fails, queued or in flight.
        failed: called with each batch that fails, because the application gets an exception for it.

    Attributes:
        queue: batches waiting to be sent or retried.
        in_flight: sent batches without a response, in order of sending.
        threw: whether handling the last result ended with an exception inside Kafka, so that it did not come to the
            results of other partitions in the response.
        muted: whether no other batch may be sent before the response to the last one. Kafka:
            RecordAccumulator#mutePartition.
    """

    def __init__(
        self,
        decide: Decisions,
        sequences: ProducerSequences | None,
        *,
        keeps_order: bool,
        delivery_timeout_us: int,
        failed: Callable[[ProducerBatch], None] | None = None,
    ) -> None:
        self._decide = decide
        self._keeps_order = keeps_order
        self._delivery_timeout_us = delivery_timeout_us
        self._failed = failed
        self.sequences = sequences
        self.queue: list[ProducerBatch] = []
        self.in_flight: list[ProducerBatch] = []
        self.muted = False
        self.threw = False

    def run_once(self, now_us: int, *, ready: bool) -> ProducerBatch | None:
        """One round of a producer with one partition: take a batch from the queue, then fail expired batches. Returns
        the one to send now, which may just have expired.

        It is sent if the leader is known and one more request may be sent to it. Kafka: Sender#runOnce (2.6-4.4),
        Sender#sendProducerData (1.1-4.4), RecordAccumulator#drain.
        """
        sequences = self.sequences
        if sequences is not None:
            sequences.resolve()
            sequences.producer.go_on()
            if sequences.producer.is_dead:
                self.abort()
                return None
        found = self.take() if ready and self.queue else None
        self.expire(now_us)
        return found

    @property
    def is_stopped(self) -> bool:
        """Whether the first batch in the queue has to wait for others in flight. Kafka:
        RecordAccumulator#shouldStopDrainBatchesForPartition (2.6-4.4).
        """
        return bool(self.queue) and self.sequences is not None and not self.sequences.may_send(self.queue[0])

    def take(self) -> ProducerBatch | None:
        """Take the first batch from the queue, which is not empty, to be sent now; None if it has to wait for others.
        Kafka: RecordAccumulator#drainBatchesForOneNode (2.6-4.4).
        """
        queue, sequences = self.queue, self.sequences
        if self.muted or not (sequences is None or sequences.may_send(queue[0])):
            return None
        found = queue.pop(0)
        if found.acks:
            if sequences is not None:
                sequences.assign(found)
            self.in_flight.append(found)
            self.muted = self._keeps_order
        else:
            found.is_done = True
        return found

    def expire(self, now_us: int) -> None:
        """Fail batches that are older than ``delivery.timeout.ms``."""
        queue = self.queue
        # Checked here, since in most rounds no batch has expired.
        latest_us = now_us - self._delivery_timeout_us
        if (self.in_flight and self.in_flight[0].due_us <= latest_us) or (queue and queue[0].due_us <= latest_us):
            self._expire(latest_us)

    @property
    def next_expiry_us(self) -> int:
        """When the next batch expires; past `NEVER_US`: never. Kafka: RecordAccumulator#nextExpiryTimeMs (2.6-4.4)."""
        due_us = self.queue[0].due_us if self.queue else NEVER_US
        if self.in_flight and self.in_flight[0].due_us < due_us:
            due_us = self.in_flight[0].due_us
        return due_us + self._delivery_timeout_us

    def _expire(self, latest_us: int) -> None:
        """Fail batches due until then, from the head up to the first that has not expired.

        Kafka: RecordAccumulator#expiredBatches (1.1-4.4), Sender#getExpiredInflightBatches (2.6-4.4),
        RecordAccumulator#abortExpiredBatches (0.10.2).
        """
        expired: list[ProducerBatch] = []
        while self.queue and self.queue[0].due_us <= latest_us:
            expired.append(self.queue.pop(0))
        while self.in_flight and self.in_flight[0].due_us <= latest_us:
            expired.append(self.in_flight.pop(0))
        for send in expired:
            self._end(send, REQUEST_TIMED_OUT)  # Of delivery.timeout.ms: no broker sent it.
            if self.sequences is not None and send.sequence != NO_SEQUENCE:
                self.sequences.expired(send)

    def completed(self, send: ProducerBatch, base_offset: int) -> bool:
        """Handle a success; returns whether the application is notified. A response of DUPLICATE_SEQUENCE_NUMBER has no
        base offset (-1). Kafka: Sender#completeBatch.
        """
        self.muted = False
        self.threw = False
        if self.sequences is not None and send.sequence != NO_SEQUENCE:
            self.sequences.completed(send, base_offset)
        if send.is_done:
            return False
        send.is_done = True
        self.in_flight.remove(send)
        return True

    def refused(self, send: ProducerBatch, error: str, log_start: int, now_us: int) -> bool:
        """Handle an error; returns whether the batch is retried (`ProducerSequences.may_retry`). Kafka:
        Sender#completeBatch, Sender#canRetry.
        """
        self.muted = False
        self.threw = False
        sequences = self.sequences if send.sequence != NO_SEQUENCE else None
        if not send.is_done and now_us - send.due_us < self._delivery_timeout_us:
            if sequences is None:
                may_retry = error not in SEQUENCE_ERRORS
            else:
                may_retry = sequences.may_retry(send, error, log_start)
            if may_retry:
                self._requeue(send)
                return True
        if sequences is not None and (not send.is_done or sequences.handles_late_failures()):
            reported = sequences.failed(send, error)
            if not reported:
                self.threw = True
                return False  # The batch stays in flight until it expires.
            error = reported
        if not send.is_done:
            self._end(send, error)
            self.in_flight.remove(send)
        return False

    def connection_lost(self, sends: Sequence[ProducerBatch], now_us: int) -> None:
        """Handle a lost connection: these batches, in this order, get no response. Kafka: InFlightRequests#clearAll."""
        newest_first = len(sends) > 1 and self._decide.takes_back_newest_first.yes()
        for send in reversed(sends) if newest_first else sends:
            self.refused(send, NETWORK_EXCEPTION, -1, now_us)

    def _requeue(self, send: ProducerBatch) -> None:
        """Insert a batch at the head of the queue, or by its sequence.

        Kafka: RecordAccumulator#reenqueue, RecordAccumulator#insertInSequenceOrder (1.1-4.4).
        """
        send.is_retry = True
        place = 0
        if self.sequences is not None:
            if not self.sequences.in_flight:
                self.threw = True
                return
            for queued in self.queue:
                if queued.sequence == NO_SEQUENCE or queued.sequence[2] >= send.sequence[2]:
                    break
                place += 1
        self.queue.insert(place, send)
        self.in_flight.remove(send)

    def dispose(self) -> None:
        """Break reference cycles with the host, with other partitions, and with the workload that waits for a batch."""
        self._failed = None
        self.queue.clear()
        self.in_flight.clear()
        if self.sequences is not None:
            self.sequences.producer.partitions.clear()
            self.sequences = None

    def abort(self) -> None:
        """Fail all batches. Kafka: RecordAccumulator#abortBatches, Sender#maybeAbortBatches (1.1-4.4)."""
        for send in [*self.in_flight, *self.queue]:
            self._end(send, INVALID_PRODUCER_EPOCH)
        self.in_flight.clear()
        self.queue.clear()

    def _end(self, send: ProducerBatch, error: str) -> None:
        """Kafka: Sender#failBatch (1.1-4.4)."""
        send.is_done = True
        send.error = error
        if self._failed is not None:
            self._failed(send)
