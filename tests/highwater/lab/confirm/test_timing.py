"""A difference that other timing explains is not one between Kafka and the simulation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from highwater.lab.confirm import comparison
from highwater.lab.confirm.cluster import longer_ms
from highwater.lab.confirm.milestones import Disks
from highwater.lab.confirm.real_run import RealRun
from highwater.lab.confirm.release import InstalledRelease
from highwater.lab.confirm.request import Confirmation, ConfirmRequest, as_late
from scenarios.format.scenario import Pattern, Scenario, ScriptLine
from scenarios.format.schema import read
from scenarios.single.result import RunResult
from scenarios.single.run import run
from scenarios.single.script import RulesInForce
from sim.config import resolve
from sim.protocol.modes import MODES
from tests.highwater.lab.confirm.test_comparison import as_acted

MODE = MODES["kraft"]
BATCHES = {"m1": 0}
SCRIPT = """
schema = 1
name = "cut-off"
title = "A broker is cut off from the controller for longer than a session, and less than one that brokers can keep"
description = "A test."
brokers.count = 3
control = "real"
config.default.replication.factor = 3

[[script]]
when = { step = "follow", broker = 3 }
do = "produce"
batch = "m1"

[[script]]
do = "cut"
from = 3
to = "control"
for_ms = 10000
after_ms = 5000

[[script]]
do = "wait"
after_ms = 30000

[expect]
kraft = "may-violate"
"""
SCENARIO = read(SCRIPT, "cut-off.toml")


def simulated(**settings: int) -> RunResult:
    scenario = SCENARIO.with_settings({key.replace("_", "."): value for key, value in settings.items()})
    return run(scenario, MODE, 0, trace=True)


def told(acted: RealRun, pace: int, scenario: Scenario = SCENARIO) -> str:
    """What is said of a real run that differs from the simulation."""
    lines = list(scenario.script)
    force = RulesInForce(MODE.rules, {})
    asked = ConfirmRequest("cut-off.toml", "3.9.0", pace=pace)
    result = run(scenario, MODE, 0, trace=True)
    found = Confirmation(
        asked, scenario, InstalledRelease("3.9.0", ()), MODE, {}, force, lines, [], result, Disks(), lambda _: None
    )
    rows = comparison.compare(result, acted, lines, elr=False, epochs=True)
    assert not all(row.agrees for row in rows)
    return found._timing(rows, acted, pace, elr=False, epochs=True)


def test_brokers_keep_no_session_below_their_floor() -> None:
    config = resolve({}, SCENARIO.config)
    assert longer_ms(config, 3) == {}
    assert longer_ms(config, 4) == {"broker.session.timeout.ms": 12_000}
    assert longer_ms(config, 6)["broker.session.timeout.ms"] == 18_000
    assert "broker.session.timeout.ms" not in longer_ms({**config, "broker.session.timeout.ms": 2_000}, 4)


@pytest.mark.parametrize(("pace", "explains"), [(10, True), (3, False)])
def test_a_session_that_brokers_cannot_keep_explains_a_difference(pace: int, explains: bool) -> None:
    acted = as_acted(simulated(broker_session_timeout_ms=30_000), "kraft", SCENARIO.script, BATCHES)
    text = told(acted, pace)
    assert ("broker.session.timeout.ms=30000" in text and text.endswith("does what the brokers did")) == explains
    assert bool(text) == explains


def test_other_records_are_a_difference_whatever_the_timing() -> None:
    acted = as_acted(simulated(), "kraft", SCENARIO.script, BATCHES)
    log = acted.final[2].batches
    log[0] = replace(log[0], first_id=7)
    assert told(acted, 5) == ""


def script(held_us: int) -> list[ScriptLine]:
    """Broker 1 returns within its session, before whose end it cannot register; then broker 2 is killed."""
    return [
        SCENARIO.script[0],
        ScriptLine("kill", after_us=5_000_000, params={"broker": 1}),
        ScriptLine("start", after_us=held_us, params={"broker": 1}),
        ScriptLine("kill", after_us=8_000_000, params={"broker": 2}),
        ScriptLine("wait", after_us=20_000_000),
    ]


HELD_S = (0.0, 0.0, 0.0, 0.6, 0.0)
"""At pace 5, 3 s of the scenario, in which the session of broker 1 ends."""


@pytest.mark.parametrize(("held_s", "explains"), [(HELD_S, True), ((0.0,) * 5, False), (HELD_S[::-1], False)])
def test_a_session_goes_on_while_the_clock_of_the_script_stands_still(
    held_s: tuple[float, ...], explains: bool
) -> None:
    scenario, later = (replace(SCENARIO, script=tuple(script(us))) for us in (0, 3_000_000))
    acted = as_acted(run(later, MODE, 0, trace=True), "kraft", later.script, BATCHES)
    acted.held_s = list(held_s)
    text = told(acted, 5, scenario)
    assert ("at which brokers performed them" in text) == explains
    assert bool(text) == explains


def test_a_broker_that_starts_late_comes_behind_what_was_done_meanwhile() -> None:
    seen = Pattern("follow", broker=3)
    start, cut = ScriptLine("start", seen, 5, {"broker": 1}), ScriptLine("cut", None, 0, {"from": 1, "to": 2})
    wait, kill = ScriptLine("wait", None, 7), ScriptLine("kill", None, 0, {"broker": 1})
    assert as_late([wait, kill], [3, 0]) == [replace(wait, after_us=10), kill]
    assert as_late([kill, start, wait, kill], [0, 0, 3, 0]) == [kill, replace(start, after_us=8), wait, kill]
    assert as_late([start, cut, kill, wait], [0, 0, 0, 3]) == [
        replace(cut, when=seen, after_us=5), kill, replace(start, when=None, after_us=3), wait
    ]  # fmt: skip
    assert as_late([start, wait, kill, wait], [0, 0, 0, 3])[-1] == replace(wait, after_us=10)
    assert as_late([start, wait], [0]) == [start, wait]


def test_a_clock_that_stood_still_explains_no_other_difference() -> None:
    scenario, later = (replace(SCENARIO, script=tuple(script(us))) for us in (0, 3_000_000))
    acted = as_acted(run(later, MODE, 0, trace=True), "kraft", later.script, BATCHES)
    acted.held_s = list(HELD_S)
    acted.final[1].batches[0] = replace(acted.final[1].batches[0], first_id=7)
    assert told(acted, 5, scenario) == ""


def test_brokers_that_come_further_by_the_end_do_not_differ() -> None:
    """In the shorter script, the session of a killed broker ends after the script does."""
    begin, _, wait = SCENARIO.script
    kill = ScriptLine("kill", after_us=5_000_000, params={"broker": 3})
    shorter, longer = ([begin, kill, replace(wait, after_us=after_us)] for after_us in (1_000_000, 20_000_000))
    result, other = (run(replace(SCENARIO, script=tuple(lines)), MODE, 0, trace=True) for lines in (shorter, longer))
    end_us = comparison.script_end_us(result.trace or (), shorter, BATCHES)
    acted = as_acted(other, "kraft", longer, BATCHES)
    assert [state.isr for state in acted.states] == [(1, 2, 3), (1, 2)]
    assert comparison.is_ahead(result, acted, end_us, elr=False)
    assert not comparison.is_ahead(result, replace(acted, states=acted.states[:1]), end_us, elr=False)
    stray = replace(acted.states[1], isr=(1, 3))
    assert not comparison.is_ahead(result, replace(acted, states=[acted.states[0], stray]), end_us, elr=False)
