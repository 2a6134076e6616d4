from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from faults.bounds import Limits
from faults.kinds.registry import KINDS, LINKS
from faults.plan import FOLLOWERS, LAST_TARGET, LEADER, Fault
from faults.stories import operations
from faults.stories.reassignments import MOVES
from faults.stories.swarm import OPERATING
from sim.kernel.streams import Streams
from tests.faults.limits import LIMITS, WINDOW_US, drawn_plans, mixed
from tests.sim.world import SECOND_US

ALL = tuple(KINDS)
AT_US = 50 * SECOND_US


def draw(seed: int, faults: int = 6, kinds: tuple[str, ...] = ALL, limits: Limits = LIMITS) -> list[Fault]:
    return operations.draw(Streams(seed)("operating"), faults, kinds, limits, AT_US, WINDOW_US[1])


@pytest.mark.parametrize("faults", range(operations.LEAST, 9))
def test_an_incident_has_as_many_faults_as_asked_for(faults: int) -> None:
    for seed in range(200):
        plan = draw(seed, faults)
        assert len(plan) == faults
        assert all(AT_US <= fault.at_us <= WINDOW_US[1] for fault in plan)
        assert all(fault.trigger.until_us <= WINDOW_US[1] for fault in plan if fault.trigger)


def test_all_kinds_are_drawn_in_any_order() -> None:
    plans = [draw(seed) for seed in range(600)]
    assert {fault.kind for plan in plans for fault in plan} == set(ALL)
    assert {plan[0].kind for plan in plans} >= {MOVES, "reassignment-cancel", "kill", "metadata-lag"}
    requests = sum(fault.kind in operations.REQUESTS for plan in plans for fault in plan)
    assert 0.3 < requests / (6 * len(plans)) < 0.6


def test_assignments_go_back_and_on_from_the_last_one() -> None:
    counts: Counter[str] = Counter()
    for seed in range(1_500):
        last = LIMITS.brokers
        for fault in draw(seed, 8):
            if fault.kind == MOVES:
                assert fault.replicas
                assert len(set(fault.replicas)) == len(fault.replicas)
                assert set(fault.replicas) <= set(LIMITS.all_brokers)
                same = "same" if fault.replicas == last else "other"
                counts["back" if fault.replicas == LIMITS.brokers else same] += 1
                last = fault.replicas
    assert min(counts[word] for word in ("back", "same", "other")) > 20


def test_machines_are_struck_while_they_are_down() -> None:
    struck: Counter[str] = Counter()
    for seed in range(300):
        plan = draw(seed)
        for before, fault in pairwise(plan):
            if fault.kind in operations.WHILE_DOWN and fault.targets == (LAST_TARGET,) and fault.trigger is None:
                struck[f"{before.kind} {fault.kind}"] += 1
    assert struck["controlled-restart power-loss"] > 20
    assert struck["kill disk-replaced"] > 2


def test_an_incident_has_only_kinds_that_the_seed_enables() -> None:
    few = ("reassignment", "kill", "cut")
    assert {fault.kind for seed in range(50) for fault in draw(seed, kinds=few)} == set(few)
    assert {fault.kind for seed in range(50) for fault in draw(seed, kinds=("cut",))} == {"cut"}
    assert {fault.kind for seed in range(50) for fault in draw(seed, kinds=("retention",))} == {"retention"}


def test_no_link_has_all_followers_as_an_end() -> None:
    for seed in range(200):
        assert all(FOLLOWERS not in fault.targets for fault in draw(seed, kinds=tuple(LINKS)))


def test_metadata_may_be_later_than_a_follower_may_lag() -> None:
    late = replace(LIMITS, bounds=replace(LIMITS.bounds, slow_us=(10_000, 60 * SECOND_US)))
    plans = [draw(seed, kinds=("metadata-lag",), limits=late) for seed in range(200)]
    values = [fault.value for plan in plans for fault in plan]
    assert min(values) < SECOND_US
    assert sum(value > 30 * SECOND_US for value in values) > 100
    assert max(values) <= 60 * SECOND_US


def test_operation_incidents_do_not_depend_on_other_incidents() -> None:
    mix = mixed(ALL, (8, 12), aimed_percent=40, burst_percent=10, operating_percent=60)
    told = 0
    for incidents, _ in drawn_plans(mix):
        told += sum(incident.style == OPERATING and incident.faults >= operations.LEAST for incident in incidents)
    assert told > 30


def test_each_incident_has_a_fault_that_ends_the_leadership() -> None:
    for seed in range(100):
        moving = [
            fault for fault in draw(seed) if KINDS[fault.kind].moves_leader and fault.kind not in operations.REQUESTS
        ]
        assert not moving or any(fault.targets == (LEADER,) for fault in moving)


def test_seeds_that_stop_no_leader_and_move_no_replica_get_what_the_scenario_has() -> None:
    own = replace(LIMITS, bounds=replace(LIMITS.bounds, kinds=("kill", "cut", MOVES, "reassignment-cancel")))
    kinds = {fault.kind for seed in range(50) for fault in draw(seed, kinds=("cut", "reassignment-cancel"), limits=own)}
    assert kinds == {"kill", "cut", MOVES, "reassignment-cancel"}
