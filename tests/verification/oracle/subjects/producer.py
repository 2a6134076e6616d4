"""A producer's sending side: Kafka's Sender, RecordAccumulator and TransactionManager against `sim.protocol.client`.

Operations: ``producer idempotent most partitions`` (another one, with so many requests in flight to a broker, which
sends to so many partitions; without a number, one), ``send count partition`` (a batch of so many records), ``run`` (one
round), ``wait ms``, ``leader broker partition`` (0: nobody), ``answer broker error offset ...`` (its oldest request,
with an error and an offset for each partition; "" is success, and with UNKNOWN_PRODUCER_ID the offset is the log
start), ``lost broker`` (the connection). To be seen are what was sent, with its sequence and to which broker, how many
requests are in flight to each broker, what the application was told of which batches, for each partition the queue and
what is in flight; of an idempotent producer its id and epoch, for each partition the next and the last acknowledged
sequence, whether a sequence is in doubt, and the first sequence in flight, and the sequences of all batches that are
not done. Of one that is fenced for good no state is seen, as nothing comes of it.

Before 2.1 batches expire by other rules (``request.timeout.ms``, in the queue only): there is no ``wait``.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

from sim.protocol.batch import NO_SEQUENCE
from sim.protocol.client.producer_sequences import ProducerIdAndEpoch, ProducerSequences
from sim.protocol.client.record_accumulator import RecordAccumulator
from sim.protocol.client.sender import NEVER_US, ProducerBatch, Sender
from sim.protocol.decisions import Decisions
from sim.protocol.messages import (
    INVALID_PRODUCER_EPOCH,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Operation, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.protocol.rules import Rules

DELIVERY_TIMEOUT_MS: Final = 100
BROKERS: Final = (1, 2)
DUPLICATE_SEQUENCE_NUMBER: Final = "DUPLICATE_SEQUENCE_NUMBER"
"""No broker of the core says so."""
RETRIABLE: Final = (
    NOT_LEADER_OR_FOLLOWER,
    NOT_LEADER_OR_FOLLOWER,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    UNKNOWN_TOPIC_OR_PARTITION,
    "REQUEST_TIMED_OUT",
)
SEQUENCES: Final = (
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
    DUPLICATE_SEQUENCE_NUMBER,
)
EXPIRES: Final = tuple(since("2.6.0"))


class Driver:
    """A producer with connections to two brokers."""

    def __init__(self, release: str, rules: Rules, *, idempotent: bool, most: int, partitions: int = 1) -> None:
        ids = count(1)
        self._expires = release in EXPIRES
        decide = Decisions(rules)
        self._producer = ProducerIdAndEpoch(lambda: next(ids)) if idempotent else None
        self._senders = [self._sender(decide, keeps_order=most == 1) for _ in range(partitions)]
        self._accumulator = RecordAccumulator(decide)
        self._most = most
        self._now = 0
        self._leaders = [1] * partitions
        self._requests: dict[int, list[list[tuple[int, ProducerBatch]]]] = {broker: [] for broker in BROKERS}
        self._handed_over = 0
        self._pending: list[ProducerBatch] = []
        self._told: list[Any] = []
        self._sent: list[Any] = []

    def _sender(self, decide: Decisions, *, keeps_order: bool) -> Sender:
        sequences = None
        if self._producer is not None:
            sequences = ProducerSequences(decide, self._producer, lambda *_: None)
        timeout_us = DELIVERY_TIMEOUT_MS if self._expires else NEVER_US
        return Sender(decide, sequences, keeps_order=keeps_order, delivery_timeout_us=timeout_us)

    def act(self, name: str, values: list[Any]) -> None:
        """Do one operation."""
        match name:
            case "send":
                send = ProducerBatch(self._handed_over, values[0], -1, self._now)
                self._handed_over += 1
                self._pending.append(send)
                self._senders[self._place(values)].queue.append(send)
            case "run":
                self._run()
            case "wait":
                self._now += values[0]
            case "leader":
                self._leaders[self._place(values)] = values[0]
            case "answer":
                self._answer(values[0], values[1:])
            case "lost":
                lost, self._requests[values[0]] = self._requests[values[0]], []
                for place, sender in enumerate(self._senders):
                    sender.connection_lost([send for parts in lost for at, send in parts if at == place], self._now)
            case _:
                raise ValueError(f"unknown operation {name!r}")

    def _place(self, values: list[Any]) -> int:
        """The partition that an operation names; part of a case may lack the operation that makes so many."""
        return values[1] % len(self._senders) if len(values) > 1 else 0

    def _has_room(self, broker: int) -> bool:
        return broker > 0 and len(self._requests[broker]) < self._most

    def _run(self) -> None:
        if len(self._senders) == 1:
            send = self._senders[0].run_once(self._now, ready=self._has_room(self._leaders[0]))
            if send is not None:
                self._send(self._leaders[0], [(0, send)])
            return
        for sender in self._senders:
            if sender.sequences is not None:
                sender.sequences.resolve()
        if self._producer is not None:
            self._producer.go_on()
            if self._producer.is_dead:
                for sender in self._senders:
                    sender.abort()
                return
        for broker in BROKERS:
            led = [place for place, leader in enumerate(self._leaders) if leader == broker]
            senders = [self._senders[place] for place in led]
            is_ready = [bool(sender.queue) for sender in senders]
            if any(is_ready) and self._has_room(broker):
                drained = self._accumulator.drain(broker, senders, is_ready)
                if drained.batches:
                    self._send(broker, sorted((led[index], batch) for index, batch in drained.batches))
        for sender in self._senders:
            sender.expire(self._now)

    def _send(self, broker: int, parts: list[tuple[int, ProducerBatch]]) -> None:
        self._requests[broker].append(parts)
        self._sent += [[*self._shown(send), broker] for _, send in parts]

    def _answer(self, broker: int, results: list[Any]) -> None:
        if not self._requests[broker]:
            return
        for place, send in self._requests[broker].pop(0):
            sender, error, offset = self._senders[place], results[2 * place], results[2 * place + 1]
            if error in (NONE, DUPLICATE_SEQUENCE_NUMBER):
                base_offset = -1 if error else offset
                if sender.completed(send, base_offset):
                    self._told.append([send.first_id, base_offset])
            else:
                sender.refused(send, error, offset if error == UNKNOWN_PRODUCER_ID else -1, self._now)
            if sender.threw:
                break

    def _shown(self, send: ProducerBatch) -> list[int]:
        return [send.first_id, *send.sequence] if self._producer is not None else [send.first_id]

    def shown(self) -> list[Any]:
        """See the module."""
        sent, self._sent = self._sent, []
        told, self._told = self._told, []
        done = [send for send in self._pending if send.is_done]
        self._pending = [send for send in self._pending if not send.is_done]
        told += [[send.first_id, send.error] for send in done if send.error]
        producer = self._producer
        in_flight = [len(self._requests[broker]) for broker in BROKERS]
        if producer is not None and producer.is_dead:
            return [sent, in_flight, sorted(told), "fenced"]
        seen: list[Any] = [sent, in_flight, sorted(told)]
        for sender in self._senders:
            seen.append(_ids(sender.queue))
            seen.append(_ids(sender.in_flight) if self._expires else [])
            sequences = sender.sequences
            if producer is not None and sequences is not None:
                epoch = producer.producer_epoch if producer.producer_id >= 0 else -1
                seen.append([producer.producer_id, epoch, sequences.next_sequence, sequences.last_acked])
                first = sequences.in_flight[0].sequence if sequences.in_flight else NO_SEQUENCE
                seen.append([sequences.is_in_doubt, first[2]])
        if producer is not None:
            seen.append([self._shown(send) for send in self._pending if send.sequence != NO_SEQUENCE])
        return seen


def _ids(sends: Collection[ProducerBatch]) -> list[int]:
    return [send.first_id for send in sends]


class Drawing:
    """Draws a case: bursts of batches, rounds, and what becomes of them."""

    def __init__(self, rng: Random, release: str) -> None:
        self._rng = rng
        self._expires = release in EXPIRES
        self._idempotent = rng.random() < 0.75
        self._errors = rng.random()
        self._partitions = rng.choice((1, 1, 2, 2, 3))
        self._leaders = [1] * self._partitions
        self._offset = 0
        self.case: Case = []

    def draw(self) -> Case:
        """A producer and what happens to it."""
        rng = self._rng
        self.case.append(["producer", self._idempotent, rng.choice((1, 2, 3, 5, 5, 5)), self._partitions])
        for _ in range(rng.randint(4, 40)):
            self._step()
        return self.case

    def _step(self) -> None:
        rng = self._rng
        case = self.case
        roll = rng.random()
        if roll < 0.2:
            for _ in range(rng.choice((1, 1, 2, 3))):
                case.append(["send", rng.choice((1, 1, 2, 3)), rng.randrange(self._partitions)])
        elif roll < 0.5:
            case.extend(["run"] for _ in range(rng.choice((1, 2, 3, 5))))
        elif roll < 0.8:
            broker = rng.choice(self._leaders) or rng.choice(BROKERS)
            broker = broker if rng.random() < 0.85 else 3 - broker
            case.extend(self._answer(broker) for _ in range(rng.choice((1, 1, 2, 3))))
        elif roll < 0.86:
            case.append(["lost", rng.choice(BROKERS)])
        elif roll < 0.93:
            place = rng.randrange(self._partitions)
            self._leaders[place] = rng.choice((0, 1, 1, 2, 2))
            case.append(["leader", self._leaders[place], place])
        elif self._expires:
            case.append(["wait", rng.choice((10, 30, 49, 50, 70, 99, 100))])

    def _answer(self, broker: int) -> Operation:
        return ["answer", broker, *(value for _ in range(self._partitions) for value in self._result())]

    def _result(self) -> tuple[str, int]:
        rng = self._rng
        if rng.random() > self._errors:
            self._offset += rng.randint(1, 3)
            return NONE, self._offset
        roll = rng.random()
        if not self._idempotent or roll < 0.4:
            return rng.choice(RETRIABLE), 0
        error = rng.choice(SEQUENCES) if roll < 0.97 else INVALID_PRODUCER_EPOCH
        return error, rng.randint(-1, self._offset + 4)


def draw(rng: Random, release: str) -> Case:
    """See `Subject.draw`."""
    return Drawing(rng, release).draw()


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    driver = Driver(release, rules, idempotent=False, most=5)
    seen: Seen = []
    for name, *values in case:
        if name == "producer":
            driver = Driver(release, rules, idempotent=values[0], most=values[1], partitions=(*values, 1)[2])
        else:
            driver.act(name, values)
        seen.append(driver.shown())
    return seen


SUBJECT: Final = Subject(
    "producer",
    "highwater.ProducerSubject",
    since("1.1.1"),
    draw,
    run,
    quick=500,
    usual=5_000,
    deep=20_000,
    names_brokers=True,
    recorded=30_000,
)
