from __future__ import annotations

import re
from pathlib import Path

import pytest

from scenarios.format.catalogue import load
from scenarios.shrinking.known_bugs import FINDINGS, KNOWN, DocumentedBug, finding, known
from sim.protocol.modes import MODES
from sim.protocol.rules import RULES
from tests.named import run_row

PAGE = Path("highwater/lab/confirm/FINDINGS.md")
SHOWN = [(one, name) for one in FINDINGS for name in one.scenarios]


def test_each_repair_tells_its_bug_and_each_ticket_its_repair() -> None:
    assert all(known(rule, value) is bug for (rule, value), bug in KNOWN.items())
    assert len({bug.ticket for bug in KNOWN.values()}) == len(KNOWN)


def test_every_finding_of_the_page_is_declared_once() -> None:
    page = PAGE.read_text()
    told = re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE)
    assert sorted(told) == sorted(name for _, name in SHOWN)
    assert [one.rule for one in FINDINGS if f"Rule `{one.rule}`" not in " ".join(page.split())] == []
    assert [one for one in FINDINGS if one.value not in RULES[one.rule].values] == []
    assert finding(FINDINGS[0].rule, FINDINGS[0].value) is FINDINGS[0]
    assert finding("isr_floor", "min-isr") is None


@pytest.mark.parametrize(("one", "name"), SHOWN, ids=[name for _, name in SHOWN])
def test_the_repair_of_a_finding_cures_its_scenario(one: DocumentedBug, name: str) -> None:
    scenario = load(name)
    mode, expected = next(
        (mode, expected)
        for mode, expected in scenario.expect.items()
        if expected.verdict == "violates" and mode != "kraft"
    )
    (kind,) = expected.kinds
    assert not one.kinds or kind in one.kinds
    assert kind in run_row(scenario, mode, 0)["violations"].split(",")
    repaired = run_row(scenario, mode, 0, {one.rule: one.value})
    assert kind not in repaired["violations"].split(",")
    assert MODES[mode].rules.as_dict()[one.rule] != one.value
