"""Sessions, the controller's seat and its requests, in whole clusters."""

from __future__ import annotations

import pytest

from sim.hosts.cluster import TOPIC
from sim.protocol.decisions import Decisions
from sim.protocol.zookeeper.kafka_zk_client import KafkaZkClient
from sim.protocol.zookeeper.zk_operations import Operation
from tests.sim.world import ElectThis, World

SHORT = {"zookeeper.session.timeout.ms": 3_000, "sim.heartbeat.interval.ms": 1_000, "sim.supervisor.restart.ms": 1_000}
QUIET = {**SHORT, "auto.leader.rebalance.enable": False}


def leader(world: World) -> int:
    return world.cluster.control.state.leader


def isr(world: World) -> tuple[int, ...]:
    return world.cluster.control.state.isr


def controllers(world: World) -> list[int]:
    return [step["broker"] for step in world.of("controller")]


def test_the_first_broker_is_controller_and_creates_the_topic_last() -> None:
    world = World().run()
    assert controllers(world) == [1]
    assert [(step["broker"], step["leader_epoch"]) for step in world.of("elected")] == [(1, 0)]
    assert world.of("elected")[0]["t"] > world.of("registered", broker=3)[0]["t"]
    assert [partition_epoch(world, broker) for broker in (1, 2, 3)] == [1, 1, 1]


def partition_epoch(world: World, broker: int) -> int:
    partition = world.cluster.running[broker].partition
    assert partition is not None
    return partition.partition_epoch


def test_a_broker_exits_while_its_old_registration_exists() -> None:
    world = World(config=QUIET).ready()
    world.cluster.kill(3)
    world.cluster.start(3)
    world.run(6)
    exits = [step["t"] for step in world.of("exit", broker=3)]
    assert len(exits) == 1  # Others would have gone the same way, and are left out.
    end, back = world.of("session-end", broker=3)[0]["t"], world.of("registered", broker=3)[1]["t"]
    assert exits[0] < end < back
    assert abs((back - exits[0]) % 1_200_000 - 0) < 20_000  # A second of waiting and 0.2 s of loading, so many times.
    assert world.cluster.machines.storages[3].recovery_point == 0
    assert isr(world) == (1, 2, 3)


def test_a_session_that_expires_under_a_living_broker_is_opened_anew() -> None:
    world = World(config=QUIET).ready()
    before = world.cluster.running[2].broker_epoch
    assert world.cluster.control.expire_session(2)
    assert not world.cluster.control.expire_session(2)
    world.run(1)
    assert world.cluster.running[2].broker_epoch > before
    assert len(world.of("registered", broker=2)) == 2
    assert not world.of("start", broker=2)[1:]


def test_a_session_expires_during_a_cut_and_reopens_after_it() -> None:
    world = World(config=QUIET).ready()
    world.cluster.links.cut(1, 0)
    world.run(4)
    assert leader(world) == 2
    assert controllers(world) in ([1, 2], [1, 3])
    assert world.cluster.running[1].replicas[TOPIC].partition.is_leader  # It has not heard of it.
    world.cluster.links.heal_all()
    world.run(4)
    assert not world.cluster.running[1].replicas[TOPIC].partition.is_leader
    assert isr(world) == (1, 2, 3)


def test_a_zombie_stays_away_until_it_wakes() -> None:
    world = World(config=QUIET).ready()
    assert world.cluster.zombie(2)
    assert not world.cluster.zombie(2)
    world.run(10)
    assert 2 not in world.zookeeper.sessions
    world.cluster.unzombie(2)
    world.run(3)
    assert 2 in world.zookeeper.sessions


def test_a_notice_that_was_lost_is_told_again() -> None:
    world = World(config=QUIET).ready()
    world.cluster.kill(2)
    world.run(1.8)
    world.cluster.links.cut(0, 1)  # Broker 1 is controller; its pings still arrive.
    world.run(2.5)
    assert world.of("session-end", broker=2)
    assert isr(world) == (1, 2, 3)
    world.cluster.links.heal_all()
    world.run(2)
    assert isr(world) == (1, 3)


def test_the_controllers_seat_can_be_taken_from_it() -> None:
    world = World(config=QUIET).ready()
    assert world.cluster.control.fail_over()
    world.run(1)
    assert len(controllers(world)) == 2
    active = [broker for broker in world.cluster.running if world.process(broker).module.controller.context.epoch >= 0]
    assert active == [world.cluster.controller]
    assert world.cluster.control.state.leader_epoch == 0


def test_a_seat_that_a_script_held_is_taken_when_the_script_ends() -> None:
    world = World(scripted=True, config=QUIET).ready()
    world.run(1)
    assert controllers(world) == []
    world.cluster.control.release()
    world.run(1)
    assert controllers(world) == [world.cluster.controller]
    assert world.cluster.controller in world.cluster.running


@pytest.mark.parametrize("mode", ["kip279", "kip320"])
def test_a_paused_controller_is_replaced_and_gives_up_when_it_wakes(mode: str) -> None:
    world = World(mode, config=QUIET).ready()
    world.cluster.pause(1)
    world.run(5)
    assert len(controllers(world)) == 2
    world.cluster.resume(1)
    world.run(2)
    assert world.process(1).module.controller.context.epoch < 0
    assert world.zookeeper.sessions.keys() == {1, 2, 3}
    assert leader(world) == 2


def test_requests_for_a_broker_that_cannot_be_reached_are_sent_again() -> None:
    world = World(config={**QUIET, "controller.socket.timeout.ms": 2_000}).ready()
    world.cluster.links.cut(1, 3)
    world.decide(2, (1, 2, 3))
    world.run(1)
    assert not world.of("follow", broker=3, leader=2)
    world.cluster.links.heal_all()
    world.run(2)
    assert world.of("follow", broker=3, leader=2)


def test_a_request_for_a_former_registration_is_refused() -> None:
    for mode, leads in (("kip279", True), ("kip320", False)):
        world = World(mode, config=QUIET).ready()
        queue = world.process(1).module.controller
        world.cluster.pause(2)
        state = world.cluster.control.state
        queue._events.put(queue.partitions.elect_and_send(ElectThis(queue.context.epoch, (state.name,), 2, state.isr)))
        world.run(0.1)
        process = world.cluster.running[2]
        process.broker_epoch += 100  # As if it had registered anew before the request came.
        world.cluster.resume(2)
        world.run(0.1)
        assert world.cluster.control.state.leader_epoch == state.leader_epoch + 1
        assert process.replicas[TOPIC].partition.is_leader is leads


def test_a_leader_that_shuts_down_hands_over_first() -> None:
    world = World(config=QUIET).ready()
    world.write(1)
    assert world.cluster.shut_down(1)
    world.run(1)
    assert world.of("elected")[-1]["t"] < world.of("shutdown", broker=1)[0]["t"]
    assert isr(world) == (2, 3)
    assert world.cluster.control.state.leader_epoch == 1  # Nothing more to do when its session was closed.
    assert world.cluster.machines.directories[1].clean_shutdown


def test_controlled_shutdown_tries_three_times_without_a_controller() -> None:
    world = World(config=QUIET).ready()
    world.cluster.pause(1)
    world.cluster.shut_down(2)
    world.run(14)
    assert world.of("shutdown", broker=2)  # By then another controller has relieved it.
    world.cluster.pause(0)
    world.cluster.shut_down(3)
    world.run(14)
    assert not world.of("shutdown", broker=3)
    world.run(2)
    assert world.of("shutdown", broker=3)


def test_sessions_outlive_a_pause_of_zookeeper() -> None:
    world = World(config=QUIET).ready()
    world.cluster.pause(0)
    world.run(20)
    world.cluster.resume(0)
    world.run(2)
    assert not world.of("session-end")


def test_a_lagging_member_leaves_the_isr_and_others_learn_of_it_later() -> None:
    world = World(config={**QUIET, "replica.lag.time.max.ms": 2_000}).ready()
    world.cluster.links.cut(1, 3)
    world.write(1, seconds=4)
    assert set(isr(world)) == {1, 2}
    assert world.cluster.control.state.leader_epoch == 0
    assert partition_epoch(world, 1) == 2
    assert partition_epoch(world, 2) == 1
    assert world.process(1).module.controller.context.first.isr == (1, 2, 3)
    world.run(8)
    assert set(world.process(1).module.controller.context.first.isr) == {1, 2}
    assert world.cluster.running[2].metadata.known[TOPIC].isr == (1, 2)


def test_a_leader_that_missed_a_change_cannot_write_the_isr() -> None:
    world = World(config={**QUIET, "replica.lag.time.max.ms": 2_000, "controller.socket.timeout.ms": 9_000}).ready()
    world.cluster.links.cut(2, 1)
    world.cluster.control.fail_over()
    world.run(0.5)
    while world.cluster.controller != 2:
        world.cluster.control.fail_over()
        world.run(0.5)
    world.decide(1, (1, 2, 3))  # Broker 1 does not hear of its new epoch.
    world.cluster.links.cut(1, 3)
    world.write(1, seconds=4)
    assert isr(world) == (1, 2, 3)
    process = world.cluster.running[1]
    assert process.partition is not None
    assert (process.partition.state.isr, process.waiting) == ((1, 2, 3), None)


def test_the_partition_stands_still_while_its_isr_is_written() -> None:
    world = World(config={**QUIET, "replica.lag.time.max.ms": 2_000}).ready()
    world.cluster.links.cut(1, 3)
    world.cluster.pause(0)
    world.write(1, seconds=4)
    process = world.cluster.running[1]
    assert process.waiting is not None
    world.write(1, acks=1, seconds=1)
    assert not world.of("ack")
    world.cluster.resume(0)
    world.run(1)
    assert process.waiting is None
    assert len(world.of("ack")) == 2


def test_the_preferred_leader_comes_back_by_itself() -> None:
    world = World(config=SHORT).ready()
    world.cluster.kill(1)
    world.run(4)
    assert leader(world) == 2
    world.cluster.start(1)
    world.run(310)
    assert leader(world) == 1


def test_an_administrator_asks_for_the_preferred_leader() -> None:
    world = World(config=QUIET).ready()
    world.decide(2, (1, 2, 3))
    world.run(0.1)
    assert world.cluster.control.elect_preferred()
    world.run(0.1)
    assert leader(world) == 1


def test_a_reassignment_moves_a_replica() -> None:
    config = {**QUIET, "default.replication.factor": 3}
    world = World(brokers=4, config=config).ready()
    first = world.write(3)
    assert world.cluster.control.reassign((4, 2, 3))
    assert not world.cluster.control.reassign((2, 3, 4))
    world.run(3)
    assert world.cluster.replicas == (4, 2, 3)
    assert leader(world) == 4
    assert set(world.cluster.control.state.isr) == {2, 3, 4}
    assert world.logs[3] == [first, first + 1, first + 2]
    assert world.logs[0] == []
    assert world.of("deleted", broker=1)
    assert world.cluster.running[1].partition is not None
    world.write(1)
    assert len(world.of("ack")) == 2


def test_settings_change_while_running() -> None:
    world = World("kip320", config={**QUIET, "min.insync.replicas": 3}).ready()
    world.cluster.kill(3)
    world.run(5)
    world.write(1, seconds=2)
    assert not world.of("ack")
    world.cluster.administrator.set_config("min.insync.replicas", 2)
    world.run(2)
    assert world.of("ack")
    world.cluster.kill(1)
    world.run(5)
    world.cluster.kill(2)
    world.cluster.start(3)
    world.run(6)
    assert leader(world) == 0
    world.cluster.administrator.set_config("unclean.leader.election.enable", True)
    world.run(1)
    assert leader(world) == 3


class Counting(Operation):
    """Counts how often it is executed, and returns that."""

    def __init__(self) -> None:
        self.times = 0

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> int:
        self.times += 1
        return self.times


def test_request_that_is_sent_twice_is_done_once() -> None:
    world = World(config=QUIET).ready()
    counting = Counting()
    answers: list[int] = []
    world.cluster.links.cut(0, 2)
    world.process(2).zookeeper.ask(counting, answers.append, 0)
    world.run(2)
    assert (counting.times, answers) == (1, [])
    world.cluster.links.heal_all()
    world.run(2)
    assert (counting.times, answers) == (1, [1])


def test_result_is_kept_while_the_broker_waits_for_it() -> None:
    world = World(config=QUIET).ready()
    client, results = world.process(2).zookeeper, world.zookeeper.sessions[2].executed.results
    answers: list[int] = []
    for number in range(5):
        client.ask(Counting(), answers.append, number)
        world.run(0.1)
        assert len(results) == 1
    world.cluster.links.cut(0, 2)
    for number in range(5):
        client.ask(Counting(), answers.append, number)
        world.run(0.1)
    assert len(answers) == 5
    assert len(results) == 5
    world.cluster.links.heal_all()
    world.run(2)
    client.ask(Counting(), answers.append, 0)
    world.run(0.1)
    assert len(answers) == 11
    assert len(results) == 1


def test_results_of_an_ended_process_are_dropped_with_its_session() -> None:
    world = World(config=QUIET).ready()
    zookeeper = world.zookeeper
    for _ in range(3):
        world.process(2).zookeeper.ask(Counting(), lambda _: None, 0)
        world.run(0.1)
        ended = zookeeper.sessions[2].executed
        world.cluster.kill(2)
        world.cluster.start(2)
        world.run(1)
        assert zookeeper.sessions[2].executed is ended
        world.run(6)
        assert zookeeper.sessions[2].executed is not ended
        assert set(zookeeper._executed) == {1, 2, 3}
        assert all(session.executed is zookeeper._executed[broker] for broker, session in zookeeper.sessions.items())


def test_results_outlive_a_session_that_its_process_outlives() -> None:
    world = World(config=QUIET).ready()
    counting = Counting()
    answers: list[int] = []
    world.cluster.links.cut(0, 2)
    world.process(2).zookeeper.ask(counting, answers.append, 0, outlives_session=True)
    world.run(0.5)
    assert world.cluster.control.expire_session(2)
    world.cluster.links.heal_all()
    world.run(3)
    assert len(world.of("registered", broker=2)) == 2
    assert (counting.times, answers) == (1, [1])


def test_request_of_an_ended_process_that_was_received_is_executed() -> None:
    """ZooKeeper is paused, so it executes the request when the broker's next process is running."""
    world = World(config=QUIET).ready()
    zookeeper = world.zookeeper
    counting = Counting()
    world.cluster.pause(0)
    world.process(2).zookeeper.ask(counting, lambda _: None, 0)
    world.run(0.1)
    world.cluster.kill(2)
    world.cluster.start(2)
    ended, running = zookeeper.sessions[2].executed, zookeeper._executed[2]
    world.run(0.1)
    assert counting.times == 0
    world.cluster.resume(0)
    world.run(0.1)
    assert counting.times == 1
    assert 1 in ended.results.values()
    assert not running.results
