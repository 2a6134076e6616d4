"""What changes a run in no way that matters, and what must stay when something is left out.

Hundreds of failures are tried by ``python -m tests.verification.hunt.causal``, a part of ``make hunt``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from faults.bounds import FaultBounds, Limits
from faults.kinds.registry import KINDS
from faults.plan import Fault, Plan
from scenarios.format.catalogue import load, names
from sim.history.records import VALIDATION_IDS
from sim.kernel.streams import Streams
from sim.protocol.modes import MODES
from tests.named import run, run_row
from tests.verification.hunt.causal import IDLE, INSIDE, LATER, UNMET, Tally, planned
from tests.verification.hunt.elision import scenario_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios.format.scenario import Scenario
    from scenarios.single.result import RunResult
    from scenarios.single.rows import Row
    from sim.history.trace import Shown

DRAWN = [name for name in names() if load(name).drawn]
SPAN_US = (1_000, 1_000)
DRAW = FaultBounds(SPAN_US[1], (1, 1), (), SPAN_US, SPAN_US, SPAN_US, SPAN_US, SPAN_US)
LIMITS = Limits(DRAW, (1, 2, 3), (1, 2, 3), SPAN_US)


# No faults.


def without_faults(scenario: Scenario) -> Scenario:
    assert scenario.faults is not None
    return replace(scenario, faults=replace(scenario.faults, count=(0, 0)))


def seen_by_clients(result: RunResult, *names: str) -> list[tuple[Any, ...]]:
    """What was acknowledged (``ack``) or shown (``read``), where, in order.

    A run ends once validation's own consumer has read what it wrote; others may have, too, or not.
    """
    assert result.trace is not None
    return [
        (step["step"], step["record"], step["offset"], step.get("count", step.get("last")))
        for step in result.trace
        if step["step"] in names and step["record"] < VALIDATION_IDS
    ]


def logs(result: RunResult) -> dict[int, list[tuple[int, int, int]]]:
    """What each broker holds in the end, but for leader epochs: some modes raise them more often."""
    return {
        replica.broker: [(base, last, first) for base, last, _, first in replica.batches] for replica in result.replicas
    }


@pytest.mark.parametrize(
    ("name", "fixed"),
    [
        pytest.param(name, fixed, marks=() if name in ("chaos", "operations") and not fixed else pytest.mark.world)
        for name in DRAWN
        for fixed in (False, True)
        if fixed or "sim.producers" not in load(name).config
    ],
)
def test_all_modes_show_the_same_without_faults(name: str, *, fixed: bool) -> None:
    """Where latencies are drawn, an acknowledgement may come before a read in one mode and after it in another, which
    has sent other messages before: in seed 0 broker 2 registers when broker 1 leads, for which `kip320-repaired` raises
    the leader epoch. So may those of two batches that were sent at nearly the same time. Which of several producers'
    batches comes first to the leader is then decided by latencies, too: their records stand in another order. From 2.4
    on a consumer may read from a follower, and then reads later.
    """
    scenario = without_faults(scenario_of(name, all_kinds=False, latency="fixed") if fixed else load(name))
    reads_alike = fixed and "sim.client.rack" not in scenario.draw_config
    orders = [("ack", "read")] if reads_alike else [("ack",), ("read",)]
    for seed in range(1 if fixed else 2):
        results = [run(scenario, mode, seed, trace=True) for mode in MODES]
        first = results[0]
        few = name.startswith("quorum")  # These are about the control plane.
        assert first.row["batches_acked"] >= (10 if few else 20)
        assert len(seen_by_clients(first, "ack", "read")) > (20 if few else 40)
        held = logs(first)
        assert all(log == (held[1] if broker in first.partition.replicas else []) for broker, log in held.items()), seed
        for result in results:
            assert (result.row["verdict"], result.row["faults"], result.row["truncations"]) == ("ok", 0, 0)
            for order in orders:
                seen, usual = seen_by_clients(result, *order), seen_by_clients(first, *order)
                if order == ("ack",):
                    seen, usual = sorted(seen), sorted(usual)
                assert seen == usual, (result.row["mode"], seed)
            assert logs(result) == held, (result.row["mode"], seed)


# One fault more.


def fault_at(kind: str, at_us: int) -> Fault:
    return replace(KINDS[kind].draw(Streams(7)("fault"), LIMITS), at_us=at_us)


def also(fault: Fault) -> Callable[[Plan], Plan]:
    return lambda plan: Plan((*plan.faults, fault))


def traced(scenario: Scenario, seed: int) -> tuple[Row, list[Shown]]:
    result = run(scenario, "kip320", seed, trace=True)
    assert result.trace is not None
    return result.row, result.trace


@cache
def undisturbed(seed: int) -> tuple[Row, list[Shown]]:
    """A run of `power` as it is drawn, and its steps."""
    return traced(load("power"), seed)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_after_the_end_changes_nothing(power: Scenario, kind: str) -> None:
    for seed in (0, 3):
        row, _ = undisturbed(seed)
        with planned(also(fault_at(kind, row["sim_us"] + 1))):
            other = run_row(power, "kip320", seed)
        assert other["plan_hash"] != row["plan_hash"]
        assert {**other, "plan_hash": row["plan_hash"]} == row


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_changes_nothing_before_it_strikes(power: Scenario, kind: str) -> None:
    at_us = 220_000_000
    passed = 0
    struck = False
    for seed in range(4):
        before = [step for step in undisturbed(seed)[1] if step["t"] < at_us]
        with planned(also(fault_at(kind, at_us))):
            _, after = traced(power, seed)
        assert [step for step in after if step["t"] < at_us] == before, seed
        passed += len(before)
        struck |= any(step["t"] == at_us for step in after)
    assert passed > 500
    assert struck or kind not in ("kill", "session-expiry")


# One fault less.


def first_failures(scenario: Scenario, mode: str, sort: str, count: int) -> Tally:
    """As many failures as it takes to leave out so many faults of a sort."""
    tally = Tally()
    for seed in range(300):
        tally.add(scenario, mode, seed, inside=sort == INSIDE)
        if tally.tried[sort] >= count:
            break
    assert tally.tried[sort] >= count
    return tally


@pytest.mark.world
@pytest.mark.parametrize(("name", "mode"), [("chaos", "kip101"), ("chaos", "kip320"), ("power", "hw")])
@pytest.mark.parametrize("fixed", [False, True])
def test_a_violation_outlasts_the_faults_outside_its_past(name: str, mode: str, *, fixed: bool) -> None:
    tally = first_failures(
        scenario_of(name, all_kinds=False, latency="fixed") if fixed else load(name), mode, LATER, 10
    )
    assert tally.failures >= 3
    assert tally.exceptions == []
    assert tally.tried == tally.kept
    assert tally.tried.keys() <= {LATER, IDLE, UNMET}


def test_violation_does_not_outlast_all_other_faults() -> None:
    tally = first_failures(load("power"), "hw", INSIDE, 15)
    assert 0 < tally.kept[INSIDE] < tally.tried[INSIDE]
