"""Builds with one changed method, without Java."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from highwater.lab.hunt.state import FINDING, FailureCause, HuntState
from sim.errors import InputError
from sim.protocol.rules import RULES
from tests.verification.hunt import patched
from tests.verification.hunt.patched import PATCHES, UNCHANGED, Ended, judged, problems
from tests.verification.oracle.build import CLASSES

if TYPE_CHECKING:
    from pathlib import Path


def state(*compared: tuple[int, list[str]]) -> HuntState:
    """A hunt's state: of the first subjects, how many cases differ, and which rule values explain them."""
    classes = list(CLASSES.values())
    oracle = [
        {"subject": classes[at], "cases": 9, "differ": differ, "explained": explained, "problem": ""}
        for at, (differ, explained) in enumerate(compared)
    ]
    return HuntState({}, oracle=oracle)


def test_patches_name_rule_values_that_repair_a_finding() -> None:
    repairs = [patch.rule for patch in PATCHES.values() if patch.rule]
    assert len(repairs) >= 3
    assert len(PATCHES) - len(repairs) >= 3
    assert set(repairs) <= patched.REPAIRS
    for repair in repairs:
        name, _, value = repair.partition("=")
        assert value in RULES[name].values


def test_a_repair_must_be_named() -> None:
    rule = PATCHES["elr-of-replicas"].rule
    assert problems("elr-of-replicas", 1, state((5, [rule]), (2, [rule]))) == []
    assert problems("elr-of-replicas", 1, state((5, []))) == [f"it takes it for no rule, not for {rule}"]
    assert problems("elr-of-replicas", 0, state((0, []), (0, [])))[0] == "no class differs"
    assert patched.not_compared("elr-of-replicas", state((5, [rule]))) == []
    assert patched.not_compared("marks-replaced", state((0, []))) == ["kraft-controller"]


def test_a_defect_must_differ_and_be_no_repair() -> None:
    assert problems("elr-not-cleared", 1, state((5, []), (2, []))) == []
    (found,) = problems("elr-not-cleared", 1, state((5, ["elr_outside_assignment=dropped"]), (2, [])))
    assert "takes a defect for the repair elr_outside_assignment=dropped" in found


def test_released_jars_do_not_differ() -> None:
    same = [(0, list[str]())] * len(CLASSES)
    assert problems(UNCHANGED, 0, state(*same)) == []
    assert problems(UNCHANGED, 1, state((3, []), *same[1:])) == ["partition-change differs"]
    assert patched.not_compared(UNCHANGED, state(*same)) == []
    assert patched.not_compared(UNCHANGED, state((0, []))) == ["kraft-controller", "partition"]


def test_a_finding_that_a_build_repairs_must_not_be_found() -> None:
    rule = PATCHES["marks-replaced"].rule
    found = state((0, []), (2, [rule]))
    found.causes["one"] = FailureCause("reassignment-stuck", FINDING, "", 1, 1, "reassignments", 5, 100)
    assert problems("marks-replaced", 1, found) == ["it finds reassignment-stuck, which the build repairs"]
    found.causes["one"].control = "elr-repaired"
    assert problems("marks-replaced", 1, found) == []


def test_a_hunt_that_was_stopped_is_judged_by_what_it_compared() -> None:
    verdict = judged("elr-not-cleared", Ended(None, state((5, []), (2, [])), []), 720.4)
    assert not verdict.wrong
    assert verdict.told().startswith("elr-not-cleared: right\n  stopped after 720 s\n")
    told = judged("elr-not-cleared", Ended(None, state(), []), 720.4).told()
    assert told.startswith("elr-not-cleared: undecided: there was no time to compare partition-change and kraft")


def test_no_build_with_a_verdict_is_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hunted: list[str] = []

    def hunt(build: Path, *_: object) -> Ended:
        hunted.append(build.name)
        if len(hunted) == 2:
            raise KeyboardInterrupt
        return Ended(1, state((5, []), (2, [])), ["told"])

    monkeypatch.setattr(patched.Builds, "__init__", lambda *_: None)
    monkeypatch.setattr(patched.Builds, "make", lambda _, name: tmp_path / name)
    monkeypatch.setattr(patched, "run_hunt", hunt)
    names = ["elr-not-cleared", "epoch-not-bumped", "hw-below-min-isr"]
    with pytest.raises(KeyboardInterrupt):
        patched.judge(names, tmp_path, "6m", 1.0)
    assert patched.judge(names, tmp_path, "6m", 1.0) == 2, "Partition was not compared"
    assert hunted == ["elr-not-cleared", "epoch-not-bumped", "epoch-not-bumped", "hw-below-min-isr"]
    patched.judge(names, tmp_path, "6m", 1.0)
    assert hunted[4:] == ["hw-below-min-isr"], "it is undecided"


@pytest.mark.parametrize(("obeys", "answer"), [(True, "stopped\n"), (False, "")])
def test_a_hunt_is_killed_if_it_does_not_end(obeys: bool, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patched, "PATIENCE_S", 10.0 if obeys else 0.2)
    handler = "lambda *_: (print('stopped'), sys.exit(130))" if obeys else "signal.SIG_IGN"
    program = f"import signal, sys, time; signal.signal(signal.SIGINT, {handler}); print(); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-u", "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert patched.interrupt(process)[0] == answer
        assert process.returncode == (130 if obeys else -signal.SIGKILL)


def test_a_text_that_is_not_there_is_refused() -> None:
    patch = dataclasses.replace(PATCHES["elr-not-cleared"], changes=(("old", "new"),))
    assert patched.patched("an old one", patch) == "an new one"
    with pytest.raises(InputError, match="has 2 places like 'old'"):
        patched.patched("old old", patch)
