"""Scripted scenarios against `expectations.toml`, which was given and is not to be tuned."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import pytest

from scenarios.format.catalogue import load, names
from sim.protocol.modes import MODES
from sim.protocol.rules import RULES
from tests.golden import TO_KEEP, stored, text_of
from tests.named import run, run_row

GIVEN: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("expectations.toml").read_text(encoding="utf-8")
)
VERDICTS: Final = {"violates": ("violates",), "clean": ("clean",), "derive": ("violates", "clean")}
SCRIPTED: Final = {name: load(name) for name in names() if not load(name).drawn}
SWITCHED: Final = re.compile(r"^([\w.-]+) with (\w+) off$")
"""A mode with one rule at the value that it had before."""
OFF: Final = {"hw_needs_min_isr": "no"}
VARIANTS: Final = [
    (name, found[1], found[2])
    for name, row in GIVEN.items()
    for given, verdicts in VERDICTS.items()
    for cell in row.get(given, ())
    if (found := SWITCHED.match(cell)) and verdicts == ("violates",)
]
"""Cells of such modes: row, mode, rule."""
CELLS: Final = [(name, mode) for name, scenario in SCRIPTED.items() for mode in scenario.expect]
BROKEN: Final = [(name, mode) for name, scenario in SCRIPTED.items() for mode in scenario.broken_by]
SEEDS: Final = range(2)
WITHOUT_RULE: Final = {"jepsen-2013-clean"}
"""Scenarios whose clean modes no rule can break: there a setting makes the difference."""


def occurs(name: str, mode: str, seed: int, rules: dict[str, str]) -> bool:
    """Whether a kind under test occurs in a story that happens."""
    row = run_row(SCRIPTED[name], mode, seed, rules)
    assert row["error"] == ""
    return not set(SCRIPTED[name].expect[mode].kinds).isdisjoint(row["violations"].split(","))


def test_every_cell_is_of_a_mode_that_exists() -> None:
    cells = [cell for row in GIVEN.values() for given in VERDICTS for cell in row.get(given, ())]
    unknown = {cell for cell in cells if cell not in MODES}
    assert unknown == {f"{mode} with {rule} off" for _, mode, rule in VARIANTS}


@pytest.mark.parametrize("name", GIVEN)
def test_a_scenario_expects_what_is_given(name: str) -> None:
    row, scenario = GIVEN[name], SCRIPTED[name]
    assert (scenario.control == "scripted") == (row["control"] == "textbook")
    for given, verdicts in VERDICTS.items():
        for mode in set(row.get(given, ())) & MODES.keys():
            expectation = scenario.expect[mode]
            assert expectation.verdict in verdicts, mode
            assert set(expectation.kinds) <= set(row["kind"].split("|"))


@pytest.mark.parametrize("name", SCRIPTED)
def test_a_scenario_tells_a_story(name: str) -> None:
    assert SCRIPTED[name].story
    assert SCRIPTED[name].description


@pytest.fixture(scope="module")
def digests() -> dict[str, str]:
    return stored()


@pytest.mark.parametrize(("name", "mode"), CELLS)
def test_a_story_happens_and_ends_as_expected(name: str, mode: str, digests: dict[str, str]) -> None:
    """It is also the one that it was: its digest is the one that is kept."""
    for seed in SEEDS:
        result = run(SCRIPTED[name], mode, seed)
        assert result.row["error"] == "", seed
        assert result.row["expected"], (seed, result.violations)
        assert digests[text_of((name, mode, seed))] == result.row["digest"], TO_KEEP


@pytest.mark.parametrize("name", sorted(GIVEN.keys() - WITHOUT_RULE))
def test_repairs_of_each_clean_mode_are_known(name: str) -> None:
    scenario = SCRIPTED[name]
    clean = {mode for mode in GIVEN[name].get("clean", ()) if mode in MODES}
    assert clean <= scenario.broken_by.keys()
    for mode, rules in scenario.broken_by.items():
        assert scenario.expect[mode].verdict == "clean"
        assert rules
        for rule, value in rules.items():
            assert value in RULES[rule].values
            assert value != getattr(MODES[mode].rules, rule)


@pytest.mark.parametrize(("name", "mode"), BROKEN)
def test_kind_occurs_without_the_repairing_rule(name: str, mode: str) -> None:
    rules = dict(SCRIPTED[name].broken_by[mode])
    for seed in SEEDS:
        assert occurs(name, mode, seed, rules), seed


@pytest.mark.parametrize(("name", "mode"), [cell for cell in BROKEN if len(SCRIPTED[cell[0]].broken_by[cell[1]]) > 1])
def test_rules_that_shield_one_another_are_needed_together(name: str, mode: str) -> None:
    rules = SCRIPTED[name].broken_by[mode].items()
    for fewer in combinations(rules, len(rules) - 1):
        assert not occurs(name, mode, 1, dict(fewer)), fewer


@pytest.mark.parametrize(("name", "mode", "rule"), VARIANTS)
def test_a_mode_with_a_rule_switched_off_violates(name: str, mode: str, rule: str) -> None:
    for seed in SEEDS:
        assert occurs(name, mode, seed, {rule: OFF[rule]}), seed


# What else the texts say.


@pytest.mark.parametrize("mode", ["hw", "kip101", "kip279"])
def test_any_look_at_a_missed_epoch_repairs_kafka_7164(mode: str) -> None:
    for value in ("epoch-missed", "newer-epoch"):
        assert not occurs("kafka-7164", mode, 1, {"fetcher_restart": value})


def test_delayed_truncation_repairs_only_one_scenario_of_kip101() -> None:
    delayed = {"follower_truncation": "high-watermark-delayed"}
    for seed in SEEDS:
        assert not occurs("kip101-scenario-1", "hw", seed, delayed)
        assert occurs("kip101-scenario-2", "hw", seed, delayed)


@pytest.mark.parametrize("mode", ["hw", "kip101", "kip279", "kip320"])
def test_an_epoch_per_registration_repairs_a_returning_leader(mode: str) -> None:
    """HW truncation does not look at them (ReplicaManager.makeFollowers 0.10.2: logManager.truncateTo(HW))."""
    assert occurs("returning-leader", mode, 1, {"registration_epoch": "bumped"}) == (mode == "hw")


def test_2_0_0_stays_at_the_first_round_without_a_second_answer() -> None:
    """Whatever the high watermark is: only HW truncation depends on it."""
    scenario = SCRIPTED["kip279-scenario-3"]
    written = replace(scenario, config={**scenario.config, "replica.high.watermark.checkpoint.interval.ms": 100})
    kinds = {mode: {found["kind"] for found in run(written, mode, 1).violations} for mode in scenario.expect}
    assert [mode for mode in kinds if "divergence" in kinds[mode]] == ["hw", "kip101", "kip279"]
    assert all(scenario.expect[mode].verdict == "violates" for mode in ("kip101", "kip279"))
