from __future__ import annotations

import pytest

from faults.injection import Injection
from faults.plan import LEADER, Fault, Plan
from tests.sim.world import SECOND_US, World


def strike(world: World, fault: Fault) -> Injection:
    injection = Injection(world.cluster)
    injection.strike(fault)
    world.run(0.5)
    return injection


@pytest.mark.parametrize("kind", ["kill", "power-loss", "controlled-restart"])
def test_a_stopped_broker_is_started_again_after_its_time(kind: str) -> None:
    world = World().ready()
    injection = strike(world, Fault(kind, 0, (2,), 2 * SECOND_US))
    assert 2 not in world.cluster.running
    assert [(entry.kind, entry.targets, entry.effective) for entry in injection.realised] == [
        (kind, (2, 3) if kind == "cut" else (2,), True)
    ]
    world.run(2)
    assert 2 in world.cluster.running


@pytest.mark.parametrize(("kind", "lost"), [("kill", []), ("power-loss", [0]), ("controlled-restart", [])])
def test_only_power_loss_costs_data(kind: str, lost: list[int]) -> None:
    world = World().ready()
    world.write()
    strike(world, Fault(kind, 0, (3,), SECOND_US // 2))
    world.run()
    assert world.of("recovered", broker=3)[-1]["lost"] == lost
    marker = world.of("shutdown", broker=3)
    assert bool(marker) == (kind == "controlled-restart")


@pytest.mark.parametrize("both_ways", [True, False])
def test_a_cut_ends_after_its_time(both_ways: bool) -> None:
    world = World().ready()
    strike(world, Fault("cut", 0, (1, 0), 2 * SECOND_US, both_ways=both_ways))
    link = world.cluster.network.link
    assert (link(1, 0).cuts, link(0, 1).cuts) == (1, int(both_ways))
    world.run(2)
    assert (link(1, 0).cuts, link(0, 1).cuts) == (0, 0)


def test_the_leader_is_found_when_the_fault_strikes() -> None:
    world = World().ready()
    world.cluster.control.decide(3, (1, 2, 3))
    world.run()
    injection = strike(world, Fault("kill", 0, (LEADER,), -1))
    assert injection.realised[0].targets == (3,)
    world.run(30)
    assert world.cluster.control.state.leader == 1
    assert strike(world, Fault("kill", 0, (LEADER,), -1)).realised[0].targets == (1,)


def test_without_a_leader_the_first_broker_that_runs_stands_in() -> None:
    world = World(scripted=True).ready()
    world.cluster.kill(1)
    assert strike(world, Fault("kill", 0, (LEADER,), -1)).realised[0].targets == (2,)


def test_a_cut_between_the_leader_and_itself_has_no_effect() -> None:
    world = World().ready()
    assert not strike(world, Fault("cut", 0, (LEADER, 1), 10)).realised[0].effective
    assert not world.of("cut")


def test_several_machines_go_off_after_their_delays() -> None:
    world = World().ready()
    now_us = world.cluster.kernel.now_us
    injection = strike(world, Fault("power-loss", 0, (3, 1), -1, (40_000, 0)))
    assert [(entry.targets, entry.at_us - now_us) for entry in injection.realised] == [((1,), 0), ((3,), 40_000)]
    assert list(world.cluster.running) == [2]


def test_what_does_not_run_cannot_be_killed() -> None:
    world = World().ready()
    strike(world, Fault("kill", 0, (2,), -1))
    injection = strike(world, Fault("kill", 0, (2,), -1))
    assert injection.effective == 0
    assert injection.to_json()[0]["effective"] is False


def test_a_plan_strikes_at_its_times() -> None:
    world = World().ready()
    injection = Injection(world.cluster)
    begin_us = world.cluster.kernel.now_us
    injection.schedule(Plan((Fault("kill", begin_us + 5, (2,)), Fault("kill", begin_us + 9, (3,)))))
    world.run()
    assert [entry.at_us - begin_us for entry in injection.realised] == [5, 9]
    hashes = {injection.faults_hash(), Injection(world.cluster).faults_hash()}
    assert len(hashes) == 2


def test_healing_ends_cuts_and_starts_what_is_down_and_leaves_alone_what_runs() -> None:
    world = World().ready()
    injection = strike(world, Fault("cut", 0, (1, 2), 5 * SECOND_US, both_ways=True))
    injection.strike(Fault("kill", 0, (3,), 5 * SECOND_US))
    world.run(0.5)
    injection.heal()
    assert world.cluster.network.link(1, 2).cuts == world.cluster.network.link(2, 1).cuts == 0
    world.run(30)
    assert [len(world.of("start", broker=broker)) for broker in (1, 2, 3)] == [1, 1, 2]
    assert len(world.of("heal")) == 2
