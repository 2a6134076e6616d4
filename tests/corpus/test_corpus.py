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
from scenarios.single import recording
from tests.named import run_row

if TYPE_CHECKING:
    from scenarios.single.rows import Row

FOLDER: Final = Path(__file__).parent
REPAIRS: Final = {
    "committed-loss-hw": {"follower_truncation": "leader-epoch"},
    "committed-loss-kip279": {"isr_join": "leader-epoch-start"},
    "committed-loss-kip320": {"missed_bounce": "noticed"},
    "consumer-skip-kip279": {"consumer_validation": "yes"},
    "divergence-hw": {"follower_truncation": "leader-epoch"},
    "divergence-kip101": {"epoch_recorded_at": "election"},
    "divergence-kip320": {"registration_epoch": "bumped"},
    "exposed-loss-kip320": {"missed_bounce": "noticed"},
    "hw-regression-kip279": {"list_offsets_guard": "yes"},
    "stuck-replica-hw": {"out_of_range": "truncates"},
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
    row = run_row(found.scenario, found.mode.name, found.seed, found.rules)
    assert (row["error"], kind in inside(row), row["expected"]) == ("", True, True), row["violations"]
    assert not row["vacuous"]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_repair_of_a_recorded_run_keeps_it_from_happening(name: str, kind: str) -> None:
    found = recording.read(FOLDER / f"{name}.json")
    assert found.mode is not None
    assert found.seed is not None
    row = run_row(found.scenario, found.mode.name, found.seed, {**(found.rules or {}), **REPAIRS[name]})
    assert row["error"] == ""
    assert kind not in inside(row)
