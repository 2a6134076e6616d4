"""Steps of clients: acknowledgements, errors, records, end offsets and positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from sim.history.steps.base import ASIDE, CHANGE, CLIENTS, DETAIL, FACT, TURN, UNTOLD, Lane, Shown, Step, StepKind
from sim.protocol.batch import Batch
from sim.protocol.batch import Sequence as BatchSequence
from sim.protocol.messages import NO_EPOCH, ProduceRequest, ProduceResponse

if TYPE_CHECKING:
    from sim.history.steps.listener import Listener

ACKNOWLEDGES: Final[StepKind] = StepKind(
    "acknowledges", 29, Lane.BROKER,
    "a leader answers success to acks=all: record = first id, min_isr that it goes by",
    "Broker {broker} answers success for record {record} (acks=all, min.insync.replicas={min_isr}).",
    moments={"acknowledges": "a leader answers success to acks=all"},
)  # fmt: skip


class Acknowledges(Step):
    """A leader acknowledges a batch with acks=all, with at least min ISR members in the ISR that it knows.

    Attributes:
        reply: the response.
        min_isr: effective ``min.insync.replicas`` known to the leader.
        isr: the ISR that it knows; None if it has proposed another one.
    """

    __slots__ = ("isr", "min_isr", "reply")

    kind = ACKNOWLEDGES

    def __init__(self, broker: int, reply: ProduceResponse, min_isr: int, isr: tuple[int, ...] | None = None) -> None:
        self.broker = broker
        self.isr = isr
        self.reply = reply
        self.epoch = self.min_isr = min_isr
        self.offset = reply.base_offset
        self.other = reply.request.first_id

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_acknowledges(self)

    def fields(self) -> Shown:
        return {"broker": self.broker, "record": self.other, "min_isr": self.min_isr}


ACK: Final[StepKind] = StepKind(
    "ack", 9, Lane.PRODUCER,
    "a producer received success: record = first id, offset = base offset, acks, answered_at",
    "The producer gets an ack for {records} at offset {offset} (acks={acks}).",
    weight=TURN,
    moments={"ack": "a producer received success"},
)  # fmt: skip


class Ack(Step):
    """A producer received success for a batch, by the id and offset of its first record.

    Attributes:
        reply: the response.
        acks: as the batch was sent: 0, 1 or -1 (all).
        base_offset: offset of its first record.
        first_id: id of its first record.
        count: number of its records.
    """

    __slots__ = ("acks", "base_offset", "count", "first_id", "reply")

    kind = ACK

    def __init__(self, reply: ProduceResponse) -> None:
        request = reply.request
        self.reply = reply
        self.epoch = 0
        self.acks: int = request.acks
        self.base_offset: int = reply.base_offset
        self.first_id: int = request.first_id
        self.count: int = request.count
        self.broker = self.acks
        self.offset = self.base_offset
        self.other = self.first_id

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_ack(self)

    def moments(self) -> Iterable[tuple[str, int]]:
        # Not at a broker.
        return [("ack", 0)]

    def fields(self) -> Shown:
        return {
            "record": self.first_id,
            "count": self.count,
            "offset": self.base_offset,
            "acks": self.acks,
            "answered_at": self.reply.answered_us,
        }


COMMIT_ACK: Final[StepKind] = StepKind(
    "commit-ack", 66, Lane.CONSUMER,
    "in the history of __consumer_offsets: a consumer's commit succeeded: record, offset, acks and answered_at as of "
    "ack, consumer, committed = the offset that it committed",
    "The coordinator acknowledges that consumer {consumer} committed offset {committed} (record {record}).",
    weight=TURN, method="ack",
)  # fmt: skip


class CommitAck(Ack):
    """A consumer's commit succeeded: for the offsets partition, an acknowledgement with acks=all.

    Attributes:
        consumer: node id of the consumer.
        committed: the offset that it committed.
    """

    __slots__ = ("committed", "consumer")

    kind = COMMIT_ACK

    def __init__(self, reply: ProduceResponse, consumer: int, committed: int) -> None:
        super().__init__(reply)
        self.consumer = consumer
        self.offset = self.committed = committed

    def fields(self) -> Shown:
        return {**super().fields(), "consumer": self.consumer, "committed": self.committed}


REFUSED: Final[StepKind] = StepKind(
    "refused", FACT, Lane.PRODUCER,
    "a producer received another error for a batch than before: record = first id, count, error",
    "The producer receives {error} for {records}.",
    weight=DETAIL,
)  # fmt: skip


class Refused(Step):
    """A producer received an error.

    `is_new`: the previous response about the batch was different. Retries that must fail alike are elided, so a trace
    shows only new ones.

    Attributes:
        request: the request.
        error: Kafka's name of the error.
        is_new: whether the previous response about the batch was different.
    """

    __slots__ = ("error", "is_new", "request")

    kind = REFUSED

    def __init__(self, request: ProduceRequest, error: str, *, is_new: bool = True) -> None:
        self.broker = 0
        self.request = request
        self.error = error
        self.is_new = is_new

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_refused(self)

    def fields(self) -> Shown:
        return {"record": self.request.first_id, "count": self.request.count, "error": self.error}

    def shown(self) -> Sequence[Shown]:
        return [self.fields()] if self.is_new else []


BATCH_FAILED: Final[StepKind] = StepKind(
    "batch-failed", FACT, Lane.PRODUCER,
    "a producer gave a batch up, and the application got an exception: record = first id, count, error; "
    "of an idempotent producer also producer_id, producer_epoch, sequence",
    "The producer fails {records} with {error}: the application gets an exception.",
    weight=CHANGE,
)  # fmt: skip


class BatchFailed(Step):
    """A producer gave a batch up: ``delivery.timeout.ms`` expired, or the error is fatal.

    Kafka: Sender#failBatch (1.1-4.4).

    Attributes:
        first_id: id of its first record.
        count: number of its records.
        sequence: its last sequence; `NO_SEQUENCE` if it has none.
        error: Kafka's name of the error.
    """

    __slots__ = ("count", "error", "first_id", "sequence")

    kind = BATCH_FAILED

    def __init__(self, first_id: int, count: int, sequence: BatchSequence, error: str) -> None:
        self.broker = 0
        self.first_id = first_id
        self.count = count
        self.sequence = sequence
        self.error = error

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_batch_failed(self)

    def fields(self) -> Shown:
        shown: Shown = {"record": self.first_id, "count": self.count, "error": self.error}
        if self.sequence[0] >= 0:
            shown["producer_id"], shown["producer_epoch"], shown["sequence"] = self.sequence
        return shown


HELD_BACK: Final[StepKind] = StepKind(
    "held-back", 69, Lane.PRODUCER,
    "a producer sends a batch that it held back because of a batch of another partition: record = first id, count, "
    "held_us, because_of = the other partition",
    "The producer sends {records}, which a batch of {because_of} has held back.",
    weight=CHANGE,
)  # fmt: skip


class HeldBack(Step):
    """A producer sends a batch to a leader that it knew and could send to before.

    Kafka: RecordAccumulator#drainBatchesForOneNode (2.6-4.4).

    Attributes:
        first_id: id of its first record.
        count: number of its records.
        held_us: for how long nothing but the other partition was in the way.
        because_of: the partition whose next batch had to wait.
    """

    __slots__ = ("because_of", "count", "first_id", "held_us")

    kind = HELD_BACK

    def __init__(self, broker: int, first_id: int, count: int, held_us: int, because_of: str) -> None:
        self.broker = broker
        self.other = self.first_id = first_id
        self.epoch = self.count = count
        self.offset = self.held_us = held_us
        self.because_of = because_of

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_held_back(self)

    def fields(self) -> Shown:
        return {
            "broker": self.broker,
            "record": self.first_id,
            "count": self.count,
            "held_us": self.held_us,
            "because_of": self.because_of,
        }


PRODUCER_ID: Final[StepKind] = StepKind(
    "producer-id", 37, Lane.PRODUCER,
    "an idempotent producer continues with another id or epoch: producer_id, producer_epoch",
    "The producer continues with producer id {producer_id} and producer epoch {producer_epoch}.",
)  # fmt: skip


class ProducerId(Step):
    """An idempotent producer got another producer id or epoch.

    Attributes:
        producer_id: the id.
        producer_epoch: the epoch.
    """

    __slots__ = ("producer_epoch", "producer_id")

    kind = PRODUCER_ID

    def __init__(self, node: int, producer_id: int, producer_epoch: int) -> None:
        self.broker = 0
        self.epoch = self.producer_epoch = producer_epoch
        self.offset = self.producer_id = producer_id
        self.other = node

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_producer_id(self)

    def fields(self) -> Shown:
        return {"producer_id": self.producer_id, "producer_epoch": self.producer_epoch}


READ: Final[StepKind] = StepKind(
    "read", 10, Lane.CONSUMER,
    "a consumer was shown records: offset = first, last, leader_epoch of the answer; position before it, "
    "batch_epoch of the leader that appended them",
    "The consumer reads {records} at offset {offset} from the leader of epoch {leader_epoch}.",
    weight=ASIDE, has_records=True,
    moments={"read": "a consumer was shown records"},
)  # fmt: skip


class Read(Step):
    """A consumer (a node id) read batches, from its position to `end`, in an answer of the leader of this epoch.

    Attributes:
        consumer: node id of the consumer.
        batches: the batches, at least one.
        leader_epoch: epoch of the leader that answered.
        position: offset of the first record that it shows.
        end: offset after the last record.
    """

    __slots__ = ("batches", "consumer", "end", "leader_epoch", "position")

    kind = READ

    def __init__(self, consumer: int, batches: Sequence[Batch], position: int, leader_epoch: int) -> None:
        self.broker = consumer - CLIENTS
        self.consumer = consumer
        self.batches = batches
        self.epoch = self.leader_epoch = leader_epoch
        self.offset = self.position = position
        self.end: int = batches[-1].last_offset + 1
        self.other = self.end
        self.records = self.end - position

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_read(self)

    def moments(self) -> Iterable[tuple[str, int]]:
        # Not at a broker.
        return [("read", 0)]

    def shown(self) -> Sequence[Shown]:
        # One entry for each batch.
        entries, before = [], self.position
        for batch in self.batches:
            start = max(self.position, batch.base_offset)
            entries.append(
                {
                    "consumer": self.consumer,
                    "offset": start,
                    "last": batch.last_offset,
                    "record": batch.first_id + start - batch.base_offset,
                    "leader_epoch": self.leader_epoch,
                    "position": before,
                    "batch_epoch": batch.leader_epoch,
                }
            )
            before = batch.last_offset + 1
        return entries


END_OFFSET: Final[StepKind] = StepKind(
    "end-offset", 11, Lane.CONSUMER,
    "a consumer received a ListOffsets(latest) answer: offset, leader_epoch, asked_at",
    "A consumer asks for the end offset and gets {offset}.",
    weight=CHANGE,
)  # fmt: skip


class EndOffset(Step):
    """A consumer received the latest offset; `known` was exposed when it asked (`Clients.exposed`).

    Attributes:
        offset: the latest offset in the response.
        known: what was exposed when it asked (`Clients.exposed`).
    """

    __slots__ = ("known",)

    kind = END_OFFSET

    def __init__(self, known: Exposed | None, asked_us: int, offset: int, leader_epoch: int) -> None:
        self.broker = 0
        self.known = known
        self.epoch = leader_epoch
        self.offset = offset
        self.other = asked_us

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_end_offset(self)

    def fields(self) -> Shown:
        return {"offset": self.offset, "leader_epoch": self.epoch, "asked_at": self.other}


class Exposed:
    """End offsets exposed to clients by leaders of an epoch, as a list with newer leader epochs first.

    An entry of a newer epoch is kept only if it is above all of older epochs. Immutable, so that a request can remember
    what was known when it was sent.

    Attributes:
        epoch: a leader epoch.
        end: the offset below which records were exposed.
        before: the same of the next older leader epoch.
    """

    __slots__ = ("before", "end", "epoch")

    def __init__(self, epoch: int, end: int, before: Exposed | None) -> None:
        self.epoch = epoch
        self.end = end
        self.before = before

    def until(self, epoch: int) -> int:
        """The highest end offset of that epoch and older ones, -1 if none."""
        one: Exposed | None = self
        while one is not None and one.epoch > epoch:
            one = one.before
        return -1 if one is None else one.end


def _position(name: str, code: int, meaning: str, sentence: str, weight: int = UNTOLD) -> StepKind:
    return StepKind(name, code, Lane.CONSUMER, meaning, sentence, weight=weight, method="position")


OUT_OF_RANGE: Final[StepKind] = _position(
    "out-of-range", 12,
    "a consumer was told that its position is out of range: offset",
    "The consumer gets OFFSET_OUT_OF_RANGE for offset {offset}.",
)  # fmt: skip
RESET: Final[StepKind] = _position(
    "reset", 30,
    "a consumer went where auto.offset.reset says: offset, policy",
    "The consumer resets its position to offset {offset}.",
)  # fmt: skip
SEEK: Final[StepKind] = _position(
    "seek", 31,
    "an application chose where its consumer reads on: offset, leader_epoch of the record before (-1: unknown)",
    "The consumer seeks to offset {offset}.",
)  # fmt: skip
TRUNCATION_DETECTED: Final[StepKind] = _position(
    "truncation-detected", 32,
    "a consumer's application was told that the log was truncated (LogTruncationException): offset = position, "
    "divergent_offset (-1: unknown), leader_epoch that ends there",
    "The consumer, at offset {offset}, learns that the log was truncated to offset {divergent_offset}.",
)  # fmt: skip
REWIND: Final[StepKind] = _position(
    "rewind", 33,
    "a consumer went back silently to where the log was truncated: offset, position before it",
    "The consumer goes back from offset {position} to where the log ends, {offset}.",
    weight=CHANGE,
)  # fmt: skip
COMMIT: Final[StepKind] = _position(
    "commit", 34,
    "a consumer committed: offset, leader_epoch of the record before (-1: unknown)",
    "The consumer commits offset {offset}.",
)  # fmt: skip
RESTART_CONSUMER: Final[StepKind] = _position(
    "restart-consumer", 35,
    "a consumer's process began anew at the committed offset: offset (-1: none)",
    "The consumer starts again at offset {offset}.",
)  # fmt: skip
DISCOVERY: Final[StepKind] = _position(
    "discovery", 62,
    "a consumer learned of a partition that was added while it ran: offset, where the partition begins",
    "The consumer learns of the partition, and has no position yet.",
    weight=CHANGE,
)  # fmt: skip
PREFERRED_REPLICA: Final[StepKind] = _position(
    "preferred-replica", 63,
    "a leader named a consumer the follower to fetch from: offset, read_replica",
    "The consumer fetches from broker {read_replica} from now on, which is in its rack.",
    weight=CHANGE,
)  # fmt: skip
NEXT_PROCESS: Final[StepKind] = _position(
    "next-process", 64,
    "a consumer's process was replaced by a new one, which asks the coordinator of its group where to begin: offset = "
    "number of processes that were replaced",
    "The consumer's process is replaced by a new one.",
    weight=CHANGE,
)  # fmt: skip
COMMITTED_OFFSET: Final[StepKind] = _position(
    "committed-offset", 65,
    "the coordinator told a new process what its group has committed: offset (-1: nothing), commit = id of the record "
    "in __consumer_offsets",
    "The coordinator answers that offset {offset} is committed (-1: none).",
    weight=CHANGE,
)  # fmt: skip
NO_RECORD_IN_TIME: Final[StepKind] = _position(
    "no-record-in-time", 68,
    "the leader has no record as new as a consumer without a position asked for (auto.offset.reset=by_duration)",
    "The leader has no record as new as auto.offset.reset asks for, and the consumer gets no offset.",
    weight=CHANGE,
)  # fmt: skip
OFFSET_FOR_TIME: Final[StepKind] = _position(
    "offset-for-time", 36,
    "a consumer received the offset of the first record from one on: record, offset (-1: none)",
    "The consumer asks for the offset of record {record} and gets {offset}.",
)  # fmt: skip


class Position(Step):
    """A change of a consumer's position (a node id), with the leader epoch of the record before it, if known.

    `other` is the value of another `field` in traces, if any.

    Attributes:
        offset: the position after it.
        other: the value of `field`.
        consumer: node id of the consumer.
        field: name of a further field in traces, if any.
        policy: ``auto.offset.reset`` of a consumer that reset its position by it.
    """

    __slots__ = ("consumer", "field", "kind", "policy")

    def __init__(
        self,
        kind: StepKind,
        consumer: int,
        offset: int,
        leader_epoch: int = NO_EPOCH,
        field: str = "",
        other: int = 0,
        *,
        policy: str = "",
    ) -> None:
        self.kind = kind
        self.policy = policy
        self.broker = consumer - CLIENTS
        self.consumer = consumer
        self.offset = offset
        self.epoch = leader_epoch
        self.field = field
        self.other = other

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_position(self)

    def fields(self) -> Shown:
        shown: Shown = {"consumer": self.consumer, "offset": self.offset, "leader_epoch": self.epoch}
        if self.field:
            shown[self.field] = self.other
        if self.policy:
            shown["policy"] = self.policy
        return shown


OFFSETS_ANSWER: Final[StepKind] = StepKind(
    "offsets-answer", FACT, Lane.CONSUMER,
    "in the history of __consumer_offsets: a new process was told what is committed: consumer, record, committed (-1: "
    "nothing)",
    "The coordinator answers the next process of consumer {consumer} that offset {committed} is committed (record "
    "{record}).",
    weight=CHANGE,
)  # fmt: skip


class OffsetsAnswer(Step):
    """A coordinator told a consumer's new process what is committed, in the history of the offsets partition.

    Attributes:
        consumer: node id of the consumer.
        record: id of the record that has the offset; 0: no offset is committed.
        offset: the committed offset, -1 if there is none.
    """

    __slots__ = ("consumer", "record")

    kind = OFFSETS_ANSWER

    def __init__(self, consumer: int, record: int, offset: int) -> None:
        self.broker = 0
        self.consumer = consumer
        self.record = record
        self.offset = offset

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_offsets_answer(self)

    def fields(self) -> Shown:
        return {"consumer": self.consumer, "record": self.record, "committed": self.offset}


GROUP_REFUSED: Final[StepKind] = StepKind(
    "group-refused", FACT, Lane.NONE,
    "in the history of __consumer_offsets: a consumer's request to its coordinator failed, or was not answered in time",
)  # fmt: skip


class GroupRefused(Step):
    """A consumer's request to the coordinator of its group failed, or was not answered in time; the consumer tries
    again.

    Attributes:
        consumer: node id of the consumer.
        since_us: when it began to ask without any success.
    """

    __slots__ = ("consumer", "since_us")

    kind = GROUP_REFUSED

    def __init__(self, consumer: int, since_us: int) -> None:
        self.broker = 0
        self.consumer = consumer
        self.since_us = since_us

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_group_refused(self)
