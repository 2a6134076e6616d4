"""A small form of `make hunt-reuse`."""

from __future__ import annotations

import pytest

from sim.protocol import decisions
from tests.plain import needs_sources
from tests.verification.hunt import reusing
from tests.verification.hunt.reusing import CHANGES, PAIRS, Found, check

CASES = [
    ("chaos", "kip320", 7),
    ("chaos", "kip279", 1),
    ("elr-chaos", "elr", 3),
    ("reassignments", "elr-4.3", 10),
    ("operations", "kraft", 2),
    ("rolling", "kraft", 4),
    ("power", "kip320", 11),
]


def found() -> Found:
    results = Found()
    for name, first, seed in CASES:
        check(results, name, first, seed)
    return results


def test_rows_that_are_taken_over_equal_those_of_runs() -> None:
    results = found()
    assert results.differ == []
    assert results.reused.total() >= 20
    assert len(PAIRS) == 8
    assert len(CHANGES) == 20


def test_all_promises_and_rules_are_known() -> None:
    assert {first for pair in PAIRS for first in pair} | {first for first, *_ in CHANGES} == set(reusing.GROUPS)


@needs_sources
def test_a_rule_that_does_not_tell_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions.Decision, "yes", lambda decision: decision.answer)
    assert found().differ
