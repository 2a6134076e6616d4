"""What the KIPs say of the alternatives that they rejected."""

from __future__ import annotations

import pytest

from scenarios import catalogue
from scenarios.run import run_row


@pytest.mark.parametrize(("name", "violates"), [("kip101-scenario-1", False), ("kip101-scenario-2", True)])
@pytest.mark.parametrize("mode", ["hw", "kip320"])
def test_delaying_the_truncation_solves_the_first_scenario_of_kip_101_only(
    name: str, mode: str, *, violates: bool
) -> None:
    row = run_row(catalogue.load(name), mode, 0, {"follower_truncation": "high-watermark-delayed"})
    assert not row["error"]
    assert bool(row["violations_inside"]) == violates
