from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from faults.bounds import FaultBounds, Limits


def test_copies_differ_in_what_was_asked_for() -> None:
    values: dict[str, Any] = {field.name: number for number, field in enumerate(fields(FaultBounds))}
    bounds = FaultBounds(**values)
    short = (1, 2), (3, 4), (5, 6)
    assert bounds.within(*short) == replace(bounds, restart_us=(1, 2), cut_us=(3, 4), pause_us=(5, 6))
    limits = Limits(bounds, (1, 2), (1, 2, 3), (7, 8), 2, 1, triggered=True)
    assert limits.with_bounds(bounds.within(*short)) == replace(limits, bounds=bounds.within(*short))
