"""A small form of `make hunt-reuse`."""

from __future__ import annotations

import pytest

from scenarios.format.plugins import loaded
from sim.protocol import decisions
from sim.protocol.decision_points import POINTS
from sim.protocol.rules import ADDED_VALUES
from tests.plain import needs_sources
from tests.verification.hunt import reusing
from tests.verification.hunt.reusing import CHANGES, PAIRS, PLUGGED, PLUGIN, Found, check

CASES = [
    ("chaos", "kip320", 7),
    ("chaos", "kip279", 1),
    ("elr-chaos", "elr", 3),
    ("reassignments", "elr-4.3", 10),
    ("operations", "kraft", 2),
    ("rolling", "kraft", 4),
    ("power", "kip320", 11),
]
PLUGGED_CASES = [
    ("chaos", "plugged base:kip320", 12),
    ("elr-chaos", "plugged base:elr-4.3", 3),
    ("chaos", "plugged first:3", 11),
    ("elr-chaos", "plugged first:12", 4),
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


@pytest.mark.world
def test_rows_of_a_plugins_modes_that_are_taken_over_equal_those_of_runs() -> None:
    results = Found()
    with loaded(PLUGIN):
        for name, first, seed in PLUGGED_CASES:
            check(results, name, first, seed)
    assert results.differ == []
    assert 0 < results.reused.total() < results.rows.total()


def test_the_plugin_has_each_decision() -> None:
    with loaded(PLUGIN):
        functions = [added.functions for added in ADDED_VALUES.values()]
        in_force = [ADDED_VALUES[rule, value].functions for _, rule, value in PLUGGED]
    assert (
        {point for function in functions for point in function}
        == {point for one in in_force for point in one}
        == set(POINTS)
    )


def test_all_promises_and_rules_are_known() -> None:
    assert {first for pair in PAIRS for first in pair} | {first for first, *_ in CHANGES} == set(reusing.GROUPS)


@needs_sources
def test_a_rule_that_does_not_tell_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions.Decision, "yes", lambda decision: decision.answer)
    assert found().differ
