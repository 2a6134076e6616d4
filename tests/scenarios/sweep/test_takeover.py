"""A new mode over a stored sweep: rows that it has in common are taken over, and only the rest runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from scenarios.format.catalogue import load, mode
from scenarios.sweep import takeover
from scenarios.sweep.driver import run_sweep
from scenarios.sweep.store import Store
from scenarios.sweep.units import Sweep
from sim.errors import InputError
from tests.scenarios.sweep.here import Here

if TYPE_CHECKING:
    from pathlib import Path

POWER: Final = load("power")
GRID: Final = {"min.insync.replicas": (1, 2)}


def asked(*modes: str, seeds: tuple[int, int] = (0, 12), **given: Any) -> Sweep:
    return Sweep((POWER,), {"power": tuple(mode(name) for name in modes)}, *seeds, **given)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("base") / "sweep"
    run_sweep(asked("kip320", grid=GRID), folder, Here(), chunks=2)
    return Store(folder)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [{**row, "reused": ""} for row in Store(folder).table().to_pylist()]


@pytest.mark.parametrize(
    "modes",
    [
        ("kip320-2.6.1",),
        pytest.param(("kip320", "kip320+stop_replica=unchecked"), marks=pytest.mark.world),
        pytest.param(("kip101",), marks=pytest.mark.world),
    ],
)
def test_rows_are_those_of_a_sweep_that_runs_all(tmp_path: Path, base: Store, modes: tuple[str, ...]) -> None:
    sweep = asked(*modes, seeds=(4, 16), grid=GRID)
    notes: list[str] = []
    summary = run_sweep(sweep, tmp_path / "mine", Here(), chunks=1, note=notes.append, reuse=base)
    run_sweep(replace(sweep, reuses=False), tmp_path / "each", Here(), chunks=1)
    assert rows(tmp_path / "mine") == rows(tmp_path / "each")
    assert summary["complete"]
    taken = {row["seed"] for row in Store(tmp_path / "mine").table().to_pylist() if row["reused"] == "kip320"}
    assert taken <= set(range(4, 16))
    assert (min(taken, default=99) < 12) == (modes != ("kip101",))
    assert any("runs are taken over from" in line for line in notes)
    assert not Store(tmp_path / "mine").shortcomings()


def test_seeds_that_are_there_already_stay(tmp_path: Path, base: Store) -> None:
    sweep = asked("kip320-2.6.1", seeds=(0, 6), grid=GRID)
    run_sweep(sweep, tmp_path, Here(), chunks=1)
    run_sweep(replace(sweep, end_seed=12), tmp_path, Here(), chunks=1, reuse=base)
    assert len(rows(tmp_path)) == 24


def test_one_point_of_a_grid_may_be_swept_alone(tmp_path: Path, base: Store) -> None:
    scenario = POWER.with_settings({"min.insync.replicas": 2})
    sweep = Sweep((scenario,), {"power": (mode("kip320-2.6.1"),)}, 0, 12)
    run_sweep(sweep, tmp_path / "mine", Here(), chunks=1, reuse=base)
    run_sweep(sweep, tmp_path / "each", Here(), chunks=1)
    assert rows(tmp_path / "mine") == rows(tmp_path / "each")
    assert any(row["reused"] for row in Store(tmp_path / "mine").table().to_pylist())


def test_what_cannot_be_taken_over_is_refused(tmp_path: Path, base: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(sweep: Sweep, words: str) -> None:
        with pytest.raises(InputError, match=words):
            run_sweep(sweep, tmp_path / "mine", Here(), reuse=base)
        assert not (tmp_path / "mine").exists()

    refused(asked("kip320-2.6.1", rules={"isr_lag": "time"}), "it ran with --rule")
    refused(replace(asked("kip320-2.6.1", grid=GRID), blows=2), "leave out --blows")
    refused(asked("kip320-2.6.1"), "none of the scenarios with the same settings")
    monkeypatch.setattr(takeover, "code_version", lambda: "other")
    refused(asked("kip320-2.6.1", grid=GRID), "its rows are of code")
