"""Probes as a contract."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import TYPE_CHECKING

import pytest

from scenarios.format.catalogue import load
from sim.protocol.modes import mode as mode_named
from sim.protocol.probes import PROBES
from tests.verification import probes
from tests.verification.probes import RARE, RUNS, Removal, failures, least, measured, removals, schedule, stored

if TYPE_CHECKING:
    pass

SMALL = 1_000
"""Runs of the small version: 20 s of plain Python."""


def test_the_bound_is_below_what_chance_brings_and_above_nothing() -> None:
    assert [least(number, RUNS) for number in (0, RARE - 1, RARE, 100, 2_000)] == [0, 0, 1, 30, 1_376]
    assert least(2_000, RUNS // 10) == 89  # 200 expected.
    assert least(RARE, RUNS // 2) == 0


def test_a_probe_that_vanishes_or_falls_is_named() -> None:
    expected = {"kraft: often": 2_000, "kraft: rare": 5, "kraft: gone": 100}
    assert failures({"kraft: often": 1_950, "kraft: rare": 0, "kraft: gone": 90, "kraft: new": 1}, expected, RUNS) == []
    assert failures({"kraft: often": 1_300, "kraft: rare": 0}, expected, RUNS) == [
        "kraft: often: 1300 of 3000 runs, expected 2000, at least 1376",
        "kraft: gone: there is no such probe any more",
    ]


def test_each_round_runs_each_scenario_in_the_next_of_its_modes() -> None:
    first = {(scenario.name, seed): mode.name for scenario, mode, seed in islice(schedule(), 100)}
    assert first["chaos", 0] == "hw"
    assert first["chaos", 1] == "kip101"
    assert ("quorum", 0) in first
    assert ("quorum", 1) not in first


def test_the_stored_probes_are_those_of_today() -> None:
    assert stored().keys() <= {*probes.probes()}
    known = {f"{probe.group}: {probe.name}" for probe in PROBES}
    assert len(known) == len(PROBES)


def test_removals_take_away_a_kind_or_a_value() -> None:
    expected = stored()
    drawn = removals(expected, RUNS, Random(1), 20)
    assert drawn == removals(expected, RUNS, Random(1), 20)
    assert len({one.probe for one in drawn}) == 20
    assert all(expected[one.probe] >= RARE for one in drawn)
    power, rolling, hw, kip320 = load("power"), load("rolling"), mode_named("hw"), mode_named("kip320")
    kind = Removal("fault: kill", kind="kill")
    assert kind.scenario(power).without_faults == ("kill",)
    assert kind.rules(power, hw) == {}
    value = Removal("", rule="follower_truncation", value="high-watermark", other="leader-epoch")
    assert value.scenario(power) is power
    assert value.rules(power, hw) == value.rules(rolling, kip320) == {"follower_truncation": "leader-epoch"}
    assert value.rules(power, kip320) == {}


@pytest.mark.world
def test_random_runs_reach_what_they_used_to_reach() -> None:
    assert failures(measured(SMALL), stored(), SMALL) == []
