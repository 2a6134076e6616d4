"""``highwater bugs``, its table and its figures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from highwater.lab.bugs.bugs import MISSING, FixedBug, Measured, chosen, fixed_bugs, measured
from scenarios.format.catalogue import load
from scenarios.single.run import run_row
from sim.errors import InputError
from sim.protocol.modes import MODES
from sim.protocol.modes import mode as mode_named
from sim.protocol.rules import RULES
from tests.verification import bugs as program

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Call

BUGS = list(fixed_bugs().values())
RULED = [bug for bug in BUGS if bug.older]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_each_bug_has_a_rule_or_a_reason(bug: FixedBug) -> None:
    assert bug.happens
    assert bug.effect
    assert bug.read in ("diff", "message")
    if bug.older is None or bug.repaired is None:
        assert bug.missing in MISSING
        assert bug.why.endswith(".")
        return
    assert not bug.missing
    values = RULES[bug.older[0]].values
    assert bug.older[0] == bug.repaired[0]
    assert values.index(bug.older[1]) < values.index(bug.repaired[1])
    rules = MODES[bug.mode].rules
    assert getattr(rules, bug.repaired[0]) == bug.repaired[1]
    assert all(load(name).faults is not None for name in bug.scenarios)
    assert list(measured()[bug.name]) == list(bug.scenarios)


def test_a_bug_is_declared_once_and_every_word_is_used() -> None:
    assert len({bug.ticket for bug in BUGS}) == len(BUGS) == 99
    assert set(MISSING) == {bug.missing for bug in BUGS} - {""}


@pytest.mark.parametrize(
    ("name", "release", "had"),
    [
        ("KAFKA-7482", "0.10.2", False),
        ("KAFKA-7482", "1.1", True),
        ("KAFKA-7482", "2.1", False),
        ("KAFKA-9839", "2.1", False),
        ("KAFKA-19294", "3.9.1", True),
        ("KAFKA-19294", "3.9.2", False),
        ("KAFKA-19294", "4.0.0", True),
        ("KAFKA-19294", "4.1.0", False),
        ("KAFKA-18138", "3.9.0", False),
    ],
)
def test_a_release_had_it_until_its_line_was_repaired(name: str, release: str, had: bool) -> None:
    assert fixed_bugs()[name].is_in(release) is had


@pytest.mark.parametrize(
    ("name", "modes"),
    [
        ("KAFKA-7165", ["kip101", "kip279", "kip320-2.1"]),
        ("KAFKA-7482", []),
        ("KAFKA-3143", []),
        ("KAFKA-19294", []),
        ("KAFKA-1738", []),
    ],
)
def test_modes_that_are_better_than_their_releases_are_named(
    highwater: Callable[..., Call], name: str, modes: list[str]
) -> None:
    assert fixed_bugs()[name].lacking == modes
    told = highwater("bugs", name).out
    assert ("Modes that behave better than their releases" in told) is bool(modes)


def test_no_repaired_run_fails() -> None:
    figures = [one for scenarios in measured().values() for one in scenarios.values()]
    assert all(one.after == 0 and one.runs >= 200 for one in figures)
    assert sum(one.before for one in figures) > 0
    assert all((one.first_cpu_s >= 0) is (one.before > 0) for one in figures)


@pytest.mark.parametrize(
    ("ticket", "scenario", "seed"),
    [("KAFKA-1738", "chaos", 18), ("KAFKA-9839", "chaos", 394), ("KAFKA-18138", "chaos", 50)],
)
def test_a_run_fails_with_the_older_value_and_not_with_the_repair(ticket: str, scenario: str, seed: int) -> None:
    bug = fixed_bugs()[ticket]
    assert bug.older is not None
    assert bug.repaired is not None
    judging = load(scenario).with_settings({"sim.judge.waits": True})
    older = run_row(judging, mode_named(bug.mode), seed, dict([bug.older]))
    repaired = run_row(judging, mode_named(bug.mode), seed, dict([bug.repaired]))
    assert "needless-wait" in older["violations_inside"].split(",")
    assert repaired["violations_inside"] == ""


def test_the_list_says_how_each_is_shown(highwater: Callable[..., Call]) -> None:
    call = highwater("bugs")
    assert call.code == 0
    assert all(bug.name in call.out for bug in BUGS)
    assert "lacks zookeeper" in call.out
    assert f"99 bugs, {len(RULED)} with a rule" in call.out


def test_a_word_chooses(highwater: Callable[..., Call]) -> None:
    call = highwater("bugs", "stuck deletion", "--json")
    found = json.loads(call.out)["bugs"]
    assert {one["effect"] for one in found} >= {"stuck deletion"}
    assert len(found) < 10


def test_one_is_told_with_its_figures(highwater: Callable[..., Call]) -> None:
    out = " ".join(highwater("bugs", "KAFKA-1738").out.split())
    assert "control_retry=once has the bug, control_retry=until-answered the repair" in out
    assert "highwater sweep chaos --modes kip320-repaired --rule control_retry=once" in out
    assert "CPU s to the first" in out


def test_one_without_a_rule_says_why(highwater: Callable[..., Call]) -> None:
    out = " ".join(highwater("bugs", "7165").out.split())
    assert "Not shown: Highwater lacks ZooKeeper in detail" in out


@pytest.mark.parametrize("word", ["KAFKA-7164", "no such word"])
def test_what_is_not_there_is_an_error(word: str) -> None:
    with pytest.raises(InputError):
        chosen(word)


def test_the_program_measures_and_writes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(program, "load", lambda _: load("canary"))
    assert program.main(["--seeds", "0..1", "--bugs", "KAFKA-9839"]) == 0
    out = capsys.readouterr().out
    assert "KAFKA-9839 chaos: before 0, after 0 of 1" in out
    text = program.text({"KAFKA-9839": {"chaos": Measured(1, 0, 200, 2.5)}})
    assert text.endswith("[KAFKA-9839]\nchaos = { before = 1, after = 0, runs = 200, first_cpu_s = 2.5 }\n")
