"""Topics that are deleted under ZooKeeper while the cluster runs: each replica has to be deleted first."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from sim.hosts.cluster import TOPIC
from sim.hosts.topics import ClusterTopic
from sim.protocol.batch import Batch
from sim.protocol.messages import (
    AGREES,
    INVALID_UPDATE_VERSION,
    NONE,
    ControllerRequestBatch,
    ControlResponse,
    FetchRequest,
    FetchResponse,
    LeaderAndIsr,
    StopReplicaRequest,
)
from sim.protocol.zookeeper.zk_operations import DeleteTopic, ReadStates
from tests.sim.hosts.test_topics import FIRST, ORDERS, began
from tests.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

MODES = ("hw", "kip101", "kip279", "kip320", "kip320-repaired")
CONFIG = {
    "auto.leader.rebalance.enable": False,
    "min.insync.replicas": 2,
    "sim.heartbeat.interval.ms": 1_000,
    "sim.supervisor.restart.ms": 1_000,
    "zookeeper.session.timeout.ms": 3_000,
}


def created(mode: str = "kip320", *, partitions: int = 1, elision: bool = True) -> World:
    """The topic `orders` was created, and the clients of its last partition have begun."""
    orders = ClusterTopic("orders", partitions, 3, created=False)
    found = World(mode, config={**CONFIG, "sim.elision": elision}, topics=(FIRST, orders)).ready()
    assert found.cluster.topics.create("orders")
    return began(found)


def held(world: World) -> dict[int, list[str]]:
    """The partitions in the log directories of each broker."""
    return {broker: list(found.storages) for broker, found in world.cluster.machines.directories.items()}


def controllers(world: World) -> list[str]:
    """The partitions that the controller knows."""
    return list(world.process(world.cluster.controller).module.controller.context.states)


@pytest.mark.parametrize("mode", MODES)
def test_a_deleted_topic_is_gone_from_zookeeper_controller_brokers_and_disks(mode: str) -> None:
    world = created(mode, partitions=3)
    world.write(partition=3)
    assert world.cluster.topics.delete("orders")
    assert not world.cluster.topics.delete("orders")
    assert len(world.cluster.control.states) == 4
    world.run(1)
    assert len(world.of("topic-deleted")) == 1
    assert list(world.cluster.control.states) == controllers(world) == [TOPIC]
    assert not world.zookeeper.deletions
    for broker in (1, 2, 3):
        process = world.process(broker)
        assert list(process.replicas) == list(process.metadata.known) == held(world)[broker] == [TOPIC]
    first = world.write()
    assert world.logs == [[first]] * 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("elision", [True, False])
def test_a_dead_broker_delays_the_deletion_and_the_next_topic_of_that_name(mode: str, *, elision: bool) -> None:
    world = created(mode, elision=elision)
    topics = world.cluster.topics
    world.write(2, partition=1)
    world.cluster.kill(3)
    world.run(10)
    assert topics.delete("orders", by="fault")
    world.run(10)
    assert held(world) == {1: [TOPIC], 2: [TOPIC], 3: [TOPIC, "orders-0"]}
    assert list(world.cluster.control.states) == [TOPIC, "orders-0"]
    assert topics.missing == []
    assert not topics.create("orders")
    assert not topics.restore("fault")  # It is repeated.
    assert not topics.names("orders")
    world.cluster.start(3)
    world.run(10)
    assert list(world.cluster.control.states) == controllers(world) == [TOPIC, "orders-0@2"]
    began(world)
    record = world.write(partition=2)
    assert world.logs_of("orders-0@2") == [[record]] * 3
    assert held(world) == {broker: [TOPIC, "orders-0@2"] for broker in (1, 2, 3)}


@pytest.mark.parametrize("mode", MODES)
def test_the_first_topic_is_deleted_with_a_broker_that_is_down(mode: str) -> None:
    world = created(mode)
    cluster = world.cluster
    world.write(2)
    cluster.kill(3)
    world.run(10)
    assert cluster.topics.delete("highwater")
    assert not cluster.topics.delete("orders")  # The other one does not exist any more.
    assert cluster.name == "orders-0"
    assert not cluster.control.reassign((1, 2), TOPIC)
    assert not cluster.control.elect_preferred(TOPIC)
    world.run(5)
    assert list(cluster.control.states) == [TOPIC, "orders-0"]
    cluster.start(3)
    world.run(15)
    assert (cluster.name, list(cluster.control.states)) == ("orders-0", ["orders-0"])
    for broker in (1, 2, 3):
        assert (list(world.process(broker).replicas), world.process(broker).partition) == (["orders-0"], None)
    cluster.kill(1)  # Sessions, elections and ISR changes go on.
    world.run(15)
    assert cluster.control.state.leader in (2, 3)
    cluster.start(1)
    world.run(30)
    record = world.write(partition=1)
    assert world.logs_of("orders-0") == [[record]] * 3
    assert cluster.topics.create("highwater")
    began(world)
    record = world.write(partition=2)
    assert world.logs_of(f"{TOPIC}@2") == [[record]] * 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("after_us", range(0, 6_000, 400))
def test_a_controller_that_dies_at_any_time_of_a_deletion_leaves_it_to_the_next(mode: str, after_us: int) -> None:
    world = created(mode, partitions=2)
    world.write(partition=2)
    controller = world.cluster.controller
    assert world.cluster.topics.delete("orders")
    world.run(after_us / 1_000_000)
    world.cluster.kill(controller)
    world.run(10)
    assert world.cluster.controller not in (0, controller)
    world.cluster.start(controller)
    world.run(15)
    assert list(world.cluster.control.states) == controllers(world) == [TOPIC]
    assert held(world) == {broker: [TOPIC] for broker in (1, 2, 3)}


@pytest.mark.parametrize("mode", MODES)
def test_a_reassignment_is_completed_before_its_topic_is_deleted(mode: str) -> None:
    world = World(mode, config=CONFIG, topics=(FIRST, ClusterTopic("orders", 1, 2, created=False)), brokers=3).ready()
    assert world.cluster.topics.create("orders")
    began(world)
    control = world.cluster.control
    old = control.state_of("orders-0").replicas
    new = next(broker for broker in (1, 2, 3) if broker not in old)
    world.cluster.kill(new)
    world.run(10)
    assert control.reassign((new, old[0]), "orders-0")
    world.run(1)
    assert world.cluster.topics.delete("orders")
    world.run(10)
    assert "orders-0" in control.states
    assert all("orders-0" in held(world)[broker] for broker in old)
    world.cluster.start(new)
    world.run(20)
    assert list(control.states) == [TOPIC]
    assert not world.zookeeper.tree.targets
    assert held(world) == {broker: [TOPIC] for broker in (1, 2, 3)}


def test_no_topic_is_deleted_without_a_controller() -> None:
    world = created()
    world.cluster.pause(0)
    assert not world.cluster.topics.delete("orders")
    world.cluster.resume(0)
    assert world.cluster.topics.delete("orders")
    young = World("kip320", config=CONFIG, topics=(FIRST, ORDERS))
    assert not young.cluster.control.delete_topic((TOPIC,))


def test_requests_that_come_after_the_deletion_find_nothing() -> None:
    world = created()
    tree, process = world.zookeeper.tree, world.process(1)
    known = world.cluster.control.state_of("orders-0")
    before = world.cluster.control.state
    assert world.cluster.topics.delete("orders")
    world.run(1)
    late, decide = LeaderAndIsr("orders-0", 2, 0, (2,), 0, (), 1), process.decide
    error, state = tree.write_isr(
        late, (2,), {}, decide.admits_registered_members, decide.mutants.isr_written_over_newer_version
    )
    assert (error, state.name) == (INVALID_UPDATE_VERSION, "orders-0")
    process.zk_replicas.isr_manager._isr_written((error, state))
    assert ReadStates(("orders-0", TOPIC)).apply(tree, process.decide) == [(before, ())]
    fenced = process.decide.fences_controller_writes
    assert tree.assign(1, "orders-0", (1, 2), fenced=fenced).name == "orders-0"
    tree.delete_reassignment("orders-0")
    DeleteTopic(1, "orders", ("orders-0",)).apply(tree, process.decide)
    assert world.cluster.control.states == {TOPIC: before}
    assert world.cluster.control.last_state_of("orders-0").replicas == known.replicas


def test_requests_whose_answers_are_lost_are_repeated() -> None:
    """RequestSendThread#doWork."""
    world = created()
    controller = world.cluster.controller
    other = next(broker for broker in (1, 2, 3) if broker != controller)
    world.cluster.links.cut(other, controller)
    assert world.cluster.topics.delete("orders")
    world.run(1)
    assert "orders-0" in world.cluster.control.states
    world.cluster.links.heal(other, controller)
    world.run(60)
    assert list(world.cluster.control.states) == [TOPIC]


@pytest.mark.parametrize(("mode", "appended"), [("hw", [9]), ("kip101", [9]), ("kip320", [9]), ("kip320-repaired", [])])
def test_a_follower_appends_a_late_response_about_a_deleted_topic_of_that_name(mode: str, appended: list[int]) -> None:
    """Before topic ids (KIP-516), no release can tell the two apart."""
    world = created(mode)
    cluster = world.cluster
    old = cluster.control.state_of("orders-0")
    assert cluster.topics.delete("orders")
    world.run(1)
    assert cluster.topics.create("orders")
    world.run(0.5)
    new = cluster.control.state_of("orders-0@2")
    follower = next(broker for broker in new.isr if broker not in (old.leader, new.leader))
    process = world.process(follower)
    fetcher = process.replica_manager.fetchers.fetchers[new.leader]
    request = FetchRequest(follower, new.leader, follower, -1, [("orders-0", 0, 0, -1)], [0])
    fetcher.in_flight = request
    process.receive(FetchResponse(request, [("orders-0", NONE, [Batch(0, 0, 0, 9)], 0, 0, 0, AGREES)]))
    log = process.replicas["orders-0@2"].partition.log
    assert [batch.first_id for batch in log.batches] == appended


@pytest.mark.parametrize(("mode", "leo"), [("hw", 1), ("kip101", 1), ("kip320", 1), ("kip320-repaired", 0)])
@pytest.mark.parametrize("several", [False, True])
def test_a_late_fetch_for_a_deleted_topic_counts_for_the_next_one(mode: str, leo: int, *, several: bool) -> None:
    world = created(mode, elision=False)
    cluster = world.cluster
    assert cluster.topics.delete("orders")
    world.run(1)
    assert cluster.topics.create("orders")
    began(world)
    state = cluster.control.state_of("orders-0@2")
    follower = next(broker for broker in (1, 2, 3) if broker != state.leader)
    cluster.kill(follower)
    world.write(acks=1, partition=2, seconds=0.1)
    process = world.process(state.leader)
    partition = process.replicas["orders-0@2"].partition
    epoch = partition.leader_epoch
    positions = [("orders-0", 1, epoch, -1)]
    if several:
        positions.append((TOPIC, 0, process.replicas[TOPIC].partition.leader_epoch, -1))
    request = FetchRequest(
        follower, state.leader, follower, process.metadata.live[follower], positions, [epoch] * len(positions)
    )
    process.receive(request)
    assert partition.followers.states[follower].leo == leo
    assert request.positions[0][0] == "orders-0"  # A message may be in the queue twice: nobody changes it.
    process.receive(FetchRequest(9_999, state.leader, -1, -1, [("orders-0", 1, epoch, -1)], [epoch]))  # A consumer's.


def test_a_broker_answers_for_each_replica_unless_it_refuses_the_request() -> None:
    world = created(partitions=2, elision=False)
    process, control = world.process(2), world.cluster.control
    found: list[Mapping[str, str]] = []

    class Answers:
        """A connection that keeps what is answered about deletions."""

        def send(self, answer: ControlResponse) -> None:
            found.append(answer.deleted)

    process.out[7777] = Answers()  # type: ignore[assignment]
    states = tuple(control.state_of(name).during_delete() for name in ("orders-0", "orders-1", "late-0"))
    process._controller_epoch = 7
    for controller_epoch in (6, 7):
        request = StopReplicaRequest(controller_epoch, process.broker_epoch, states[:2], delete=True)
        process.on_control(ControllerRequestBatch(7777, [request]))
        assert ("orders-0" in process.replicas) is (controller_epoch == 6)
    stop = StopReplicaRequest(7, process.broker_epoch, states, delete=False)
    process.on_control(ControllerRequestBatch(7777, [stop]))
    process.out.pop(7777)
    assert found == [{}, {"orders-0": NONE, "orders-1": NONE}, {}]


def test_a_run_with_a_deletion_leaves_nothing_to_the_garbage_collector() -> None:
    def played() -> None:
        world = created()
        assert world.cluster.topics.delete("orders")
        world.run(1)
        world.cluster.dispose()

    played()
    gc.collect()
    gc.disable()
    try:
        played()
        assert gc.collect() == 0
    finally:
        gc.enable()
