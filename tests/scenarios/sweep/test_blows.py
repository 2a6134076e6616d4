"""Rows of runs with blows: beside those of seeds, and in none of their rates."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from scenarios.format.blow import parse
from scenarios.format.catalogue import load
from scenarios.single.run import run_row
from scenarios.sweep.driver import run_sweep
from scenarios.sweep.local import LocalBackend
from scenarios.sweep.store import Store, StoredRuns
from sim.errors import InputError
from sim.protocol.modes import mode
from tests import named
from tests.scenarios.sweep.here import Here

if TYPE_CHECKING:
    from pathlib import Path

SCENARIO: Final = load("reassignments")
SEEDS: Final = named.sweep((SCENARIO,), {"reassignments": ("elr-4.3",)}, 20, 26)
BLOWS: Final = replace(SEEDS, blows=2)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blows") / "sweep"
    run_sweep(BLOWS, folder, Here(), chunks=2)
    return folder


def rows(folder: Path, runs: StoredRuns) -> dict[str, list[Any]]:
    return Store(folder).choose(runs=runs).rows()


def test_rows_of_seeds_are_those_of_a_sweep_without_blows(output: Path, tmp_path: Path) -> None:
    run_sweep(SEEDS, tmp_path / "seeds", Here(), chunks=1)
    assert rows(output, StoredRuns.SEEDS) == rows(tmp_path / "seeds", StoredRuns.ALL)
    assert "blows" not in json.loads((tmp_path / "seeds" / "run.json").read_text())
    assert not rows(tmp_path / "seeds", StoredRuns.BLOWS)["seed"]


def test_each_row_names_its_run(output: Path) -> None:
    found = Store(output).choose(runs=StoredRuns.BLOWS).table().to_pylist()
    assert found
    for row in found[:3]:
        last = parse(row["blow"])[-1]
        assert (row["warning"], row["warning_us"], row["variant"]) == (last.warning, last.at_us, last.variant)
        again = run_row(replace(SCENARIO, blows=parse(row["blow"])), mode("elr-4.3"), row["seed"])
        assert again == row
    assert len({(row["seed"], row["blow"]) for row in found}) == len(found)


@pytest.mark.world
def test_rows_do_not_depend_on_processes_and_chunks(output: Path, tmp_path: Path) -> None:
    run_sweep(BLOWS, tmp_path / "local", LocalBackend(2), chunks=5, wave_units=4)
    assert rows(tmp_path / "local", StoredRuns.ALL) == rows(output, StoredRuns.ALL)


def test_a_stopped_sweep_goes_on_with_its_blows(output: Path, tmp_path: Path) -> None:
    def stop(wave: int) -> None:
        if wave == 1:
            raise MemoryError

    folder = tmp_path / "out"
    with pytest.raises(Exception, match="out of memory"):
        run_sweep(BLOWS, folder, Here(stop), chunks=1, wave_units=4)
    assert 0 < len(rows(folder, StoredRuns.SEEDS)["seed"]) < 6
    summary = run_sweep(BLOWS, folder, Here(), chunks=1)
    assert summary == run_sweep(BLOWS, output, Here())
    assert rows(folder, StoredRuns.ALL) == rows(output, StoredRuns.ALL)


def test_a_sweep_with_other_blows_is_another_sweep(output: Path) -> None:
    with pytest.raises(InputError, match="holds another sweep: blows 2 there, 3 now"):
        run_sweep(replace(BLOWS, blows=3), output, Here())


def test_the_summary_tells_them_apart(output: Path) -> None:
    summary = json.loads((output / "summary.json").read_text())
    (result,) = summary["results"]
    seeds, blows = rows(output, StoredRuns.SEEDS), rows(output, StoredRuns.BLOWS)
    assert summary["runs"] == summary["runs_asked"] == result["runs"] == len(seeds["seed"]) == 6
    assert sum(result["verdicts"].values()) == 6
    assert result["blows"]["runs"] == len(blows["seed"])
    assert result["blows"]["second"] == sum("+" in text for text in blows["blow"])
    after = result["blows"]["after"]
    assert {kind: entry["runs"] for kind, entry in after.items()} == {
        kind: blows["warning"].count(kind) for kind in set(blows["warning"])
    }
    lines = [json.loads(line) for line in (output / "violations.jsonl").read_text().splitlines()]
    assert len(lines) == summary["failing"]
    inside = [line for line in lines if "blow" in line]
    assert len(inside) == sum(map(bool, blows["violations_inside"]))
    assert all(line["blow"] in line["replay"] for line in inside)


def test_a_reader_that_asks_for_nothing_gets_rows_of_seeds(output: Path) -> None:
    assert set(Store(output).rows(["blow"])["blow"]) == {""}
    assert Store(output).rows(["seed"])["seed"] == list(range(20, 26))
