"""What the KIPs say of the alternatives that they rejected."""

from __future__ import annotations

from typing import Final

import pytest

from scenarios.format import catalogue
from sim.history.trace import Shown
from tests.named import run, run_row

SEEDS: Final = range(5)


@pytest.mark.parametrize(("name", "violates"), [("kip101-scenario-1", False), ("kip101-scenario-2", True)])
@pytest.mark.parametrize("mode", ["hw", "kip320"])
def test_delayed_truncation_repairs_only_kip_101_scenario_1(name: str, mode: str, *, violates: bool) -> None:
    row = run_row(catalogue.load(name), mode, 0, {"follower_truncation": "high-watermark-delayed"})
    assert not row["error"]
    assert bool(row["violations_inside"]) == violates


@pytest.mark.parametrize("mode", ["elr", "elr-recovery"])
def test_a_given_number_of_replies_does_not_protect_from_one_lossy_end(mode: str) -> None:
    """KIP-966: "it does not give enough protection if we don't require responses from all the replicas"."""
    scenario = catalogue.load("kip966-first-replies")
    for seed in SEEDS:
        row = run_row(scenario, mode, seed, {"unclean_recovery": "first-replies"})
        assert not row["error"], seed
        assert (row["lossy_ends"], row["records_lost"], row["inside_lossy"]) == (1, 1, 1), seed
        assert "committed-loss" in row["violations_inside"].split(","), seed


def isr_at(trace: list[Shown], at_us: int) -> list[int]:
    """The ISR that is persisted at a time: all three, while no step says otherwise."""
    return next((step["isr"] for step in reversed(trace) if step["step"] == "isr" and step["t"] <= at_us), [1, 2, 3])


def when(trace: list[Shown], step: str, **fields: int) -> int:
    """When a step happens first."""
    return int(next(one["t"] for one in trace if one["step"] == step and fields.items() <= one.items()))


@pytest.mark.parametrize("floor", ["min-isr", "none"])
@pytest.mark.parametrize("mode", ["kraft", "elr", "elr-recovery"])
def test_soft_min_isr_keeps_a_fenced_and_a_lagging_member(mode: str, floor: str) -> None:
    """KIP-966: "the replication will not be interrupted", but "the ISR now can have fenced replicas and lagging
    replicas".
    """
    is_soft = floor == "min-isr"
    for seed in SEEDS:
        result = run(catalogue.load("kip966-soft-min-isr"), mode, seed, {"isr_floor": floor}, trace=True)
        assert result.row["verdict"] == "ok", (seed, result.row["error"])
        assert result.trace is not None
        fenced_us = when(result.trace, "session-end", broker=2)
        unfenced_us = next(one["t"] for one in result.trace if one["step"] == "unfenced" and one["t"] > fenced_us)
        acked_us = when(result.trace, "ack", record=1)
        assert (fenced_us < acked_us < unfenced_us) == is_soft, seed
        assert isr_at(result.trace, unfenced_us - 1) == ([1, 2] if is_soft else [1]), seed
        healed_us = when(result.trace, "heal", source=1, target=2)
        assert when(result.trace, "append", broker=2, record=2) > healed_us, seed
        assert isr_at(result.trace, healed_us - 1) == ([1, 2] if is_soft else [1]), seed
