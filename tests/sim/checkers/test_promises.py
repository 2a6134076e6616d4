"""Each promise of Kafka has a checker, and each checker a bug that no other one finds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from scenarios.format.catalogue import load
from sim import checkers
from sim.checkers.checker import NOT_PROMISED
from sim.checkers.registry import FINDINGS
from sim.protocol.rules import MUTANT, RULES
from tests.named import run_row
from tests.places import ROOT

PAGE = Path(checkers.__file__).with_name("PROMISES.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if re.match(r"\| .*`", line)
]
JUDGED = {re.sub("`", "", row[2]): row for row in ROWS if len(row) == 5}


def values(cell: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in re.findall(r"`([^`=]+=[^`]+)`", cell))


def found(run: str, changes: dict[str, str]) -> dict[str, Any]:
    """The row of the run that a cell names, with changed rules and settings."""
    name, mode, seed = re.findall(r"^`([^`]+)` (\S+) (\d+)", run)[0]
    rules = {key: value for key, value in changes.items() if key in RULES or key == MUTANT}
    settings = {key: {"true": True}.get(value, value) for key, value in changes.items() if key not in rules}
    return run_row(load(name).with_settings(settings), mode, int(seed), rules)


def test_each_kind_of_violation_breaks_a_promise_of_the_page() -> None:
    assert set(JUDGED) == {kind for kind, finding in FINDINGS.items() if not finding.is_warning}


@pytest.mark.parametrize("kind", [kind for kind, row in JUDGED.items() if row[4]])
def test_only_this_checker_finds_the_bug(kind: str) -> None:
    _, _, _, run, repair = JUDGED[kind]
    broken, repaired = found(run, values(run)), found(run, values(run) | values(repair))
    inside = set(broken["violations_inside"].split(",")) - {""}
    if FINDINGS[kind].promised == NOT_PROMISED:
        assert inside == set()
        assert kind in broken["violations"].split(",")
    else:
        assert inside == {kind}
    assert kind not in repaired["violations"].split(",")


@pytest.mark.parametrize("kind", [kind for kind, row in JUDGED.items() if not row[4]])
def test_a_bug_that_no_rule_value_makes_is_put_in_by_a_test(kind: str) -> None:
    (file,) = re.findall(r"\]\(\.\./\.\./([^)]+)\)", JUDGED[kind][3])
    assert f'"{kind}"' in (ROOT / file).read_text(encoding="utf-8")
