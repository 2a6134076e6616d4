"""Sweeps in modes that only the caller knows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from highwater.cli.main import main
from scenarios.format.catalogue import load
from scenarios.single.run import run, run_row
from scenarios.sweep.driver import run_sweep
from scenarios.sweep.store import Store
from scenarios.sweep.units import Sweep, from_run
from sim.errors import InputError
from sim.protocol.modes import MODES, Mode
from tests.scenarios.sweep.here import Here

if TYPE_CHECKING:
    from pathlib import Path

CHANGED: Final = {"isr_join": "high-watermark", "hw_needs_epoch": "no"}
MINE: Final = Mode(
    "mine",
    release="none",
    summary="kip320 with an older rule for joining the ISR",
    rules=MODES["kip320"].rules.override(CHANGED),
    promise=MODES["kip320"].promise,
    follows="2.6",
)


def test_a_mode_of_ones_own_runs_as_its_rules_say() -> None:
    power = load("power")
    mine = run(power, MINE, 3).row
    assert (mine["mode"], mine["error"], mine["expected"]) == ("mine", "", True)
    assert mine["digest"] == run(power, MODES["kip320"], 3, CHANGED).row["digest"]
    assert mine["digest"] == run_row(power, MINE, 3)["digest"]


def test_no_line_replays_what_the_command_line_does_not_know() -> None:
    canary = load("canary")
    mine = replace(MODES["hw"], name="mine")
    assert run_row(canary, MODES["hw"], 0)["replay"].startswith("highwater replay canary --mode hw")
    row = run_row(canary, mine, 0)
    assert (row["violations"], row["replay"]) == ("committed-loss", "")


def test_a_mode_of_ones_own_is_swept_stored_and_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    power = load("power")
    sweep = Sweep((power,), {"power": (MODES["kip320"], MINE)}, 0, 4)
    assert from_run(json.loads(sweep.to_text())).modes == sweep.modes
    folder = tmp_path / "out"
    assert run_sweep(sweep, folder, Here(), chunks=1)["complete"]
    rows = Store(folder).rows(["mode", "seed", "digest"], "power")
    found = dict(zip(zip(rows["mode"], rows["seed"], strict=True), rows["digest"], strict=True))
    assert found == {
        (mode.name, seed): run_row(power, mode, seed)["digest"] for mode in sweep.modes["power"] for seed in range(4)
    }
    assert main(["replay", str(folder), "--mode", "mine", "--seed", "2"]) == 0
    assert main(["coverage", str(folder)]) == 0
    assert main(["doctor", str(folder)]) == 0
    assert "digest as expected" in capsys.readouterr().out


def test_a_sweep_of_other_rules_under_the_same_name_is_another_sweep(tmp_path: Path) -> None:
    canary = load("canary")
    run_sweep(Sweep((canary,), {"canary": (MINE,)}, 0, 1), tmp_path, Here(), chunks=1)
    other = replace(MINE, rules=MINE.rules.override({"elr": "on"}))
    with pytest.raises(InputError, match=r"mode .mine. has changed in elr"):
        run_sweep(Sweep((canary,), {"canary": (other,)}, 0, 1), tmp_path, Here(), chunks=1)


def test_a_name_means_one_mode() -> None:
    canary = load("canary")
    impostor = replace(MINE, name="kip320")
    with pytest.raises(InputError, match="two modes are called 'kip320'"):
        Sweep((canary,), {"canary": (impostor,)}, 0, 1)
    with pytest.raises(InputError, match="two modes are called 'mine'"):
        Sweep((canary,), {"canary": (MINE, replace(MINE, summary="another"))}, 0, 1)
