"""How far a simulated run had come before each line of its script."""

from __future__ import annotations

from itertools import pairwise

from reports.confirm import comparing
from reports.confirm.acting import changes_of
from reports.confirm.history import State
from reports.confirm.milestones import Milestone, milestones
from scenarios.format.catalogue import load
from scenarios.format.schema import read
from scenarios.single.run import run
from scenarios.single.script import RulesInForce
from sim.protocol.modes import mode

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
    result = run(story, mode("elr"), 0, trace=True)
    assert result.row["expected"]
    return milestones(result, story.script, story.story, {"m1": 0, "m2": 1}, elr=True)


def test_an_end_that_the_story_tells_of_next_is_waited_for_by_what_follows_the_request() -> None:
    assert [one.told for one in found("shutdown", 3)] == [0, 1, 2, 2]


def test_what_comes_after_a_line_is_not_waited_for() -> None:
    assert [one.told for one in found("append", 2)] == [0, 1, 1, 2]


def test_changes_before_a_line_count_and_what_it_brings_about_does_not() -> None:
    scenario = load("last-replica-standing")
    result = run(scenario, mode("elr"), 0, trace=True)
    assert result.trace is not None
    batches = {"m1": 0, "m2": 1, "m3": 2}
    rules = RulesInForce(mode("elr").rules, {})
    script = [line for line in scenario.script if rules.fit(line.rules, None)]
    story = [line for line in scenario.story if rules.fit(line.rules, None)]
    told = [one.changes for one in milestones(result, script, story, batches, elr=True)]
    assert all(before <= after for before, after in pairwise(told))
    times = comparing.times_us(result.trace, script, batches)
    assert times[-1] == comparing.script_end_us(result.trace, script, batches)
    kill = next(place for place, line in enumerate(script) if line.do in ("kill", "power-loss"))
    assert told[kill] < told[-1]


def test_what_comes_at_the_same_moment_is_waited_for_if_it_is_told_of_before_the_line() -> None:
    scenario = load("kip101-scenario-1")
    result = run(scenario, mode("kip279"), 0, trace=True)
    rules = RulesInForce(mode("kip279").rules, {})
    script = [line for line in scenario.script if rules.fit(line.rules, None)]
    story = [line for line in scenario.story if rules.fit(line.rules, None)]
    place = next(number for number, line in enumerate(script) if line.do == "kill" and line.params["broker"] == 2)
    told = milestones(result, script, story, {"m1": 0, "m2": 1}, elr=False)[place].told
    assert [line.pattern.step for line in story[told - 1 : told + 1]] == ["settled", "kill"]


def test_states_of_brokers_are_counted_as_those_of_the_simulation() -> None:
    nobody, first = State(leader=-1, isr=(1, 2)), State(leader=1, leader_epoch=0, isr=(1, 2))
    shrunk = State(leader=1, leader_epoch=0, isr=(1,))
    for states in ([], [nobody], [nobody, first, first, shrunk, nobody, first], [first, shrunk]):
        assert changes_of(states) == len(comparing.real_changes(states, elr=True))
