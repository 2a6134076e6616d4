"""Rows that are taken over from a run in another mode; `make hunt-reuse` compares many of them with those of runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from scenarios.format.catalogue import load
from scenarios.format.scenario import Expectation
from scenarios.single.ended_run import EndedRun
from scenarios.single.execution import Execution
from scenarios.single.reuse import is_alike, promise_alike, taken_over
from scenarios.single.rows import row as row_of
from scenarios.single.run import run_modes, run_row
from sim.protocol.modes import MODES, Mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scenarios.format.scenario import Scenario
    from scenarios.single.rows import Row

POWER: Final = load("power")
KIP320: Final = MODES["kip320"]
LATER: Final = MODES["kip320-2.6.1"]
SEED: Final = 0
"""A seed of `power` that loses records in both modes."""


def changed(mode: Mode, **values: str) -> Mode:
    return replace(mode.override(values), name="mine", release="none", follows="4.3", source="mine.toml")


def columns(rows: Sequence[Row]) -> set[str]:
    one, other = rows
    return {name for name in one if one[name] != other[name]}


def alike(scenario: Scenario, row: Row, other: Mode, mode: Mode = KIP320) -> bool:
    return is_alike(scenario, row, mode, other, {})


def test_a_mode_with_the_same_history_takes_the_row_over() -> None:
    rows = list(run_modes(POWER, (KIP320, LATER), SEED))
    assert [row["reused"] for row in rows] == ["", "kip320"]
    assert columns((rows[1], run_row(POWER, LATER, SEED))) == {"reused"}
    assert "--mode kip320-2.6.1 " in rows[1]["replay"]


def test_a_mode_with_another_history_runs() -> None:
    rows = list(run_modes(POWER, (MODES["kip101"], KIP320), SEED))
    assert [row["reused"] for row in rows] == ["", ""]
    assert "digest" in columns(rows)


def test_a_row_of_several_partitions_is_taken_over() -> None:
    modes = MODES["elr"], MODES["elr-4.3"]
    rows = list(run_modes(load("disks"), modes, 16))
    assert [(row["reused"], row["violated_partitions"]) for row in rows] == [("", "audit-0"), ("elr", "audit-0")]
    assert columns((rows[1], run_row(load("disks"), modes[1], 16))) == {"reused"}


@pytest.mark.parametrize("seed", [0, 16])
@pytest.mark.parametrize("promise", ["kraft", "elr-4.3", "hw"])
def test_another_promise_judges_each_partition(seed: int, promise: str) -> None:
    promised = MODES[promise].promise
    runs = [
        Execution(load("disks"), mode, seed, {}, None)
        for mode in (MODES["elr"], replace(MODES["elr"], promise=promised))
    ]
    for ran in runs:
        ran.execute()
    judged = runs[0].judged_by(promised)
    row = row_of(EndedRun(runs[1], ""))
    assert (judged.inside, judged.inside_unclean, judged.inside_lossy) == (
        row["inside"],
        row["inside_unclean"],
        row["inside_lossy"],
    )
    assert ",".join(sorted(judged.kinds)) == row["violations_inside"]


def test_without_reuse_every_mode_runs() -> None:
    taken, ran = (list(run_modes(POWER, (KIP320, LATER), SEED, reuses=reuses)) for reuses in (True, False))
    assert [row["reused"] for row in ran] == ["", ""]
    assert taken[0] == ran[0]
    assert columns((taken[1], ran[1])) == {"reused"}


def test_another_promise_judges_the_run_anew() -> None:
    mine = changed(KIP320, hw_needs_min_isr="yes")
    assert not promise_alike(KIP320, mine, {})
    scenario = replace(POWER, config={**POWER.config, "min.insync.replicas": 1}, draw_config={})
    found = [
        (row, run_row(scenario, mine, seed))
        for seed in range(12)
        for row in run_modes(scenario, (KIP320, mine), seed)
        if row["reused"]
    ]
    assert found
    assert all(columns(pair) == {"reused"} for pair in found)


def test_what_a_scenario_expects_of_the_other_mode_counts() -> None:
    expect = {"kip320": Expectation("may-violate"), LATER.name: Expectation("clean")}
    scenario = replace(POWER, expect=expect)
    for seed in range(8):
        row, other = run_modes(scenario, (KIP320, LATER), seed)
        assert row["expected"]
        assert other["expected"] == (not other["violations_inside"])


def test_scripts_errors_and_mutants_are_run() -> None:
    row = run_row(POWER, KIP320, SEED)
    assert alike(POWER, row, LATER)
    assert not alike(POWER, {**row, "verdict": "error"}, LATER)
    assert not alike(POWER, row, changed(KIP320, mutant="join-below-hw"))
    canary = load("canary")
    assert not alike(canary, run_row(canary, KIP320, 0), LATER)


def test_a_value_that_would_have_acted_differently_is_run() -> None:
    row = run_row(POWER, KIP320, SEED)
    assert not alike(POWER, row, changed(KIP320, follower_truncation="high-watermark"))
    assert not alike(POWER, row, MODES["kraft"])


def test_a_broker_with_the_rules_of_one_mode_only_is_run() -> None:
    """It shares its decisions with the others in that mode, and has its own in the other mode."""
    row = run_row(POWER, KIP320, SEED)
    assert alike(replace(POWER, broker_modes={2: "kip279"}), row, LATER)
    assert not alike(replace(POWER, broker_modes={2: "kip320"}), row, LATER)
    assert not alike(replace(POWER, broker_modes={2: LATER.name}), row, LATER)


def test_versions_before_an_upgrade_have_to_be_the_same() -> None:
    rolling = load("rolling")
    row = run_row(rolling, KIP320, 1)
    mine = replace(KIP320, name="mine", release="none", follows="2.6")
    assert alike(rolling, row, mine)
    assert not alike(rolling, row, replace(mine, follows="0.11"))


def test_another_setting_of_unclean_election_is_run() -> None:
    """Whether `unclean.leader.election.enable` breaks the promise depends on the rule if there is a strategy."""
    elr = MODES["elr"]
    scenario = load("elr-chaos")
    mine = changed(elr, unclean_recovery="log-inspection")
    row = next(row for seed in range(40) if is_alike(scenario, row := run_row(scenario, elr, seed), elr, mine, {}))
    strategy = replace(scenario, config={**scenario.config, "unclean.recovery.strategy": "Balanced"})
    assert not is_alike(strategy, row, elr, mine, {})


@pytest.mark.parametrize("blows", [0, 2])
def test_rows_with_blows_are_taken_over_one_by_one(blows: int) -> None:
    scenario = load("reassignments")
    modes = MODES["elr-4.3"], changed(MODES["elr-4.3"], equal_partition_epoch="keeps-pending-isr")
    taken, ran = (
        [row for seed in range(20, 26) for row in run_modes(scenario, modes, seed, None, blows, reuses=reuses)]
        for reuses in (True, False)
    )
    assert [{**row, "reused": ""} for row in taken] == ran
    assert any(row["reused"] for row in taken)
    if blows:
        assert any(row["reused"] and row["blow"] for row in taken)


def test_the_first_run_of_a_row_is_named() -> None:
    row = run_row(POWER, KIP320, SEED)
    once = taken_over(POWER, row, KIP320, LATER, {}, None)
    again = taken_over(POWER, once, LATER, KIP320, {}, None)
    assert (once["reused"], again["reused"]) == ("kip320", "kip320")
    assert columns((row, again)) == {"reused"}
