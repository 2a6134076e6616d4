"""A difference that other timing explains is not one between Kafka and the simulation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from highwater.lab.confirm import comparison
from highwater.lab.confirm.cluster import longer_ms
from highwater.lab.confirm.milestones import Disks
from highwater.lab.confirm.real_run import RealRun
from highwater.lab.confirm.release import Release
from highwater.lab.confirm.request import Confirmation, ConfirmRequest
from scenarios.format.scenario import ScriptLine
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


def told(acted: RealRun, pace: int) -> str:
    """What is said of a real run that differs from the simulation."""
    lines = list(SCENARIO.script)
    force = RulesInForce(MODE.rules, {})
    asked = ConfirmRequest("cut-off.toml", "3.9.0", pace=pace)
    result = simulated()
    found = Confirmation(
        asked, SCENARIO, Release("3.9.0", ()), MODE, {}, force, lines, [], result, Disks(), lambda _: None
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
