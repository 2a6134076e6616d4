from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from faults.bounds import Limits
from faults.kinds.registry import KINDS
from faults.plan import Fault
from faults.stories import reassignments
from faults.stories.swarm import MOVING
from sim.kernel.streams import Streams
from tests.faults.limits import LIMITS, WINDOW_US, drawn_plans, mixed
from tests.sim.world import SECOND_US

ALL = tuple(kind for kind in KINDS if kind != "corrupt-tail")
AT_US = 50 * SECOND_US


def draw(seed: int, faults: int = 6, allowed: tuple[str, ...] = ALL, limits: Limits = LIMITS) -> list[Fault]:
    return reassignments.draw(Streams(seed)("moving"), faults, allowed, limits, AT_US, WINDOW_US[1])


def demands(plan: list[Fault]) -> list[Fault]:
    return [fault for fault in plan if fault.kind in (reassignments.MOVES, reassignments.CANCELS)]


@pytest.mark.parametrize("faults", range(reassignments.LEAST, 8))
def test_who_is_away_what_is_asked_for_and_a_blow(faults: int) -> None:
    for seed in range(200):
        plan = draw(seed, faults)
        assert len(plan) == faults
        asked = demands(plan)
        assert asked[0].kind == reassignments.MOVES
        assert len(asked) >= 2
        assert plan[0].kind in reassignments.LEAVE_ISR
        assert plan[-1].kind in reassignments.STRIKE_LAST
        assert [fault.at_us for fault in asked] == sorted(fault.at_us for fault in asked)
        assert plan[-1].at_us >= asked[-1].at_us
        assert all(AT_US <= fault.at_us <= WINDOW_US[1] for fault in plan)


def test_assignments_have_one_replica_at_least_and_none_twice() -> None:
    for seed in range(300):
        for fault in demands(draw(seed)):
            if fault.kind == reassignments.MOVES:
                assert fault.replicas
                assert len(set(fault.replicas)) == len(fault.replicas)
                assert set(fault.replicas) <= set(LIMITS.all_brokers)


def test_stories_of_moves_differ() -> None:
    plans = [draw(seed) for seed in range(400)]
    assert {plan[0].kind for plan in plans} == set(reassignments.LEAVE_ISR)
    assert {plan[-1].kind for plan in plans} == set(reassignments.STRIKE_LAST)
    asked = Counter(
        "cancel" if fault.kind == reassignments.CANCELS else "back" if fault.replicas == LIMITS.brokers else "other"
        for plan in plans
        for fault in demands(plan)[1:]
    )
    assert min(asked[word] for word in ("cancel", "back", "other")) > 60
    sizes = Counter(len(demands(plan)[0].replicas) for plan in plans)
    assert set(sizes) == {2, 3, 4}
    held = {fault.kind for plan in plans for fault in plan[1:-1]}
    assert held >= {*reassignments.HOLDS}


def test_a_story_has_only_kinds_of_the_scenario() -> None:
    few = ("reassignment", "power-loss", "cut")
    assert {fault.kind for seed in range(50) for fault in draw(seed, allowed=few)} == set(few)
    assert {fault.kind for seed in range(50) for fault in draw(seed, allowed=("reassignment",))} == {"reassignment"}


def test_without_a_spare_broker_replicas_are_dropped_and_reordered() -> None:
    full = replace(LIMITS, all_brokers=LIMITS.brokers)
    moved = {fault.replicas for seed in range(200) for fault in demands(draw(seed, limits=full))}
    assert {(3, 1, 2), (2,)} <= moved


def test_reassignment_incidents_do_not_depend_on_other_incidents() -> None:
    mix = mixed(ALL, (8, 12), aimed_percent=40, burst_percent=10, moving_percent=60)
    told = 0
    for incidents, _ in drawn_plans(mix):
        told += sum(incident.style == MOVING and incident.faults >= reassignments.LEAST for incident in incidents)
    assert told > 30
