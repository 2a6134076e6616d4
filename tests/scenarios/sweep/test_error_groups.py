"""Errors of runs in groups."""

from __future__ import annotations

from typing import Any

from scenarios.single.rows import STORY_ERROR
from scenarios.sweep.error_groups import ErrorGroup, ErrorGroups, told


def row(seed: int, error: str, mode: str = "hw") -> dict[str, Any]:
    return {
        "scenario": "chaos",
        "mode": mode,
        "seed": seed,
        "verdict": "error" if error else "ok",
        "error": error,
        "replay": f"replay {seed}",
    }


def groups(*rows: dict[str, Any]) -> list[ErrorGroup]:
    found = ErrorGroups()
    for one in rows:
        found.add(one)
    return found.groups()


def test_errors_of_one_line_are_one_group() -> None:
    place = "(plug-in, mine.py:5 in f: raise ValueError(leo))"
    found = groups(
        row(7, f"ValueError: 7 (at sea) {place}"),
        row(2, f"ValueError: 2 {place}"),
        row(3, ""),
        row(1, f"KeyError: 2 {place}"),
    )
    assert found == [
        ErrorGroup(2, f"ValueError: 2 {place}", "chaos", "hw", 2, "replay 2"),
        ErrorGroup(1, f"KeyError: 2 {place}", "chaos", "hw", 1, "replay 1"),
    ]


def test_errors_of_highwater_are_grouped_by_line_stories_by_step() -> None:
    found = groups(
        row(1, "KeyError: 1 (at a.py:1 in f)"),
        row(2, "KeyError: 2 (at a.py:1 in f)"),
        row(3, "KeyError: 2 (at a.py:2 in f)"),
        row(4, f"{STORY_ERROR}no step (at 1)"),
        row(5, f"{STORY_ERROR}no step (at 2)"),
    )
    assert [group.runs for group in found] == [2, 1, 1, 1]


def test_each_group_is_told_with_a_replay() -> None:
    lines = list(told(groups(row(1, "KeyError: 1 (at a.py:1 in f)"), row(2, "KeyError: 2 (at a.py:1 in f)"))))
    assert lines[0].startswith("2 runs ended with an error")
    assert lines[1:] == ["  2 runs: KeyError: 1 (at a.py:1 in f)", "  replay 1"]
    assert list(told([])) == []
