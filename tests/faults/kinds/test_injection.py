from __future__ import annotations

from dataclasses import replace

import pytest

from faults.kinds.injection import Injection, is_always_undone
from faults.kinds.registry import KINDS
from faults.plan import (
    ALL_DIRECTORIES,
    CONTROLLER,
    ISR_MEMBER,
    ITS_DIRECTORY,
    LAST_MEMBER,
    LAST_TARGET,
    LEADER,
    OUTSIDER,
    STEP_BROKER,
    Fault,
    Plan,
    Trigger,
)
from sim.history.steps import ENDS, MOMENTS
from sim.hosts.client import PRODUCER
from sim.hosts.interceptions import NAMES
from sim.protocol.probes import PROBES, TRANSITIONS
from tests.faults.traces import sample
from tests.sim.world import SECOND_US, World

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
    assert len(world.of("start", broker=2)) == 2


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
def test_ends_of_each_kind_cost_what_they_should(kind: str, lost: list[int]) -> None:
    world = World(config={"sim.writeback.expire.ms": 5_000}).ready()
    world.write(seconds=11)
    world.write()
    world.write()
    strike(world, Fault(kind, 0, (3,), SECOND_US // 2, value=1))
    world.run()
    assert world.of("recovered", broker=3)[-1]["lost"] == lost
    marker = world.of("shutdown", broker=3)
    assert bool(marker) == (kind == "controlled-restart")


def wake(world: World, kind: str) -> set[str]:
    """Names of the transitions in the wake of a kind of fault."""
    kinds = {name: number for number, name in enumerate(KINDS)}
    bits = f"{world.cluster.recorder.coverage.bits(kinds, ()):0{len(PROBES) + len(kinds) * (1 + TRANSITIONS)}b}"
    start = len(PROBES) + len(kinds) + kinds[kind] * TRANSITIONS
    return {probe.name for probe, bit in zip(PROBES[:TRANSITIONS], bits[start:], strict=False) if bit == "1"}


def test_steps_of_a_fault_are_in_its_own_wake() -> None:
    world = World().ready()
    world.write()
    strike(world, Fault("kill", 0, (3,), SECOND_US // 2))
    strike(world, Fault("power-loss", 0, (2,), SECOND_US // 2))
    strike(world, Fault("cut", 0, (1, 1), SECOND_US // 2))
    assert wake(world, "kill") == set()
    assert "suffix-lost" in wake(world, "power-loss")
    world.run(30)
    assert {"loaded-unclean", "expires-dead"} <= wake(world, "power-loss")
    assert wake(world, "cut") == set()  # Between a broker and itself.


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
    assert strike(world, Fault("kill", 0, (LEADER,), -1)).realised[0].targets == (1,)
    world.run(30)
    assert world.cluster.control.state.leader == 2
    assert strike(world, Fault("kill", 0, (LEADER,), -1)).realised[0].targets == (2,)


def test_first_running_broker_stands_in_without_a_leader() -> None:
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


def test_process_that_does_not_run_cannot_be_killed() -> None:
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


def test_healing_ends_cuts_and_starts_stopped_brokers_only() -> None:
    world = World().ready()
    injection = strike(world, Fault("cut", 0, (1, 2), 5 * SECOND_US, both_ways=True))
    injection.strike(Fault("kill", 0, (3,), 5 * SECOND_US))
    world.run(0.5)
    injection.heal()
    assert world.cluster.network.link(1, 2).cuts == world.cluster.network.link(2, 1).cuts == 0
    world.run(60)
    assert [len(world.of("start", broker=broker)) for broker in (1, 2)] == [1, 1]
    assert 3 in world.cluster.running
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
    world.run(20)
    injection = strike(world, Fault("pause", 0, (2,), 3 * SECOND_US))
    assert injection.effective == 0
    world.cluster.start(2)
    world.run()
    injection.strike(Fault("pause", 0, (2,), 10 * SECOND_US))
    world.run(5)
    assert world.cluster.running[2].frozen
    world.run(6)
    assert not world.cluster.running[2].frozen


@pytest.mark.parametrize("kind", ["pause", "disk-stall", "zombie"])
def test_the_end_of_what_held_a_process_that_ended_releases_no_other(kind: str) -> None:
    world = World().ready()
    injection = strike(world, Fault(kind, 0, (2,), 40 * SECOND_US))
    world.run(1)
    world.cluster.kill(2)
    world.run(20)
    world.cluster.start(2)
    world.run()
    injection.strike(Fault(kind, 0, (2,), 60 * SECOND_US))
    broker = world.cluster.running[2]
    held = []
    for seconds in (30, 40):
        world.run(seconds)
        held.append(broker.frozen or broker.zombie or broker.waiting is not None)
    assert held == [True, False]


def test_a_leader_with_a_stalled_disk_keeps_its_session() -> None:
    world = World().ready()
    injection = strike(world, Fault("disk-stall", 0, (LEADER,), 25 * SECOND_US))
    assert injection.realised[0].targets == (1,)
    assert strike(world, Fault("disk-stall", 0, (1,), 1)).effective == 0
    world.write(seconds=23)
    assert world.logs == [[], [], []]
    assert not world.of("session-end")
    world.run(3)
    assert world.logs == [[0]] * 3
    assert world.of("ack")
    assert [len(world.of(step, broker=1)) for step in ("disk-stalled", "disk-works")] == [1, 1]


def test_a_follower_whose_disk_stalls_appends_nothing_meanwhile() -> None:
    world = World().ready()
    strike(world, Fault("disk-stall", 0, (3,), 5 * SECOND_US))
    world.write(seconds=2)
    assert world.logs == [[0], [0], []]
    assert not world.of("ack")
    world.run(4)
    assert world.logs == [[0]] * 3
    assert world.of("ack")


NAMES_OF_ENDS = {kind.name for kind in ENDS}


@pytest.mark.parametrize(
    ("directory", "kinds"),
    [
        (
            1,
            {
                "disk-stall": [],
                "corrupt-tail": ["kill", "corrupt-tail"],
                "disk-replaced": ["kill", "directory-replaced"],
            },
        ),
        (2, {"disk-stall": [], "corrupt-tail": ["kill"], "disk-replaced": ["kill"]}),
        (
            ITS_DIRECTORY,
            {
                "disk-stall": [],
                "corrupt-tail": ["kill", "corrupt-tail"],
                "disk-replaced": ["kill", "directory-replaced"],
            },
        ),
        (ALL_DIRECTORIES, {"disk-stall": [], "corrupt-tail": ["corrupt-tail"], "disk-replaced": ["disk-replaced"]}),
    ],
)
def test_a_fault_may_strike_the_log_directory_of_a_broker_alone(directory: int, kinds: dict[str, list[str]]) -> None:
    """The replica of broker 2 is in its first directory."""
    for kind, expected in kinds.items():
        world = World("elr", config={"sim.log.dirs": 2}).ready()
        world.write()
        strike(world, Fault(kind, 0, (2,), value=kind == "corrupt-tail", directory=directory))
        assert [
            step["step"] for step in world.steps if step["step"] in NAMES_OF_ENDS and step["broker"] == 2
        ] == expected


def test_a_fault_of_one_directory_strikes_the_whole_disk_of_a_broker_that_has_one() -> None:
    world = World("elr").ready()
    injection = strike(world, Fault("disk-stall", 0, (2,), directory=2))
    assert world.cluster.running[2].disk_stalled_us is not None
    injection.heal()
    assert world.cluster.running[2].disk_stalled_us is None
    strike(world, Fault("disk-replaced", 0, (2,), directory=2))
    assert world.of("disk-replaced", broker=2)


def test_the_stall_of_a_directory_ends_with_its_fault() -> None:
    world = World("elr", config={"sim.log.dirs": 2}).ready()
    injection = strike(world, Fault("disk-stall", 0, (2,), 2 * SECOND_US, directory=1))
    world.write()
    assert [len(world.of(step, broker=2)) for step in ("disk-stalled", "disk-works")] == [1, 0]
    assert world.logs == [[0], [], [0]]
    world.run(2)
    assert world.logs == [[0]] * 3
    injection.strike(Fault("disk-stall", 0, (2,), directory=ITS_DIRECTORY))
    injection.heal()
    assert [len(world.of(step, broker=2)) for step in ("disk-stalled", "disk-works")] == [2, 2]


def test_a_disk_stall_ends_with_its_process_and_resumes_no_pause() -> None:
    world = World().ready()
    injection = strike(world, Fault("disk-stall", 0, (2,)))
    world.cluster.kill(2)
    world.run(20)
    world.cluster.start(2)
    world.run(2)
    injection.strike(Fault("disk-stall", 0, (3,)))
    injection.strike(Fault("pause", 0, (3,)))
    first = world.write(seconds=1)
    assert world.logs == [[first], [first], []]
    world.cluster.machines.unstall_disk(3)
    world.run(1)
    assert world.logs[2] == []
    injection.heal()
    world.run(1)
    assert world.logs == [[first]] * 3


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


def test_resent_batches_are_appended_twice_without_idempotence() -> None:
    world = World().ready()
    strike(world, Fault("duplicate", 0, (LEADER,), 5 * SECOND_US, value=1_000))
    world.write(2, seconds=2)
    assert world.logs == [[0, 1, 0, 1]] * 3
    assert len(world.of("ack")) == 1
    world.run(5)
    assert world.cluster.network.link(PRODUCER, 1).resent == 0
    world.write(seconds=2)
    assert world.logs == [[0, 1, 0, 1, 2]] * 3


def test_retention_moves_the_log_start_and_followers_learn_it() -> None:
    world = World().ready()
    for _ in range(4):
        world.write()
    injection = strike(world, Fault("retention", 0, (LEADER,), value=500))
    assert injection.effective == 1
    assert world.cluster.recorder.history.records.deleted == {0, 1}
    world.run()
    world.write()
    assert world.logs == [[2, 3, 4]] * 3
    assert {step["offset"] for step in world.of("log-start")} == {2}
    assert strike(world, Fault("retention", 0, (2,), value=500)).effective == 0
    assert strike(world, Fault("retention", 0, (LEADER,), value=1)).effective == 0


# The control plane.


def test_an_expired_session_is_noticed_and_opened_anew() -> None:
    world = World("kip320", first=2).ready()  # Broker 2 is controller; broker 1 is back at once (KIP-380).
    injection = strike(world, Fault("session-expiry", 0, (LEADER,)))
    assert injection.effective == 1
    assert world.of("session-end", broker=1)
    assert len(world.of("registered", broker=1)) == 2
    world.run(30)
    assert [step["broker"] for step in world.of("elected")][:2] == [1, 2]
    world.cluster.kill(3)
    world.run(30)
    assert strike(world, Fault("session-expiry", 0, (3,))).effective == 0


def test_a_zombie_is_not_registered_until_it_notices() -> None:
    world = World().ready()
    injection = strike(world, Fault("zombie", 0, (LEADER,), 40 * SECOND_US))
    assert injection.effective == 1
    world.run(35)
    assert len(world.of("registered", broker=1)) == 1
    assert world.cluster.leader is world.cluster.running[2]
    world.run(20)
    assert len(world.of("registered", broker=1)) == 2


def test_a_zombie_notices_when_all_is_healed() -> None:
    world = World().ready()
    injection = strike(world, Fault("zombie", 0, (3,)))
    world.run(30)
    injection.heal()
    world.run(30)
    assert len(world.of("registered", broker=3)) == 2


def test_the_controller_moves() -> None:
    world = World().ready()
    cluster = world.cluster
    before = cluster.controller
    epoch = world.zookeeper.tree.controller_epoch
    injection = strike(world, Fault("controller-failover", 0, (CONTROLLER,)))
    assert [(entry.targets, entry.effective) for entry in injection.realised] == [((before,), True)]
    assert cluster.controller > 0
    assert world.zookeeper.tree.controller_epoch == epoch + 1


def test_a_paused_controller_is_replaced_and_goes_on() -> None:
    world = World().ready()
    cluster = world.cluster
    before = cluster.controller
    injection = strike(world, Fault("controller-pause", 0, (CONTROLLER,), 40 * SECOND_US))
    assert injection.realised[0].targets == (before,)
    assert [broker for broker, process in cluster.running.items() if process.frozen] == [before]
    world.run(38)
    assert cluster.controller not in (0, before)
    world.run(3)
    assert not cluster.running[before].frozen


def test_controller_pause_needs_a_controller() -> None:
    world = World(scripted=True).ready()
    injection = strike(world, Fault("controller-pause", 0, (CONTROLLER,), 40 * SECOND_US))
    assert [(entry.targets, entry.effective) for entry in injection.realised] == [((0,), False)]
    assert not world.of("pause")
    assert strike(world, Fault("controller-failover", 0, (CONTROLLER,))).effective == 0


def test_the_preferred_replica_is_elected_when_an_operator_asks() -> None:
    world = World(config={"auto.leader.rebalance.enable": False}).ready()
    cluster = world.cluster
    cluster.kill(1)
    world.run(30)
    cluster.start(1)
    world.run(30)
    assert cluster.control.state.leader == 2
    assert strike(world, Fault("preferred-election", 0, (0,))).effective == 1
    assert cluster.control.state.leader == 1


def test_an_operator_gives_the_partition_other_replicas() -> None:
    world = World(brokers=4, config={"default.replication.factor": 3}).ready()
    world.write()
    fault = Fault("reassignment", 0, (0,), replicas=(4, 2, 1))
    assert strike(world, fault).effective == 1
    world.run(30)
    assert world.cluster.replicas == (4, 2, 1)
    assert strike(world, fault).effective == 0
    assert world.logs == [[0], [0], [], [0]]


# Everything.


def test_healing_undoes_every_kind() -> None:
    world = World().ready()
    injection = Injection(world.cluster)
    cluster = world.cluster
    for kind in KINDS:
        injection.strike(sample(KINDS[kind]))
        world.run(1)
        if is_always_undone(kind):
            for broker in cluster.settings:
                cluster.start(broker)
            world.run(30)
    injection.heal()
    assert {entry.kind for entry in injection.realised} == set(KINDS)
    assert all(not process.frozen for process in cluster.running.values())
    for source in (0, 1, 2, 3, PRODUCER):
        for target in (0, 1, 2, 3):
            link = cluster.network.link(source, target)
            assert (link.cuts, link.loss, link.resent, link.table[0]) == (0, 0, 0, 200)
    world.run(60)
    world.write(seconds=60)
    assert set(cluster.running) == {1, 2, 3}
    assert len({tuple(log) for log in world.logs}) == 1
    assert world.logs[0]


# Faults that wait for a step.


def schedule(world: World, *faults: Fault) -> Injection:
    injection = Injection(world.cluster)
    injection.schedule(Plan(faults))
    return injection


def aimed(world: World, moment: str, occurrence: int = 1, after_us: int = 0, target: int = STEP_BROKER) -> Fault:
    """A kill that waits from now on, and for 20 s."""
    now_us = world.cluster.kernel.now_us
    trigger = Trigger(moment, occurrence, after_us, now_us + 20 * SECOND_US)
    return Fault("kill", now_us, (target,), 40 * SECOND_US, trigger=trigger)


def struck(injection: Injection) -> list[tuple[int, int]]:
    return [(entry.targets[0], entry.at_us) for entry in injection.realised]


@pytest.mark.parametrize("occurrence", [1, 2, 3])
def test_a_fault_strikes_at_the_nth_step_on_its_broker(occurrence: int) -> None:
    world = World().ready()
    world.write()
    injection = schedule(world, aimed(world, "append", occurrence))
    world.run(1)
    assert not injection.realised
    world.write()
    append = world.of("append")[2 + occurrence]
    assert append["offset"] == 1
    assert struck(injection) == [(append["broker"], append["t"])]


def test_waiting_fault_strikes_some_time_after_the_step_and_only_once() -> None:
    world = World().ready()
    injection = schedule(world, aimed(world, "ack", after_us=2_500, target=LEADER))
    world.write()
    world.write(seconds=60)
    assert struck(injection) == [(1, world.of("ack")[0]["t"] + 2_500)]


def test_without_its_step_a_fault_strikes_at_the_fallback_time() -> None:
    world = World().ready()
    now_us = world.cluster.kernel.now_us
    injection = schedule(world, aimed(world, "append"))
    world.run(60)
    assert struck(injection) == [(1, now_us + 20 * SECOND_US)]
    assert not world.cluster.recorder.armed


def test_a_late_step_does_not_move_the_strike_beyond_the_fallback_time() -> None:
    world = World().ready()
    now_us = world.cluster.kernel.now_us
    injection = schedule(world, aimed(world, "append", after_us=3 * SECOND_US))
    world.run(18)
    world.write(seconds=10)
    assert struck(injection) == [(world.of("append")[0]["broker"], now_us + 20 * SECOND_US)]


def in_sequence(fault: Fault, until_us: int) -> Fault:
    assert fault.trigger is not None
    return replace(fault, trigger=replace(fault.trigger, sequence=1, until_us=until_us))


def test_a_fault_of_a_sequence_begins_to_wait_when_the_one_before_it_has_struck() -> None:
    world = World().ready()
    until_us = world.cluster.kernel.now_us + 60 * SECOND_US
    faults = [aimed(world, "isr", target=2), aimed(world, "ack", target=3)]
    injection = schedule(world, *(in_sequence(fault, until_us) for fault in faults))
    world.write()
    assert not injection.realised
    world.cluster.kill(1)
    world.run(20)
    shrunk = struck(injection)
    assert [target for target, _ in shrunk] == [2]
    world.write(seconds=20)
    assert struck(injection) == [*shrunk, (3, world.of("ack")[1]["t"])]


def test_without_the_fault_before_it_one_of_a_sequence_waits_from_its_own_time() -> None:
    world = World().ready()
    injection = schedule(world, in_sequence(aimed(world, "ack"), world.cluster.kernel.now_us + 60 * SECOND_US))
    world.write()
    assert len(injection.realised) == 1


def test_a_fault_whose_time_comes_after_the_one_before_it_has_struck_waits_from_then_on() -> None:
    world = World().ready()
    now_us = world.cluster.kernel.now_us
    until_us = now_us + 60 * SECOND_US
    later = replace(aimed(world, "ack", target=3), at_us=now_us + 10 * SECOND_US)
    injection = schedule(world, in_sequence(aimed(world, "ack", target=2), until_us), in_sequence(later, until_us))
    world.write(seconds=1)
    world.write(seconds=1)
    assert [target for target, _ in struck(injection)] == [2]
    world.run(20)
    world.write(seconds=1)
    assert [target for target, _ in struck(injection)] == [2, 3]


MAKES = {
    "append": "write",
    "replicated": "write",
    "commit": "write",
    "hw": "write",
    "acknowledges": "write",
    "ack": "write",
    "read": "write",
    "elected": "kill",
    "lead": "kill",
    "follow": "kill",
    "truncate": "kill",
    "settled": "kill",
    "isr-sent": "rejoin",
    "isr": "kill",
    "joined": "rejoin",
    "registered": "rejoin",
    "session-end": "kill",
    "controller": "kill",
    "message-late": "hold",
    "directory-assigned": "move",
}
"""What is done to a cluster of three whose leader is its controller, so that a moment comes."""


@pytest.mark.parametrize("moment", MOMENTS)
def test_every_moment_is_met_and_observing_it_changes_nothing(moment: str) -> None:
    digests: list[str] = []
    met: list[int] = []
    for watched in (False, True):
        world = (World("elr", config={"sim.log.dirs": 2}) if MAKES[moment] == "move" else World()).ready()
        if watched:
            world.cluster.recorder.arm(moment, met.append)
        if MAKES[moment] == "move":
            assert world.cluster.move_replica(1, world.cluster.name, 0)
        if MAKES[moment] == "hold":
            hold = Fault("message-hold", 0, (1,), SECOND_US, value=NAMES.index("ProduceResponse"))
            Injection(world.cluster).strike(hold)
        world.write()
        if MAKES[moment] in ("kill", "rejoin"):
            world.cluster.kill(1)
            world.run(40)
        if MAKES[moment] == "rejoin":
            met.clear()
            if watched:
                world.cluster.recorder.disarm(moment, met.append)
                world.cluster.recorder.arm(moment, met.append)
            world.cluster.start(1)
            world.run(10)
        digests.append(world.cluster.recorder.digest())
    assert digests[0] == digests[1]
    assert met
    if moment in ("isr-sent", "joined", "registered", "message-late", "directory-assigned"):
        assert met == [1]


def test_a_step_is_over_before_the_fault_strikes() -> None:
    world = World().ready()
    schedule(world, aimed(world, "append"))
    world.write()
    steps = [step["step"] for step in world.steps]
    assert steps[steps.index("append") + 1] == "kill"
    assert world.logs[0] == [0]


@pytest.mark.parametrize(
    ("target", "found"), [(ISR_MEMBER, 2), (OUTSIDER, 3), (LAST_MEMBER, 1), (LEADER, 1), (CONTROLLER, 1)]
)
def test_names_of_targets(target: int, found: int) -> None:
    world = World().ready()
    world.cluster.kill(3)
    world.run(60)
    assert world.cluster.control.state.isr == (1, 2)
    assert strike(world, Fault("session-expiry", 0, (target,))).realised[0].targets == (found,)


def test_names_that_fit_nobody_stand_for_another_replica() -> None:
    world = World().ready()
    assert strike(world, Fault("slow", 0, (OUTSIDER, LEADER), 1, value=1)).realised[0].targets == (2, 1)
    for broker in (2, 3):
        world.cluster.kill(broker)
    world.run(60)
    assert world.cluster.control.state.isr == (1,)
    assert strike(world, Fault("slow", 0, (ISR_MEMBER, LEADER), 1, value=1)).realised[0].targets == (2, 1)


def test_a_fault_may_strike_again_who_was_struck_last() -> None:
    world = World().ready()
    injection = strike(world, Fault("session-expiry", 0, (LAST_TARGET,)))
    injection.strike(Fault("kill", 0, (3,)))
    injection.strike(Fault("kill", 0, (3,)))
    injection.strike(Fault("slow", 0, (2, 0), 1, value=1))
    injection.strike(Fault("disk-stall", 0, (LAST_TARGET,)))
    assert [entry.targets for entry in injection.realised] == [(1,), (3,), (3,), (2, 0), (2,)]


@pytest.mark.parametrize(("kind", "value", "struck"), [("kill", 0, 101), ("file-lost", 1, 1), ("disk-full", 0, 1)])
def test_a_fault_of_brokers_does_not_strike_the_controller_that_was_struck_last(
    kind: str, value: int, struck: int
) -> None:
    world = World("elr-4.3", controllers=3).ready().run(5)
    injection = strike(world, Fault("kill", 0, (101,)))
    injection.strike(Fault(kind, 0, (LAST_TARGET,), value=value))
    assert [entry.targets for entry in injection.realised] == [(101,), (struck,)]


def test_faults_of_controllers_alone_find_nobody_without_a_controller() -> None:
    world = World().ready()
    for broker in (1, 2, 3):
        world.cluster.kill(broker)
    world.run(60)
    assert world.cluster.controller == 0
    assert strike(world, Fault("controller-pause", 0, (CONTROLLER,))).realised[0].targets == (0,)
    assert strike(world, Fault("power-loss", 0, (CONTROLLER,))).realised[0].targets != (0,)


def test_retention_deletes_whole_batches() -> None:
    world = World().ready()
    injection = Injection(world.cluster)
    world.write(count=2)
    world.write(count=2)
    for permille, start in ((400, 0), (600, 2), (1_000, 4)):
        injection.strike(Fault("retention", 0, (1,), value=permille))
        assert world.cluster.machines.storages[1].log.log_start == start


@pytest.mark.parametrize(("mutant", "start"), [("none", 1), ("log-start-above-hw", 2)])
def test_only_with_a_mutant_does_retention_delete_uncommitted_records(mutant: str, start: int) -> None:
    world = World(rules={"mutant": mutant}).ready()
    world.write()
    for follower in (2, 3):
        strike(world, Fault("pause", 0, (follower,)))
    world.write()
    strike(world, Fault("retention", 0, (1,), value=1_000))
    assert world.cluster.machines.storages[1].log.log_start == start


@pytest.mark.parametrize(("deletes", "start"), [("retention", 2), ("record-deletion", 0)])
def test_retention_is_final_but_deleted_records_survive_a_leaders_kill(deletes: str, start: int) -> None:
    world = World().ready()
    for _ in range(4):
        world.write()
    assert strike(world, Fault(deletes, 0, (LEADER,), value=500)).effective == 1
    world.run()
    logs = [world.cluster.machines.storages[broker].log.log_start for broker in (1, 2, 3)]
    world.cluster.kill(1)
    world.cluster.start(1)
    world.run(10)
    assert logs == [2, 2, 2]
    assert world.of("recovered", broker=1)[-1]["log_start"] == start


def test_nothing_strikes_after_the_stop_and_what_struck_ends() -> None:
    world = World().ready()
    injection = strike(world, Fault("kill", 0, (2,), 2 * SECOND_US))
    later = Fault("kill", world.cluster.kernel.now_us + SECOND_US, (3,), SECOND_US)
    delayed = Fault("kill", world.cluster.kernel.now_us, (1, 3), SECOND_US, delays_us=(0, SECOND_US))
    aimed = Fault("kill", 0, (3,), SECOND_US, trigger=Trigger("append", 1, 0, 1_000 * SECOND_US))
    injection.schedule(Plan((later, delayed)))
    injection.strike(aimed)
    world.run(0.1)
    struck = [entry.targets for entry in injection.realised]
    injection.stop()
    world.run(30)
    assert [entry.targets for entry in injection.realised] == struck
    assert sorted(world.cluster.running) == [1, 2, 3]


def test_another_plan_replaces_the_faults_that_have_not_struck() -> None:
    world = World().ready()
    injection = Injection(world.cluster)
    now_us = world.cluster.kernel.now_us
    cut = Fault("cut", now_us + 5, (1, 3), 9)
    staggered = Fault("pause", now_us + 6, (2, 3), 9, (0, 40))
    waits = Fault("kill", now_us + 7, (3,), trigger=Trigger("session-end", 1, 0, now_us + 20))
    injection.schedule(Plan((cut, staggered, waits, Fault("kill", now_us + 19, (2,)))))
    world.cluster.kernel.run_until(now_us + 10)
    added = Fault("kill", now_us + 12, (1,), SECOND_US)
    assert injection.replace(Plan((added,))) == Plan((cut, staggered, added))
    world.run(1)
    assert [(entry.kind, entry.targets) for entry in injection.realised] == [
        ("cut", (1, 3)),
        ("pause", (2,)),
        ("kill", (1,)),
        ("pause", (3,)),
    ]
