"""The producer beside brokers that answer as they are told to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest

from highwater.lab.confirm import producer as module
from highwater.lab.confirm import wire
from highwater.lab.confirm.partitions import KafkaPartition
from highwater.lab.confirm.producer import ANSWER_S, REQUEST, RESPONSE, KafkaProducer, Send
from sim.config import resolve
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.config import Value

pytest.importorskip("kafka")
from kafka.record import MemoryRecords

PRODUCER_ID: Final = 7
NOT_LEADER: Final = 6
OUT_OF_ORDER: Final = 45
UNANSWERED: Final = None
AUDIT: Final = KafkaPartition("audit-1", 2, "audit", 1)
IDEMPOTENT: Final = {"enable.idempotence": True, "acks": "all"}


@dataclass
class Node:
    """A broker of `World`."""

    client_port: int
    incarnation: int = 1
    alive: bool = True
    paused: bool = False
    silent: bool = False


class World:
    """A producer, its clock, two brokers, and what the producer asked for and said.

    Attributes:
        asked: (broker, producer id, producer epoch, base sequence, batch) of each request that reached a broker.
        told: the steps that the producer reported.
        logs: what the brokers have appended.
        waiting: requests without an answer, with their connections.
    """

    cluster: Any

    def __init__(self, monkeypatch: pytest.MonkeyPatch, mode: str, **config: Value) -> None:
        self.asked: list[tuple[int, int, int, int, str]] = []
        self.told: list[tuple[str, int]] = []
        self.logs: dict[int, list[Any]] = defaultdict(list)
        self.waiting: list[tuple[Any, Any]] = []
        self.nodes = {broker: Node(broker) for broker in (1, 2)}
        self._given = PRODUCER_ID - 1
        world = self

        class Connection:
            def __init__(self, port: int, answered: Any) -> None:
                if not world.nodes[port].alive:
                    raise ConnectionRefusedError
                self.port, self.answered, self.is_closed = port, answered, False

            def send(self, request: Any) -> None:
                world.take(self, request)

            def close(self) -> None:
                self.is_closed = True

        monkeypatch.setattr(module, "ProducerConnection", Connection)
        monkeypatch.setattr(wire, "ask", self._ask)
        self.cluster = SimpleNamespace(
            leader=1,
            leader_of=lambda _: self.cluster.leader,
            node=self.nodes.__getitem__,
            brokers=self.nodes,
            paced_ms=lambda ms: ms,
            release=SimpleNamespace(number=(2, 6, 0)),
            time_s=0.0,
        )
        observer: Any = SimpleNamespace(
            add_step=lambda what, **fields: self.told.append((what, fields["record"])), logs=self.logs
        )
        self.producer = KafkaProducer(self.cluster, observer, resolve({}, config), MODES[mode].rules)
        monkeypatch.setattr(self.producer, "_thread", SimpleNamespace(is_alive=lambda: True))

    def _ask(self, _port: int, _request: Any, _seconds: float) -> Any:
        self._given += 1
        return SimpleNamespace(error_code=0, producer_id=self._given, producer_epoch=0)

    def take(self, connection: Any, request: Any) -> None:
        """A request arrives at a broker."""
        (topic,) = request.encoded.topic_data
        batch = MemoryRecords(topic.partition_data[0].records).next_batch()
        name = next(iter(batch)).key.decode()
        self.asked.append((connection.port, batch.producer_id, batch.producer_epoch, batch.base_sequence, name))
        if request.batch.acks:
            self.waiting.append((connection, request))

    def append(self, broker: int, first_id: int) -> None:
        """A broker appends a batch."""
        self.logs[broker].append(SimpleNamespace(first_id=first_id))

    def answer(self, error: int, offset: int = -1) -> None:
        """The oldest request that waits is answered."""
        connection, request = self.waiting.pop(0)
        told = SimpleNamespace(error_code=error, base_offset=offset, log_start_offset=0)
        answer = SimpleNamespace(responses=[SimpleNamespace(partition_responses=[told])])
        connection.answered.put((request, answer))
        self.run()

    def breaks(self) -> None:
        """The oldest connection breaks."""
        connection, _ = self.waiting.pop(0)
        connection.answered.put((connection, None))
        self.run()

    def run(self, seconds: float = 0.0) -> None:
        """Let time pass."""
        self.cluster.time_s += seconds
        self.producer.look()

    def send(self, *names: str, acks: int = -1) -> list[Send]:
        """Send batches of one record, ``m1`` and so on, one after the other."""
        sends = [Send(name, int(name[1:]), 1, acks) for name in names]
        for send in sends:
            self.producer.send(send)
        self.run()
        return sends

    @property
    def names(self) -> list[str]:
        """The batches that reached a broker, in order."""
        return [name for *_, name in self.asked]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Callable[..., World]:
    return lambda mode="kip320", **config: World(monkeypatch, mode, **config)


def test_a_batch_is_sent_until_it_is_acknowledged(world: Callable[..., World]) -> None:
    small = world()
    (send,) = small.send("m1")
    small.breaks()
    small.run(0.2)
    small.answer(NOT_LEADER)
    small.run(0.2)
    small.answer(0, 4)
    assert small.asked == [(1, -1, -1, -1, "m1")] * 3
    assert (send.offset, send.by) == (4, 1)
    assert [what for what, _ in small.told] == ["refused", "refused", "ack"]


def test_a_restarted_producer_has_another_id_and_forgets_its_batches(world: Callable[..., World]) -> None:
    small = world(**IDEMPOTENT)
    (first,) = small.send("m1")
    old = small.waiting[0][0]
    small.producer.restart()
    small.run()
    assert old.is_closed
    assert small.producer.is_idle
    small.send("m2")
    small.answer(0, 4)  # It is too late for the first process.
    small.answer(0, 5)
    assert first.offset is None
    assert small.asked == [(1, PRODUCER_ID, 0, 0, "m1"), (1, PRODUCER_ID + 1, 0, 0, "m2")]
    assert small.told == [("ack", 2)]


def test_nobody_answers_to_acks_0(world: Callable[..., World]) -> None:
    small = world()
    small.send("m1", acks=0)
    small.run(60)
    assert (small.names, small.told) == (["m1"], [])


def test_batches_wait_in_order_while_there_is_no_leader(world: Callable[..., World]) -> None:
    """However long that takes: nothing overtakes the first."""
    small = world()
    small.cluster.leader = 0
    small.send("m1", "m2")
    small.run(60)
    assert small.names == []
    small.cluster.leader = 2
    small.run(0.2)
    assert small.asked == [(2, -1, -1, -1, "m1"), (2, -1, -1, -1, "m2")]


def test_a_producer_knows_the_leader_before_as_long_as_no_broker_tells_another(world: Callable[..., World]) -> None:
    small = world()
    small.send("m1", "m2")
    small.nodes[1].paused, small.nodes[2].alive = True, False
    small.cluster.leader = 2
    small.run(30)
    small.run(0.2)
    assert small.told == [("refused", 1), ("refused", 2)]
    assert [(broker, name) for broker, *_, name in small.asked[2:]] == [(1, "m2"), (1, "m1")]
    small.nodes[1].paused, small.nodes[2].alive = False, True
    small.waiting = small.waiting[2:]
    small.answer(NOT_LEADER)
    small.answer(NOT_LEADER)
    small.run(0.2)
    assert [(broker, name) for broker, *_, name in small.asked[4:]] == [(2, "m1"), (2, "m2")]


def test_batches_under_way_are_refused_together_and_sent_again_as_kafka_does(world: Callable[..., World]) -> None:
    """Without sequences, the one that is refused last is first in the queue."""
    small = world()
    small.send("m1", "m2")
    small.answer(NOT_LEADER)
    small.answer(NOT_LEADER)
    small.run(0.2)
    assert small.names == ["m1", "m2", "m2", "m1"]


def test_at_most_max_in_flight_requests_are_under_way(world: Callable[..., World]) -> None:
    small = world(**{"max.in.flight.requests.per.connection": 1})
    small.send("m1", "m2")
    small.append(1, 1)
    small.run()
    assert small.names == ["m1"]
    small.answer(NOT_LEADER)
    small.run(0.2)
    small.answer(0, 0)
    assert small.names == ["m1", "m1", "m2"]


def test_an_idempotent_producer_shares_a_connection_and_repeats_sequences(world: Callable[..., World]) -> None:
    """All requests reach the broker at once; it is the broker that handles one at a time."""
    small = world(**IDEMPOTENT)
    small.send("m1", "m2")
    assert small.asked == [(1, PRODUCER_ID, 0, 0, "m1"), (1, PRODUCER_ID, 0, 1, "m2")]
    (first, _), (second, _) = small.waiting
    assert first is second
    small.waiting.clear()
    small.producer._give_up(1, "the connection broke")
    small.run(0.2)
    small.answer(0, 0)
    assert small.asked[2:] == [(1, PRODUCER_ID, 0, 0, "m1"), (1, PRODUCER_ID, 0, 1, "m2")]


@pytest.mark.parametrize(("mode", "then"), [("kip279", []), ("kip320", [(1, PRODUCER_ID, 1, 0, "m2")])])
def test_after_a_gap_it_does_what_the_mode_says(world: Callable[..., World], mode: str, then: list[Any]) -> None:
    """Before KIP-360 the batch fails; since then it is sent again in another producer epoch."""
    small = world(mode, **IDEMPOTENT)
    small.send("m1")
    small.answer(0, 0)
    small.send("m2")
    small.answer(OUT_OF_ORDER)
    small.run(0.2)
    assert small.asked == [(1, PRODUCER_ID, 0, 0, "m1"), (1, PRODUCER_ID, 0, 1, "m2"), *then]


def test_a_machine_without_power_is_noticed_by_timeout(world: Callable[..., World]) -> None:
    """Meanwhile the next batch goes to the next leader."""
    small = world(**IDEMPOTENT)
    small.send("m1")
    small.nodes[1].alive, small.nodes[1].silent = False, True
    small.breaks()
    small.cluster.leader = 2
    small.run(300)
    assert small.told == [("refused", 1)]

    small = world(**IDEMPOTENT, **{"metadata.max.age.ms": 300})
    small.send("m1")
    small.nodes[1].alive, small.nodes[1].silent = False, True
    small.breaks()
    small.cluster.leader = 2
    small.run(0.3)
    small.send("m2")
    assert [(broker, name) for broker, *_, name in small.asked] == [(1, "m1"), (2, "m2")]
    assert small.told == []
    small.run(ANSWER_S * 10)
    assert small.told == [("refused", 1)]


def test_requests_and_responses_are_held_back_and_delivered(world: Callable[..., World]) -> None:
    small = world(**IDEMPOTENT)
    small.producer.hold(REQUEST, 1)
    small.send("m1", "m2", "m3")
    assert small.names == []
    small.producer.deliver(REQUEST, 1)
    small.producer.deliver(REQUEST, 1, newest=True)
    small.run()
    assert small.names == ["m1", "m3"]
    small.producer.hold(RESPONSE, 1)
    small.run()
    small.answer(0, 0)
    assert small.told == []
    small.producer.release(RESPONSE, 1)
    small.producer.release(REQUEST, 1)
    small.run()
    assert small.told == [("ack", 1)]
    assert small.names == ["m1", "m3", "m2"]


def test_a_held_response_of_a_broker_that_ends_never_arrives(world: Callable[..., World]) -> None:
    small = world()
    small.producer.hold(RESPONSE, 1)
    small.send("m1")
    small.answer(0, 0)
    small.nodes[1].alive = False
    small.run()
    assert small.told == [("refused", 1)]
    small.nodes[1].alive = True
    small.producer.release(RESPONSE, 1)
    small.run(1)
    small.answer(0, 1)
    assert small.told == [("refused", 1), ("ack", 1)]
    assert small.names == ["m1", "m1"]


def test_a_delivery_lets_the_next_message_pass_if_none_is_held(world: Callable[..., World]) -> None:
    small = world()
    small.producer.hold(REQUEST, 1)
    small.producer.deliver(REQUEST, 1)
    small.send("m1", "m2")
    small.append(1, 1)
    small.run()
    assert small.names == ["m1"]
    small.producer.release_all()
    small.run()
    assert small.names == ["m1", "m2"]


def test_a_batch_fails_after_delivery_timeout(world: Callable[..., World]) -> None:
    small = world(**{"delivery.timeout.ms": 40_000})
    small.cluster.leader = 0
    (send,) = small.send("m1")
    small.run(39)
    assert not small.producer.is_idle
    small.run(1)
    small.cluster.leader = 1
    small.run(1)
    assert small.names == []
    assert send.failed
    assert small.producer.is_idle


def test_a_leader_may_wait_for_followers_as_long_as_the_producer(world: Callable[..., World]) -> None:
    timeouts = {"request.timeout.ms": 30_000, "delivery.timeout.ms": 120_000}
    assert world("kraft", **timeouts).producer.timeout_s == 30
    assert world("kraft", **{"request.timeout.ms": 100}).producer.timeout_s == ANSWER_S - 1


def test_a_producer_of_another_partition_names_it(world: Callable[..., World]) -> None:
    small = world()
    made = KafkaProducer(small.cluster, small.producer._observer, small.producer._config, MODES["kip320"].rules, AUDIT)
    request = made.request(Send("a1", 0, 1, -1))
    (topic,) = request.topic_data
    assert (topic.name, topic.partition_data[0].index) == ("audit", 1)
    tags: list[dict[str, Any]] = []
    made._observer = SimpleNamespace(add_step=lambda _, **fields: tags.append(fields))  # type: ignore[assignment]
    small.producer = made
    made._thread = SimpleNamespace(is_alive=lambda: True)  # type: ignore[assignment]
    small.send("m1")
    small.answer(0, 4)
    assert [tag["partition"] for tag in tags] == ["audit-1"]
