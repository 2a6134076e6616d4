"""What `make confirm` acts out."""

from __future__ import annotations

import json
import re

import pytest

from highwater.lab.confirm import actions
from highwater.lab.confirm.release import InstalledRelease, mode_of
from highwater.lab.kafka import releases
from highwater.lab.tickets.story import CONFIRMED
from scenarios.format.catalogue import load, names
from scenarios.single.script import RulesInForce
from tests.verification.confirm.__main__ import (
    COUNTED,
    RUNS,
    confirmed,
    fastest,
    file_of,
    harness,
    is_present,
    table,
)
from tests.verification.confirm.entries import ENTRIES, WITHOUT, Entry


def test_every_scripted_scenario_is_acted_out_or_has_a_reason() -> None:
    scripted = {name for name in names() if load(name).script}
    acted = {entry.scenario for entry in ENTRIES}
    assert acted | set(WITHOUT) == scripted
    assert not acted & set(WITHOUT)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.scenario}-{entry.release}")
def test_an_entry_can_be_acted_out(entry: Entry) -> None:
    assert entry.release in releases.releases()
    scenario = load(entry.scenario)
    release = InstalledRelease(entry.release, ())
    mode, _ = mode_of(release)
    assert mode.name in scenario.expect, f"the scenario does not say what to expect of {mode.name}, the nearest mode"
    rules = RulesInForce(mode.rules, {})
    assert actions.missing(scenario, [line for line in scenario.script if rules.fit(line.rules, None)], release) == []


def test_the_fastest_are_as_many_as_fit_by_what_their_good_runs_took() -> None:
    one, two, three = ENTRIES[:3]
    lines = [
        {"scenario": entry.scenario, "release": entry.release, "seconds": seconds, "code": code}
        for entry, seconds, code in ((one, 30.0, 0), (two, 20.0, 0), (two, 22.0, 0), (two, 90.0, 0), (three, 5.0, 1))
    ]
    assert fastest(ENTRIES, 52, lines) == [two, one]
    assert fastest(ENTRIES, 51, lines) == [two]
    assert fastest([one], 60, lines) == [one]
    assert fastest(ENTRIES, 10, lines) == []


def test_each_release_that_a_scenario_names_was_run() -> None:
    ran = {(line["scenario"], line["release"]) for line in map(json.loads, RUNS.read_text().splitlines())}
    assert [(entry.scenario, entry.release) for entry in ENTRIES if (entry.scenario, entry.release) not in ran] == []


def test_the_table_says_what_was_confirmed() -> None:
    good = {
        "scenario": "last-replica-standing",
        "release": "4.1.0",
        "code": 0,
        "seconds": 21.2,
        "day": "2026-01-02",
        "differs": [],
        "harness": harness(),
        "file": file_of("last-replica-standing"),
    }
    bad = {**good, "release": "3.9.0", "code": 1, "differs": [{"what": "verdict"}, {"what": "log of broker 1"}]}
    old = {**good, "release": "2.6.0", "harness": "another", "day": "2026-01-01"}
    text = table([{**old, "release": "4.1.0"}, good, {**good, "seconds": 19.7}, bad, old])
    confirmed, others, not_run = text.split("\n## ")
    assert "| `last-replica-standing` | 2.6.0 (21)*, 4.1.0 (21/20) | 2026-01-02 |" in confirmed
    assert "| `missed-bounce` | - | - |" in confirmed
    assert re.search(
        r"^\| `duplicates-across-epochs` \| 4\.4\.0 \(3 of 3 with `--set elig.*\) \| - \|$", confirmed, re.MULTILINE
    )
    assert [line for line in others.splitlines() if "`" in line] == [
        "| `last-replica-standing` | 3.9.0: verdict, log of broker 1 |"
    ]
    assert "| `two-producers` | `confirm` has one producer |" in not_run


def test_a_run_counts_if_harness_and_scenario_are_the_present_ones() -> None:
    run = {"scenario": "canary", "harness": harness(), "file": file_of("canary")}
    assert is_present(run)
    assert all(is_present({**run, "harness": one}) for one in COUNTED)
    assert not is_present({**run, "harness": "another"})
    assert not is_present({**run, "file": file_of("kip903")})


def test_tickets_have_the_counts_of_the_runs() -> None:
    """Write them by ``python -m tests.verification.confirm --table`` if they have not."""
    lines = [json.loads(line) for line in RUNS.read_text(encoding="utf-8").splitlines()]
    assert CONFIRMED.read_text(encoding="utf-8") == confirmed(lines)
