"""Runs with blows on the command line: each command takes them as any other run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from highwater.cli.main import main
from scenarios.sweep.store import Store, StoredRuns

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

BLOW: Final = "recovery-quorum@223689101.0"
LOSS: Final = ("--seed", "98", "--blow", BLOW)
"""A blow after which a run of `reassignments` in `elr-4.3` loses acknowledged records, inside the promise."""
FOLDER: Final = "98-elr-4.3-recovery-quorum-223689101.0"
RUN: Final = ("reassignments", "--mode", "elr-4.3", *LOSS)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blows") / "out"
    words = ["reassignments", "--modes", "elr-4.3", "--seeds", "97..99", "--blows", "1", "--local", "1", "-q"]
    assert main(["sweep", *words, "--output", str(folder)]) == 0
    return folder


def test_replay_checks_the_digest_of_a_run_with_a_blow(
    highwater: Callable[..., Call], output: Path, tmp_path: Path
) -> None:
    call = highwater("replay", output, *LOSS, "--output", tmp_path)
    assert call.code == 0
    assert "digest as expected" in call.out
    assert f"elr-4.3, seed 98, blow {BLOW}: acknowledged record LOST (committed-loss, no-progress)" in call.out
    folder = tmp_path / "seeds" / FOLDER
    again = highwater("run", "--plan", folder / "plan.json")
    assert again.code == 0
    assert "digest as recorded" in again.err


def test_the_replay_line_of_a_row_repeats_it(highwater: Callable[..., Call], output: Path, tmp_path: Path) -> None:
    rows = Store(output).choose(runs=StoredRuns.BLOWS).rows(["blow", "replay"])
    line = rows["replay"][rows["blow"].index(BLOW)]
    program, *words = line.split()
    assert program == "highwater"
    assert highwater(*words, "--output", tmp_path).code == 0


@pytest.mark.world
def test_a_run_with_a_blow_is_shrunk_to_a_plan_without_one(highwater: Callable[..., Call], tmp_path: Path) -> None:
    call = highwater("shrink", *RUN, "--kind", "committed-loss", "--budget", "40s", "--output", tmp_path)
    assert call.code == 0
    plan = tmp_path / "shrunk" / FOLDER / "plan.json"
    assert "blow" not in json.loads(plan.read_text())
    again = highwater("run", "--plan", plan)
    assert again.code == 0
    assert "committed-loss" in again.out


@pytest.mark.world
def test_a_page_compares_it_with_another_mode_on_the_same_plan(highwater: Callable[..., Call], tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    call = highwater("show", *RUN, "--against", "elr-repaired", "--budget", "1s", "--output", page)
    assert call.code == 0
    assert "not as told" not in call.out
    assert page.stat().st_size > 10_000


@pytest.mark.world
def test_triage_examines_runs_with_blows_apart(highwater: Callable[..., Call], output: Path) -> None:
    call = highwater("triage", output, "--blows", "--kind", "committed-loss", "--most", "1")
    assert call.code == 0
    assert f"--blow {BLOW}" in call.out
    seeds = highwater("triage", output, "--kind", "committed-loss")
    assert seeds.code == 2
    assert "no run violated anything" in seeds.err or "was violated in no run" in seeds.err


def test_compare_shows_runs_with_blows_apart(highwater: Callable[..., Call], output: Path) -> None:
    call = highwater("compare", output)
    assert "Runs with blows, which are in no rate above" in call.out
    found = json.loads(highwater("compare", output, "--json").out)
    assert found["comparisons"][0]["groups"][0]["runs"] == 2
    loss = {"scenario": "reassignments", "mode": "elr-4.3", "warning": "recovery-quorum", "kind": "committed-loss"}
    assert {**loss, "runs": 1, "n": 1, "inside": 1} in found["blows"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("reassignments", "--seed", "98", "--blow", "recovery-quorm@1.0"), "did you mean 'recovery-quorum'?"),
        (("kip101-scenario-1", "--blow", BLOW), "kip101-scenario-1 is scripted"),
        (("reassignments", "--seed", "98", "--blow", "soon"), "WARNING@TIME_US.VARIANT is needed"),
    ],
)
def test_bad_blows_are_one_line(highwater: Callable[..., Call], words: tuple[str, ...], problem: str) -> None:
    call = highwater("replay", *words)
    assert call.code == 2
    assert problem in call.err
    assert len(call.err.splitlines()) == 1


def test_a_sweep_refuses_blows_that_cannot_follow(highwater: Callable[..., Call], tmp_path: Path) -> None:
    words = ("--seeds", "0..2", "--local", "1", "--output", tmp_path / "out")
    call = highwater("sweep", "canary", "--blows", "2", *words)
    assert (call.code, "scripted" in call.err) == (2, True)
    call = highwater("sweep", "power", "--blows", "-1", *words)
    assert (call.code, "--blows -1 is not valid" in call.err) == (2, True)
