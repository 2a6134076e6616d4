"""Several partitions under ZooKeeper: requests that brokers handle as a whole, and the lock of one partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sim.hosts.cluster import TOPIC
from sim.hosts.topics import ClusterTopic, TopicPartition
from sim.protocol.messages import (
    NONE,
    UNKNOWN_SERVER_ERROR,
    ControllerRequestBatch,
    FetchRequest,
    FetchResponse,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    StopReplicaRequest,
)
from tests.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.config import Value
    from sim.kernel.message import Message

SHORT = {"zookeeper.session.timeout.ms": 3_000, "sim.heartbeat.interval.ms": 1_000, "sim.supervisor.restart.ms": 1_000}
QUIET = {**SHORT, "auto.leader.rebalance.enable": False, "min.insync.replicas": 2}
OTHER = "other-0"
MODES = ("hw", "kip101", "kip279", "kip320", "kip320-repaired")


def two(mode: str = "kip320", config: Mapping[str, Value] | None = None) -> World:
    """Broker 1 leads the first partition, broker 2 the other."""
    return World(mode, config={**QUIET, **(config or {})}, further=[TopicPartition(OTHER, 3)]).ready()


def states(world: World) -> dict[str, LeaderAndIsr]:
    control = world.cluster.control
    return control.states


def leaders(world: World) -> tuple[int, ...]:
    return tuple(state.leader for state in states(world).values())


@pytest.mark.parametrize("mode", MODES)
def test_partitions_survive_the_death_of_the_broker_that_led_both(mode: str) -> None:
    world = two(mode)
    world.cluster.kill(1)
    world.run(10)
    assert leaders(world) == (2, 2)
    world.cluster.start(1)
    world.run(10)
    one, other = world.write(2), world.write(3, partition=1)
    world.cluster.kill(2)
    world.run(10)
    assert leaders(world) == (1, 3)
    assert [state.isr for state in states(world).values()] == [(1, 3), (3, 1)]
    again, later = world.write(1), world.write(1, partition=1)
    world.cluster.start(2)
    world.run(20)
    assert world.logs == [[one, one + 1, again]] * 3
    assert world.logs_of(OTHER) == [[other, other + 1, other + 2, later]] * 3
    assert {len(state.isr) for state in states(world).values()} == {3}


def test_one_request_tells_of_all_partitions_that_a_dead_broker_led() -> None:
    world = two()
    world.cluster.kill(1)
    world.run(10)
    three = world.process(3)
    epochs = {name: state.leader_epoch for name, state in states(world).items()}
    before = len(world.steps)
    world.cluster.kill(2)
    world.run(10)
    elected = [step for step in world.steps[before:] if step["step"] == "lead"]
    assert [step["broker"] for step in elected] == [3, 3]
    assert len({step["t"] for step in elected}) == 1  # Together, since it was one request.
    assert {name: three.replicas[name].partition.leader_epoch for name in epochs} == {
        name: epoch + 1 for name, epoch in epochs.items()
    }


def test_a_broker_leads_before_it_follows_and_keeps_its_fetcher_meanwhile() -> None:
    world = World("kip320", config=QUIET, further=[TopicPartition(OTHER, 3), TopicPartition("third-0", 3)]).ready()
    two_ = world.process(2)
    first, third = states(world)[TOPIC], states(world)["third-0"]
    fetcher = two_.replica_manager.fetchers.fetchers[1]
    follows = LeaderAndIsr("third-0", 1, third.leader_epoch + 1, third.isr, 9, third.replicas)
    leads = LeaderAndIsr(TOPIC, 2, first.leader_epoch + 1, first.isr, 9, first.replicas)
    epoch = two_.module.controller.context.epoch
    request = LeaderAndIsrRequest(max(epoch, 1), two_.broker_epoch, (follows, leads))
    before = len(world.steps)
    assert two_.become_leader_or_follower(request) == NONE
    kinds = [step["step"] for step in world.steps[before:] if step["step"] in ("lead", "follow")]
    assert kinds == ["lead", "follow"]
    assert two_.replica_manager.fetchers.fetchers[1] is fetcher
    assert list(fetcher.partitions) == ["third-0"]


def test_a_fetcher_gets_all_partitions_of_a_request_before_it_fetches() -> None:
    world = both_led(mode="hw")
    world.cluster.kill(3)
    world.run(5)
    world.cluster.start(3)
    while not world.process(3).replica_manager.fetchers.fetchers:
        world.run(0.001)
    request = world.process(3).replica_manager.fetchers.fetchers[2].in_flight
    assert isinstance(request, FetchRequest)
    assert sorted(position[0] for position in request.positions) == [TOPIC, OTHER]


def test_an_outdated_partition_of_a_request_is_ignored_and_others_are_not() -> None:
    world = two()
    process, first, other = world.process(3), states(world)[TOPIC], states(world)[OTHER]
    newer = LeaderAndIsr(OTHER, 3, other.leader_epoch + 1, other.isr, 9, other.replicas)
    dead = LeaderAndIsr(TOPIC, 0, first.leader_epoch + 1, first.isr, 9, first.replicas)
    for ignored in (first, dead):
        process.become_leader_or_follower(LeaderAndIsrRequest(1, process.broker_epoch, (ignored, newer)))
        assert process.replicas[TOPIC].partition.leader_epoch == first.leader_epoch
        assert process.replicas[OTHER].partition.is_leader


@pytest.mark.parametrize(("value", "leads"), [("refused", False), ("accepted", True)])
def test_a_broker_is_told_of_its_newer_registration_before_it_knows_it(value: str, leads: bool) -> None:
    """KAFKA-9839: the controller sees the registration before its response has reached the broker."""
    world = World("kip320", config=QUIET, rules={"newer_broker_epoch": value}).ready()
    process, first = world.process(3), states(world)[TOPIC]
    newer = LeaderAndIsr(TOPIC, 3, first.leader_epoch + 1, first.isr, 9, first.replicas)
    error = process.become_leader_or_follower(LeaderAndIsrRequest(1, process.broker_epoch + 1, (newer,)))
    assert error == (NONE if leads else UNKNOWN_SERVER_ERROR)
    assert process.replicas[TOPIC].partition.is_leader is leads


@pytest.mark.parametrize(("value", "arrives"), [("once", False), ("until-answered", True)])
def test_a_request_on_a_link_that_is_cut_is_sent_again(value: str, arrives: bool) -> None:
    """KAFKA-1738: the controller's request is lost with its connection."""
    config = {**QUIET, "controller.socket.timeout.ms": 2_000}
    world = World("kip320", config=config, rules={"control_retry": value}).ready()
    controller = world.cluster.controller
    other = next(broker for broker in (2, 3) if broker != controller)
    first = states(world)[TOPIC]
    newer = LeaderAndIsr(TOPIC, other, first.leader_epoch + 1, first.isr, 9, first.replicas, first.controller_epoch)
    module = world.process(controller).module
    world.cluster.links.cut(controller, other)
    module.send_leader_and_isr(other, (newer,))
    module.flush()
    world.run(1)
    world.cluster.links.heal(controller, other)
    world.run(5)
    assert world.process(other).replicas[TOPIC].partition.is_leader is arrives


@pytest.mark.parametrize(("value", "follows"), [("without-stopping", False), ("all-live", True)])
def test_a_leader_that_shuts_down_follows_its_successor_before_it_ends(value: str, follows: bool) -> None:
    """KAFKA-7482: with `all-live` the request arrives before the answer with which the broker ends."""
    world = World("kip279", config=QUIET, rules={"shutdown_recipients": value}).ready()
    assert states(world)[TOPIC].leader == 1
    assert world.cluster.shut_down(1)
    world.until("shutdown", broker=1)
    assert states(world)[TOPIC].leader == 2
    assert bool(world.of("follow", broker=1)) is follows


def test_a_replica_is_created_when_a_request_assigns_it() -> None:
    world = World("kip320", config=QUIET, brokers=3, further=[TopicPartition(OTHER, 1)]).ready()
    assert OTHER in world.process(2).replicas
    assert OTHER not in world.process(1).replicas
    stop = StopReplicaRequest(1, world.process(1).broker_epoch, (states(world)[OTHER],), delete=True)
    assert world.process(1).stop_replicas(stop) == (NONE, {OTHER: NONE})
    assert world.cluster.control.reassign((2, 1), OTHER)
    world.run(15)
    one = world.write(2, partition=1)
    assert world.logs_of(OTHER) == [[one, one + 1], [one, one + 1], []]


@pytest.mark.parametrize(("value", "waits"), [("unanswered", 1), ("refused", 0)])
def test_a_write_that_waits_at_a_replica_that_is_deleted(value: str, waits: int) -> None:
    """KAFKA-9198. A write that got no answer gets one when the broker follows the partition again."""
    world = World("kip279", rules={"stopped_writes": value}, config=QUIET).ready()
    for follower in (2, 3):
        assert world.cluster.pause(follower)
    record = world.write(seconds=0.1)
    process, state = world.process(1), states(world)[TOPIC]
    assert [entry[1].first_id for entry in process.replicas[TOPIC].partition.delayed.waiting] == [record]
    stop = StopReplicaRequest(1, process.broker_epoch, (state,), delete=True)
    assert process.stop_replicas(stop) == (NONE, {TOPIC: NONE})
    assert len(process.replicas[TOPIC].partition.delayed.waiting) == waits
    assert bool(process.socket_server._channels) is bool(waits)
    again = LeaderAndIsr(TOPIC, 2, state.leader_epoch + 1, (2, 3), 9, state.replicas)
    process.become_leader_or_follower(LeaderAndIsrRequest(1, process.broker_epoch, (again,)))
    assert not process.replicas[TOPIC].partition.delayed.waiting
    assert not process.socket_server._channels


def test_older_stop_requests_are_refused_for_their_partition_alone() -> None:
    world = two("kip320")
    process, first, other = world.process(3), states(world)[TOPIC], states(world)[OTHER]
    newer = LeaderAndIsr(OTHER, 2, other.leader_epoch + 1, other.isr, 9, other.replicas)
    process.become_leader_or_follower(LeaderAndIsrRequest(1, process.broker_epoch, (newer,)))
    request = StopReplicaRequest(1, process.broker_epoch, (other, first), delete=False)
    assert process.stop_replicas(request) == (NONE, {OTHER: "FENCED_LEADER_EPOCH", TOPIC: NONE})
    assert process.replica_manager.fetchers.manager.is_fetching_from(2, OTHER)
    assert not process.replica_manager.fetchers.manager.is_fetching_from(1, TOPIC)


@pytest.mark.parametrize(("rule", "leads"), [("forgets-epoch", True), ("keeps-epoch", False)])
def test_a_late_decision_about_a_deleted_replica_counts_unless_its_epoch_is_remembered(rule: str, leads: bool) -> None:
    world = World("kip320", rules={"deleted_replica": rule}, config=QUIET).ready()
    process, state = world.process(2), states(world)[TOPIC]

    def decide(leader: int, later: int, replicas: tuple[int, ...] = (1, 2, 3)) -> LeaderAndIsr:
        return LeaderAndIsr(
            TOPIC, leader, state.leader_epoch + later, replicas, state.partition_epoch + later, replicas
        )

    stop = StopReplicaRequest(1, process.broker_epoch, (decide(1, 2, (1, 3)),), delete=True)
    assert process.stop_replicas(stop) == (NONE, {TOPIC: NONE})
    for decision, is_leader in ((decide(2, 1), leads), (decide(2, 3), True)):
        process.become_leader_or_follower(LeaderAndIsrRequest(1, process.broker_epoch, (decision,)))
        assert process.replicas[TOPIC].partition.is_leader is is_leader


# The lock of one partition.


def both_led(mode: str = "kip320") -> World:
    """Broker 2 leads both partitions."""
    world = two(mode, config={"replica.lag.time.max.ms": 2_000})
    world.cluster.shut_down(1)
    world.run(5)
    assert leaders(world) == (2, 2)
    world.cluster.start(1)
    return world.run(10)


def test_a_partition_is_used_while_the_isr_of_another_is_being_written() -> None:
    world = both_led()
    two_ = world.process(2)
    world.cluster.links.cut(2, 3)
    world.write(1, acks=1, partition=1, seconds=0.1)
    world.cluster.links.cut(2, 0)
    world.run(3)
    assert two_.backlog.locked == [OTHER]
    ends = {name: replica.partition.log.leo for name, replica in two_.replicas.items()}
    world.write(2, seconds=0.2)
    world.write(3, acks=1, partition=1, seconds=0.2)
    assert two_.replicas[TOPIC].partition.log.leo == ends[TOPIC] + 2
    assert two_.replicas[OTHER].partition.log.leo == ends[OTHER]
    world.cluster.links.heal(2, 0)
    world.run(1)
    assert two_.backlog.locked == []
    assert two_.replicas[OTHER].partition.log.leo == ends[OTHER] + 3


def test_the_check_for_laggards_writes_one_isr_after_the_other() -> None:
    world = both_led()
    two_ = world.process(2)
    world.cluster.links.cut(2, 3)
    world.write(1)
    world.write(1, partition=1)
    world.cluster.links.cut(2, 0)
    world.run(2)
    assert len(two_.backlog.locked) == 1
    world.cluster.links.heal(2, 0)
    world.run(3)
    assert two_.backlog.locked == []
    assert [set(state.isr) for state in states(world).values()] == [{1, 2}, {1, 2}]


def test_one_notification_tells_of_all_changed_isrs() -> None:
    world = both_led()
    world.run(10)
    world.cluster.links.cut(2, 3)
    world.write(1)
    world.write(1, partition=1)
    world.run(3)
    known = world.process(1).metadata.known
    assert {len(known[name].isr) for name in (TOPIC, OTHER)} == {3}
    world.run(10)
    assert {name: set(known[name].isr) for name in (TOPIC, OTHER)} == {TOPIC: {1, 2}, OTHER: {1, 2}}


NAMES = [OTHER]
FETCH = FetchRequest(3, 1, 3, 7, [(TOPIC, 0, 0, -1), (OTHER, 0, 0, -1)], [0, 0])
ASK = OffsetsForLeaderEpochRequest(3, [(OTHER, 0, 0)], [0], with_epoch=True)
LIST = ListOffsetsRequest(3, 3, OTHER, -1, 0)
STATE = LeaderAndIsr(OTHER, 1, 0, (1,), 0, (1,))


@pytest.mark.parametrize(
    "message",
    [
        ProduceRequest(1_001, OTHER, 0, 1, -1),
        FETCH,
        FetchResponse(FETCH, [(OTHER, NONE, [], -1, -1, -1, None)]),
        ASK,
        OffsetsForLeaderEpochResponse(ASK, [(OTHER, NONE, 0, 0)]),
        LIST,
        ListOffsetsResponse(LIST, NONE, 0, 0),
        ControllerRequestBatch(1, [LeaderAndIsrRequest(1, 1, (STATE,))]),
    ],
)
def test_messages_need_the_partitions_that_they_name(message: Message) -> None:
    assert message.needs([OTHER])
    assert not message.needs(["third-0"])


# Administrators.


def test_before_kip_455_one_reassignment_is_under_way() -> None:
    for mode, second in (("kip279", False), ("kip320", True)):
        world = World(
            mode, brokers=3, config={**QUIET, "default.replication.factor": 2}, further=[TopicPartition(OTHER, 2)]
        )
        world.ready()
        world.cluster.kill(3)
        world.run(5)
        assert world.cluster.control.reassign((1, 3))
        assert world.cluster.control.reassign((3, 2), OTHER) == second
        assert not world.cluster.control.reassign((1, 3))
        assert not world.cluster.control.reassign((1, 3), "unknown-0")
        assert not world.cluster.control.elect_preferred("unknown-0")


def test_preferred_leaders_are_gone_back_to_where_more_than_a_tenth_is_missing() -> None:
    further = [TopicPartition(f"more-{number}", 3) for number in range(2)]
    config = {**QUIET, "auto.leader.rebalance.enable": True, "leader.imbalance.check.interval.seconds": 20}
    world = World("kip320", config=config, further=further).ready()
    world.cluster.kill(2)
    world.run(5)
    assert leaders(world) == (1, 3, 3)
    world.cluster.start(2)
    world.run(40)
    assert leaders(world) == (1, 2, 3)


def test_a_partition_is_elected_its_preferred_leader_alone() -> None:
    world = both_led()
    assert world.cluster.control.elect_preferred()
    world.run(2)
    assert leaders(world) == (1, 2)


FIRST = ClusterTopic("highwater", 1, 3, spared=True)


@pytest.mark.parametrize("mode", MODES)
def test_topics_are_created_and_enlarged(mode: str) -> None:
    world = World(mode, config=QUIET, topics=(FIRST, ClusterTopic("orders", 2, 2, created=False))).ready()
    assert world.cluster.topics.create("orders")
    world.run()
    assert world.cluster.topics.enlarge("orders")
    world.run()
    names = ["orders-0", "orders-1", "orders-2"]
    assert [states(world)[name].leader for name in names] == [2, 3, 1]
    for place, partition in enumerate(world.cluster.partitions):
        partition.producer.begin()
        world.run()
        one = world.write(1, partition=place)
        assert [log for log in world.logs_of(partition.name) if log == [one]]


def test_no_topic_is_created_with_more_replicas_than_live_brokers() -> None:
    world = World("kip320", config=QUIET, topics=(FIRST, ClusterTopic("orders", 1, 3, created=False)))
    assert not world.cluster.topics.create("orders")  # The first topic does not exist yet.
    world.ready().cluster.kill(3)
    world.run(5)
    assert not world.cluster.topics.create("orders")


def test_a_change_of_min_isr_is_one_of_partitions_without_their_own() -> None:
    further = [TopicPartition(OTHER, 3), TopicPartition("own-0", 3, min_isr=1)]
    world = World("kip320", config=QUIET, further=further).ready()
    world.cluster.control.set_config("min.insync.replicas", 3)
    world.run()
    replicas = world.process(1).replicas
    assert [replicas[name].partition.min_insync_replicas for name in (TOPIC, OTHER, "own-0")] == [3, 3, 1]
