"""Losses per partition-year: weights times shares, with an interval."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from highwater.lab.advise import findings, incidents, yearly
from highwater.lab.advise.answers import Answers
from highwater.lab.advise.experiment import design, has_lost
from highwater.lab.advise.incidents import Stratum
from highwater.lab.advise.rates import ASKED, CAUSES, of_data
from highwater.lab.advise.yearly import Estimate, Tally
from reports.formatting import decimal
from scenarios.campaign.runner import LocalRunner
from scenarios.single.run import run_row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from highwater.lab.advise.experiment import Change, ExperimentOutcome
    from sim.protocol.modes import Mode
    from tests.conftest import Call

ANSWERS = Answers(together="everything", racks=1, restarts=0, replicas=2)
RATES = {name: 0.0 for name in CAUSES if name not in ASKED}


def exposed(**a_year: float) -> incidents.Exposure:
    return incidents.exposure(
        design(ANSWERS, {}, None), of_data({"batches_per_s": 0.2, "a_year": {**RATES, **a_year}}, ANSWERS)
    )


def made(*parts: tuple[float, int, int], larger: float = 0.0) -> Estimate:
    """An estimate of made-up strata: incidents a year, simulated ones, and those that lost."""
    tallies = [Tally(Stratum(f"s{place}", (), a_year), runs, lost) for place, (a_year, runs, lost) in enumerate(parts)]
    return Estimate(exposed(outages=1), tallies, larger)


def test_the_sum_is_of_weights_times_shares() -> None:
    found, low, high = made((10, 100, 10), (0.5, 50, 50)).losses_a_year
    assert found == pytest.approx(1.5)
    assert low < 1.5 < high


def test_larger_incidents_count_in_the_upper_end_only() -> None:
    without, added = made((10, 100, 10)).losses_a_year, made((10, 100, 10), larger=0.25).losses_a_year
    assert added == (without[0], without[1], without[2] + 0.25)


def test_strata_that_decide_are_named() -> None:
    found = made((100, 1000, 0), (0.5, 50, 50), (0.1, 50, 0))
    assert found.dominating is not None
    assert found.dominating.stratum.name == "s1"
    assert found.widest.stratum.name == "s0"
    text = "\n".join(yearly.answer(found))
    assert "Most of it: s1, 0.5 a year (95 %: " in text
    assert "decided by s0: 100 incidents a year, of which 0 of 1,000 simulated ones lose records" in text
    assert made((100, 1000, 0)).dominating is None


def test_figures_have_no_exponent() -> None:
    found = [decimal(value) for value in (0, 131.0, 12_345, 0.0000071, 0.00000099, 0.25, 1, 0.999)]
    assert found == ["0", "130", "12,000", "0.0000071", "less than 0.000001", "0.25", "1", "1"]
    assert decimal(1.0 / 3, 3) == "0.333"
    text = "\n".join(yearly.answer(made((1e-5, 100, 10), (130, 10, 0), larger=1e-12)))
    assert "than were simulated: less than 0.000001 a year" in text
    assert "e-" not in text.replace("acknowledge-", "")
    assert "e+" not in text


def test_batches_are_singular() -> None:
    estimate = Estimate(
        incidents.exposure(
            design(ANSWERS, {}, None), of_data({"batches_per_s": 1, "a_year": {**RATES, "outages": 1.0}}, ANSWERS)
        ),
        [],
        0.0,
    )
    assert "1 batch a second around faults, and a fifth of that in quiet times" in yearly.assumptions(estimate)


def test_each_wave_shares_runs_by_weight_alone() -> None:
    strata = [Stratum("", (), a_year) for a_year in (100.0, 1.0, 0.0001)]
    assert yearly.allocated(strata, 500) == [475, 25, yearly.FEWEST]


def test_strata_that_were_not_reached_count_in_the_upper_end_only() -> None:
    reached, short = made((10, 100, 10)), made((10, 100, 10), (0.25, 0, 0))
    assert short.losses_a_year == (*reached.losses_a_year[:2], reached.losses_a_year[2] + 0.25)
    assert "before 1 stratum with 0.25 incidents a year could be simulated" in "\n".join(yearly.answer(short))


def test_the_sum_is_never_below_a_part() -> None:
    found = made((1, 1000, 100), (100, 100_000, 1), (50, 2, 0))
    for part in found.tallies:
        assert part.losses_a_year[1] <= found.losses_a_year[1]
        assert part.losses_a_year[2] <= found.losses_a_year[2]


def test_no_task_begins_after_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = count()
    monkeypatch.setattr(yearly, "time", SimpleNamespace(monotonic=lambda: next(now_s)))
    *_, last = yearly.waves(exposed(outages=1.0, pauses=1.0), None, 9, LocalRunner())
    assert 0 < last.runs <= 9 * yearly.PIECE
    assert last.runs < yearly.FIRST
    assert all(tally.runs for tally in last.tallies[:3])
    *_, none = yearly.waves(exposed(outages=1.0), None, 0, LocalRunner())
    assert none.runs == 0
    assert none.losses_a_year[:2] == (0, 0)
    assert none.losses_a_year[2] == pytest.approx(
        sum(tally.stratum.a_year for tally in none.tallies) + none.larger_a_year
    )


@pytest.mark.world
def test_waves_grow_as_long_as_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = count()
    monkeypatch.setattr(yearly, "time", SimpleNamespace(monotonic=lambda: next(now_s)))
    runs = [estimate.runs for estimate in yearly.waves(exposed(outages=1.0), None, 60, LocalRunner())]
    assert len(runs) > 1
    assert runs == sorted(runs)


def test_a_task_counts_the_losses_of_its_runs() -> None:
    found = exposed(outages=1.0)
    (stratum, *_), _ = incidents.strata(found)
    runs, lost, *_ = yearly.simulate(found, [stratum] * 3, ("", 2, 5, 3))
    rows = [run_row(incidents.draw(found, stratum, seed), found.mode, seed) for seed in range(2_000_005, 2_000_008)]
    assert (runs, lost) == (3, sum(map(has_lost, rows)))
    assert lost > 0


@pytest.mark.world
def test_figures_do_not_depend_on_the_number_of_processes() -> None:
    found = exposed(outages=1.0)
    estimates = []
    for processes in (1, 2):
        with LocalRunner(processes) as pool:
            *_, last = yearly.waves(found, 10, 1, pool)
            estimates.append([(tally.stratum.name, tally.runs, tally.lost) for tally in last.tallies])
    assert estimates[0] == estimates[1]


def test_the_command_prints_each_figure_with_its_interval(highwater: Callable[..., Call], tmp_path: Path) -> None:
    file = tmp_path / "rates.toml"
    file.write_text(
        "batches_per_s = 0.1\n[a_year]\n" + "".join(f"{name} = {int(name == 'outages')}\n" for name in RATES)
    )
    words = ("advise", "-q", "--replicas", 1, "--racks", 1, "--restarts", 0, "--seeds", 1)
    called = highwater(*words, "--rates", file, "--incidents", 10)
    assert called.code == 0
    assert "Losses per partition-year, by 12 incidents" in called.out
    assert "times a year (95 %" in called.out
    assert "process_crashes: 0 a year (the rates file)" in called.out
    found = highwater(*words, "--rates", file, "--incidents", 10, "--json").json["losses_per_partition_year"]
    value, low, high = found["losses_a_year"]
    assert 0 <= low <= value <= high
    assert {stratum["name"] for stratum in found["strata"]} == {"1 outage", "2 outages"}


@pytest.mark.world
def test_losses_a_year_are_told_for_each_advised_change(
    highwater: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a single seed no change is shown to help, so this one is said to."""

    def flushed(outcome: ExperimentOutcome) -> list[tuple[findings.ChangeEffect, Change, Mode]]:
        experiment = outcome.experiment
        change = next(one for one in experiment.changes if one.settings.get("log.flush.interval.messages") == 1)
        mode = experiment.modes[0]
        return [
            (next(finding for finding in findings.findings(outcome) if finding.change == change.name), change, mode)
        ]

    monkeypatch.setattr(findings, "advised", flushed)
    file = tmp_path / "rates.toml"
    file.write_text("batches_per_s = 1\n[a_year]\n" + "".join(f"{name} = {int(name == 'outages')}\n" for name in RATES))
    words = ("advise", "-q", "--replicas", 1, "--racks", 1, "--restarts", 0, "--seeds", 1, "--rates", file)
    called = highwater(*words, "--incidents", 40)
    assert called.code == 0
    _, table = called.out.split("Losses a year with each advised change")
    assert table.splitlines()[2].startswith("as it is ")
    assert table.splitlines()[3].startswith("log.flush.interval.messages = 1 ")
    found = highwater(*words, "--incidents", 40, "--json").json
    present = found["losses_per_partition_year"]
    changed = found["losses_per_partition_year_of_changes"]["log.flush.interval.messages = 1"]
    assert changed["losses_a_year"][0] == 0 < present["losses_a_year"][0]
    assert [one["name"] for one in changed["strata"]] == [one["name"] for one in present["strata"]]
