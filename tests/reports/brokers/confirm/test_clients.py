from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest

from reports.brokers.confirm import clients as module
from reports.brokers.confirm import wire
from reports.brokers.confirm.clients import KafkaAdminClient, KafkaClients, Send
from sim.config import resolve
from sim.protocol.kraft.metadata import ELR_FEATURE
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.config import Value

pytest.importorskip("kafka")
from kafka.record import MemoryRecords

NOTHING: Final = EOFError("gone")
PRODUCER_ID: Final = 7
OUT_OF_ORDER: Final = 45


class World:
    """Clients of a broker that answers as it is told to, and what they asked for and said."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, mode: str, answers: list[Any], **config: Value) -> None:
        self.asked: list[tuple[int, int, int, int]] = []
        self.told: list[tuple[str, dict[str, Any]]] = []
        self._answers = answers
        self._given = PRODUCER_ID - 1
        monkeypatch.setattr(module, "_RETRY_S", 0.001)
        monkeypatch.setattr(wire, "ask", self._ask)
        cluster: Any = SimpleNamespace(
            leader=1,
            node=lambda _: SimpleNamespace(client_port=1),
            paced_ms=lambda ms: ms,
            release=SimpleNamespace(number=(2, 6, 0)),
        )
        observer: Any = SimpleNamespace(add_step=lambda what, **fields: self.told.append((what, fields)))
        keys: dict[str, Any] = {"delivery.timeout.ms": 200, "request.timeout.ms": 100, "linger.ms": 0, **config}
        self.clients = KafkaClients(cluster, observer, resolve({}, keys), MODES[mode].rules)

    def _ask(self, _port: int, request: Any, _seconds: float) -> Any:
        if type(request).__name__ == "InitProducerIdRequest":
            self._given += 1
            return SimpleNamespace(error_code=0, producer_id=self._given, producer_epoch=0)
        (topic,) = request.topic_data
        batch = MemoryRecords(topic.partition_data[0].records).next_batch()
        first = next(iter(batch))
        self.asked.append((batch.producer_id, batch.producer_epoch, batch.base_sequence, int(first.key[1:])))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            return None
        error, offset = answer
        told = SimpleNamespace(error_code=error, base_offset=offset, log_start_offset=0)
        return SimpleNamespace(responses=[SimpleNamespace(partition_responses=[told])])

    def send(self, *sends: Send) -> None:
        """Send batches, one after the other."""
        for send in sends:
            self.clients.sends.append(send)
            self.clients._produce(send)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Callable[..., World]:
    return lambda *words, **config: World(monkeypatch, *words, **config)


def test_a_batch_is_sent_until_it_is_acknowledged(world: Callable[..., World]) -> None:
    small = world("kip320", [NOTHING, (6, -1), (0, 4)])
    send = Send("m1", 0, 2, -1)
    small.send(send)
    assert small.asked == [(-1, -1, -1, 1)] * 3
    assert (send.offset, send.by) == (4, 1)
    assert [what for what, _ in small.told] == ["refused", "refused", "ack"]


def test_nobody_answers_to_acks_0(world: Callable[..., World]) -> None:
    small = world("kip320", [None])
    small.send(Send("m1", 0, 2, 0))
    assert (len(small.asked), small.told) == (1, [])


def test_an_idempotent_producer_repeats_the_sequence_of_a_batch(world: Callable[..., World]) -> None:
    small = world("kip320", [NOTHING, (0, 0), (0, 2)], **{"enable.idempotence": True, "acks": "all"})
    small.send(Send("m1", 0, 2, -1), Send("m2", 2, 1, -1))
    assert small.asked == [(PRODUCER_ID, 0, 0, 1), (PRODUCER_ID, 0, 0, 1), (PRODUCER_ID, 0, 2, 2)]


@pytest.mark.parametrize(("mode", "then"), [("kip279", []), ("kip320", [(PRODUCER_ID, 1, 0, 2)])])
def test_after_a_gap_it_does_what_the_mode_says(world: Callable[..., World], mode: str, then: list[Any]) -> None:
    """Before KIP-360 the batch fails; since then it is sent again in another producer epoch."""
    small = world(mode, [(0, 0), (OUT_OF_ORDER, -1), (0, 2)], **{"enable.idempotence": True, "acks": "all"})
    last = Send("m2", 2, 1, -1)
    small.send(Send("m1", 0, 2, -1), last)
    assert small.asked == [(PRODUCER_ID, 0, 0, 1), (PRODUCER_ID, 0, 2, 2), *then]
    assert (last.offset == 2) == bool(then)


def test_a_batch_waits_for_the_answer_to_the_one_before_but_not_forever(
    world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ANSWER_S", 0.05)
    one = world("kraft", [])
    order: list[str] = []
    with one.clients._in_turn():
        other = threading.Thread(target=lambda: _take_turn(one.clients, order))
        other.start()
        time.sleep(0.01)
        order.append("first")
        other.join()  # It went on although the first has no answer.
    assert order == ["first", "second"]
    with one.clients._in_turn():
        order.append("third")
    assert not one.clients._turn.locked()


def _take_turn(clients: KafkaClients, order: list[str]) -> None:
    with clients._in_turn():
        order.append("second")


def test_a_leader_may_wait_for_followers_as_long_as_the_producer(world: Callable[..., World]) -> None:
    assert world("kraft", [], **{"request.timeout.ms": 30_000, "delivery.timeout.ms": 120_000}).clients._timeout_s == 30
    assert world("kraft", []).clients._timeout_s == module._ANSWER_S - 1


def administrator(answer: Any, asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> KafkaAdminClient:
    """One whose requests all get the same answer."""
    cluster: Any = SimpleNamespace(history=SimpleNamespace(controller=1))
    made = KafkaAdminClient(cluster)

    def ask(request: Any, *, first: int) -> Any:
        assert first == 1
        asked.append(request)
        return answer

    monkeypatch.setattr(made, "ask", ask)
    return made


@pytest.mark.parametrize(("level", "kind"), [(1, 1), (0, 2)])
def test_a_feature_is_upgraded_or_downgraded(monkeypatch: pytest.MonkeyPatch, level: int, kind: int) -> None:
    """What else is set goes to the topic."""
    asked: list[Any] = []
    answer = SimpleNamespace(error_code=0, responses=[])
    administrator(answer, asked, monkeypatch).set_config({ELR_FEATURE: level, "min.insync.replicas": 2})
    update, configs = asked
    (feature,) = update.feature_updates
    assert (feature.feature, feature.max_version_level, feature.upgrade_type) == (ELR_FEATURE, level, kind)
    (resource,) = configs.resources
    assert [(one.name, one.value) for one in resource.configs] == [("min.insync.replicas", "2")]


def test_a_refused_feature_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = administrator(SimpleNamespace(error_code=95), [], monkeypatch)
    with pytest.raises(TimeoutError, match="UpdateFeaturesRequest was refused: error 95"):
        refusing.set_config({ELR_FEATURE: 1})
