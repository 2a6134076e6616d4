from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from faults.injection import INJECTORS, Injection
from faults.plan import CONTROLLER, LEADER, Fault, Plan
from sim.cluster import PRODUCER
from tests.sim.world import SECOND_US, World

if TYPE_CHECKING:
    from sim.cluster import Cluster

STOPS = ("kill", "power-loss", "controlled-restart", "disk-replaced", "corrupt-tail")


def strike(world: World, fault: Fault) -> Injection:
    injection = Injection(world.cluster)
    injection.strike(fault)
    world.run(0.5)
    return injection


@pytest.mark.parametrize("kind", STOPS)
def test_a_stopped_broker_is_started_again_after_its_time(kind: str) -> None:
    world = World().ready()
    injection = strike(world, Fault(kind, 0, (2,), 2 * SECOND_US))
    assert 2 not in world.cluster.running
    assert [(entry.kind, entry.targets, entry.effective) for entry in injection.realised] == [(kind, (2,), True)]
    world.run(2)
    assert 2 in world.cluster.running


@pytest.mark.parametrize(
    ("kind", "lost"),
    [
        ("kill", []),
        ("power-loss", [1, 2]),
        ("controlled-restart", []),
        ("disk-replaced", [0, 1, 2]),
        ("corrupt-tail", [2]),
    ],
)
def test_what_each_kind_of_end_costs(kind: str, lost: list[int]) -> None:
    world = World(config={"sim.writeback.expire.ms": 5_000}).ready()
    world.write(seconds=11)
    world.write()
    world.write()
    strike(world, Fault(kind, 0, (3,), SECOND_US // 2, value=1))
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


# What stands still, and links that got worse.


def test_a_paused_broker_goes_on_after_its_time() -> None:
    world = World().ready()
    injection = strike(world, Fault("pause", 0, (LEADER,), 2 * SECOND_US))
    assert injection.realised[0].targets == (1,)
    world.write(seconds=1)
    assert world.logs == [[], [], []]
    world.run(3)
    assert world.logs == [[0]] * 3


def test_a_pause_that_found_nobody_ends_no_other() -> None:
    world = World().ready()
    world.cluster.kill(2)
    injection = strike(world, Fault("pause", 0, (2,), 3 * SECOND_US))
    assert injection.effective == 0
    world.cluster.start(2)
    world.run()
    injection.strike(Fault("pause", 0, (2,), 10 * SECOND_US))
    world.run(5)
    assert world.cluster.running[2].frozen
    world.run(6)
    assert not world.cluster.running[2].frozen


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize("kind", ["slow", "lossy"])
def test_a_link_is_worse_for_its_time(kind: str, both_ways: bool) -> None:
    world = World().ready()
    link = world.cluster.network.link
    before = [(link(*ends).table, link(*ends).loss) for ends in ((1, 3), (3, 1))]
    injection = strike(world, Fault(kind, 0, (LEADER, 3), 2 * SECOND_US, both_ways=both_ways, value=300))
    assert injection.realised[0].targets == (1, 3)
    now = [(link(*ends).table, link(*ends).loss) for ends in ((1, 3), (3, 1))]
    assert [was != is_ for was, is_ in zip(before, now, strict=True)] == [True, both_ways]
    assert len(world.of(kind, value=300)) == 1 + both_ways
    world.run(2)
    assert [(link(*ends).table, link(*ends).loss) for ends in ((1, 3), (3, 1))] == before


@pytest.mark.parametrize("kind", ["slow", "lossy"])
def test_a_broker_has_no_link_to_itself(kind: str) -> None:
    world = World().ready()
    assert not strike(world, Fault(kind, 0, (LEADER, 1), 10, value=5)).realised[0].effective


def test_a_slow_link_delays_what_is_acknowledged() -> None:
    world = World().ready()
    strike(world, Fault("slow", 0, (3, 1), 5 * SECOND_US, value=400_000))
    world.write(seconds=0.2)
    assert world.logs == [[0]] * 3
    assert not world.of("ack")
    world.run()
    assert world.of("ack")


def test_batches_that_are_sent_again_are_appended_twice_without_idempotence() -> None:
    world = World().ready()
    strike(world, Fault("duplicate", 0, (LEADER,), 5 * SECOND_US, value=1_000))
    world.write(2, seconds=2)
    assert world.logs == [[0, 1, 0, 1]] * 3
    assert len(world.of("ack")) == 1
    world.run(5)
    assert world.cluster.network.link(PRODUCER, 1).resent == 0
    world.write(seconds=2)
    assert world.logs == [[0, 1, 0, 1, 2]] * 3


def test_retention_moves_the_leaders_log_start_below_its_hw_and_followers_learn_it() -> None:
    world = World().ready()
    for _ in range(4):
        world.write()
    injection = strike(world, Fault("retention", 0, (LEADER,), value=500))
    assert injection.effective == 1
    world.run()
    world.write()
    assert world.logs == [[2, 3, 4]] * 3
    assert {step["offset"] for step in world.of("log-start")} == {2}
    assert strike(world, Fault("retention", 0, (2,), value=500)).effective == 0
    assert strike(world, Fault("retention", 0, (LEADER,), value=1)).effective == 0


# The control plane.


class Asked:
    """Stands in for a cluster's control plane: writes down what it is asked for."""

    def __init__(self, *, answers: bool = True, controller: int = 2) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.controller = controller
        self.answers = answers

    def __getattr__(self, verb: str) -> Any:
        def ask(*arguments: Any) -> bool:
            self.calls.append((verb, *arguments))
            return self.answers

        return ask


def with_control_plane(world: World, stand_in: Asked) -> Cluster:
    for verb in ("expire_session", "zombie", "unzombie", "move_controller", "preferred_election", "reassign"):
        setattr(world.cluster, verb, getattr(stand_in, verb))
    world.cluster.__dict__["controller"] = stand_in.controller
    return world.cluster


def asked(stand_in: Asked, fault: Fault) -> Injection:
    world = World().ready()
    injection = Injection(with_control_plane(world, stand_in))
    injection.strike(fault)
    world.run(3)
    return injection


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize(
    ("fault", "verb", "undone"),
    [
        (Fault("session-expiry", 0, (3,)), ("expire_session", 3), None),
        (Fault("zombie", 0, (LEADER,), SECOND_US), ("zombie", 1), ("unzombie", 1)),
        (Fault("controller-failover", 0, (CONTROLLER,)), ("move_controller",), None),
        (Fault("preferred-election", 0, (0,)), ("preferred_election",), None),
        (Fault("reassignment", 0, (0,), replicas=(3, 1, 2)), ("reassign", (3, 1, 2)), None),
    ],
)
def test_the_control_plane_is_asked_and_what_it_answers_is_recorded(
    answers: bool, fault: Fault, verb: tuple[Any, ...], undone: tuple[Any, ...] | None
) -> None:
    stand_in = Asked(answers=answers)
    injection = asked(stand_in, fault)
    assert stand_in.calls == ([verb, undone] if undone and answers else [verb])
    assert [entry.effective for entry in injection.realised] == [answers]
    target = {LEADER: 1, CONTROLLER: 2}.get(fault.targets[0], fault.targets[0])
    assert injection.realised[0].targets == (target,)


def test_a_zombie_notices_when_all_is_healed() -> None:
    stand_in = Asked()
    injection = asked(stand_in, Fault("zombie", 0, (3,), 60 * SECOND_US))
    injection.heal()
    assert stand_in.calls == [("zombie", 3), ("unzombie", 3)]


@pytest.mark.parametrize(("controller", "paused"), [(2, [2]), (0, [])])
def test_whoever_is_the_controller_is_paused(controller: int, paused: list[int]) -> None:
    injection = asked(Asked(controller=controller), Fault("controller-pause", 0, (CONTROLLER,), 60 * SECOND_US))
    cluster: Cluster = injection._cluster
    assert [broker for broker, process in cluster.running.items() if process.frozen] == paused
    assert [entry.targets for entry in injection.realised] == [(controller,)]
    assert injection.effective == len(paused)
    injection.heal()
    assert not any(process.frozen for process in cluster.running.values())


# Everything.


def test_healing_undoes_every_kind() -> None:
    world = World().ready()
    cluster = with_control_plane(world, Asked())
    injection = Injection(cluster)
    for kind in INJECTORS:
        targets = (1, 3) if kind in ("cut", "slow", "lossy") else (CONTROLLER,) if "controller-" in kind else (1,)
        injection.strike(Fault(kind, 0, targets, -1, value=100, replicas=(1, 2, 3)))
        cluster.start(1)
        world.run(1)
    injection.heal()
    cluster.start(1)
    world.run(60)
    assert {entry.kind for entry in injection.realised} == set(INJECTORS)
    assert all(not cluster.running[broker].frozen for broker in (1, 2, 3))
    for source in (0, 1, 2, 3, PRODUCER):
        for target in (0, 1, 2, 3):
            link = cluster.network.link(source, target)
            assert (link.cuts, link.loss, link.resent, link.table[0]) == (0, 0, 0, 200)
    world.write(seconds=40)
    assert len({tuple(log) for log in world.logs}) == 1
    assert world.logs[0]
