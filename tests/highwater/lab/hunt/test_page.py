"""The page of a hunt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from highwater.lab.hunt import page
from highwater.lab.hunt import state as states
from highwater.lab.hunt.hunter import Hunt
from highwater.lab.hunt.state import ArmState, FailureCause, HuntState, Written
from highwater.lab.zoo.findings import known
from tests.highwater.lab.hunt.test_hunter import ABOUT, ARMS

if TYPE_CHECKING:
    from pathlib import Path

ARM = "operations/elr-4.3"


def written(folder: Path, cpu_s: float = 7_200.0, kind: str = "committed-loss", end: str = "", **more: Any) -> str:
    """The Markdown of a hunt that found a known cause, a new one, and one in a control arm."""
    state = HuntState(ABOUT, arms={ARM: ArmState(100, 100, 5_000, 3)}, times={"cpu": cpu_s, "wall": 9_000.0})
    state.causes["a"] = FailureCause("reassignment-stuck", "finding", "", 40, 6, ARM, 3, 100, {ARM: 40})
    state.causes["b"] = FailureCause("loss, cured by x=y", "", "", 1, 1, ARM, 4, 200, {ARM: 1}, 1)
    state.causes["c"] = FailureCause("divergence", "", "(elr-repaired)", 1, 1, "operations/elr-repaired", 4, 300, {}, 2)
    told = ["1 s: <m1> is lost", *([end] if end else [])]
    state.written[1] = Written("b", kind, ["x=y"], told, ["kill"], "highwater replay b", script=True, folder="1")
    state.written[2] = Written("c", "divergence", [], [], [], "highwater replay c", script=False, folder="2")
    state.errors.append(["highwater replay d", "ZeroDivisionError"])
    state.times["first b"] = 3_600.0
    one = Hunt(folder, state, lambda _: ARMS, known(), "4.4.0", "no Java here", **more)
    page.write(one)
    return (folder / states.MARKDOWN).read_text(encoding="utf-8").replace("\\", "")


def test_the_answer_is_first(tmp_path: Path) -> None:
    text = written(tmp_path)
    answer = text.partition("## ")[0]
    assert "100 random runs in mode elr-4.3" in answer
    assert "1 new cause of violations inside the promise, and 1 known finding" in answer
    assert "On real brokers: 1 not tried." in answer
    assert "Control arms show 1 cause that may be a defect of Highwater." in answer
    assert "in the next CPU hour: 39.3 % (0 % to 93.8 %)" in answer


def test_each_new_cause_has_its_commands_and_its_cost(tmp_path: Path) -> None:
    text = written(tmp_path)
    assert "| 1 | loss, cured by x=y | 1 | 200 runs, 3600 CPU s | 7200 | not tried: no Java here |" in text
    assert f"highwater confirm {tmp_path}/findings/1/scenario.toml --kafka 4.4.0" in text
    assert f"highwater explain --plan {tmp_path}/findings/1/plan.json" in text
    assert "| reassignment-stuck | FINDINGS.md | 40 | 100 runs, 0 CPU s | 180 |" in text


def test_what_was_asked_for_is_told_in_sentences(tmp_path: Path) -> None:
    text = written(tmp_path).partition("## What was done")[2]
    assert "Kafka 4.4.0: mode elr-4.3, all random scenarios, seeds from 0." in text
    assert "New causes are tried on brokers. All known findings are recognised." in text
    assert "build ," not in text


@pytest.mark.parametrize("cpu_s", [12.0, 59.0])
def test_a_short_hunt_tells_no_probability(cpu_s: float, tmp_path: Path) -> None:
    text = written(tmp_path, cpu_s)
    assert f"in the next CPU hour cannot be said after {cpu_s:.0f} CPU s of hunting." in text
    assert f"Too short to tell: {cpu_s:.0f} CPU s of hunting." in text
    assert "interval of Esty" not in text


def test_what_never_completes_is_told(tmp_path: Path) -> None:
    text = written(tmp_path, kind="no-progress", end="9 s: at the deadline, a reassignment adds [3] and removes [1]")
    assert f"{page.NOTHING_LOST}a reassignment never completes." in text
    assert page.NOTHING_LOST not in written(tmp_path)


def test_control_arms_and_errors_are_told(tmp_path: Path) -> None:
    text = written(tmp_path).partition("## Control arms")[2]
    assert f"| elr-repaired | divergence | {page.UNKNOWN} | 1 |" in text
    assert "highwater replay d  # ZeroDivisionError" in text


def test_the_page_as_html_needs_no_network_and_quotes(tmp_path: Path) -> None:
    written(tmp_path)
    text = (tmp_path / states.HTML).read_text(encoding="utf-8")
    assert "&lt;m1&gt; is lost" in text
    assert "http" not in text.replace("http-equiv", "")


@pytest.mark.parametrize("name", ["causes seen once", "interval of Esty", "Böhme"])
def test_the_estimator_is_named(name: str, tmp_path: Path) -> None:
    assert name in written(tmp_path)
