from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from scenarios.format import catalogue
from scenarios.single.rows import COLUMNS, ROWS_VERSION
from sim.config import KEYS
from sim.protocol.modes import MODES, RULES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call


def test_scenarios_are_listed_with_what_they_expect(highwater: Callable[..., Call]) -> None:
    call = highwater("scenarios", "list")
    assert call.code == 0
    for name in catalogue.names():
        assert name in call.out
    assert "hw violates:committed-loss" in call.out
    listed = highwater("scenarios", "list", "--json").json["scenarios"]
    assert [entry["name"] for entry in listed] == catalogue.names()
    assert {entry["name"]: entry["faults"] for entry in listed}["power"] == "drawn"


def test_a_scenario_is_shown(highwater: Callable[..., Call]) -> None:
    out = highwater("scenarios", "show", "canary").out
    for words in (
        "canary: The shortest loss",
        "when ack batch=m1: kill broker=1",
        "truncate broker=3 offset=0 (where follower_truncation=high-watermark)",
        "hw: violates:committed-loss",
    ):
        assert words in out
    assert "session.timeout" not in out


def test_a_finding_is_shown_with_its_scenario(highwater: Callable[..., Call]) -> None:
    out = highwater("scenarios", "show", "leo-of-skipped-epoch").out
    assert "Kafka: Partition#makeLeader. For a newer leader epoch" in out
    assert "Known upstream: We found no ticket." in out
    assert "**What an operator sees.**" in out
    out = highwater("scenarios", "show", "leo-of-skipped-epoch-paused").out
    assert "highwater scenarios show leo-of-skipped-epoch\n" in out


def test_every_setting_is_shown_when_asked(highwater: Callable[..., Call]) -> None:
    lines = highwater("scenarios", "show", "power", "--resolved").out.splitlines()
    settings = {words[0]: words for words in map(str.split, lines) if words and words[0] in KEYS}
    assert settings.keys() == KEYS.keys()
    assert settings["sim.end.offsets.interval.ms"][1:3] == ["5000", "scenario"]
    assert settings["zookeeper.session.timeout.ms"][1:3] == ["18000", "default"]
    assert settings["min.insync.replicas"][1:5] == ["1", "|", "2", "drawn"]


def test_a_scenario_as_json(highwater: Callable[..., Call]) -> None:
    power = catalogue.load("power")
    data = highwater("scenarios", "show", "power", "--json").json
    assert data["scenario_hash"] == power.scenario_hash()
    assert data["brokers"] == 3
    assert {setting["key"] for setting in data["settings"]} == KEYS.keys()


def test_files_are_validated(highwater: Callable[..., Call], tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text('schema = 1\ntitel = "x"\nbrokers.count = 3\n')
    call = highwater("scenarios", "validate", "canary", bad)
    assert call.code == 2
    assert call.out == f"canary: valid\n{bad}: not valid\n"
    assert "did you mean 'title'?" in call.err
    assert call.err.count("\n") > 2
    report = highwater("scenarios", "validate", "canary", bad, "--json").json
    assert [file["valid"] for file in report["files"]] == [True, False]
    assert report["exit_code"] == 2
    assert highwater("scenarios", "validate", "canary").code == 0


def test_columns_are_listed(highwater: Callable[..., Call]) -> None:
    out = highwater("columns").out
    for name in COLUMNS:
        assert re.search(rf"^{name} ", out, re.MULTILINE)
    listed = highwater("columns", "--json").json
    assert listed["schema_version"] == ROWS_VERSION
    assert [entry["name"] for entry in listed["columns"]] == list(COLUMNS)
    assert {entry["name"]: (entry["since"], entry["before"]) for entry in listed["columns"]}["batches_failed"] == (
        11,
        -1,
    )


def test_modes_are_listed(highwater: Callable[..., Call]) -> None:
    listed = highwater("modes", "list", "--json").json["modes"]
    assert [entry["mode"] for entry in listed] == list(MODES)
    assert "0.10.2" in highwater("modes", "list").out


def test_a_mode_is_shown_with_rules_values_and_sources(highwater: Callable[..., Call]) -> None:
    out = highwater("modes", "show", "kip101").out
    values = "high-watermark, high-watermark-delayed, leader-epoch, leader-epoch-rounds, on-fetch"
    assert f"follower_truncation = leader-epoch    ({values})" in out
    for name, spec in RULES.items():
        assert name in out
        assert spec.source in out
    rules = highwater("modes", "show", "hw", "--json").json["rules"]
    assert {rule["name"]: rule["value"] for rule in rules} == MODES["hw"].rules.as_dict()


@pytest.mark.parametrize("mode", MODES)
def test_a_page_names_the_rules_that_differ_from_the_mode_before(mode: str) -> None:
    page = (files("scenarios") / "modes" / f"{mode}.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (\w[\w, ]*?) \| (\w[\w, -]*?) \| .+ \|$", page, re.MULTILINE)
    said = [dict(zip(names.split(", "), values.split(", "), strict=True)) for names, values in lines if names != "rule"]
    rules = MODES[mode].rules.as_dict()
    assert said
    merged = {name: value for pairs in said for name, value in pairs.items()}
    if before := re.search(r"^Those of `([\w.-]+)`, except:$", page, re.MULTILINE):
        other = MODES[before[1]].rules.as_dict()
        assert merged == {name: value for name, value in rules.items() if value != other[name]}
    else:
        assert merged.items() <= rules.items()


@pytest.mark.parametrize("mode", MODES)
def test_pages_have_the_same_parts(mode: str) -> None:
    page = (files("scenarios") / "modes" / f"{mode}.md").read_text(encoding="utf-8")
    assert page.startswith(
        f"# {mode}: {'no release' if MODES[mode].release == 'none' else 'Kafka ' + MODES[mode].release}"
    )
    parts = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert [part for part in parts if part != "Where text and code differ"] == [
        "Rules",
        "Promise",
        "Known behaviour",
        "Not modelled",
    ]
