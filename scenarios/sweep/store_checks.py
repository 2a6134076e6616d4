"""Checks of ``run.json`` and ``summary.json`` before use, because others may have changed them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from scenarios import paths
from scenarios.format.blow import BLOWS_MAX
from scenarios.format.validation import OpenTable, checked, validated
from sim.config import parse
from sim.errors import InputError
from sim.protocol.modes import NAME, NAME_MAX


def _seeds(value: list[Any], _: object) -> list[Any]:
    """A list of ranges ``[first, end]``."""
    if not value or not all(type(one) is list and list(map(type, one)) == [int, int] for one in value):
        raise ValueError("ranges of two whole numbers are needed")
    if any(first >= end for first, end in value):
        raise ValueError("a range is empty")
    return value


def _named(what: str) -> AfterValidator:
    return AfterValidator(checked(lambda value, _: paths.name(value, what)))


def _mode(value: str, _: object) -> str:
    if not NAME.fullmatch(value) or len(value) > NAME_MAX:
        raise InputError(f"{value[:NAME_MAX]!r} is no mode")
    return value


ModeName = Annotated[str, AfterValidator(checked(_mode))]
Counts = dict[str, dict[str, int]]
"""Name -> mode -> runs."""


class _Faults(OpenTable):
    kinds: list[str]


class _Scenario(OpenTable):
    name: Annotated[str, _named("scenario's name")]
    faults: _Faults | None = None
    broker_modes: dict[str, str] = {}


class _OwnMode(OpenTable):
    release: str
    follows: str
    summary: str
    source: str = ""
    rules: dict[str, str]
    promise: dict[str, bool]


def _grid(value: dict[str, list[Any]], _: object) -> dict[str, list[Any]]:
    for key, one in ((key, one) for key, values in value.items() for one in values):
        if type(one) is not type(parse(key, one)):
            raise InputError(f"{key} = {one!r}: a value of another type is needed")
    return value


class _RunFile(OpenTable):
    code_version: str
    scenarios: Annotated[list[_Scenario], Field(min_length=1)]
    modes: dict[str, list[ModeName]]
    own_modes: dict[str, _OwnMode] = {}
    seeds: Annotated[list[Any], AfterValidator(checked(_seeds))]
    rules: dict[str, str]
    grid: Annotated[dict[str, list[Any]], AfterValidator(checked(_grid))] = {}
    plugins: dict[str, str] = {}
    blows: Annotated[int, Field(ge=0, le=BLOWS_MAX)] = 0


class _Coverage(OpenTable):
    runs: dict[str, int]
    probes: dict[str, Counts]
    faults: Counts
    pairs: dict[str, Counts]


class _Summary(OpenTable):
    complete: bool
    coverage: _Coverage


def check_run(path: str, data: dict[str, Any]) -> dict[str, Any]:
    """Check the structure of ``run.json``, and names that become paths and columns; return it, or raise InputError."""
    _check(path, _RunFile, data)
    names = [scenario["name"] for scenario in data["scenarios"]]
    if len(set(names)) < len(names) or not data["modes"].keys() >= set(names):
        raise InputError(f"{path}: two scenarios have the same name, or one has no modes")
    return data


def check_summary(path: str, data: dict[str, Any]) -> None:
    """Check ``summary.json``, as `check_run`."""
    _check(path, _Summary, data)


def _check(path: str, model: type[OpenTable], data: dict[str, Any]) -> None:
    try:
        validated(model, data)
    except InputError as error:
        raise InputError(*(f"{path}: {problem}" for problem in error.problems)) from None
