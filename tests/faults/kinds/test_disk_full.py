from __future__ import annotations

import pytest

from faults.kinds.injection import Injection
from faults.plan import Fault, Plan
from sim.hosts.cluster import TOPIC
from sim.hosts.topics import TopicPartition
from sim.protocol.messages import KAFKA_STORAGE_ERROR
from tests.sim.world import World

ORDERS = "orders-0"
SECOND_US = 1_000_000


def ready(mode: str = "elr-4.3", directories: int = 1) -> World:
    """Three brokers; with two directories, the first partition is in the first, `orders-0` in the second."""
    config = {"auto.leader.rebalance.enable": False, "min.insync.replicas": 2, "sim.log.dirs": directories}
    world = World(mode, config=config, further=[TopicPartition(ORDERS, 3)] if directories > 1 else [])
    world.run(2)
    world.ready()
    world.write()
    return world


def strike(world: World, broker: int, *, for_s: int = 30, directory: int = -1) -> Injection:
    injection = Injection(world.cluster)
    now_us = world.cluster.kernel.now_us
    injection.schedule(Plan((Fault("disk-full", now_us, (broker,), for_s * SECOND_US, directory=directory),)))
    world.run(0.001)
    assert injection.effective == 1
    return injection


def number(world: World, step: str, broker: int) -> int:
    return len({found["t"] for found in world.of(step, broker=broker)})


@pytest.mark.parametrize("mode", ["hw", "kip101", "kip320", "kraft", "elr-4.3"])
def test_a_leader_halts_at_its_next_append_and_loses_nothing(mode: str) -> None:
    world = ready(mode)
    world.run(1)  # The next HW file is written seconds later.
    strike(world, 1)
    assert 1 in world.cluster.running
    record = world.write(seconds=0.1)
    assert 1 not in world.cluster.running
    assert number(world, "halt", 1) == 1
    world.run(60)
    assert 1 in world.cluster.running
    assert world.of("ack", record=record)
    assert world.logs == [[0, record]] * 3


def test_a_supervisor_starts_it_in_vain_until_there_is_space() -> None:
    world = ready()
    strike(world, 2, for_s=45)
    world.run(44)
    halts = number(world, "halt", 2)
    assert halts >= 2
    world.run(20)
    assert number(world, "halt", 2) == halts
    assert world.cluster.running[2].incarnation == halts + 1


def test_the_high_watermark_is_written_though_nothing_is_appended() -> None:
    world = ready()
    strike(world, 3)
    world.run(5.1)
    assert number(world, "halt", 3) == 1


def test_space_that_comes_back_in_time_is_not_missed() -> None:
    world = ready()
    injection = strike(world, 3, for_s=30)
    injection.heal()
    world.write()
    world.run(30)
    assert number(world, "halt", 3) == 0
    assert world.cluster.running[3].incarnation == 1


def test_only_the_full_directory_goes_offline_and_it_is_used_after_a_restart() -> None:
    world = ready(directories=2)
    strike(world, 1, for_s=20, directory=1)
    kept = world.write(partition=1, seconds=1)
    assert 1 in world.cluster.running
    first = world.write(seconds=1)
    assert world.of("refused", record=first, error=KAFKA_STORAGE_ERROR)
    assert world.logs_of(ORDERS) == [[kept]] * 3
    assert world.cluster.running[1].replica_manager.offline.keys() == {TOPIC}
    assert number(world, "halt", 1) == 0
    world.run(60)
    assert world.cluster.running[1].incarnation == 2
    assert world.logs == [[0, first]] * 3


def test_the_next_process_uses_a_directory_that_had_no_space() -> None:
    world = ready(directories=2)
    strike(world, 1, for_s=200, directory=1)
    world.run(6)
    assert world.of("directory-failed", broker=1)
    world.cluster.kill(1)
    assert not any(directory.failed for directory in world.cluster.machines.directories[1].all)
    world.cluster.start(1)
    world.run(20)
    assert number(world, "directory-failed", 1) == 2


@pytest.mark.parametrize("is_full", [True, False])
def test_a_controlled_shutdown_without_space_leaves_no_marker(is_full: bool) -> None:
    world = ready()
    world.run(4)
    if is_full:
        strike(world, 3, for_s=200)
    world.cluster.shut_down(3)
    world.run(0.5)
    assert (number(world, "shutdown", 3), number(world, "halt", 3)) == (1, 0)
    assert world.cluster.machines.directories[3].clean_shutdown is not is_full
