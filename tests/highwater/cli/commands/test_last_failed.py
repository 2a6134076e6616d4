"""`run --last-failed` and `run --junit-xml`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from reports.evidence.junit import junit_xml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

KEEPS = ("--rule", "follower_truncation=leader-epoch")
"""Canary is expected to lose a record in `hw`; with this rule it does not."""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cache").mkdir()
    monkeypatch.setattr("highwater.cli.last_failed.cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "last-failed.json"


def runs(call: Call) -> list[tuple[str, str, int, bool]]:
    rows = [run["row"] for run in call.json["runs"]]
    return [(row["scenario"], row["mode"], row["seed"], row["expected"]) for row in rows]


def test_what_was_not_as_expected_runs_again(highwater: Callable[..., Call], state: Path) -> None:
    assert highwater("run", "kip101-scenario-1", "--mode", "hw").code == 0
    assert not state.exists()
    assert highwater("run", "canary", "--seed", 3, *KEEPS).code == 1
    assert highwater("run", "kip101-scenario-1", "--mode", "hw,kip101", *KEEPS).code == 1
    again = highwater("run", "--last-failed", "--json")
    assert again.code == 1
    assert runs(again) == [("canary", "hw", 3, False), ("kip101-scenario-1", "hw", 0, False)]
    assert runs(highwater("run", "canary", "--last-failed", "--json")) == [("canary", "hw", 3, False)]
    none = highwater("run", "power", "--last-failed")
    assert (none.code, none.out, none.err) == (0, "", "all runs were as expected last time\n")


def test_what_is_as_expected_again_is_forgotten(highwater: Callable[..., Call], state: Path, tmp_path: Path) -> None:
    words = ["canary", "--mode", "hw", "--seed", "3"]
    gone = str(tmp_path / "gone.toml")
    state.write_text(json.dumps({"schema_version": 1, "last_failed": [words, [gone, "--mode", "hw", "--seed", "0"]]}))
    call = highwater("run", "--last-failed")
    assert call.code == 0
    assert f"not run again: {gone} --mode hw --seed 0: " in call.err
    assert json.loads(state.read_text())["last_failed"] == [[gone, "--mode", "hw", "--seed", "0"]]
    assert highwater("run", "--last-failed").code == 0


@pytest.mark.parametrize("content", ["notes of mine", '{"schema_version": 1, "last_failed": {"a": 1}}', ""])
def test_a_foreign_file_is_left_alone(highwater: Callable[..., Call], state: Path, content: str) -> None:
    state.write_text(content)
    call = highwater("run", "canary", "--seed", 3, *KEEPS)
    assert call.code == 1
    if content:
        assert "not remembered for --last-failed: " in call.err
        assert state.read_text() == content
        refused = highwater("run", "--last-failed")
        assert (refused.code, refused.err.count("\n")) == (2, 1)


def test_last_failed_takes_no_options_of_its_own(highwater: Callable[..., Call]) -> None:
    for options in (("--mode", "hw"), ("--seed", 0), KEEPS, ("--strict",), ("--all-modes",)):
        call = highwater("run", "--last-failed", *options)
        assert (call.code, call.err.count("\n")) == (2, 1)
        assert "--last-failed brings" in call.err


def test_each_scenario_and_mode_is_a_test_case(highwater: Callable[..., Call], tmp_path: Path) -> None:
    file = tmp_path / "runs.xml"
    words = ("run", "canary", "kip101-scenario-1", "--mode", "hw", "--seed", 3, "--junit-xml", file)
    assert highwater(*words, *KEEPS).code == 1
    root = ElementTree.parse(file).getroot()  # noqa: S314 - ours
    assert (root.get("tests"), root.get("failures"), root.get("errors"), root.get("skipped")) == ("2", "2", "0", "0")
    cases = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert cases == [("canary", "hw"), ("kip101-scenario-1", "hw")]
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert "NOT as expected" in str(failure.get("message"))
    assert "highwater replay canary " in str(root.findtext("testsuite/testcase/system-out"))
    assert highwater(*words).code == 0
    root = ElementTree.parse(file).getroot()  # noqa: S314 - ours
    assert (root.get("tests"), root.get("failures")) == ("2", "0")
    assert root.find("testsuite/testcase/failure") is None


def test_text_of_a_test_case_is_escaped() -> None:
    hostile = {"scenario": 'a<&"b', "mode": "hw", "seed": 1, "verdict": "error", "violations": "", "expected": False}
    row = {
        **hostile,
        "error": "boom ]]> \x00 <&>\nmore",
        "digest": "",
        "events": 0,
        "sim_us": 0,
        "replay": "",
        "inside": True,
    }
    root = ElementTree.fromstring(junit_xml([{**row, "violations_inside": ""}]))  # noqa: S314 - ours
    (case,) = root.iter("testcase")
    assert case.get("classname") == 'a<&"b'
    error = case.find("error")
    assert error is not None
    assert "boom ]]> \\x00 <&>\nmore" in str(error.text)
    assert root.get("errors") == "1"


def test_a_foreign_file_is_not_replaced(highwater: Callable[..., Call], tmp_path: Path) -> None:
    (tmp_path / "mine.xml").write_text("<mine/>")
    call = highwater("run", "canary", "--seed", 3, "--junit-xml", tmp_path / "mine.xml")
    assert (call.code, call.out, (tmp_path / "mine.xml").read_text()) == (2, "", "<mine/>")
