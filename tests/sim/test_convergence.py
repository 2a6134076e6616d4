from __future__ import annotations

from sim.convergence import Convergence
from tests.sim.world import World

FIRST_ID = 1 << 40


def validate(world: World, seconds: float = 20) -> Convergence:
    convergence = Convergence(world.cluster, FIRST_ID)
    convergence.begin()
    world.run(seconds)
    return convergence


def kind(world: World, convergence: Convergence) -> str:
    failure = convergence.failure(world.cluster.kernel.now_us)
    assert failure is not None
    assert not world.of("converged")
    return failure.kind


def test_a_whole_cluster_proves_it_with_a_write_and_a_read_and_ends_the_run() -> None:
    world = World().ready()
    now_us = world.cluster.kernel.now_us
    convergence = validate(world)
    assert convergence.converged
    assert convergence.failure(0) is None
    assert world.of("ack", record=FIRST_ID)
    assert world.of("read", record=FIRST_ID)
    assert world.of("converged")[0]["t"] == world.cluster.kernel.now_us < now_us + 100_000


def test_it_waits_for_a_replica_to_come_back() -> None:
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


def test_without_a_leader_there_is_no_progress() -> None:
    world = World().ready()
    for broker in (1, 2, 3):
        world.cluster.kill(broker)
    assert kind(world, validate(world, 60)) == "no-progress"


def test_a_replica_that_is_down_or_out_of_the_isr_is_stuck() -> None:
    world = World().ready()
    world.cluster.kill(3)
    assert kind(world, validate(world, 30)) == "stuck-replica"
    world = World().ready()
    world.cluster.cut(3, 1)
    world.write(acks=1, seconds=60)
    assert world.cluster.control.state.isr == (1, 2)
    assert kind(world, validate(world)) == "stuck-replica"


def test_a_write_that_is_never_acknowledged_is_no_progress() -> None:
    world = World().ready()
    world.cluster.cut(1, 1001)
    assert kind(world, validate(world)) == "no-progress"


def test_a_write_that_is_never_read_means_a_stuck_replica() -> None:
    world = World().ready()
    world.cluster.cut(1, 1003)
    convergence = validate(world)
    assert convergence.acked
    assert kind(world, convergence) == "stuck-replica"


def test_a_leader_that_has_not_heard_of_the_latest_decision_does_not_count() -> None:
    world = World().ready()
    world.cluster.cut(0, 1)
    world.decide(1, (1, 2, 3))
    convergence = validate(world, 4)
    assert world.of("read", record=FIRST_ID)
    assert kind(world, convergence) == "no-progress"
    world.cluster.heal_links()
    world.run(20)
    assert convergence.converged
