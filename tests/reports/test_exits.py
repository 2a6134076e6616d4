from __future__ import annotations

import pytest

from reports import exits
from scenarios.single.rows import STORY_ERROR


@pytest.mark.parametrize(
    ("codes", "worst"), [([], 0), ([0, 3], 3), ([3, 1], 1), ([1, 4, 3], 4), ([4, 70, 1], 70), ([0, 0], 0)]
)
def test_precedence(codes: list[int], worst: int) -> None:
    assert exits.worst(codes) == worst


@pytest.mark.parametrize(
    ("verdict", "expected", "code"),
    [
        ("ok", True, 0),
        ("violation", True, 0),
        ("ok", False, 1),
        ("stalled", False, 1),
        ("error", False, 70),
        ("exhausted", True, 3),
        ("exhausted", False, 1),
    ],
)
def test_a_single_run(verdict: str, expected: bool, code: int) -> None:
    assert exits.of_row({"verdict": verdict, "expected": expected, "error": ""}) == code


def test_an_error_of_a_plugin_is_no_internal_error() -> None:
    errors = {
        "KeyError: 1 (plug-in, a.py:1 in f: g())": 1,
        "PluginError: f answers 2 (plug-in)": 1,
        "KeyError: 1 (at a)": 70,
    }
    for error, code in errors.items():
        assert exits.of_row({"verdict": "error", "expected": False, "error": error}) == code


def test_a_story_that_did_not_happen_is_the_scenarios_mistake() -> None:
    assert exits.of_row({"verdict": "error", "expected": False, "error": f"{STORY_ERROR}story did not happen"}) == 1
