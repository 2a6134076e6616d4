"""Builds with one changed method, without Java."""

from __future__ import annotations

import dataclasses

import pytest

from reports.hunt.state import State
from sim.errors import InputError
from sim.protocol.rules import RULES
from tests.verification.hunt import patched
from tests.verification.hunt.patched import PATCHES, UNCHANGED, problems
from tests.verification.oracle.build import CLASSES


def state(*compared: tuple[int, list[str]]) -> State:
    """A hunt's state: of the first subjects, how many cases differ, and which rule values explain them."""
    classes = list(CLASSES.values())
    oracle = [
        {"subject": classes[at], "differ": differ, "explained": explained, "problem": ""}
        for at, (differ, explained) in enumerate(compared)
    ]
    return State({}, oracle=oracle)


def test_patches_name_rule_values_that_repair_a_finding() -> None:
    repairs = [patch.rule for patch in PATCHES.values() if patch.rule]
    assert len(repairs) >= 3
    assert len(PATCHES) - len(repairs) >= 3
    assert set(repairs) <= patched.REPAIRS
    for one in repairs:
        name, _, value = one.partition("=")
        assert value in RULES[name].values


def test_a_repair_must_be_named() -> None:
    rule = PATCHES["elr-of-replicas"].rule
    assert problems("elr-of-replicas", 1, state((5, [rule]), (2, [rule]))) == []
    assert problems("elr-of-replicas", 1, state((5, []))) == [f"it takes it for no rule, not for {rule}"]
    assert problems("elr-of-replicas", 0, state((0, []), (0, [])))[0] == "no class differs"
    assert problems("marks-replaced", 0, state((0, [])))[0] == "there was no time to compare kraft-controller"


def test_a_defect_must_differ_and_be_no_repair() -> None:
    assert problems("elr-not-cleared", 1, state((5, []), (2, []))) == []
    (found,) = problems("elr-not-cleared", 1, state((5, ["elr_outside_assignment=dropped"]), (2, [])))
    assert "takes a defect for the repair elr_outside_assignment=dropped" in found


def test_released_jars_do_not_differ() -> None:
    assert problems(UNCHANGED, 0, state((0, []))) == []
    assert problems(UNCHANGED, 1, state((3, []))) == ["partition-change differs"]


def test_a_text_that_is_not_there_is_refused() -> None:
    patch = dataclasses.replace(PATCHES["elr-not-cleared"], changes=(("old", "new"),))
    assert patched.patched("an old one", patch) == "an new one"
    with pytest.raises(InputError, match="has 2 places like 'old'"):
        patched.patched("old old", patch)
