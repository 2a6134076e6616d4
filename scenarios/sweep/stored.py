"""Checks of what a store says about itself, before anything is done with it: who wrote it last is not known."""

from __future__ import annotations

from typing import Any, Final

from scenarios import paths
from scenarios.shape import check
from sim.config import parse
from sim.errors import InputError

RUN: Final = {
    "code_version": str,
    "scenarios": [{"name": str, "faults?": ({"kinds": [str]},), "broker_modes?": ({str: str},)}],
    "modes": {str: [str]},
    "own_modes?": {str: {"release": str, "follows": str, "summary": str, "rules": {str: str}, "promise": {str: bool}}},
    "seeds": [object],
    "rules": {str: str},
    "grid?": {str: [object]},
}
"""Shape of ``run.json``, as `scenarios.shape.check` takes it."""


def check_run(path: str, data: dict[str, Any]) -> dict[str, Any]:
    """Check ``run.json``: its shape, and the names in it that become paths and columns.

    Args:
        path: what to call it.
        data: what it holds; given back.

    Raises:
        InputError: what is wrong with it.
    """
    try:
        check(data, RUN)
        seeds = data["seeds"]
        check(seeds, [int] if seeds and isinstance(seeds[0], int) else [[int]], "seeds")
        _check_names(data["scenarios"], data["modes"])
        for key, values in data.get("grid", {}).items():
            for value in values:
                check(value, type(parse(key, value)), f"grid.{key}")
    except InputError as error:
        raise InputError(*(f"{path}: {problem}" for problem in error.problems)) from None
    return data


def _check_names(scenarios: list[dict[str, Any]], modes: dict[str, list[str]]) -> None:
    names = [paths.name(scenario["name"], "scenario's name") for scenario in scenarios]
    if not names or len(set(names)) < len(names) or not modes.keys() >= set(names):
        raise InputError("there is no scenario, or two have one name, or one has no modes")
    for mode in (mode for named in modes.values() for mode in named):
        paths.name(mode, "mode")
