from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from scenarios.shrinking.criterion import Criterion, OutOfTimeError, Trials, symptom
from scenarios.shrinking.shrink import ShrunkCase, shrink
from scenarios.single import recording
from tests.scenarios.shrinking.failing import failing

if TYPE_CHECKING:
    from pathlib import Path

    from scenarios.shrinking.case import Case

FAILURES = [
    ("power", "kip101", 50_000, "committed-loss"),
    ("sessions", "kip320", 50_000, "committed-loss"),
    ("elr-chaos", "elr", 50_000, "committed-loss"),
]


def shrunk(case: Case, kind: str) -> ShrunkCase:
    trials = Trials()
    return shrink(case, symptom(trials.row(case), kind), trials)


@cache
def small(scenario: str, mode: str, first: int, kind: str) -> ShrunkCase:
    return shrunk(failing(scenario, mode, first, kind), kind)


@pytest.mark.world
def test_a_real_cluster_stays_as_it_is(tmp_path: Path) -> None:
    case = failing("power", "kip101", 50_000, "committed-loss").keeping_cluster()
    file = tmp_path / "plan.json"
    file.write_text(recording.to_text(recording.to_json(case.scenario, case.run())))
    read = recording.read(file).scenario
    found = shrunk(replace(case, scenario=read), "committed-loss")
    assert found.after.faults < found.before.faults
    assert found.case.scenario.config == case.scenario.config
    assert found.case.scenario.brokers == case.scenario.brokers
    smaller = small("power", "kip101", 50_000, "committed-loss").case.scenario
    assert smaller.brokers < case.scenario.brokers
    assert smaller.config["default.replication.factor"] == 2


@pytest.mark.world
@pytest.mark.parametrize(("scenario", "mode", "first", "kind"), FAILURES)
def test_a_failure_becomes_small_and_stays_what_it_is(
    scenario: str, mode: str, first: int, kind: str, tmp_path: Path
) -> None:
    case = failing(scenario, mode, first, kind)
    found = small(scenario, mode, first, kind)
    assert found.whole
    assert found.symptom.shown_by(found.case.row())
    trials = Trials()
    criterion = Criterion(trials, case, found.symptom)
    assert found.cause == criterion.cause == criterion.cause_of(found.case)
    # Small, and 1-minimal.
    assert found.after.faults <= 3
    assert found.after.batches <= 5
    assert found.after.events < found.before.events
    criterion.is_strict = criterion.is_thorough = True
    assert criterion.holds(found.case)
    for place in range(len(found.case.faults)):
        assert not criterion.holds(found.case.with_faults(found.case.faults[:place] + found.case.faults[place + 1 :]))
    for place in range(len(found.case.sends)):
        assert not criterion.holds(found.case.with_sends(found.case.sends[:place] + found.case.sends[place + 1 :]))
    # It is as it expects itself to be, and its plan runs by itself.
    result = found.case.run()
    assert result.row["expected"]
    file = tmp_path / "plan.json"
    file.write_text(recording.to_text(recording.to_json(found.case.scenario, result)))
    again = recording.read(file)
    assert again.digest == result.row["digest"]
    assert found.case.row()["digest"] == again.digest


@pytest.mark.world
def test_shrinking_is_deterministic() -> None:
    case = failing("sessions", "kip320", 50_000, "committed-loss")
    assert shrunk(case, "committed-loss") == small("sessions", "kip320", 50_000, "committed-loss")


def test_what_is_small_stays_as_it_is() -> None:
    once = small("sessions", "kip320", 50_000, "committed-loss")
    twice = shrunk(once.case, "committed-loss")
    assert twice.case.key == once.case.key
    assert twice.cause == once.cause


@pytest.mark.parametrize("budget", [30, 60, 120])
def test_when_the_time_is_over_the_smallest_until_then_is_what_came_out(budget: int) -> None:
    case = failing("sessions", "kip320", 50_165, "committed-loss")
    trials = Trials(lambda: trials.runs >= budget)
    sizes: list[int] = []
    found = shrink(
        case,
        symptom(trials.row(case), "committed-loss"),
        trials,
        lambda smaller, _runs: sizes.append(len(smaller.faults) + len(smaller.sends)),
    )
    assert not found.whole
    assert found.after.faults + found.after.batches == min(sizes)
    cures = Criterion(trials, case, found.symptom).cause_of(found.case)
    assert cures == tuple(sorted((*found.cause, *found.besides)))


@pytest.mark.world
def test_out_of_time_further_cures_of_the_result_are_named() -> None:
    case = failing("power", "hw", 113, "committed-loss")
    trials = Trials(lambda: trials.runs >= 150)
    found = shrink(case, symptom(trials.row(case), "committed-loss"), trials)
    assert (found.before.batches, found.after.batches) == (35, 1)
    assert found.besides
    assert not set(found.besides) & set(found.cause)


def test_a_budget_may_be_too_small_for_the_cause() -> None:
    case = failing("sessions", "kip320", 50_000, "committed-loss")
    trials = Trials(lambda: trials.runs >= 2)
    with pytest.raises(OutOfTimeError):
        shrink(case, symptom(trials.row(case)), trials)
