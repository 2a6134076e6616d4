"""--without-fault leaves a seed its plan, except for faults of one kind; --set acks=all is of all batches."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.format import selection
from scenarios.format.schema import of_store
from scenarios.single.run import run
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call


def faults(result: Any) -> list[Any]:
    return [fault for fault in result.plan["faults"] if fault["kind"] != "kill"]


def test_the_other_faults_of_a_seed_stay_the_same() -> None:
    usual = run(selection.scenario("power", {}), MODES["kip320"], 0)
    without = run(selection.scenario("power", {}, without=["kill"]), MODES["kip320"], 0)
    assert {fault["kind"] for fault in usual.plan["faults"]} > {"kill"}
    assert without.plan["faults"] == faults(usual)
    assert without.sends == usual.sends


def test_a_scenario_without_a_kind_is_stored_and_read() -> None:
    usual, without = selection.scenario("power", {}), selection.scenario("power", {}, without=["kill", "cut"])
    assert "without_faults" not in usual.to_json()
    assert of_store(without.to_json()) == without
    assert without.scenario_hash() != usual.scenario_hash()


def test_a_failed_run_can_be_replayed(highwater: Callable[..., Call], tmp_path: Path) -> None:
    words = ("power", "--mode", "hw", "--without-fault", "kill", "--set", "acks=all")
    for seed in range(40):
        (found,) = highwater("run", *words, "--seed", seed, "--json").json["runs"]
        if replay := found["row"]["replay"]:
            break
    assert "--without-fault kill" in replay
    called = highwater(*shlex.split(replay)[1:], "--output", tmp_path)
    assert "digest as expected" in called.out + called.err


@pytest.mark.usefixtures("sweeps_here")
def test_a_sweep_without_a_kind(highwater: Callable[..., Call], tmp_path: Path) -> None:
    words = (
        "sweep",
        "power",
        "--seeds",
        "0..3",
        "--mode",
        "kip320",
        "--local",
        1,
        "--output",
        tmp_path / "out",
        "--json",
    )
    assert highwater(*words, "--without-fault", "power-loss").code in (0, 3)
    (scenario,) = json.loads((tmp_path / "out" / "run.json").read_text())["scenarios"]
    assert scenario["without_faults"] == ["power-loss"]
    refused = highwater(*words)
    assert (refused.code, "has changed in without_faults" in refused.err) == (2, True)


def test_overridden_acks_are_of_all_batches() -> None:
    mixed = run(selection.scenario("power", {}), MODES["kip320"], 5)
    safe = run(selection.scenario("power", {"acks": "all"}), MODES["kip320"], 5)
    assert {acks for *_, acks, _ in mixed.sends} == {1, -1}
    assert {acks for *_, acks, _ in safe.sends} == {-1}
    assert [(first, count, due) for first, count, _, due in safe.sends] == [
        (first, count, due) for first, count, _, due in mixed.sends
    ]
    assert safe.plan == mixed.plan


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("power", "--without-fault", "kil"), "power has no such kind of fault; did you mean 'kill'?"),
        (("canary", "--without-fault", "kill"), "--without-fault is for random faults, and canary is scripted"),
        (("--plan", "plan.json", "--without-fault", "kill"), "a recorded run has its own faults"),
    ],
)
def test_kinds_that_are_not_there_are_refused(
    highwater: Callable[..., Call], words: tuple[str, ...], problem: str
) -> None:
    called = highwater("run", *words)
    assert (called.code, called.err.count("\n")) == (2, 1)
    assert problem in called.err
