"""What changes a run in no way that matters, and what must stay when something is left out.

Hundreds of failures are tried by ``python -m tests.hunt.causal``, a part of ``make hunt``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from faults.injection import INJECTORS
from faults.plan import Fault, Limits, Plan
from scenarios.catalogue import load, names
from scenarios.run import run, run_row
from sim.protocol.modes import MODES
from sim.streams import Streams
from tests.hunt.causal import IDLE, INSIDE, LATER, UNMET, Tally, planned
from tests.hunt.elision import scenario_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios.run import RunResult
    from scenarios.scenario import Scenario
    from sim.trace import Step

DRAWN = [name for name in names() if load(name).drawn]
SPAN_US = (1_000, 1_000)
LIMITS = Limits((1, 2, 3), SPAN_US, SPAN_US, SPAN_US, SPAN_US, SPAN_US, SPAN_US, (1, 2, 3))


# No faults.


def without_faults(scenario: Scenario) -> Scenario:
    assert scenario.faults is not None
    return replace(scenario, faults=replace(scenario.faults, count=(0, 0)))


def seen_by_clients(result: RunResult) -> list[tuple[Any, ...]]:
    """What was acknowledged and what was shown, where, in order."""
    assert result.trace is not None
    return [
        (step["step"], step["record"], step["offset"], step.get("count", step.get("last")))
        for step in result.trace
        if step["step"] in ("ack", "read")
    ]


def logs(result: RunResult) -> list[list[tuple[int, int, int]]]:
    """What each broker holds in the end, but for leader epochs: some modes raise them more often."""
    return [[(base, last, first) for base, last, _, first in replica.batches] for replica in result.replicas]


@pytest.mark.parametrize("name", DRAWN)
def test_without_faults_all_modes_show_the_same(name: str) -> None:
    scenario = without_faults(load(name))
    for seed in range(8):
        results = [run(scenario, mode, seed, trace=True) for mode in MODES]
        first = results[0]
        assert first.row["batches_acked"] >= 20
        assert len(seen_by_clients(first)) > 40
        assert all(log == logs(first)[0] for log in logs(first)), seed
        for result in results:
            assert (result.row["verdict"], result.row["faults"], result.row["truncations"]) == ("ok", 0, 0)
            assert seen_by_clients(result) == seen_by_clients(first), (result.row["mode"], seed)
            assert logs(result) == logs(first), (result.row["mode"], seed)


# One fault more.


def fault_at(kind: str, at_us: int) -> Fault:
    return replace(INJECTORS[kind].draw(Streams(7)("fault"), LIMITS), at_us=at_us)


def also(fault: Fault) -> Callable[[Plan], Plan]:
    return lambda plan: Plan((*plan.faults, fault))


def steps(scenario: Scenario, seed: int) -> list[Step]:
    trace = run(scenario, "kip320", seed, trace=True).trace
    assert trace is not None
    return trace


@pytest.mark.parametrize("kind", INJECTORS)
def test_a_fault_after_the_end_changes_nothing(power: Scenario, kind: str) -> None:
    for seed in (0, 3):
        row = run_row(power, "kip320", seed)
        with planned(also(fault_at(kind, row["sim_us"] + 1))):
            other = run_row(power, "kip320", seed)
        assert other.pop("plan_hash") != row.pop("plan_hash")
        assert other == row


@pytest.mark.parametrize("kind", INJECTORS)
def test_a_fault_changes_nothing_before_it_strikes(power: Scenario, kind: str) -> None:
    at_us = 60_000_000
    before = [step for step in steps(power, 3) if step["t"] < at_us]
    assert len(before) > 100
    with planned(also(fault_at(kind, at_us))):
        after = steps(power, 3)
    assert [step for step in after if step["t"] < at_us] == before
    if kind in ("kill", "session-expiry"):
        assert any(step["t"] == at_us for step in after)


# One fault less.


@pytest.mark.parametrize(
    ("name", "mode", "seeds"),
    [("chaos", "kip101", range(20)), ("chaos", "kip320", range(20)), ("power", "hw", range(30))],
)
@pytest.mark.parametrize("fixed", [False, True])
def test_a_violation_outlasts_the_faults_outside_its_past(name: str, mode: str, seeds: range, *, fixed: bool) -> None:
    tally = Tally()
    for seed in seeds:
        tally.add(scenario_of(name, all_kinds=False) if fixed else load(name), mode, seed)
    assert tally.failures >= 3
    assert tally.exceptions == []
    assert not (fixed and tally.explained)
    assert tally.tried[LATER] >= 10
    assert tally.tried.total() - tally.kept.total() == len(tally.explained)
    assert tally.tried.keys() <= {LATER, IDLE, UNMET}


def test_it_does_not_outlast_all_others() -> None:
    tally = Tally()
    for seed in range(20):
        tally.add(load("power"), "hw", seed, inside=True)
    assert 0 < tally.kept[INSIDE] < tally.tried[INSIDE]
