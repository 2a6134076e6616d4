"""Failed runs to shrink."""

from __future__ import annotations

from functools import cache

from scenarios.format.catalogue import load
from scenarios.shrinking.case import Case
from scenarios.single import recording
from sim.protocol.modes import mode as mode_named


@cache
def failing(scenario: str, mode: str, first: int = 0, kind: str = "") -> Case:
    """The first seed from one on that violates a kind, or anything, as a recorded run."""
    drawn = load(scenario)
    for seed in range(first, first + 500):
        result = Case(drawn, mode_named(mode), seed).run()
        if kind in result.row["violations"] and result.row["violations"]:
            return Case(recording.of_run(drawn, result).scenario, mode_named(mode), seed)
    raise AssertionError("none of 500 seeds violates it")
