from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from faults.bounds import Limits
from faults.kinds.registry import KINDS
from faults.plan import Fault
from faults.stories import window
from faults.stories.swarm import WINDOW
from sim.kernel.streams import Streams
from tests.faults.limits import LIMITS, WINDOW_US, drawn_plans, mixed
from tests.sim.world import SECOND_US

ALL = tuple(KINDS)
AT_US = 50 * SECOND_US
SEQUENCE = 7


FULL = replace(LIMITS, bounds=replace(LIMITS.bounds, kinds=ALL))


def draw(seed: int, faults: int = 6, kinds: tuple[str, ...] = ALL, limits: Limits = FULL) -> list[Fault]:
    return window.draw(Streams(seed)("window"), faults, kinds, limits, AT_US, WINDOW_US[1], SEQUENCE)


@pytest.mark.parametrize("faults", range(window.LEAST, 9))
def test_an_incident_opens_a_window_sends_batches_and_ends_a_broker(faults: int) -> None:
    for seed in range(200):
        plan = draw(seed, faults)
        kinds = [fault.kind for fault in plan]
        assert len(plan) == faults
        assert kinds[0] in window.OPENERS
        assert plan[0].trigger is None
        batches = kinds.index("next-batches")
        assert kinds[1:batches] in ([], ["message-hold"], ["message-copy"])
        assert kinds[batches + 1] in {*window.ENDS, *window.OPENERS}
        assert all(AT_US <= fault.at_us <= WINDOW_US[1] for fault in plan)


def test_each_part_waits_for_the_one_before_it() -> None:
    for seed in range(200):
        waiting = [fault.trigger for fault in draw(seed) if fault.trigger]
        assert {trigger.sequence for trigger in waiting} == {SEQUENCE}
        fallbacks = [AT_US, *(trigger.until_us for trigger in waiting)]
        assert fallbacks == sorted(fallbacks)
        assert fallbacks[-1] <= WINDOW_US[1]


def test_only_a_message_that_is_held_may_strike_at_once() -> None:
    found: Counter[str] = Counter()
    for seed in range(300):
        found.update(fault.kind for fault in draw(seed)[1:] if fault.trigger is None)
    assert set(found) == {"message-hold", "message-copy"}
    assert found["message-hold"] > found["message-copy"] > 10


def test_a_part_may_wait_for_the_message_that_was_held() -> None:
    waits = 0
    for seed in range(300):
        held = False
        for fault in draw(seed):
            if fault.trigger is not None and fault.trigger.moment == "message-late":
                assert held
                held = False
                waits += 1
            held |= fault.kind.startswith("message-")
    assert waits > 50


def test_the_kinds_of_a_seed_come_before_those_of_the_scenario() -> None:
    few = replace(LIMITS, bounds=replace(LIMITS.bounds, kinds=("kill", "pause", "cut", "next-batches")))
    kinds = Counter(fault.kind for seed in range(100) for fault in draw(seed, kinds=("cut",), limits=few))
    assert set(kinds) == {"kill", "pause", "cut", "next-batches"}
    assert kinds["cut"] > 100


def test_windows_do_not_depend_on_other_incidents() -> None:
    mix = mixed(ALL, (8, 12), aimed_percent=40, burst_percent=10, window_percent=60)
    told = 0
    for incidents, plan in drawn_plans(mix):
        drawn = sum(incident.style == WINDOW and incident.faults >= window.LEAST for incident in incidents)
        assert len({fault.trigger.sequence for fault in plan.faults if fault.trigger} - {0}) == drawn
        told += drawn
    assert told > 30
