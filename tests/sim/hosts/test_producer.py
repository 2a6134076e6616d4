from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sim.history import steps
from sim.protocol.client.sender import ProducerBatch
from sim.protocol.log import producer_state_manager
from sim.protocol.messages import INVALID_PRODUCER_EPOCH
from tests.sim.world import SECOND_US, World

if TYPE_CHECKING:
    from sim.config import Value


def test_batches_are_sent_at_their_times_and_in_order() -> None:
    world = World().ready()
    now_us = world.cluster.kernel.now_us
    world.cluster.producer.schedule([ProducerBatch(number, 1, -1, now_us + number * SECOND_US) for number in range(3)])
    world.run(1.5)
    assert [step["record"] for step in world.of("ack")] == [0, 1]
    world.run(1)
    assert [step["record"] for step in world.of("ack")] == [0, 1, 2]
    assert world.cluster.producer.idle


def test_the_next_batches_are_sent_ahead_of_their_times() -> None:
    world = World().ready()
    producer = world.cluster.producer
    now_us = world.cluster.kernel.now_us
    producer.schedule([ProducerBatch(number, 1, -1, now_us + (5 + number) * SECOND_US) for number in range(4)])
    assert producer.send_next(2)
    world.run(1)
    assert [step["record"] for step in world.of("ack")] == [0, 1]
    assert producer.sent == 2
    world.run(6.5)
    assert [step["record"] for step in world.of("ack")] == [0, 1, 2]
    assert producer.send_next(3)
    world.run(1)
    assert [step["record"] for step in world.of("ack")] == [0, 1, 2, 3]
    assert not producer.send_next(1)
    assert producer.sent == 4


def test_no_more_requests_are_in_flight_than_allowed() -> None:
    world = World(config={"max.in.flight.requests.per.connection": 2}).ready()
    world.cluster.links.cut(1, world.cluster.producer.node)
    for _ in range(5):
        world.write(acks=1, seconds=0)
    world.run(1)
    assert len(world.of("append", broker=1)) == 2


@pytest.mark.parametrize(("acks", "acked"), [(0, []), (1, [0]), (-1, [])])
def test_acks_wait_for_what_they_say(acks: int, acked: list[int]) -> None:
    world = World().ready()
    world.cluster.links.cut(2, 1)
    world.write(acks=acks)
    assert [step["record"] for step in world.of("ack")] == acked
    assert world.logs[0] == [0]
    assert world.cluster.producer.idle == (acks != -1)


def test_unanswered_batches_are_sent_again_after_a_failover() -> None:
    world = World().ready()
    world.cluster.kill(1)
    world.write()
    world.write()
    assert not world.of("ack")
    world.run(30)
    assert [step["record"] for step in world.of("ack")] == [0, 1]
    assert world.of("append", broker=2, record=0)


def test_a_retry_whose_first_copy_survived_is_appended_twice() -> None:
    world = World().ready()
    world.cluster.links.cut(1, 1001)
    world.write()
    assert world.logs[0] == [0]
    world.cluster.links.heal_all()
    world.run(60)
    assert world.logs == [[0, 0]] * 3
    assert [step["offset"] for step in world.of("ack", record=0)] == [1]


def test_acks_0_is_never_sent_again() -> None:
    world = World().ready()
    world.cluster.links.cut(1001, 1)
    world.write(acks=0)
    world.cluster.links.heal_all()
    world.run(60)
    assert world.logs == [[]] * 3


def test_a_batch_is_given_up_after_its_delivery_timeout() -> None:
    world = World(config={"delivery.timeout.ms": 40_000}).ready()
    world.cluster.links.cut(1001, 1)
    world.write(seconds=35)
    world.write(seconds=0)
    world.cluster.links.heal_all()
    world.run(60)
    assert [step["record"] for step in world.of("ack")] == [1]


def test_refusals_are_retried_until_the_isr_is_large_enough() -> None:
    world = World(brokers=2, config={"min.insync.replicas": 2}).ready()
    world.cluster.kill(2)
    world.run(30)
    world.write(seconds=5)
    assert not world.of("ack")
    assert world.logs[0] == []
    world.cluster.start(2)
    world.run(10)
    assert [step["record"] for step in world.of("ack")] == [0]
    assert world.logs == [[0]] * 2


@pytest.mark.parametrize(("mode", "order"), [("kip101", [0, 1, 2]), ("kip279", [2, 1, 0])])
def test_batches_of_a_lost_connection_are_turned_round_since_2_0(mode: str, order: list[int]) -> None:
    world = World(mode).ready()
    world.cluster.links.cut(1001, 1)
    for _ in range(3):
        world.write(seconds=0)
    world.cluster.kill(1)
    world.run(60)
    assert world.logs[1] == order


def test_a_batch_in_flight_expires_at_its_delivery_timeout() -> None:
    world = World(config={"delivery.timeout.ms": 30_000}).ready()
    world.cluster.links.cut(1001, 1)
    world.write(seconds=29)
    assert not world.cluster.producer.idle
    world.cluster.links.heal_all()
    world.run(60)
    assert world.cluster.producer.idle
    assert world.logs == [[]] * 3


def test_a_batch_that_is_answered_too_late_was_given_up() -> None:
    world = World(config={"delivery.timeout.ms": 35_000}).ready()
    world.cluster.links.cut(1, 1001)
    world.write(seconds=29)
    world.cluster.links.heal_all()
    world.cluster.links.worsen(steps.SLOW, 1, 1001, 8 * SECOND_US)
    world.run(30)
    assert world.logs[0] == [0, 0]
    assert not world.of("ack")
    assert world.cluster.producer.idle


@pytest.mark.parametrize("former", [1, 2])
def test_requests_to_a_former_leader_are_lost_with_it(former: int) -> None:
    world = World().ready()
    world.cluster.links.cut(1, 1001)
    lost = world.write(acks=1, seconds=0.01)
    world.decide(2, (1, 2, 3))
    world.run(1)
    world.cluster.producer.refresh()
    world.cluster.links.heal_all()
    world.run(1)
    assert world.cluster.producer.leader == 2
    assert not world.of("ack", record=lost)
    world.cluster.kill(former)
    world.run(2)
    assert bool(world.of("ack", record=lost)) == (former == 1)


def test_requests_in_flight_are_counted_by_leader() -> None:
    world = World(config={"max.in.flight.requests.per.connection": 2}).ready()
    world.cluster.links.cut(1, 1001)
    for _ in range(2):
        world.write(seconds=0.01)
    world.decide(2, (1, 2, 3))
    world.run(1)
    world.cluster.producer.refresh()
    world.run(1)
    assert world.cluster.producer.leader == 2
    assert world.of("ack", record=world.write())


IDEMPOTENT: dict[str, bool] = {"enable.idempotence": True}


def test_an_idempotent_producer_repeats_without_doubling() -> None:
    world = World(config=IDEMPOTENT).ready()
    world.cluster.links.cut(1, 1001)
    world.write()
    assert world.logs[0] == [0]
    world.cluster.links.heal_all()
    world.run(60)
    assert world.logs == [[0]] * 3
    assert [step["offset"] for step in world.of("ack", record=0)] == [0]


def test_idempotent_producer_doubles_where_brokers_ignore_producer_ids() -> None:
    world = World(config=IDEMPOTENT, rules={"producer_dedup": "no"}).ready()
    world.cluster.links.cut(1, 1001)
    world.write()
    world.cluster.links.heal_all()
    world.run(60)
    assert world.logs == [[0, 0]] * 3


def test_idempotent_producer_goes_on_in_order_after_a_failover() -> None:
    world = World(config=IDEMPOTENT).ready()
    world.write(2)
    world.cluster.kill(1)
    for count in (1, 3, 1):
        world.write(count, seconds=0)
    world.run(30)
    assert world.logs[1] == list(range(7))
    assert not world.of("producer-id")


@pytest.mark.parametrize(
    ("recovery", "acked", "producer"), [("epoch-bump", [0, 5, 6, 7], (1, 1)), ("new-producer-id", [0, 5, 7], (2, 0))]
)
def test_a_lost_batch_is_noticed_by_the_gap_in_its_sequence(
    recovery: str, acked: list[int], producer: tuple[int, int]
) -> None:
    config = {**IDEMPOTENT, "unclean.leader.election.enable": True, "replica.lag.time.max.ms": 2_000}
    world = World(brokers=2, config=config, rules={"producer_recovery": recovery}).ready()
    world.write(5, acks=1)  # Something for the log to know the producer by.
    world.cluster.links.cut(2, 1)
    world.run(10)
    world.write(acks=1)
    world.cluster.kill(1)
    world.run(30)
    world.write(seconds=5)
    world.write(seconds=5)
    assert [(step["producer_id"], step["producer_epoch"]) for step in world.of("producer-id")] == [producer]
    assert [step["record"] for step in world.of("ack")] == acked


@pytest.mark.parametrize(("recovery", "producer"), [("epoch-bump", (2, 0)), ("epoch-bump-when-fenced", (1, 1))])
def test_the_application_replaces_a_producer_that_was_fenced(
    recovery: str, producer: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(config=IDEMPOTENT, rules={"producer_recovery": recovery}).ready()
    world.write()
    with monkeypatch.context() as patch:
        patch.setattr(producer_state_manager, "check", lambda *_, **__: (INVALID_PRODUCER_EPOCH, None))
        world.write()
    world.write()
    assert [step["record"] for step in world.of("ack")] == [0, 2]
    assert [(step["producer_id"], step["producer_epoch"]) for step in world.of("producer-id")] == [producer]
    assert world.cluster.producer.idle


def test_a_request_to_a_former_leader_times_out_by_itself() -> None:
    world = World().ready()
    world.cluster.links.cut(1, 1001)
    lost = world.write(seconds=0.01)
    world.cluster.machines.lose_power(1)
    world.run(20)
    assert world.of("elected", broker=2)
    for _ in range(4):
        world.write(seconds=4)
    acked = [step["record"] for step in world.of("ack")]
    assert acked.index(lost) > 0
    assert world.cluster.producer.idle


@pytest.mark.parametrize(("failure", "sent"), [("goes-on", 3), ("stops", 1)])
def test_an_application_goes_on_or_stops_when_a_batch_fails(failure: str, sent: int) -> None:
    config: dict[str, Value] = {
        "delivery.timeout.ms": 5_000,
        "request.timeout.ms": 5_000,
        "sim.producer.failure": failure,
    }
    world = World(config=config).ready()
    producer = world.cluster.producer
    now_us = world.cluster.kernel.now_us
    world.cluster.links.cut(1, producer.node)
    world.cluster.links.cut(producer.node, 1)
    producer.schedule([ProducerBatch(number, 1, -1, now_us + number * 10 * SECOND_US) for number in range(3)])
    world.run(9)
    assert [step["record"] for step in world.of("batch-failed")] == [0]
    world.run(30)
    assert producer.sent == sent
