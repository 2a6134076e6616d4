"""A producer's sending side: Kafka's Sender, RecordAccumulator and TransactionManager against `sim.protocol.client`.

Operations: ``producer idempotent most`` (another one, with so many requests in flight to a broker), ``send count`` (a
batch of so many records), ``run`` (one round), ``wait ms``, ``leader broker`` (0: nobody), ``answer broker error
offset`` (its oldest request; "" is success, and with UNKNOWN_PRODUCER_ID the offset is the log start), ``lost broker``
(the connection). To be seen are what was sent, with its sequence and to which broker, how many requests are in flight
to each broker, what the application was told of which batches, the queue, what is in flight; of an idempotent producer
its id, epoch, next and last acknowledged sequence, whether a sequence is in doubt, the first sequence in flight, and
those of all batches that are not done. Of one that is fenced for good no state is seen, as nothing comes of it.

Before 2.1 batches expire by other rules (``request.timeout.ms``, in the queue only): there is no ``wait``.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

from sim.protocol.batch import NO_SEQUENCE
from sim.protocol.client.producer_sequences import ProducerSequences
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
    """A sender with connections to two brokers."""

    def __init__(self, release: str, rules: Rules, *, idempotent: bool, most: int) -> None:
        ids = count(1)
        self._expires = release in EXPIRES
        decide = Decisions(rules)
        self._sequences = ProducerSequences(decide, lambda: next(ids), lambda *_: None) if idempotent else None
        self._sender = Sender(
            decide,
            self._sequences,
            keeps_order=most == 1,
            delivery_timeout_us=DELIVERY_TIMEOUT_MS if self._expires else NEVER_US,
        )
        self._most = most
        self._now = 0
        self._leader = 1
        self._requests: dict[int, list[ProducerBatch]] = {broker: [] for broker in BROKERS}
        self._handed_over = 0
        self._pending: list[ProducerBatch] = []
        self._told: list[Any] = []
        self._sent: list[Any] = []

    def act(self, name: str, values: list[Any]) -> None:
        """Do one operation."""
        match name:
            case "send":
                send = ProducerBatch(self._handed_over, values[0], -1, self._now)
                self._handed_over += 1
                self._pending.append(send)
                self._sender.queue.append(send)
            case "run":
                self._run()
            case "wait":
                self._now += values[0]
            case "leader":
                self._leader = values[0]
            case "answer":
                self._answer(*values)
            case "lost":
                lost, self._requests[values[0]] = self._requests[values[0]], []
                self._sender.connection_lost(lost, self._now)
            case _:
                raise ValueError(f"unknown operation {name!r}")

    def _run(self) -> None:
        ready = self._leader > 0 and len(self._requests[self._leader]) < self._most
        send = self._sender.run_once(self._now, ready=ready)
        if send is not None:
            self._requests[self._leader].append(send)
            self._sent.append([*self._shown(send), self._leader])

    def _answer(self, broker: int, error: str, offset: int) -> None:
        if not self._requests[broker]:
            return
        send = self._requests[broker].pop(0)
        if error in (NONE, DUPLICATE_SEQUENCE_NUMBER):
            base_offset = -1 if error else offset
            if self._sender.completed(send, base_offset):
                self._told.append([send.first_id, base_offset])
        else:
            self._sender.refused(send, error, offset if error == UNKNOWN_PRODUCER_ID else -1, self._now)

    def _shown(self, send: ProducerBatch) -> list[int]:
        return [send.first_id, *send.sequence] if self._sequences is not None else [send.first_id]

    def shown(self) -> list[Any]:
        """See the module."""
        sent, self._sent = self._sent, []
        told, self._told = self._told, []
        done = [send for send in self._pending if send.is_done]
        self._pending = [send for send in self._pending if not send.is_done]
        told += [[send.first_id, send.error] for send in done if send.error]
        sender, sequences = self._sender, self._sequences
        in_flight = [len(self._requests[broker]) for broker in BROKERS]
        if sequences is not None and sequences.is_dead:
            return [sent, in_flight, sorted(told), "fenced"]
        seen: list[Any] = [sent, in_flight, sorted(told), _ids(sender.queue)]
        seen.append(_ids(sender.in_flight) if self._expires else [])
        if sequences is not None:
            epoch = sequences.producer_epoch if sequences.producer_id >= 0 else -1
            seen.append([sequences.producer_id, epoch, sequences.next_sequence, sequences.last_acked])
            first = sequences.in_flight[0].sequence if sequences.in_flight else NO_SEQUENCE
            seen.append([sequences.is_in_doubt, first[2]])
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
        self._leader = 1
        self._offset = 0
        self.case: Case = []

    def draw(self) -> Case:
        """A producer and what happens to it."""
        rng = self._rng
        self.case.append(["producer", self._idempotent, rng.choice((1, 2, 3, 5, 5, 5))])
        for _ in range(rng.randint(4, 40)):
            self._step()
        return self.case

    def _step(self) -> None:
        rng = self._rng
        case = self.case
        roll = rng.random()
        if roll < 0.2:
            for _ in range(rng.choice((1, 1, 2, 3))):
                case.append(["send", rng.choice((1, 1, 2, 3))])
        elif roll < 0.5:
            case.extend(["run"] for _ in range(rng.choice((1, 2, 3, 5))))
        elif roll < 0.8:
            broker = self._leader or rng.choice(BROKERS)
            broker = broker if rng.random() < 0.85 else 3 - broker
            case.extend(self._answer(broker) for _ in range(rng.choice((1, 1, 2, 3))))
        elif roll < 0.86:
            case.append(["lost", rng.choice(BROKERS)])
        elif roll < 0.93:
            self._leader = rng.choice((0, 1, 1, 2, 2))
            case.append(["leader", self._leader])
        elif self._expires:
            case.append(["wait", rng.choice((10, 30, 49, 50, 70, 99, 100))])

    def _answer(self, broker: int) -> Operation:
        rng = self._rng
        if rng.random() > self._errors:
            self._offset += rng.randint(1, 3)
            return ["answer", broker, NONE, self._offset]
        roll = rng.random()
        if not self._idempotent or roll < 0.4:
            return ["answer", broker, rng.choice(RETRIABLE), 0]
        error = rng.choice(SEQUENCES) if roll < 0.97 else INVALID_PRODUCER_EPOCH
        return ["answer", broker, error, rng.randint(-1, self._offset + 4)]


def draw(rng: Random, release: str) -> Case:
    """See `Subject.draw`."""
    return Drawing(rng, release).draw()


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    driver = Driver(release, rules, idempotent=False, most=5)
    seen: Seen = []
    for name, *values in case:
        if name == "producer":
            driver = Driver(release, rules, idempotent=values[0], most=values[1])
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
