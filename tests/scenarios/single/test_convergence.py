from __future__ import annotations

import pytest

from scenarios.format.catalogue import load
from scenarios.single.convergence import Convergence
from scenarios.single.run import run_row
from sim.config import NEVER, Value, resolve
from sim.hosts.alter_partition_channel import AlterPartitionChannel
from sim.hosts.cluster import TOPIC
from sim.hosts.controller_quorum import ControllerQuorum
from sim.hosts.producer import Producer
from sim.hosts.settings import converges_in_time
from sim.protocol.client.sender import ProducerBatch
from sim.protocol.kraft.partition_change_builder import PartitionChangeBuilder
from sim.protocol.messages import ProduceRequest
from sim.protocol.modes import MODES
from sim.protocol.replica.partition import Partition
from tests.plain import needs_sources
from tests.sim.world import World

FIRST_ID = 1 << 40


def validate(world: World, seconds: float = 20) -> Convergence:
    convergence = Convergence(world.cluster, FIRST_ID)
    convergence.begin()
    world.run(seconds)
    return convergence


def kind(world: World, convergence: Convergence) -> str:
    failure = convergence.partitions[0].failure(world.cluster.kernel.now_us)
    assert failure is not None
    assert not world.of("converged")
    return failure.kind


def test_a_converged_cluster_writes_and_reads_and_ends_the_run() -> None:
    world = World().ready()
    now_us = world.cluster.kernel.now_us
    convergence = validate(world)
    assert convergence.converged
    assert convergence.partitions[0].failure(0) is None
    assert world.of("ack", record=FIRST_ID)
    assert world.of("read", record=FIRST_ID)
    assert world.of("converged")[0]["t"] == world.cluster.kernel.now_us < now_us + 100_000


def test_convergence_waits_for_a_replica_to_come_back() -> None:
    world = World().ready()
    world.cluster.kill(3)
    world.run(30)
    convergence = Convergence(world.cluster, FIRST_ID)
    convergence.begin()
    world.run(20)
    assert not world.of("ack", record=FIRST_ID)
    world.cluster.start(3)
    world.run(20)
    assert convergence.converged


def test_missing_leader_is_no_progress() -> None:
    world = World().ready()
    for broker in (1, 2, 3):
        world.cluster.kill(broker)
    assert kind(world, validate(world, 60)) == "no-progress"


def test_a_replica_that_is_down_or_out_of_the_isr_is_stuck() -> None:
    world = World().ready()
    world.cluster.kill(3)
    assert kind(world, validate(world, 30)) == "stuck-replica"
    world = World().ready()
    world.cluster.links.cut(3, 1)
    world.write(acks=1, seconds=60)
    assert world.cluster.control.state.isr == (1, 2)
    assert kind(world, validate(world)) == "stuck-replica"


def test_a_write_that_is_never_acknowledged_is_no_progress() -> None:
    world = World().ready()
    world.cluster.links.cut(1, 1001)
    assert kind(world, validate(world)) == "no-progress"


def test_a_write_that_is_never_read_means_a_stuck_replica() -> None:
    world = World().ready()
    world.cluster.links.cut(1, 1003)
    convergence = validate(world)
    assert convergence.partitions[0].acked
    assert kind(world, convergence) == "stuck-replica"


def test_a_leader_without_the_latest_decision_does_not_count() -> None:
    world = World().ready()
    world.cluster.links.cut(0, 1)
    world.decide(1, (1, 2, 3))
    convergence = validate(world, 4)
    assert world.of("read", record=FIRST_ID)
    assert kind(world, convergence) == "no-progress"
    world.cluster.links.heal_all()
    world.run(20)
    assert convergence.converged


# With a quorum.


def quorum(mode: str = "kraft", **config: Value) -> World:
    return World(
        mode, config={"min.insync.replicas": 2, **{key.replace("_", "."): config[key] for key in config}}
    ).ready()


def detail(world: World, convergence: Convergence) -> str:
    failure = convergence.partitions[0].failure(world.cluster.kernel.now_us)
    assert failure is not None
    return f"{failure.kind}: {failure.detail}"


@pytest.mark.parametrize("mode", ["kraft", "elr", "elr-recovery"])
def test_a_whole_cluster_with_a_quorum(mode: str) -> None:
    world = quorum(mode)
    world.cluster.kill(1)
    world.run(20)
    world.cluster.start(1)
    convergence = validate(world)
    assert convergence.converged
    assert world.cluster.control.state.isr == (1, 2, 3)


def test_a_broker_that_is_fenced_though_it_is_no_replica() -> None:
    world = World("kraft", brokers=4, config={"default.replication.factor": 3, "min.insync.replicas": 2}).ready()
    assert world.cluster.zombie(4)
    world.run(1)
    convergence = validate(world, 30)
    assert world.of("ack", record=FIRST_ID)
    assert detail(world, convergence) == (
        "stuck-replica: at the deadline after healing, fenced or shutting down: [4], behind the metadata log: []"
    )
    world.cluster.unzombie(4)
    world.run(10)
    assert convergence.converged


def test_a_broker_that_does_not_hear_of_the_latest_metadata() -> None:
    world = quorum()
    control = world.cluster.control
    assert isinstance(control, ControllerQuorum)
    control.delay_metadata(3, 40_000_000)
    control.set_config("min.insync.replicas", 3)
    convergence = validate(world, 30)
    assert detail(world, convergence).endswith("behind the metadata log: [3]")
    world.run(30)
    assert convergence.converged


@needs_sources
def test_a_reassignment_that_does_not_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionChangeBuilder, "_complete_reassignment", lambda _: None)
    world = World("kraft", brokers=4, config={"default.replication.factor": 3, "min.insync.replicas": 2}).ready()
    assert world.cluster.control.reassign((1, 2, 4))
    world.run(5)
    convergence = validate(world)
    assert convergence.partitions[0].acked
    assert detail(world, convergence) == (
        "no-progress: at the deadline after healing, a reassignment adds [4] and removes [3]"
    )


@needs_sources
def test_an_isr_change_that_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    world = quorum()
    world.cluster.kill(3)
    world.run(20)
    monkeypatch.setattr(AlterPartitionChannel, "on_reply", lambda *_: None)
    monkeypatch.setattr(Partition, "become_leader", lambda *_: None)
    world.cluster.start(3)
    convergence = validate(world)
    assert world.cluster.control.state.isr == (1, 2, 3)
    assert detail(world, convergence) == (
        "no-progress: at the deadline after healing, broker 1 waits for an ISR change"
    )


def test_a_write_that_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Producer, "time_out", lambda *_: None)
    world = quorum()
    lost = ProduceRequest(1001, "highwater-0", 1, 1, -1)
    world.cluster.producer._requests.append((lost, ProducerBatch(1, 1, -1, 0)))
    assert detail(world, validate(world)) == "no-progress: at the deadline after healing, writes are not answered"


def with_a_failed_directory(mode: str) -> World:
    """The log directory of broker 1 with the partition has failed for good."""
    world = World(mode, config={"sim.log.dirs": 2, "min.insync.replicas": 2}).ready()
    assert world.cluster.fail_directory_for_good(1, 1, by="test")
    world.run(5)
    return world


def test_a_cluster_converges_without_a_directory_that_is_not_repaired() -> None:
    world = with_a_failed_directory("elr-4.3")
    convergence = validate(world)
    assert convergence.converged
    assert world.cluster.control.state_of(TOPIC).isr == (2, 3)


def test_other_replicas_have_to_join_beside_a_failed_directory() -> None:
    world = with_a_failed_directory("elr-4.3")
    world.cluster.kill(3)
    world.run(30)
    convergence = validate(world)
    failure = convergence.partitions[0].failure(world.cluster.kernel.now_us)
    assert failure is not None
    assert failure.kind == "stuck-replica"
    assert "out of the ISR: [3], not running: [3]" in failure.detail


def test_a_replica_in_a_failed_directory_may_be_in_the_isr_until_the_next_write() -> None:
    """A fetch from before the failure may reach the leader after the controller has removed the replica."""
    world = with_a_failed_directory("elr-4.3")
    state = world.cluster.control.state_of(TOPIC)
    hosted = world.cluster.running[state.leader].replica(TOPIC)
    assert hosted is not None
    leader = hosted.partition
    epoch = world.cluster.running[1].broker_epoch
    leader.follower_fetched(1, epoch, leader.log.leo, state.leader_epoch, world.cluster.kernel.now_us)
    world.run(5)
    assert sorted(world.cluster.control.state_of(TOPIC).isr) == [1, 2, 3]
    assert validate(world, 90).converged
    assert world.cluster.control.state_of(TOPIC).isr == (2, 3)


@pytest.mark.parametrize(
    "settings",
    [
        {"broker.heartbeat.interval.ms": NEVER},
        {"broker.heartbeat.interval.ms": 30_000, "broker.session.timeout.ms": 9_000},
        {"controller.quorum.election.timeout.ms": 225 * 86_400_000},
    ],
)
def test_settings_under_which_nothing_can_live_are_judged_outside(settings: dict[str, Value]) -> None:
    scenario = load("chaos").with_settings(settings)
    rows = [run_row(scenario, MODES["elr-4.3"], seed) for seed in range(12)]
    lives = {"no-progress", "stuck-replica"}
    assert {kind for row in rows for kind in row["violations"].split(",")} & lives
    assert not {kind for row in rows for kind in row["violations_inside"].split(",")} & lives


def test_settings_without_effect_and_defaults_are_no_excuse() -> None:
    slow: dict[str, Value] = {"broker.heartbeat.interval.ms": NEVER}
    assert converges_in_time(resolve(slow), MODES["hw"].rules)
    assert not converges_in_time(resolve(slow), MODES["elr-4.3"].rules)
    assert all(converges_in_time(resolve(), mode.rules) for mode in MODES.values())
    assert converges_in_time(resolve({"replica.socket.timeout.ms": 60_000}), MODES["hw"].rules)
    assert not converges_in_time(resolve({"replica.socket.timeout.ms": 60_001}), MODES["hw"].rules)


def test_a_reassignment_that_keeps_a_replica_in_a_broken_directory_waits_for_an_operator() -> None:
    config = {"default.replication.factor": 3, "min.insync.replicas": 2, "sim.log.dirs": 2}
    world = World("kraft-repaired", brokers=4, config=config).ready()
    cluster = world.cluster
    directories = cluster.machines.directories[3]
    directory = directories.directory_of(cluster.name)
    assert directory is not None
    assert cluster.fail_directory_for_good(3, directories.all.index(directory) + 1, by="test")
    world.run(20)
    assert cluster.control.reassign((1, 2, 3, 4))
    convergence = validate(world, 60)
    state = cluster.control.state_of(cluster.name)
    assert cluster.control.reassignment(state) == ((4,), ())
    assert set(state.isr) == {1, 2, 4}
    assert convergence.partitions[0].waits_for_directory


@pytest.mark.parametrize("fails", [True, False])
def test_a_reassignment_to_a_directory_that_stays_broken_waits_for_an_operator(fails: bool) -> None:
    config = {"default.replication.factor": 3, "min.insync.replicas": 2, "sim.log.dirs": 2}
    world = World("kraft", brokers=4, config=config).ready()
    cluster = world.cluster
    cluster.links.cut(4, 1, by="test")  # Broker 4 creates its replica, and cannot fetch.
    cluster.links.cut(1, 4, by="test")
    assert cluster.control.reassign((1, 2, 4))
    world.run(5)
    if fails:
        directories = cluster.machines.directories[4]
        directory = directories.directory_of(cluster.name)
        assert directory is not None
        assert cluster.fail_directory_for_good(4, directories.all.index(directory) + 1, by="test")
    cluster.links.heal_all()
    convergence = validate(world, 60)
    assert convergence.converged is not fails
    assert convergence.partitions[0].waits_for_directory is fails
