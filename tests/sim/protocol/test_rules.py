from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mypy import api

from sim.errors import InputError
from sim.protocol.modes import MODES, mode
from sim.protocol.rules import NO_RULES, RULES, Rules, parse_overrides
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPARISONS = """\
from sim.protocol.rules import Rules

def right(rules: Rules) -> bool:
    return rules.follower_truncation == "on-fetch" or rules.follower_truncation == "leader-epoch"

def equal(rules: Rules) -> bool:
    return rules.isr_join == "leader-epoch-strat"  # wrong

def unequal(rules: Rules) -> bool:
    return rules.isr_join != "leader-epoch-strat"  # wrong

def one_of(rules: Rules) -> bool:
    return rules.follower_truncation == "on-fetch" or rules.follower_truncation == "leader-epochs"  # wrong

def rule(rules: Rules) -> object:
    return rules.isr_joins  # wrong
"""
"""Misspelt values and a misspelt rule."""


def test_every_rule_has_values_a_meaning_and_a_source() -> None:
    assert [field.name for field in fields(Rules)] == [*RULES, *NO_RULES]
    for spec in RULES.values():
        assert len(set(spec.values)) == len(spec.values) >= 2
        assert spec.meaning
        assert spec.source


def test_mypy_finds_misspelt_rules_and_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    file = tmp_path / "decides.py"
    file.write_text(COMPARISONS, encoding="utf-8")
    found, _, code = api.run(["--config-file=", "--strict", f"--cache-dir={ROOT / '.mypy_cache'}", str(file)])
    lines = COMPARISONS.splitlines()
    wrong = [number for number, line in enumerate(lines, start=1) if line.endswith("# wrong")]
    assert [int(number) for number in re.findall(r"decides\.py:(\d+): error", found)] == wrong
    assert code == 1


def sought_in_a_container() -> Iterator[str]:
    """Places where a rule is looked for in a tuple or a set, whose words mypy does not look at."""
    for file in (file for layer in ("sim", "faults", "scenarios", "reports") for file in (ROOT / layer).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Attribute):
                continue
            if isinstance(node.ops[0], ast.In | ast.NotIn) and ast.unparse(node.left.value).endswith("rules"):
                yield f"{file.name}:{node.lineno}"


def test_no_rule_is_compared_so_that_mypy_would_not_look() -> None:
    assert list(sought_in_a_container()) == []


def test_kip101_differs_in_these_rules() -> None:
    hw, kip101 = (MODES[name].rules.as_dict() for name in ("hw", "kip101"))
    assert {name for name in RULES if hw[name] != kip101[name]} == {
        "follower_truncation",
        "append_check",
        "producer_dedup",
        "shutdown_recipients",
        "shutting_down_leader",
        "last_isr_member",
        "preferred_election",
        "unreadable_checkpoint",
    }


def test_an_override_leaves_the_mode_as_it_is() -> None:
    rules = mode("hw").rules.override({"follower_truncation": "leader-epoch"})
    assert rules.follower_truncation == "leader-epoch"
    assert mode("hw").rules.follower_truncation == "high-watermark"


def test_overrides_are_read_from_words() -> None:
    assert parse_overrides(["isr_join=leader-epoch-start", "fetch_fencing=leader-epoch"]) == {
        "isr_join": "leader-epoch-start",
        "fetch_fencing": "leader-epoch",
    }


def test_all_that_is_wrong_with_overrides_is_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        parse_overrides(["isr_joins=x", "isr_join=leader-epoch-stat", "fetch_fencing"])
    first, second, third = caught.value.problems
    assert first == "unknown rule 'isr_joins'; did you mean 'isr_join'?"
    assert second == "rule isr_join has no value 'leader-epoch-stat'; did you mean 'leader-epoch-start'?"
    assert third == "--rule 'fetch_fencing' is not of the form NAME=VALUE"


def test_an_unknown_mode_or_value_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'kip101'"):
        mode("kip11")
    with pytest.raises(InputError, match="rule fetch_fencing has no value 'maybe'"):
        mode("hw").rules.override({"fetch_fencing": "maybe"})
