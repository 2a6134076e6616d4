"""Kinds that concern clients are found within a few seeds when a bug is put in, and not without it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sim.protocol.log import producer_state_manager
from sim.protocol.messages import NONE
from sim.protocol.replica.partition import Partition
from tests.named import run_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scenarios.format.scenario import Scenario

SEEDS = range(300)
CLEAN = SEEDS[:60]
"""Enough without a bug: `test_seeded_bugs` looks for all kinds in 250."""


def inside(scenario: Scenario, seeds: range) -> Iterator[set[str]]:
    """Kinds that are found inside the promise, seed by seed."""
    for seed in seeds:
        row = run_row(scenario, "kip320-repaired", seed)
        assert not row["error"]
        yield set(row["violations_inside"].split(",")) - {""}


def found(scenario: Scenario, kind: str, seeds: range, rules: dict[str, str] | None = None) -> bool:
    """Whether a kind is found in any seed, inside the promise or outside."""
    return any(kind in run_row(scenario, "kip320-repaired", seed, rules)["violations"] for seed in seeds)


def takes_all_for_in_sync(original: Callable[..., None]) -> Callable[..., None]:
    """The same, with an ISR that has not shrunk."""

    def patched(partition: Partition, *arguments: Any) -> None:
        isr, partition.state.isr = partition.state.isr, partition.replicas
        original(partition, *arguments)
        partition.state.isr = isr

    return patched


def appends_everything(*_: Any, **__: Any) -> tuple[str, None]:
    return NONE, None


def test_a_leader_that_forgets_its_producers_is_found(power: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = replace(power, config={**power.config, "enable.idempotence": True})
    missing = {"duplicate", "reordered"}
    assert missing.isdisjoint(set().union(*inside(scenario, CLEAN)))
    monkeypatch.setattr(producer_state_manager, "check", appends_everything)
    for kinds in inside(scenario, SEEDS):
        missing -= kinds
        if not missing:
            break
    assert missing == set()


def test_a_consumer_that_does_not_ask_where_logs_part_is_found(power: Scenario) -> None:
    assert not found(power, "consumer-skip", CLEAN)
    assert found(power, "consumer-skip", SEEDS, {"consumer_validation": "no"})


def test_a_leader_that_takes_no_notice_of_its_isr_is_found(power: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every leader does so for the ms until it hears of a smaller ISR. Faults that wait for steps find that moment (seed
    # 89); others hardly ever do.
    assert power.faults is not None
    faults = replace(power.faults, aimed_percent=0, burst_percent=0, chain_percent=0)
    scenario = replace(power, faults=faults)
    assert not found(scenario, "ack-under-min-isr", CLEAN)
    for name in ("produce", "_complete_writes"):
        monkeypatch.setattr(Partition, name, takes_all_for_in_sync(getattr(Partition, name)))
    assert found(scenario, "ack-under-min-isr", SEEDS)
