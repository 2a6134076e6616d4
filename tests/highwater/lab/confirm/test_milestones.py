"""How far a simulated run had come before each line of its script."""

from __future__ import annotations

from itertools import pairwise

import pytest

from highwater.lab.confirm import comparison
from highwater.lab.confirm.files import Disk
from highwater.lab.confirm.milestones import Disks, Milestone, milestones
from highwater.lab.confirm.partitions import KafkaPartition
from highwater.lab.confirm.simulation import simulate
from scenarios.format.catalogue import load
from scenarios.format.scenario import ScriptLine, StoryLine
from scenarios.format.schema import read
from scenarios.single.run import run
from scenarios.single.script import RulesInForce
from sim.protocol.modes import mode
from tests.places import FIXTURES

STORY = """
schema = 1
name = "three-stop"
title = "A broker stops, and what follows is done when its process has ended"
brokers.count = 3
control = "real"

[config]
default.replication.factor = 3
min.insync.replicas = 2

[[script]]
when = { step = "follow", broker = 3 }
do = "produce"
batch = "m1"

[[script]]
when = { step = "hw", broker = 3, offset = 1 }
after_ms = 1000
do = "controlled-restart"
broker = 3

[[script]]
when = { step = "isr", isr = [1, 2] }
do = "produce"
batch = "m2"

[[script]]
when = { step = "ack", batch = "m2" }
do = "wait"

[[story]]
step = "ack"
batch = "m1"

[[story]]
step = "STEP"
broker = BROKER

[[story]]
step = "ack"
batch = "m2"

[expect]
elr = "clean:committed-loss"
"""


def found(step: str, broker: int) -> list[Milestone]:
    story = read(STORY.replace("STEP", step).replace("BROKER", str(broker)), "the story")
    disks = Disks()
    result = run(story, mode("elr"), 0, trace=True, watch=disks.watch)
    assert result.row["expected"]
    return milestones(result, story.script, story.story, {"m1": 0, "m2": 1}, disks, elr=True)


def test_the_script_waits_for_an_end_that_is_next_in_the_story() -> None:
    assert [milestone.told for milestone in found("shutdown", 3)] == [0, 1, 2, 2]


def test_the_script_waits_for_damage_that_follows_an_end_and_only_for_the_end_that_its_lines_asked_for() -> None:
    _, _, found = of("lost-hw-file", "elr-4.3")
    # m2; the first damage; the restart, and the ISR; the second end and its damage; the fetch of all, and the ISR.
    assert [milestone.told for milestone in found] == [0, 0, 1, 2, 4, 6, 6, 9]


def test_what_comes_after_a_line_is_not_waited_for() -> None:
    assert [milestone.told for milestone in found("append", 2)] == [0, 1, 1, 2]


def test_changes_before_a_line_count_and_what_it_brings_about_does_not() -> None:
    scenario = load("last-replica-standing")
    disks = Disks()
    result = run(scenario, mode("elr"), 0, trace=True, watch=disks.watch)
    assert result.trace is not None
    batches = {"m1": 0, "m2": 1, "m3": 2}
    rules = RulesInForce(mode("elr").rules, {})
    script = [line for line in scenario.script if rules.fit(line.rules, None)]
    story = [line for line in scenario.story if rules.fit(line.rules, None)]
    told = [len(milestone.changes) for milestone in milestones(result, script, story, batches, disks, elr=True)]
    assert all(before <= after for before, after in pairwise(told))
    times = comparison.times_us(result.trace, script, batches)
    assert times[-1] == comparison.script_end_us(result.trace, script, batches)
    kill = next(place for place, line in enumerate(script) if line.do in ("kill", "power-loss"))
    assert told[kill] < told[-1]


def test_acknowledgements_before_a_line_are_waited_for() -> None:
    script, _, found = of("kip101-scenario-1", "kip279")
    acked = [sorted(milestone.acked) for milestone in found]
    assert acked == sorted(acked)
    second = next(place for place, line in enumerate(script) if line.params.get("batch") == "m2")
    assert (acked[second], acked[-1]) == ([0], [0, 1])


def test_simultaneous_steps_before_the_line_are_waited_for() -> None:
    _, story, found = of("kip101-scenario-1", "kip279")
    told = found[-2].told
    assert [line.pattern.step for line in story[told - 1 : told + 1]] == ["settled", "kill"]


def test_a_stall_ends_as_long_after_the_last_change_before_that_as_simulated() -> None:
    script, _, found = of("forgotten-expansion", "elr-4.3")
    (stall,) = (milestone for line, milestone in zip(script, found, strict=True) if line.do == "disk-stall")
    changes, lasted_us = stall.over
    assert changes == 2  # The leader's first change, and that of the ISR without the stalled follower.
    assert 13_000_000 < lasted_us < 14_000_000
    assert {milestone.over for line, milestone in zip(script, found, strict=True) if line.do != "disk-stall"} == {
        (0, 0)
    }


def test_disks_are_those_of_the_moment() -> None:
    """Broker 1 restarts with HW 1 in its file, truncates m2, and broker 2 is killed before its own file says HW 2."""
    script, _, found = of("kip101-scenario-1", "hw")
    assert [line.do for line in script] == ["elect", "produce", "produce", "kill", "start", "kill", "elect"]
    third, kill_1, start, kill_2, elect = found[2:]
    assert third.disks == {1: Disk(1, 1), 2: Disk(1, 1)}
    assert (kill_1.disks, kill_1.left, kill_1.ended) == (
        {1: Disk(2, 1), 2: Disk(2, 1)},
        {1: Disk(2, 1), 2: Disk(2, 1)},
        [1],
    )
    assert start.disks == {2: Disk(2, 1)}
    assert kill_2.disks == {1: Disk(1), 2: Disk(2, 1)}
    assert (kill_2.left[2], kill_2.ended) == (Disk(2, 1), [2])
    assert elect.disks == {1: Disk(1)}


@pytest.mark.parametrize(("name", "to_hw"), [("kip279", (1,)), ("kip320", ())])
def test_brokers_that_go_back_to_their_hw_files_are_known(name: str, to_hw: tuple[int, ...]) -> None:
    """Broker 1, whose leader has no answer before 2.0.1."""
    script, _, found = of("stale-log-start", name)
    assert [tuple(milestone.to_hw) for line, milestone in zip(script, found, strict=True) if line.do == "kill"] == [
        to_hw,
        (),
    ]


def test_hw_files_of_brokers_that_live_on_are_not_waited_for() -> None:
    """In kafka-2334 broker 1 alone is killed, before its file says anything."""
    scenario = load("kafka-2334")
    disks = Disks()
    result = run(scenario, mode("hw"), 0, trace=True, watch=disks.watch)
    last = milestones(result, scenario.script, scenario.story, {"m1": 0, "m2": 1}, disks, elr=False)[-1]
    end_us = comparison.script_end_us(result.trace or [], scenario.script, {"m1": 0, "m2": 1})
    assert disks.before(end_us)[2].hw > 0
    assert last.disks[2] == Disk(2)


@pytest.mark.parametrize(("name", "registers_loaded"), [("kip320", True), ("kraft", False)])
def test_who_lost_power_is_not_waited_for_until_its_log_is_loaded(name: str, *, registers_loaded: bool) -> None:
    """In the simulation its disk holds until then what was lost with the page cache."""
    script, _, found = of("kip841", name)
    place = next(number for number, line in enumerate(script) if line.do == "power-loss")
    assert [line.do for line in script[place:]] == ["power-loss", "cut", "start", "kill", "wait"]
    assert [2 in milestone.disks for milestone in found[place - 1 : place + 4]] == [
        True,
        True,
        False,
        False,
        registers_loaded,
    ]


def test_a_run_that_is_followed_is_the_same_run() -> None:
    digests = [
        run(load("kip101-scenario-2"), mode("hw"), 0, trace=True, watch=watch).row["digest"]
        for watch in (None, Disks().watch)
    ]
    assert digests[0] == digests[1]


def of(scenario_name: str, mode_name: str) -> tuple[list[ScriptLine], list[StoryLine], list[Milestone]]:
    scenario = load(scenario_name)
    disks = Disks()
    result = run(scenario, mode(mode_name), 0, trace=True, watch=disks.watch)
    rules = RulesInForce(mode(mode_name).rules, {})
    script = [line for line in scenario.script if rules.fit(line.rules, None)]
    story = [line for line in scenario.story if rules.fit(line.rules, None)]
    return script, story, milestones(result, script, story, {"m1": 0, "m2": 1}, disks, elr=False)


def test_each_partition_has_its_milestones() -> None:
    """Its states and disks; acknowledgements are those of all."""
    text = (FIXTURES / "partitions" / "second-partition-loses.toml").read_text(encoding="utf-8")
    scenario = read(text, "second-partition-loses.toml")
    disks = {name: Disks(name) for name in ("orders-0", "orders-1")}
    mode_in_force = mode("elr-4.3")
    result, further = simulate(scenario, mode_in_force, 0, {}, lambda cluster, name: disks[name].watch(cluster, name))
    batches = {"o1": 0, "p1": 1, "o2": 2, "p2": 3, "p3": 4}
    parts = {"orders-1": (further["orders-1"], disks["orders-1"])}
    told = milestones(result, scenario.script, scenario.story, batches, disks["orders-0"], elr=True, further=parts)
    (power_loss,) = (found for line, found in zip(scenario.script, told, strict=True) if line.do == "power-loss")
    other = power_loss.further["orders-1"]
    assert [power_loss.changes[-1].to_text(), other.changes[-1].to_text()] == [
        "leader 1 epoch 0 ISR 1 ELR - last known -",
        "leader 2 epoch 0 ISR 2 ELR - last known -",
    ]
    assert [power_loss.disks[1].leo, power_loss.disks[2].leo] == [2, 1]
    assert [other.disks[1].leo, other.disks[2].leo] == [1, 2]
    assert power_loss.acked == {0, 1, 2, 3}
    assert power_loss.of(KafkaPartition("orders-1", 1)) is other
    assert power_loss.of(KafkaPartition("orders-0")) is power_loss
