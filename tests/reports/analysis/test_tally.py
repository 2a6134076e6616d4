"""Counts wave by wave are those of all rows."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from reports.analysis import compare
from reports.analysis.tally import SweepTally
from scenarios.sweep.driver import run_sweep
from scenarios.sweep.store import Store
from sim.errors import InputError
from tests import named
from tests.scenarios.sweep.here import Here

if TYPE_CHECKING:
    from pathlib import Path

    from reports.analysis.compare import Group
    from scenarios.format.scenario import Scenario


def facts(group: Group) -> tuple[object, ...]:
    counts = (group.runs, group.errors, group.stalled, group.exhausted, group.vacuous, group.runs_inside)
    return group.name, counts, group.share_inside, group.rates


def test_rates_are_those_of_compare(swept: Path) -> None:
    store = Store(swept)
    tally = SweepTally(store.sweep)
    tally.update(store)
    found = {comparison.scenario: comparison for comparison in tally.comparisons()}
    whole = compare.of_store(store)
    assert len(whole) == len(found) == 2
    for comparison in whole:
        groups = {group.name: group for group in found[comparison.scenario].groups}
        assert [facts(groups[group.name]) for group in comparison.groups] == [
            facts(group) for group in comparison.groups
        ]


def test_failing_runs_are_those_whose_verdict_is_not_ok(swept: Path) -> None:
    store = Store(swept)
    tally = SweepTally(store.sweep)
    tally.update(store)
    rows = store.table(["scenario", "mode", "seed", "verdict", "violations", "violations_inside"]).to_pylist()
    failing = [row for row in rows if row["verdict"] != "ok"]
    found = list(tally.failing().rows(0, len(rows)))
    assert len(found) == len(tally.failing()) == len(failing) > 0

    def key(row: dict[str, object]) -> tuple[object, ...]:
        return row["seed"], row["scenario"], row["mode"], row["violations"], row["violations_inside"]

    variants = store.sweep.variants
    named_runs = {
        (
            run.seed,
            variants[run.kind.variant].name,
            tally.mode_of(run.kind),
            ",".join(run.kind.kinds),
            ",".join(run.kind.broken),
        )
        for run in found
    }
    assert named_runs == {key(row) for row in failing}
    assert [run.seed for run in found] == sorted(run.seed for run in found)
    for kind in tally.shown_kinds:
        for mode in tally.modes:
            count = sum(kind in run.kind.shown and tally.mode_of(run.kind) == mode for run in found)
            assert len(tally.failing(mode, kind)) == count


def test_each_wave_is_read_once(tmp_path: Path, power: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = named.sweep((power,), {"power": ("hw", "elr")}, 0, 12)
    tally = SweepTally(sweep)
    read: list[list[str]] = []
    tables = Store.tables

    def noted(store: Store, columns: object = None, but: object = ()) -> object:
        found = list(tables(store, columns, but))  # type: ignore[arg-type]
        read.append([wave.name for wave, _ in found])
        return iter(found)

    def look(wave: int) -> None:
        if wave:
            tally.update(Store(tmp_path))

    monkeypatch.setattr(Store, "tables", noted)
    run_sweep(sweep, tmp_path, Here(look), wave_units=4)
    tally.update(Store(tmp_path))
    names = [name for some in read for name in some]
    assert len(names) == len(set(names)) == len(Store(tmp_path).waves) > 1
    assert sum(tally.counts().values()) == 24


def test_a_wave_that_is_gone_is_forgotten(tmp_path: Path, power: Scenario) -> None:
    run_sweep(named.sweep((power,), {"power": ("hw",)}, 0, 12), tmp_path, Here(), wave_units=4)
    store = Store(tmp_path)
    tally = SweepTally(store.sweep)
    tally.update(store)
    before = sum(tally.counts().values())
    shutil.rmtree(next((tmp_path / "results").iterdir()))
    tally.update(Store(tmp_path))
    assert 0 < sum(tally.counts().values()) < before == 12


def test_rows_of_another_sweep_are_refused(swept: Path, power: Scenario) -> None:
    tally = SweepTally(named.sweep((power,), {"power": ("hw",)}, 0, 12))
    with pytest.raises(InputError, match="rows of another sweep"):
        tally.update(Store(swept))


def test_a_store_without_waves_has_no_rates(power: Scenario) -> None:
    tally = SweepTally(named.sweep((power,), {"power": ("hw",)}, 0, 12))
    assert (tally.comparisons(), len(tally.failing()), tally.shown_kinds) == ([], 0, [])
