"""Topics that are created, enlarged and deleted while the cluster runs."""

from __future__ import annotations

import pytest

from faults.kinds.injection import Injection
from faults.plan import FOLLOWERS, LEADER, OUTSIDER, STEP_BROKER, Fault, Plan, Trigger
from sim.hosts.cluster import TOPIC
from sim.hosts.topics import ClusterTopic, TopicPartition
from sim.protocol import probes
from sim.protocol.batch import Batch
from sim.protocol.messages import (
    AGREES,
    NONE,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
    topic_partition,
)
from tests.sim.world import World

FIRST = ClusterTopic("highwater", 1, 3, spared=True)
ORDERS = ClusterTopic("orders", 1, 3, created=False)
CONFIG = {"auto.leader.rebalance.enable": False, "min.insync.replicas": 2}


def world(*topics: ClusterTopic, mode: str = "elr-4.3", elision: bool = True) -> World:
    """Three KRaft brokers with the first partition, and topics that may be created."""
    further = [TopicPartition(f"{topic.name}-0", topic.replication_factor) for topic in topics if topic.created]
    found = World(mode, config={**CONFIG, "sim.elision": elision}, further=further, topics=(FIRST, *topics))
    return found.ready()


def created(*, mode: str = "elr-4.3", elision: bool = True) -> World:
    """The topic `orders` was created, and its clients have begun."""
    found = world(ORDERS, mode=mode, elision=elision)
    assert found.cluster.topics.create("orders")
    return began(found)


def began(found: World) -> World:
    """The clients of the newest partition have begun."""
    found.run()
    found.cluster.partitions[-1].producer.begin()
    found.cluster.partitions[-1].consumer.begin()
    return found.run()


def test_a_topic_is_created_with_its_replicas_while_the_cluster_runs() -> None:
    found = created()
    state = found.cluster.control.state_of("orders-0")
    assert set(state.isr) == {1, 2, 3}
    record = found.write(2, partition=1)
    assert found.logs_of("orders-0") == [[record, record + 1]] * 3
    assert found.of("ack", partition="orders-0", record=record)
    assert found.of("read", partition="orders-0", record=record)
    assert found.of("topic-created", partitions="orders-0")
    assert not found.cluster.topics.create("orders")


def test_a_deleted_topic_is_gone_from_controller_brokers_and_disks() -> None:
    found = created()
    found.write(partition=1)
    assert found.cluster.topics.delete("orders")
    found.run(1)
    cluster = found.cluster
    assert list(cluster.control.states) == [TOPIC]
    for broker, process in cluster.running.items():
        assert list(process.replicas) == [TOPIC]
        assert list(process.metadata.known) == [TOPIC]
        assert list(cluster.machines.directories[broker].storages) == [TOPIC]
    first = found.write()
    assert found.logs == [[first]] * 3
    assert not cluster.topics.delete("orders")
    assert not cluster.topics.delete("highwater")


@pytest.mark.parametrize("mode", ["kraft", "elr-4.3"])
def test_the_first_topic_is_deleted_with_a_broker_that_is_down(mode: str) -> None:
    found = created(mode=mode)
    found.write(2)
    found.cluster.kill(3)
    found.run(1)
    assert found.cluster.topics.delete("highwater")
    assert not found.cluster.topics.delete("orders")
    found.run(1)
    cluster = found.cluster
    assert (cluster.name, list(cluster.control.states)) == ("orders-0", ["orders-0"])
    assert TOPIC in cluster.machines.directories[3].storages
    cluster.start(3)
    found.run(15)
    for broker, process in cluster.running.items():
        assert (list(process.replicas), process.partition) == (["orders-0"], None)
        assert list(cluster.machines.directories[broker].storages) == ["orders-0"]
    record = found.write(partition=1)
    assert found.logs_of("orders-0")[0][-1:] == [record]
    assert cluster.control.reassign((3, 1))
    found.run(1)
    assert cluster.control.state_of("orders-0").replicas == (3, 1)
    assert cluster.topics.create("highwater")
    began(found)
    record = found.write(partition=2)
    assert found.logs_of(f"{TOPIC}@2") == [[record]] * 3


@pytest.mark.parametrize("elision", [True, False])
def test_a_topic_that_is_created_again_is_another_topic(*, elision: bool) -> None:
    found = created(elision=elision)
    found.write(3, partition=1)
    assert found.cluster.topics.delete("orders")
    found.run(1)
    assert found.cluster.topics.create("orders")
    began(found)
    assert found.cluster.topics.names("orders") == ("orders-0@2",)
    assert found.logs_of("orders-0@2") == [[]] * 3
    record = found.write(partition=2)
    assert found.logs_of("orders-0@2") == [[record]] * 3
    assert found.of("ack", partition="orders-0@2", record=record, offset=0)


def test_a_broker_that_was_down_deletes_the_files_of_a_deleted_topic_when_it_starts() -> None:
    found = created()
    found.write(partition=1)
    found.cluster.kill(3)
    found.run(1)
    assert found.cluster.topics.delete("orders")
    found.run(1)
    assert "orders-0" in found.cluster.machines.directories[3].storages
    found.cluster.start(3)
    found.run(15)
    assert "orders-0" not in found.cluster.machines.directories[3].storages
    assert list(found.cluster.running[3].replicas) == [TOPIC]


def test_a_partition_is_added_to_a_topic() -> None:
    found = created()
    assert found.cluster.topics.enlarge("orders")
    began(found)
    assert found.cluster.topics.names("orders") == ("orders-0", "orders-1")
    record = found.write(partition=2)
    assert found.logs_of("orders-1") == [[record]] * 3
    assert found.cluster.topics.enlarge("highwater")
    assert not found.cluster.topics.enlarge("missing")


def test_no_topic_is_created_where_brokers_are_missing_or_the_controller_is_not_active() -> None:
    found = world(ClusterTopic("wide", 1, 4, created=False), ORDERS)
    assert not found.cluster.topics.create("wide")
    assert found.cluster.pause(0)
    assert not found.cluster.topics.create("orders")
    found.cluster.resume(0)
    assert found.cluster.topics.create("orders")


def test_a_new_partition_begins_with_the_brokers_that_are_not_fenced() -> None:
    found = world(ORDERS)
    found.cluster.kill(2)
    found.run(15)
    assert found.cluster.topics.create("orders")
    found.run(1)
    state = found.cluster.control.state_of("orders-0")
    assert (set(state.replicas), state.isr) == ({1, 2, 3}, state.replicas[:2])
    assert 2 not in state.isr
    found.cluster.start(2)
    found.run(15)
    assert set(found.cluster.control.state_of("orders-0").isr) == {1, 2, 3}


def reached(found: World, probe: int) -> bool:
    return bool(found.cluster.recorder.coverage.seen >> (len(probes.PROBES) - 1 - probe) & 1)


def test_late_requests_for_a_deleted_topic_are_refused() -> None:
    found = created()
    leader = found.cluster.control.state_of("orders-0").leader
    assert found.cluster.topics.delete("orders")
    found.run(1)
    process = found.cluster.running[leader]
    sent: list[object] = []

    class Replies:
        """A connection that keeps what is sent."""

        def send(self, message: object) -> None:
            sent.append(message)

    process.out[7777] = Replies()  # type: ignore[assignment]
    position = ("orders-0", 0, 0, -1)
    process.receive(ProduceRequest(7777, "orders-0", 5, 1, -1))
    process.receive(ProduceRequest(7777, "orders-0", 5, 1, 0))  # acks=0 is never answered.
    process.receive(FetchRequest(7777, leader, 2, -1, [position], [0]))
    process.receive(FetchRequest(7777, leader, 2, -1, [position, (TOPIC, 0, 0, -1)], [0, 0]))
    process.receive(ListOffsetsRequest(7777, -1, "orders-0", -1, 0))
    process.receive(OffsetsForLeaderEpochRequest(7777, [("orders-0", 0, 0)], [0], with_epoch=True))
    process.out.pop(7777)
    produce, fetch, fetches, offsets, ends = sent
    assert produce.error == UNKNOWN_TOPIC_OR_PARTITION  # type: ignore[attr-defined]
    assert fetch.results[0][:2] == ("orders-0", UNKNOWN_TOPIC_ID)  # type: ignore[attr-defined]
    assert fetches.results[0][:2] == ("orders-0", UNKNOWN_TOPIC_ID)  # type: ignore[attr-defined]
    assert offsets.error == UNKNOWN_TOPIC_OR_PARTITION  # type: ignore[attr-defined]
    assert ends.results == [("orders-0", UNKNOWN_TOPIC_OR_PARTITION, -1, -1)]  # type: ignore[attr-defined]
    assert reached(found, probes.UNKNOWN_TOPIC)


@pytest.mark.parametrize(("mode", "appended"), [("elr-4.3", [9]), ("elr-repaired", [])])
def test_a_follower_appends_a_late_response_about_a_deleted_topic_of_that_name(mode: str, appended: list[int]) -> None:
    found = created(mode=mode)
    cluster = found.cluster
    old = cluster.control.state_of("orders-0")
    assert cluster.topics.delete("orders")
    assert cluster.topics.create("orders")
    found.run(0.5)
    new = cluster.control.state_of("orders-0@2")
    follower = next(broker for broker in new.isr if broker not in (old.leader, new.leader))
    process = cluster.running[follower]
    fetcher = process.replica_manager.fetchers.fetchers[new.leader]
    late = Batch(0, 0, 0, 9)
    request = FetchRequest(follower, new.leader, follower, -1, [("orders-0", 0, 0, -1)], [0])
    fetcher.in_flight = request
    process.receive(FetchResponse(request, [("orders-0", NONE, [late], 0, 0, 0, AGREES)]))
    log = process.replicas["orders-0@2"].partition.log
    assert [batch.first_id for batch in log.batches] == appended
    assert reached(found, probes.RECREATED_REPLY)


def test_a_fetcher_outlives_a_deleted_topic_and_serves_the_next_one() -> None:
    found = world(ORDERS)
    cluster = found.cluster
    assert cluster.topics.create("orders")
    found.run(0.5)
    leader = cluster.control.state_of("orders-0").leader
    follower = next(broker for broker in (1, 2, 3) if broker not in (1, leader))
    process = cluster.running[follower]
    thread = process.replica_manager.fetchers.fetchers[leader]
    assert list(thread.partitions) == ["orders-0"]
    assert cluster.topics.delete("orders")
    found.run(0.5)
    assert process.replica_manager.fetchers.fetchers[leader] is thread
    assert not thread.partitions


def test_the_number_after_a_name_is_no_part_of_topic_and_partition() -> None:
    assert [topic_partition(name) for name in ("orders-0", "orders-0@2")] == ["orders-0"] * 2


def struck_at(found: World, *faults: Fault, seconds: float = 1) -> list[tuple[int, ...]]:
    """The targets of these faults."""
    injection = Injection(found.cluster)
    for fault in faults:
        injection.strike(fault)
    found.run(seconds)
    return [entry.targets for entry in injection.realised]


def led_by_three_and_two() -> World:
    """Broker 1 leads the first partition, 2 `orders-0`, and 3 `audit-0`, which has no other replica."""
    return world(ClusterTopic("orders", 1, 3), ClusterTopic("audit", 1, 1))


def test_a_fault_strikes_by_the_roles_of_the_partition_that_it_names() -> None:
    found = led_by_three_and_two()
    now_us = found.cluster.kernel.now_us
    leader, followers = (LEADER,), (FOLLOWERS,)
    faults = [
        Fault("session-expiry", now_us, leader),
        Fault("session-expiry", now_us, leader, partition="audit-0"),
        Fault("slow", now_us, (LEADER, OUTSIDER), value=1, partition="orders-0"),
    ]
    assert struck_at(found, *faults) == [(1,), (3,), (2, 3)]
    found = led_by_three_and_two()
    faults = [Fault("session-expiry", found.cluster.kernel.now_us, followers, partition="orders-0")]
    assert struck_at(found, *faults) == [(3,), (1,)]


def test_a_fault_waits_for_a_step_of_the_partition_that_it_names() -> None:
    found = led_by_three_and_two()
    now_us = found.cluster.kernel.now_us
    trigger = Trigger("append", 1, 0, now_us + 60_000_000)
    fault = Fault("kill", now_us, (STEP_BROKER,), trigger=trigger, partition="audit-0")
    injection = Injection(found.cluster)
    injection.schedule(Plan((fault,)))
    found.write()
    assert injection.realised == []
    found.write(partition=2)
    assert [entry.targets for entry in injection.realised] == [(3,)]


def test_other_partitions_are_reassigned_and_elected() -> None:
    found = world(ClusterTopic("orders", 1, 2))
    control = found.cluster.control
    assert control.state_of("orders-0").replicas == (2, 3)
    assert control.reassign((1, 2), "orders-0")
    found.run(5)
    state = control.state_of("orders-0")
    assert (state.replicas, set(state.isr)) == ((1, 2), {1, 2})
    assert control.elect_preferred("orders-0")
    assert control.state_of("orders-0").leader == 1
    assert control.state.replicas == (1, 2, 3)
    assert not control.elect_preferred("missing-0")
    assert not control.reassign((1, 2), "missing-0")
    assert not control.cancel_reassignment("orders-0")
    found.cluster.kill(3)
    found.run(15)
    assert control.reassign((1, 3), "orders-0")
    assert control.cancel_reassignment("orders-0")
    assert control.state_of("orders-0").replicas == (1, 2)


def test_an_administrator_elects_a_leader_of_another_partition() -> None:
    found = led_by_three_and_two()
    control = found.cluster.control
    found.cluster.kill(3)
    found.run(15)
    assert control.state_of("audit-0").leader == 0
    assert struck_at(found, Fault("admin-election", 0, (3,), value=3, partition="audit-0")) == [(3,)]
    assert control.state_of("audit-0").leader == 0  # Broker 3 is fenced.
    assert control.state.leader == 1


def test_records_of_another_partition_are_deleted() -> None:
    found = world(ClusterTopic("orders", 1, 3))
    found.write(2)
    found.write(2, partition=1)
    assert struck_at(found, Fault("retention", 0, (LEADER,), value=1_000, partition="orders-0")) == [(2,)]
    files = found.cluster.machines.directories[2]
    assert (files.files(TOPIC).log.log_start, files.files("orders-0").log.log_start) == (0, 2)


def test_a_response_may_have_records_of_one_partition_and_an_error_of_another() -> None:
    found = world(ClusterTopic("orders", 1, 3))
    found.write()
    process = found.cluster.running[1]
    positions = [(TOPIC, 0, process.replicas[TOPIC].partition.leader_epoch, -1), ("gone-0", 0, 0, -1)]
    process.receive(FetchRequest(2, 1, 2, -1, positions, [position[2] for position in positions]))
    assert reached(found, probes.MIXED_RESPONSE)
