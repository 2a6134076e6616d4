from __future__ import annotations

from typing import Any

import pytest

from scenarios import shape
from sim.errors import InputError


@pytest.mark.parametrize(
    ("value", "wanted", "said"),
    [
        ([], {}, "it is list, where dict is needed"),
        ({"a": True}, {"a": int}, "a is bool, where int is needed"),
        ({"a": {"b": ["x", 1]}}, {str: {"b": [str]}}, "a.b is int, where str is needed"),
        ({}, {"a": int}, "'a' is missing"),
        ({"a": {}}, {"a": {"b": int}}, "a: 'b' is missing"),
        ({"a": 1}, {"a?": str}, "a is int, where str is needed"),
        ({"a": 1}, {"a": ({"b": int},)}, "a is int, where dict is needed"),
    ],
)
def test_shapes(value: object, wanted: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        shape.check(value, wanted)
    assert str(caught.value) == said


def test_shapes_that_fit() -> None:
    shape.check({"a": None, "b": 1, "more": []}, {"a": ([int],), "b": int, "c?": str})
