"""Mode files on the command line: from a sweep to the shrunk failure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from sim import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

TEXT = """\
schema = 1
name = "mine"
title = "A reassignment waits for all its targets"
base = "elr-4.3"
description = "Before KAFKA-19975."

[rules]
reassignment_completes = "targets-in-isr"
"""
SEED = 18
"""Of `reassignments`: nobody can lead."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(TEXT)
    return tmp_path


@pytest.mark.usefixtures("here")
def test_a_mode_file_is_shown_and_run(highwater: Callable[..., Call]) -> None:
    shown = highwater("modes", "show", "./mine.toml").out
    assert shown.startswith("mine: A reassignment waits for all its targets\n\nBefore KAFKA-19975.")
    assert "Those of elr-4.3, except:\n  reassignment_completes = targets-in-isr" in shown
    call = highwater("run", "reassignment-back", "--mode", "elr-4.3,mine.toml")
    assert call.code == exit_codes.EXPECTED
    assert "mode elr-4.3, seed 0: acknowledged record LOST" in call.out
    assert "mode mine, seed 0: no violation" in call.out
    assert "--mode mine.toml" not in call.out.partition("mode elr-4.3")[2].partition("mode mine")[0]


@pytest.mark.world
def test_a_sweep_keeps_the_rules_of_a_mode_file(highwater: Callable[..., Call], here: Path) -> None:
    asked = ("sweep", "reassignments", "--modes", "elr-4.3,./mine.toml", "--output", "s", "--local", 1, "--brief")
    highwater(*asked, "--seeds", f"{SEED}..{SEED + 2}")
    told = highwater("explain", "s", "--mode", "mine", "--seed", SEED, "--brief")
    assert f"reassignments, mode mine, seed {SEED}: no-progress" in told.out
    triage = highwater("triage", "s", "--mode", "mine", "--local", 1)
    assert "elr_outside_assignment=dropped" in triage.out
    line = next(line for line in triage.out.splitlines() if line.startswith("highwater replay"))
    assert "--mode ./mine.toml" in line
    assert highwater(*shlex.split(line)[1:]).code == exit_codes.EXPECTED
    (here / "mine.toml").write_text(TEXT.replace("targets-in-isr", "min-isr"))
    refused = highwater(*asked, "--seeds", f"0..{SEED + 2}")
    assert refused.code == exit_codes.BAD_INPUT
    assert "mode 'mine' has changed in reassignment_completes" in refused.err


@pytest.mark.usefixtures("here")
def test_a_recorded_run_names_its_mode_file(highwater: Callable[..., Call]) -> None:
    highwater("replay", "reassignments", "--mode", "./mine.toml", "--seed", SEED, "--output", "r")
    again = highwater("run", "--plan", f"r/seeds/{SEED}-mine/plan.json")
    assert f"mode mine, seed {SEED}: NO progress after healing (no-progress). Expected here" in again.out
    assert again.code == exit_codes.EXPECTED
