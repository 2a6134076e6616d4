"""Runs that taught something go on showing what they showed, however scenarios and drawing change.

Each file is the ``plan.json`` of a failing run, named by the kind of violation that it is kept for and by its mode.
They were chosen among those that show it under other latencies as well, so that only a change of the protocol undoes
it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from scenarios.format.fields import VIOLATIONS
from scenarios.shrinking.known import repair_of
from scenarios.single import recording
from tests.named import run_row

if TYPE_CHECKING:
    from scenarios.single.rows import Row

FOLDER: Final = Path(__file__).parent
REPAIRS: Final = {
    "committed-loss-hw": repair_of("KAFKA-1211, KIP-101"),
    "committed-loss-kip279": repair_of("KAFKA-7128"),
    "committed-loss-kip320": repair_of("KAFKA-1120"),
    "consumer-skip-kip279": repair_of("KAFKA-7747, KIP-320"),
    "divergence-hw": repair_of("KAFKA-1211, KIP-101"),
    "divergence-kip101": repair_of("KAFKA-7415"),
    "divergence-kip320": repair_of("KIP-101"),
    "exposed-loss-kip320": repair_of("KAFKA-1120"),
    "hw-regression-kip279": repair_of("KAFKA-2334, KIP-207"),
    "stuck-replica-hw": repair_of("KAFKA-3410, KAFKA-7414"),
    "stuck-replica-kip320": {"broker_metadata": "last-sent"},
}
"""Name of a file -> the rule that keeps its run from being violated inside the promise."""
CASES: Final = [
    pytest.param(name, kind, id=name) for name in REPAIRS for kind in VIOLATIONS if name.startswith(f"{kind}-")
]


def inside(row: Row) -> list[str]:
    """Kinds that are violated inside the promise."""
    found: list[str] = row["violations_inside"].split(",")
    return found


def test_every_file_has_its_repair() -> None:
    assert sorted(file.stem for file in FOLDER.glob("*.json")) == sorted(REPAIRS)
    assert len(CASES) == len(REPAIRS)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_run_still_shows_what_it_showed(name: str, kind: str) -> None:
    found = recording.read(FOLDER / f"{name}.json")
    assert found.mode is not None
    assert found.seed is not None
    row = run_row(found.scenario, found.mode, found.seed, found.rules)
    assert (row["error"], kind in inside(row), row["expected"]) == ("", True, True), row["violations"]
    assert not row["vacuous"]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_repair_of_a_recorded_run_keeps_it_from_happening(name: str, kind: str) -> None:
    found = recording.read(FOLDER / f"{name}.json")
    assert found.mode is not None
    assert found.seed is not None
    row = run_row(found.scenario, found.mode, found.seed, {**(found.rules or {}), **REPAIRS[name]})
    assert row["error"] == ""
    assert kind not in inside(row)
