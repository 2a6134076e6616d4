"""Kinds that concern clients are found within a few seeds when a bug is put in, and not without it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.run import run_row
from sim.protocol import producer_state
from sim.protocol.messages import NONE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scenarios.scenario import Scenario

SEEDS = range(200)


def inside(scenario: Scenario) -> Iterator[set[str]]:
    """Kinds that are found inside the promise, seed by seed."""
    for seed in SEEDS:
        row = run_row(scenario, "kip320-repaired", seed)
        assert not row["error"]
        yield set(row["violations_inside"].split(",")) - {""}


def appends_everything(*_: Any) -> tuple[str, None]:
    return NONE, None


@pytest.mark.parametrize("kind", ["duplicate", "reordered"])
def test_a_leader_that_forgets_its_producers_is_found(
    power: Scenario, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    scenario = replace(power, config={**power.config, "enable.idempotence": True})
    assert all(kind not in kinds for kinds in inside(scenario))
    monkeypatch.setattr(producer_state, "check", appends_everything)
    assert any(kind in kinds for kinds in inside(scenario))
