from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.format.catalogue import load
from sim.history import steps
from sim.history.availability import Waiting, waiting
from sim.protocol.messages import NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND, NOT_LEADER_OR_FOLLOWER
from tests.named import run
from tests.sim.checkers.driven import Availability

if TYPE_CHECKING:
    from collections.abc import Callable


def begun() -> Availability:
    """Broker 1 leads in epoch 0, and counting began at 100."""
    one = Availability()
    one.elected(1, 0, 10)
    one.leads(1, 0, 20)
    one.begin(100)
    return one


def test_a_leader_that_serves_costs_nothing() -> None:
    one = begun()
    one.leads(1, 3, 500)
    one.end(1_000)
    assert (one.leaderless_us, one.disturbed_us, one.window_us) == (0, -1, (100, 1_000))


@pytest.mark.parametrize(
    ("happens", "leaderless_us"),
    [
        (lambda one: one.ended(1, 300), 700),
        (lambda one: (one.ended(1, 300), one.elected(2, 1, 400), one.leads(2, 1, 450)), 150),
        (lambda one: (one.elected(2, 1, 400), one.leads(2, 1, 450), one.leads_no_more(1, 900)), 50),
        (lambda one: (one.elected(2, 1, 400), one.ended(1, 500)), 600),
        (lambda one: (one.elected(0, 1, 400), one.elected(1, 2, 450), one.leads(1, 2, 600)), 200),
        (lambda one: (one.ended(1, 300), one.leads(1, 0, 350)), 50),  # Back before anybody noticed.
        (lambda one: (one.stands_still(1, 300, 1), one.stands_still(1, 360, -1)), 60),
        (lambda one: (one.stands_still(1, 300, 1), one.stands_still(1, 310, 1), one.stands_still(1, 360, -1)), 700),
        (lambda one: (one.stands_still(1, 300, 1), one.ended(1, 310), one.leads(1, 0, 350)), 50),
        (lambda one: (one.stands_still(2, 300, 1), one.ended(2, 310), one.leads_no_more(2, 320)), 0),
    ],
)
def test_time_without_a_leader(happens: Callable[[Availability], Any], leaderless_us: int) -> None:
    one = begun()
    happens(one)
    one.end(1_000)
    one.end(2_000)
    assert one.leaderless_us == leaderless_us


def test_only_what_lies_between_begin_and_end_counts() -> None:
    one = Availability()
    one.told(1, NOT_ENOUGH_REPLICAS)
    one.begin(100)
    one.elected(1, 0, 150)
    one.leads(1, 0, 250)
    one.end(400)
    one.ended(1, 500)
    one.leads(1, 1, 600)
    one.told(2, NOT_ENOUGH_REPLICAS)
    assert (one.leaderless_us, one.disturbed_us, one.refused) == (150, 150, set())


def test_a_batch_is_refused_once_however_often_it_is_tried() -> None:
    one = begun()
    for first_id, error in [
        (5, NOT_ENOUGH_REPLICAS),
        (5, NOT_ENOUGH_REPLICAS),
        (5, NOT_LEADER_OR_FOLLOWER),
        (7, NOT_ENOUGH_REPLICAS_AFTER_APPEND),
    ]:
        one.told(first_id, error)
    assert (one.refused, one.refused_after_append) == ({5}, {7})


@pytest.mark.parametrize(
    ("writes", "advances", "expected"),
    [
        ([], [], Waiting(0, 0)),
        ([(10, 30)], [30], Waiting(20, 20)),
        ([(10, 30), (12, 30), (40, 45)], [30, 45], Waiting(25, 20)),
        ([(10, 30), (12, 60)], [30, 60], Waiting(50, 30)),  # The HW moved at 30, but the second waited on.
        ([(10, 30), (30, 60)], [30, 60], Waiting(50, 30)),
        ([(10, 40), (30, 60)], [20, 60], Waiting(50, 40)),  # The first was given up at 40: that moves nothing.
        ([(10, 500)], [], Waiting(90, 90)),  # Still waiting at the end.
        ([(-20, 20), (110, 130)], [20], Waiting(20, 20)),  # Only what lies in the window.
        ([(10, 10)], [10], Waiting(0, 0)),
    ],
)
def test_waiting_for_the_hw(writes: list[tuple[int, int]], advances: list[int], expected: Waiting) -> None:
    assert waiting(writes, advances, (0, 100)) == expected


ENDS = [kind.name for kind in steps.ENDS]


def leaderless_ms(trace: list[dict[str, Any]], window_us: tuple[int, int]) -> int:
    """The same by another way: who serves between any two steps of a trace."""
    chosen = chosen_us = total = 0
    led: dict[int, int] = {}
    still: dict[int, list[str]] = {}
    previous_us = window_us[0]
    for step in trace:
        at_us = min(max(step["t"], window_us[0]), window_us[1])
        if led.get(chosen, -1) < chosen_us or still.get(chosen):
            total += at_us - previous_us
        previous_us = at_us
        kind, broker = step["step"], step.get("broker", -1)
        if kind == "elected":
            chosen, chosen_us = broker, step["t"]
        elif kind == "lead":
            led[broker] = step["t"]
        elif kind in ("pause", "disk-stalled"):
            still.setdefault(broker, []).append(kind)
        elif kind in ("resume", "disk-works"):
            still[broker].remove({"resume": "pause", "disk-works": "disk-stalled"}[kind])
        elif kind in ("follow", "deleted", *ENDS):
            led.pop(broker, None)
            if kind in ENDS:
                still.pop(broker, None)
    return total // 1_000


KINDS = ("kill", "pause", "disk-stall", "power-loss", "session-expiry", "zombie", "reassignment", "disk-replaced")


@pytest.mark.parametrize("name", ["chaos", "power"])
def test_runs_agree_with_their_traces(name: str) -> None:
    scenario = load(name)
    assert scenario.faults is not None
    scenario = replace(scenario, faults=replace(scenario.faults, kinds=KINDS, count=(12, 16)))
    for seed in range(15):
        result = run(scenario, "kip320", seed, trace=True)
        assert result.trace is not None
        end_us = 500_000 + result.row["window_ms"] * 1_000
        assert result.row["leaderless_ms"] == leaderless_ms(result.trace, (500_000, end_us))


@pytest.mark.parametrize("seed", range(3))
def test_columns_of_several_partitions_are_the_sums_of_their_traces(seed: int) -> None:
    scenario = load("topics")
    scenario = replace(scenario, topics=tuple(replace(topic, in_percent=100) for topic in scenario.topics[:2]))
    assert scenario.faults is not None
    scenario = replace(scenario, faults=replace(scenario.faults, kinds=KINDS, count=(8, 12)))
    names = [f"{topic.name}-{number}" for topic in scenario.topics for number in range(topic.partitions)]
    results = [run(replace(scenario, shown=name), "elr-4.3", seed, trace=True) for name in names]
    assert [result.shown for result in results] == names
    row = results[0].row
    assert len({result.row["digest"] for result in results}) == 1
    traces = [result.trace or [] for result in results]
    window_us = 500_000, 500_000 + row["window_ms"] * 1_000
    leaderless = [leaderless_ms(trace, window_us) for trace in traces]
    assert 0 <= row["leaderless_ms"] - sum(leaderless) < len(names)
    acked = [[step["count"] for step in trace if step["step"] == "ack"] for trace in traces]
    assert row["batches_acked"] == sum(len(counts) for counts in acked) > len(acked[0])
    assert row["records_acked"] == sum(sum(counts) for counts in acked)
    elected = [step for trace in traces for step in trace if step["step"] == "elected" and step["broker"] > 0]
    assert row["elections"] == sum(step["t"] > window_us[0] for step in elected)


def test_a_scripted_run_waits_too() -> None:
    row = run(load("kip101-scenario-1"), "kip320", 0).row
    assert 0 < row["leaderless_ms"] < row["window_ms"]
    assert row["hw_wait_max_ms"] <= row["hw_wait_ms"] <= row["window_ms"]
