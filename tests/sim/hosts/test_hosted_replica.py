"""Brokers that host replicas of several partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sim.hosts.broker_node import BrokerNode
from sim.hosts.cluster import TOPIC
from sim.hosts.topics import TopicPartition
from sim.protocol.messages import NO_EPOCH, NOT_LEADER_OR_FOLLOWER, FetchRequest, FetchResponse
from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread
from tests.plain import needs_sources
from tests.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

OTHER = "other-0"
QUIET = {"auto.leader.rebalance.enable": False, "min.insync.replicas": 2}


def several(
    *further: TopicPartition, elision: bool = True, mode: str = "elr", rules: Mapping[str, str] | None = None
) -> World:
    """Three KRaft brokers with the first partition, which broker 1 leads, and others."""
    return World(mode, rules=rules, config={**QUIET, "sim.elision": elision}, further=further).ready()


def two(*, elision: bool = True) -> World:
    """The second partition is led by broker 2."""
    return several(TopicPartition(OTHER, 3), elision=elision)


def leaders(world: World) -> tuple[int, int]:
    control = world.cluster.control
    return control.state.leader, control.state_of(OTHER).leader


def fetcher(world: World, broker: int, leader: int) -> ReplicaFetcherThread:
    return world.cluster.running[broker].replica_manager.fetchers.fetchers[leader]


def one_leader(world: World) -> World:
    """Broker 2 leads both partitions, and broker 1 is back."""
    world.cluster.kill(1)
    world.run(20)
    assert leaders(world) == (2, 2)
    world.cluster.start(1)
    return world.run(5)


def test_each_partition_has_a_leader_records_and_clients_of_its_own() -> None:
    world = two()
    assert leaders(world) == (1, 2)
    one, other = world.write(2), world.write(3, partition=1)
    assert world.logs == [[one, one + 1]] * 3
    assert world.logs_of(OTHER) == [[other, other + 1, other + 2]] * 3
    assert [step["record"] for step in world.of("ack")] == [one, other]
    assert world.of("ack", partition=OTHER, record=other, offset=0)
    assert world.of("read", partition=OTHER, record=other)


def test_partitions_outlive_the_kill_of_the_leader_of_one() -> None:
    world = two()
    first = [world.write(2), world.write(2, partition=1)]
    world.cluster.kill(1)
    world.run(20)
    assert leaders(world) == (2, 2)
    then = [world.write(2), world.write(2, partition=1)]
    world.cluster.start(1)
    world.run(20)
    for name, ids in zip((TOPIC, OTHER), zip(first, then, strict=True), strict=True):
        assert world.logs_of(name) == [[record + place for record in ids for place in range(2)]] * 3
        assert set(world.cluster.control.state_of(name).isr) == {1, 2, 3}
    history = world.cluster.recorder.of(OTHER).history
    assert len(history.clients.acks) == 2


def test_one_request_at_a_time_fetches_all_partitions_of_a_leader() -> None:
    world = one_leader(two())
    for broker in (1, 3):
        thread = fetcher(world, broker, 2)
        request = thread.in_flight
        assert isinstance(request, FetchRequest)
        assert [name for name, _, _, _ in request.positions] == list(thread.partitions)
        assert set(thread.partitions) == {TOPIC, OTHER}


def test_a_fetcher_outlives_a_partition_that_leaves_it() -> None:
    world = one_leader(two())
    thread = fetcher(world, 3, 2)
    assert world.cluster.control.elect_preferred()
    world.run()
    assert leaders(world) == (1, 2)
    assert fetcher(world, 3, 2) is thread
    assert list(thread.partitions) == [OTHER]
    assert list(fetcher(world, 3, 1).partitions) == [TOPIC]
    one, other = world.write(), world.write(partition=1)
    assert [log[-1] for log in world.logs] == [one] * 3
    assert [log[-1] for log in world.logs_of(OTHER)] == [other] * 3


def test_a_fetcher_ends_with_its_last_partition() -> None:
    world = two()
    process = world.cluster.running[3]
    assert sorted(process.replica_manager.fetchers.fetchers) == [1, 2]
    world.cluster.kill(1)
    world.run(20)
    assert sorted(process.replica_manager.fetchers.fetchers) == [2]


@pytest.mark.parametrize("elision", [True, False])
def test_a_fetch_that_waits_for_several_is_answered_once(*, elision: bool) -> None:
    world = one_leader(two(elision=elision))
    leader = world.cluster.running[2]
    for place in range(4):
        record = world.write(partition=place % 2, seconds=0.1)
        assert [log[-1] for log in world.logs_of((TOPIC, OTHER)[place % 2])] == [record] * 3
        waiting = [
            [waiting_follower.request.node for waiting_follower in replica.waiting_followers]
            for replica in leader.replicas.values()
        ]
        assert waiting[0] == waiting[1]
        assert sorted(waiting[0]) == [1, 3]


def test_a_topic_may_have_its_own_replicas_and_min_isr() -> None:
    world = several(TopicPartition(OTHER, 2, 1))
    state = world.cluster.control.state_of(OTHER)
    assert state.replicas == (2, 3)
    world.cluster.kill(3)
    world.cluster.kill(1)
    world.run(25)
    assert world.cluster.control.state_of(OTHER).isr == (2,)
    world.write(partition=1)
    assert len(world.of("ack", partition=OTHER)) == 1
    world.write()
    assert len(world.of("ack")) == 1  # The first partition needs two replicas in sync.


def test_a_changed_min_isr_does_not_change_that_of_a_topic() -> None:
    world = several(TopicPartition(OTHER, 3, 1), TopicPartition("third-0", 3))
    world.cluster.administrator.set_config("min.insync.replicas", 3)
    world.run()
    found = [replica.partition.min_insync_replicas for replica in world.cluster.running[1].replicas.values()]
    assert found == [3, 1, 3]


def test_a_power_loss_costs_each_partition_what_it_had_not_flushed() -> None:
    world = two()
    ids = [world.write(2), world.write(1, partition=1)]
    assert world.cluster.machines.lose_power(3)
    world.cluster.start(3)
    world.run(20)
    assert world.of("recovered", broker=3)[-2]["lost"] == [ids[0], ids[0] + 1]
    assert world.of("recovered", broker=3, partition=OTHER)[-1]["lost"] == [ids[1]]
    assert world.logs[2] == world.logs[1]
    assert world.logs_of(OTHER)[2] == world.logs_of(OTHER)[1]


def test_an_idle_partition_costs_little() -> None:
    events = []
    for further in ((), (TopicPartition(OTHER, 3, idle=True),), (TopicPartition(OTHER, 3, idle=False),)):
        world = several(*further)
        before = world.cluster.kernel.events
        for _ in range(20):
            world.write(seconds=10)
        events.append(world.cluster.kernel.events - before)
    assert events[1] < 1.3 * events[0]
    assert events[1] <= events[2] < 2 * events[0]


def reassigned_away() -> World:
    """Broker 1 has deleted its replica."""
    world = several()
    world.write(2)
    assert world.cluster.control.reassign((2, 3), TOPIC)
    return world.run(5)


def test_a_broker_whose_replica_was_reassigned_away_is_neither_leader_nor_follower() -> None:
    running = reassigned_away().cluster.running
    assert running[1].replica_manager.hosted(TOPIC) is None
    assert running[1].replica_manager.no_result(TOPIC)[1] == NOT_LEADER_OR_FOLLOWER
    assert running[2].replica_manager.hosted(TOPIC) is not None


@needs_sources
def test_no_consumer_is_out_of_range_of_a_replica_that_was_reassigned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    world = reassigned_away()
    answers: list[FetchResponse] = []
    monkeypatch.setattr(BrokerNode, "reply", lambda _, __, reply: answers.append(reply))
    position = TOPIC, 1, NO_EPOCH, NO_EPOCH
    world.cluster.running[1].apis.on_fetch(FetchRequest(1001, 1, -1, -1, [position], [NO_EPOCH]))
    assert [answer.results[0][1] for answer in answers] == [NOT_LEADER_OR_FOLLOWER]
