"""Runs with controllers that are processes."""

from __future__ import annotations

import pytest

from scenarios.format.catalogue import load
from tests.named import run_row


@pytest.mark.world
@pytest.mark.parametrize(("scenario", "mode"), [("quorum", "kraft"), ("quorum", "elr-4.3"), ("datacenter", "elr-4.3")])
def test_the_history_is_the_same_with_and_without_elision(scenario: str, mode: str) -> None:
    """Fetches of partitions are elided while metadata is fetched."""
    full = load(scenario).with_settings({"sim.elision": False})
    for seed in range(4):
        assert run_row(load(scenario), mode, seed)["digest"] == run_row(full, mode, seed)["digest"]
