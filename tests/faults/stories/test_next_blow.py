from __future__ import annotations

import pytest

from faults.bounds import Limits
from faults.kinds.registry import KINDS
from faults.plan import LEADER
from faults.stories import next_blow
from faults.stories.next_blow import NextBlow
from scenarios.format.blow import early_warnings
from sim.hosts.control_plane import CONTROL
from sim.kernel.streams import Streams
from tests.faults.limits import mixed, within
from tests.sim.world import SECOND_US

AT_US = 50 * SECOND_US
ALL = within(mixed(tuple(KINDS), (5, 8)))


def draw(variant: int, warning: str = "quorum-not-superset", limits: Limits = ALL, leader: int = 1) -> NextBlow:
    stream = Streams(7)(f"blow:{warning}:{AT_US}:{variant}")
    return next_blow.draw(stream, warning, variant, (3,), leader, limits, AT_US)


@pytest.mark.parametrize("warning", early_warnings())
def test_a_blow_begins_after_the_warning_with_faults_and_batches(warning: str) -> None:
    for variant in range(60):
        blow = draw(variant, warning)
        assert 1 <= len(blow.faults) <= 4
        assert [fault.at_us for fault in blow.faults] == sorted(fault.at_us for fault in blow.faults)
        assert blow.faults[0].at_us > AT_US
        assert [at_us for at_us, _ in blow.batches] == sorted(at_us for at_us, _ in blow.batches)
        assert blow.batches[0][0] <= AT_US + 10 * SECOND_US
        waits = [fault.trigger.until_us for fault in blow.faults if fault.trigger is not None]
        assert blow.end_us >= max(blow.faults[-1].at_us, blow.batches[-1][0], *waits, 0) + next_blow.SETTLE_US


def test_the_first_blow_holds_the_weak_broker_and_ends_the_leader() -> None:
    for seed in range(40):
        stream = Streams(seed)("blow")
        blow = next_blow.draw(stream, "quorum-not-superset", 0, (3,), 1, ALL, AT_US)
        late, hold, end = sorted(blow.faults, key=lambda fault: (fault.trigger is not None, fault.at_us))
        assert late.targets in ((LEADER,), (CONTROL, LEADER))
        assert hold.kind in next_blow.HOLDS
        assert hold.targets[0] == 3
        assert end.kind in next_blow.ENDS
        assert end.targets == (LEADER,)
        assert end.trigger is not None
        assert end.trigger.moment == "ack"


def test_only_kinds_of_the_scenario_and_all_of_them_are_drawn() -> None:
    drawn = {fault.kind for variant in range(3_000) for fault in draw(variant).faults}
    assert drawn == set(KINDS)
    few = within(mixed(("cut", "kill", "retention"), (5, 8)))
    assert {fault.kind for variant in range(300) for fault in draw(variant, limits=few).faults} == {
        "cut",
        "kill",
        "retention",
    }


def test_a_plan_has_targets_that_a_plan_may_have() -> None:
    for variant in range(500):
        for fault in draw(variant, leader=3 if variant % 2 else 0).faults:
            assert not KINDS[fault.kind].problem(fault.targets, fault.value), fault
            assert all(target != next_blow.WEAK for target in fault.targets)


def test_a_blow_at_a_difference_strikes_the_brokers_that_it_is_about() -> None:
    struck, kinds = 0, set()
    for variant in range(400):
        blow = next_blow.draw_at_difference(Streams(variant)("blow"), (3, 1), 1, ALL, AT_US)
        assert all(fault.at_us > AT_US for fault in blow.faults)
        assert all(at_us > AT_US for at_us, _ in blow.batches)
        assert blow.end_us > max(at_us for at_us, _ in blow.batches)
        struck += any(3 in fault.targets for fault in blow.faults)
        kinds |= {fault.kind for fault in blow.faults}
        leaders = [fault for fault in blow.faults if fault.targets == (LEADER,)]
        assert all(fault.kind in {*next_blow.CHANGES, *next_blow.OPEN, *next_blow.LOSSES} for fault in leaders)
    assert struck > 200
    assert kinds == {*next_blow.CHANGES, *next_blow.OPEN, *next_blow.LOSSES, "next-batches"}


def test_a_difference_about_no_broker_strikes_the_others_of_the_leader() -> None:
    blows = [next_blow.draw_at_difference(Streams(seed)("blow"), (), 1, ALL, AT_US) for seed in range(100)]
    assert {target for blow in blows for fault in blow.faults for target in fault.targets if target > 0} >= set(
        ALL.brokers
    ) - {1}
