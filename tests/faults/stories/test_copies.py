"""Incidents in which a broker ends while a quota holds back the copy of its log."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from faults.bounds import Limits
from faults.kinds.registry import KINDS
from faults.plan import FOLLOWERS, LAST_TARGET, Fault
from faults.stories import copies
from faults.stories.swarm import COPYING
from sim.kernel.streams import Streams
from tests.faults.limits import LIMITS, WINDOW_US, drawn_plans, mixed
from tests.sim.world import SECOND_US

ALL = tuple(KINDS)
AT_US = 50 * SECOND_US
SEQUENCE = 7
FULL = replace(LIMITS, bounds=replace(LIMITS.bounds, kinds=ALL))


def draw(seed: int, faults: int = copies.MOST, limits: Limits = FULL) -> list[Fault]:
    return copies.draw(Streams(seed)("copying"), faults, limits, AT_US, WINDOW_US[1], SEQUENCE)


@pytest.mark.parametrize("faults", range(copies.LEAST, 9))
def test_a_replica_is_moved_with_a_quota_batches_are_sent_and_its_broker_ends(faults: int) -> None:
    for seed in range(200):
        plan = draw(seed, faults)
        kinds = [fault.kind for fault in plan]
        assert len(plan) == faults
        throttle, move, batches = (kinds.index(kind) for kind in copies.NEEDS)
        assert throttle < move < batches
        assert plan[move].targets == (LAST_TARGET,)
        assert kinds[-1] in copies.ENDS
        trigger = plan[batches].trigger
        assert trigger is not None
        assert trigger.moment == copies.ASSIGNED
        assert all(AT_US <= fault.at_us <= WINDOW_US[1] for fault in plan)
        assert {fault.trigger.sequence for fault in plan if fault.trigger} == {SEQUENCE}


def test_the_others_are_stopped_before_or_after_the_batches_or_metadata_is_late() -> None:
    found: Counter[str] = Counter()
    for seed in range(300):
        plan = draw(seed, copies.LEAST)
        stops = [place for place, fault in enumerate(plan) if fault.targets == (FOLLOWERS,)]
        found["none"] += not stops
        found["before"] += stops == [0]
        found["after"] += stops == [3]
        assert bool(stops) != any(fault.kind == "metadata-lag" for fault in plan)
    assert sum(found.values()) == 300
    assert min(found.values()) > 30


def test_without_the_kinds_that_it_needs_nothing_is_drawn() -> None:
    for missing in copies.NEEDS:
        kinds = tuple(kind for kind in ALL if kind != missing)
        assert draw(1, limits=replace(LIMITS, bounds=replace(LIMITS.bounds, kinds=kinds))) == []
    few = replace(LIMITS, bounds=replace(LIMITS.bounds, kinds=(*copies.NEEDS, "kill")))
    assert {fault.kind for seed in range(50) for fault in draw(seed, limits=few)} == {*copies.NEEDS, "kill"}


def test_copies_do_not_depend_on_other_incidents() -> None:
    mix = mixed(ALL, (8, 12), aimed_percent=40, burst_percent=10, copying_percent=60)
    told = 0
    for incidents, plan in drawn_plans(mix):
        drawn = sum(incident.style == COPYING and incident.faults >= copies.LEAST for incident in incidents)
        assert len({fault.trigger.sequence for fault in plan.faults if fault.trigger} - {0}) == drawn
        told += drawn
    assert told > 30
