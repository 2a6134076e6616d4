from __future__ import annotations

from typing import TYPE_CHECKING

from sim.hosts.shared_producer import PartitionProducer
from sim.hosts.topics import ClusterTopic, TopicPartition
from sim.protocol import probes
from sim.protocol.client.sender import ProducerBatch
from tests.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.config import Value

FIRST, AWAY, BESIDE = "highwater-0", "away-0", "beside-0"
"""Partitions; broker 1 leads the first and the last, broker 2 the other one."""


def world(config: Mapping[str, Value] | None = None, *, mode: str = "elr-4.3", beside: int = 2) -> World:
    """Two brokers with three partitions, to which one producer sends; the last one has `beside` replicas."""
    settings = {"sim.producer.shared": True, "auto.leader.rebalance.enable": False, **(config or {})}
    further = [TopicPartition(AWAY, 2), TopicPartition(BESIDE, beside)]
    return World(mode, brokers=2, config=settings, further=further).ready()


def idempotent(config: Mapping[str, Value] | None = None, *, mode: str = "elr-4.3") -> World:
    return world({"enable.idempotence": True, **(config or {})}, mode=mode)


def together(found: World, *partitions: int, first_id: int = 0) -> None:
    """Let one batch of each partition wait until all are to be sent."""
    for place in partitions:
        producer = found.cluster.partitions[place].producer
        assert isinstance(producer, PartitionProducer)
        producer.sender.queue.append(ProducerBatch(first_id + place, 1, -1, found.cluster.kernel.now_us))
    found.cluster.producer.run()


def reached(found: World, probe: int) -> bool:
    return bool(found.cluster.recorder.coverage.seen >> (len(probes.PROBES) - 1 - probe) & 1)


def test_batches_for_one_leader_are_in_one_request() -> None:
    found = world()
    assert [found.cluster.control.state_of(name).leader for name in (FIRST, AWAY, BESIDE)] == [1, 2, 1]
    together(found, 0, 1, 2)
    found.run()
    assert reached(found, probes.REQUEST_OF_SEVERAL)
    first, last = (found.of("append", broker=1, record=record)[0] for record in (0, 2))
    assert first["t"] == last["t"]
    assert [found.logs_of(name) for name in (FIRST, AWAY, BESIDE)] == [[[0]] * 2, [[1]] * 2, [[2]] * 2]
    assert {step["record"] for step in found.of("ack")} == {0, 1, 2}
    assert all(partition.writes_answered for partition in found.cluster.partitions)


def test_the_answer_waits_for_all_partitions_of_the_request() -> None:
    found = world(beside=1)
    found.cluster.links.cut(2, 1)  # The first partition's follower no longer fetches.
    together(found, 0, 2)
    found.run(2)
    assert found.logs_of(BESIDE)[0] == [2]
    assert not found.of("ack", record=2)
    found.cluster.links.heal_all()
    found.run(40)
    assert found.of("ack", record=0)
    assert found.of("ack", record=2)


def test_the_limit_of_requests_in_flight_is_for_a_broker() -> None:
    found = world({"max.in.flight.requests.per.connection": 2})
    found.cluster.links.cut(1, found.cluster.producer.node)  # Broker 1's answers are lost.
    for place in (0, 2, 0, 1):
        found.write(acks=1, seconds=0.1, partition=place)
    appended = [step["record"] for step in found.of("append", broker=1) if step["record"] != 3]
    assert appended == [0, 1]
    assert found.of("ack", record=3)


def test_a_broken_connection_takes_the_batches_of_all_partitions_back() -> None:
    found = world()
    found.cluster.kill(1)
    together(found, 0, 2)
    found.run(30)
    assert found.of("append", broker=2, record=0)
    assert found.of("append", broker=2, record=2)
    assert {step["record"] for step in found.of("ack")} == {0, 2}


def test_a_request_that_times_out_takes_back_those_of_other_partitions() -> None:
    found = idempotent()
    found.cluster.links.cut(1, found.cluster.producer.node)
    found.write(acks=-1, seconds=0)
    found.write(acks=-1, seconds=1, partition=2)
    found.cluster.links.heal_all()
    assert not found.of("ack")
    found.run(31)
    assert {step["record"] for step in found.of("ack")} == {0, 1}
    assert found.logs == [[0]] * 2
    assert found.logs_of(BESIDE) == [[1]] * 2


def test_all_partitions_have_one_producer_id() -> None:
    found = idempotent()
    together(found, 0, 1, 2)
    found.run()
    assert {step["producer_id"] for step in found.of("append")} == {1}
    assert {step["sequence"] for step in found.of("append")} == {0}


def test_a_batch_that_must_wait_stops_the_other_partitions_of_its_leader() -> None:
    """RecordAccumulator#drainBatchesForOneNode ends with the first partition that has to wait. Here it waits for the
    answer of a silent former leader, until ``request.timeout.ms`` ends that.
    """
    found = idempotent({"metadata.max.age.ms": 10_000})
    found.write(partition=1)
    found.cluster.pause(2)
    lost = found.write(partition=1, seconds=18)
    assert found.cluster.control.state_of(AWAY).leader == 1
    early = found.write(partition=1)  # Out of order: the one before is in flight to broker 2.
    assert [step["error"] for step in found.of("refused", record=early)] == ["OUT_OF_ORDER_SEQUENCE_NUMBER"]
    stopped = [found.write(partition=2), found.write(partition=2, seconds=7)]
    assert not found.of("append", record=stopped[-1])
    found.run(12)
    assert reached(found, probes.PARTITION_STOPS_OTHERS)
    assert {step["record"] for step in found.of("ack")} >= {lost, early, *stopped}


def test_topics_that_are_created_later_have_the_same_producer() -> None:
    settings = {"sim.producer.shared": True, "enable.idempotence": True}
    topics = (ClusterTopic("highwater", 1, 2, spared=True), ClusterTopic("orders", 1, 2, created=False))
    found = World("elr-4.3", brokers=2, config=settings, topics=topics).ready()
    assert found.cluster.topics.create("orders")
    found.run()
    found.cluster.partitions[-1].producer.begin()
    found.run()
    found.write(partition=1)
    assert {step["producer_id"] for step in found.of("append", partition="orders-0")} == {1}


def test_a_new_process_begins_with_another_producer_id_in_all_partitions() -> None:
    found = idempotent()
    together(found, 0, 1)
    found.run()
    found.cluster.partitions[1].producer.restart()
    assert len(found.of("producer-id", producer_id=2)) == 3
    together(found, 0, 1, first_id=10)
    found.run()
    assert {step["producer_id"] for step in found.of("append") if step["record"] >= 10} == {2}
