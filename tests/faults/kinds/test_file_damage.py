from __future__ import annotations

import pytest

from faults.kinds.file_damage import NAMES
from faults.kinds.injection import Injection
from faults.plan import Fault, Plan
from sim.history import steps
from tests.sim.world import World

SECOND_US = 1_000_000


def strike(world: World, kind: str, file: str, broker: int = 2, restart_s: int = -1) -> Injection:
    injection = Injection(world.cluster)
    now_us = world.cluster.kernel.now_us
    lasts_us = restart_s * SECOND_US if restart_s >= 0 else -1
    injection.schedule(Plan((Fault(kind, now_us, (broker,), lasts_us, value=NAMES.index(file)),)))
    world.run(1)
    return injection


def ready(mode: str = "elr-4.3", **config: int) -> World:
    world = World(mode, config={key.replace("_", "."): value for key, value in config.items()}).ready()
    world.write()
    return world


def test_a_running_broker_is_shut_down_and_a_stopped_one_keeps_its_end() -> None:
    world = ready()
    strike(world, "file-lost", "leader-epoch-checkpoint", restart_s=5)
    assert [step["step"] for step in world.steps if step["step"] in ("shutdown", "file-damaged")] == [
        "shutdown",
        "file-damaged",
    ]
    (damaged,) = world.of("file-damaged", broker=2)
    assert (damaged["file"], damaged["damage"], damaged["offset"]) == ("leader-epoch-checkpoint", "lost", 0)
    world.run(10)
    assert 2 in world.cluster.running
    world.cluster.kill(3)
    strike(world, "file-lost", "leader-epoch-checkpoint", broker=3)
    assert not world.of("shutdown", broker=3)
    assert world.of("file-damaged", broker=3)


def facts(world: World) -> list[steps.StepKind]:
    return [step.kind for step in world.cluster.recorder.history.steps if isinstance(step, steps.Fact)]


@pytest.mark.parametrize("clean", [True, False])
def test_the_next_process_misses_the_epochs_that_recovery_does_not_find(clean: bool) -> None:
    world = ready()
    if not clean:
        world.cluster.kill(2)
    strike(world, "file-lost", "leader-epoch-checkpoint", restart_s=15)
    world.run(20)
    assert (steps.FILE_MISSED in facts(world)) is clean


def test_a_stray_log_is_a_loss_of_all_its_records() -> None:
    world = ready()
    strike(world, "file-lost", "partition.metadata", restart_s=5)
    (damaged,) = [step for step in world.cluster.recorder.history.steps if isinstance(step, steps.FileDamaged)]
    assert [batch.first_id for batch in damaged.lost] == [0]
    assert (damaged.unclean, damaged.was_down) == (True, True)
    assert world.logs[1] == []
    world.run(20)
    assert world.logs == [[0]] * 3


@pytest.mark.parametrize("kind", ["file-lost", "file-half-written"])
def test_shutdown_without_a_whole_marker_is_an_unclean_one(kind: str) -> None:
    """So the controller takes it (KIP-966), and so the promise counts it."""
    world = ready()
    strike(world, kind, ".kafka_cleanshutdown", restart_s=5)
    (damaged,) = [step for step in world.cluster.recorder.history.steps if isinstance(step, steps.FileDamaged)]
    assert (damaged.unclean, damaged.lost) == (True, [])


def test_a_half_written_file_keeps_the_broker_down_until_it_is_removed() -> None:
    world = ready()
    injection = strike(world, "file-half-written", "replication-offset-checkpoint", restart_s=20)
    assert not world.cluster.start(2)
    world.run(25)
    assert 2 in world.cluster.running
    assert injection.effective == 1
    assert world.logs == [[0]] * 3


def test_a_broker_with_another_log_directory_starts_without_the_one_that_failed() -> None:
    world = ready(sim_log_dirs=2)
    injection = strike(world, "file-half-written", "leader-epoch-checkpoint")
    assert world.cluster.start(2)
    world.run(2)
    assert world.of("directory-offline", broker=2)
    injection.heal()
    world.run(20)
    assert 2 in world.cluster.running
    assert world.logs == [[0]] * 3


def test_a_fault_that_is_over_before_its_process_ends_damages_nothing() -> None:
    world = ready("kip320")
    injection = Injection(world.cluster)
    injection.strike(Fault("file-lost", 0, (2,), value=1))
    injection.heal()
    world.run(10)
    assert not world.of("file-damaged")
    assert 2 in world.cluster.running


def test_a_file_of_another_release_has_no_effect() -> None:
    world = ready("kip320")
    world.cluster.kill(2)
    assert strike(world, "file-lost", "partition.metadata").effective == 0
