from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from scenarios.format.blow import Blow, parse
from scenarios.format.catalogue import load
from scenarios.shrinking.case import Case
from scenarios.single import recording
from scenarios.single.rows import STORY_ERROR, Row
from scenarios.single.run import SECOND_EVERY, run, run_blows, run_row
from sim.protocol.modes import mode

SCENARIO: Final = load("reassignments")
MODE: Final = mode("elr-4.3")
WARNS: Final = 23
"""A seed with early warnings inside the promise."""
SEVERAL: Final = 90_000_562
"""A seed of elr-chaos with early warnings of two partitions."""


def blown(text: str) -> Any:
    return replace(SCENARIO, blows=parse(text))


def first_warning(seed: int = WARNS) -> Blow:
    warning = run(SCENARIO, MODE, seed).warnings[0]
    return Blow(warning["kind"], warning["at_us"], 0)


@pytest.mark.parametrize("variant", [0, 1, 9])
def test_history_is_the_same_up_to_the_warning_and_no_longer(variant: int) -> None:
    warning = first_warning()
    plain = run(SCENARIO, MODE, WARNS, trace=True).trace or []
    other = run(blown(f"{warning.warning}@{warning.at_us}.{variant}"), MODE, WARNS, trace=True).trace or []
    before = [step for step in plain if step["t"] <= warning.at_us]
    assert [step for step in other if step["t"] <= warning.at_us] == before
    assert other[len(before) :] != plain[len(before) :]


def test_a_run_with_a_blow_is_deterministic_and_each_variant_is_another() -> None:
    warning = first_warning()
    texts = [f"{warning.warning}@{warning.at_us}.{variant}" for variant in range(4)]
    digests = [run_row(blown(text), MODE, WARNS)["digest"] for text in texts]
    assert digests == [run_row(blown(text), MODE, WARNS)["digest"] for text in texts]
    assert len({*digests, run_row(SCENARIO, MODE, WARNS)["digest"]}) == 5


def test_warnings_of_several_partitions_are_followed_in_order_of_time() -> None:
    scenario, repaired = load("elr-chaos"), mode("elr-repaired")
    times = [warning["at_us"] for warning in run(scenario, repaired, SEVERAL).warnings]
    assert times != sorted(times), "they are listed partition by partition"
    assert [row["verdict"] for row in run_blows(scenario, repaired, SEVERAL, blows=1)].count("error") == 0


@pytest.mark.parametrize("ties", ["fifo", "random", "pct"])
def test_history_up_to_the_warning_does_not_depend_on_ties(ties: str) -> None:
    scenario = SCENARIO.with_settings({"sim.ties": ties})
    for seed in range(60):
        plain = run(scenario, MODE, seed, trace=True)
        if plain.warnings and plain.warnings[0]["at_us"] < 290_000_000:
            warning = plain.warnings[0]
            break
    blows = (Blow(warning["kind"], warning["at_us"], 2),)
    other = run(replace(scenario, blows=blows), MODE, seed, trace=True)
    until = [[step for step in result.trace or [] if step["t"] <= warning["at_us"]] for result in (plain, other)]
    assert until[0] == until[1]
    assert not other.row["error"]


def test_only_batches_and_faults_after_the_warning_are_replaced() -> None:
    warning = first_warning()
    plain, other = run(SCENARIO, MODE, WARNS), run(blown(str(warning)), MODE, WARNS)
    before = [send for send in plain.sends if send[3] <= warning.at_us]
    assert other.sends[: len(before)] == before
    assert other.sends[len(before)][3] > warning.at_us
    assert [fault for fault in other.faults if fault["at_us"] <= warning.at_us] == [
        fault for fault in plain.faults if fault["at_us"] <= warning.at_us
    ]
    assert other.horizon_us is not None
    assert all(send[3] < other.horizon_us for send in other.sends)
    assert other.row["faults"] > 0


def test_a_recording_of_it_is_a_run_without_blows_and_with_its_digest() -> None:
    equal = 0
    warning = first_warning()
    for variant in range(40):
        result = run(blown(f"{warning.warning}@{warning.at_us}.{variant}"), MODE, WARNS)
        found = recording.of_run(SCENARIO, result)
        assert not found.scenario.blows
        row = Case(found.scenario, MODE, WARNS).row()
        equal += row["digest"] == result.row["digest"]
        assert row["violations"] == result.row["violations"]
    assert equal == 40


def test_a_warning_that_the_run_does_not_raise_is_an_error() -> None:
    row = run_row(blown("global-loss@1000000.0"), MODE, WARNS)
    assert row["verdict"] == "error"
    assert row["error"].startswith(f"{STORY_ERROR}there is no early warning global-loss at 1000000 us")


def test_rows_are_those_of_the_runs_that_they_name() -> None:
    rows = list(run_blows(SCENARIO, MODE, WARNS, blows=SECOND_EVERY))
    assert rows[0] == run_row(SCENARIO, MODE, WARNS)
    texts = [row["blow"] for row in rows[1:]]
    assert len(texts) == len(set(texts)) >= SECOND_EVERY
    assert any("+" in text for text in texts)
    for row in rows[1::3]:
        assert row == run_row(blown(row["blow"]), MODE, WARNS)
        assert (row["warning"], row["warning_us"], row["variant"]) == as_columns(row)


def as_columns(row: Row) -> tuple[str, int, int]:
    last = parse(row["blow"])[-1]
    return last.warning, last.at_us, last.variant


def test_runs_without_warnings_have_no_blows() -> None:
    quiet = next(seed for seed in range(20) if not run(SCENARIO, MODE, seed).warnings)
    assert len(list(run_blows(SCENARIO, MODE, quiet, blows=3))) == 1
    assert len(list(run_blows(SCENARIO, MODE, WARNS))) == 1
