from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from faults.bounds import Limits
from faults.kinds.registry import KINDS, LINKS
from faults.plan import FOLLOWERS, LAST_TARGET, Fault
from faults.stories import overtaking
from faults.stories.overtaking import MESSAGE_KINDS
from faults.stories.swarm import OVERTAKING
from sim.hosts.interceptions import DRAWN, MESSAGES, NAMES
from sim.kernel.streams import Streams
from tests.faults.limits import LIMITS, WINDOW_US, drawn_plans, mixed
from tests.sim.world import SECOND_US

ALL = tuple(KINDS)
AT_US = 50 * SECOND_US


def draw(seed: int, faults: int = 5, kinds: tuple[str, ...] = ALL, limits: Limits = LIMITS) -> list[Fault]:
    return overtaking.draw(Streams(seed)("overtaking"), faults, kinds, limits, AT_US, WINDOW_US[1])


@pytest.mark.parametrize("faults", range(overtaking.LEAST, 9))
def test_an_incident_begins_with_a_message_and_has_as_many_faults_as_asked_for(faults: int) -> None:
    for seed in range(200):
        plan = draw(seed, faults)
        assert len(plan) == faults
        assert plan[0].kind in MESSAGE_KINDS
        assert all(AT_US <= fault.at_us <= WINDOW_US[1] for fault in plan)
        assert all(fault.at_us <= fault.trigger.until_us <= WINDOW_US[1] for fault in plan if fault.trigger)


def test_all_messages_and_kinds_are_drawn() -> None:
    plans = [draw(seed) for seed in range(1_500)]
    assert {fault.kind for plan in plans for fault in plan} == set(ALL)
    drawn = {NAMES[fault.value] for plan in plans for fault in plan if fault.kind in MESSAGE_KINDS}
    assert drawn == set(DRAWN) - {"ListOffsetsRequest", "ListOffsetsResponse"}


def test_only_messages_that_are_resent_are_doubled() -> None:
    copies = [fault for seed in range(500) for fault in draw(seed) if fault.kind == "message-copy"]
    assert len(copies) > 50
    assert all(MESSAGES[NAMES[fault.value]].is_resent for fault in copies)


def test_most_others_strike_while_the_message_is_under_way() -> None:
    found: Counter[str] = Counter()
    for seed in range(500):
        first, *others = draw(seed, 3)
        for fault in others:
            if fault.kind in MESSAGE_KINDS:
                continue
            if first.trigger is not None and fault.trigger is not None:
                same = (first.trigger.moment, first.at_us) == (fault.trigger.moment, fault.at_us)
                found["after the same step" if same else "after another step"] += 1
            elif first.trigger is None and fault.targets == (LAST_TARGET,):
                found["restarts the broker whose registration is struck"] += 1
    assert min(found.values()) > 20
    assert found["after the same step"] > found["after another step"]


def test_seeds_without_messages_or_leader_changes_get_those_of_the_scenario() -> None:
    few = replace(LIMITS, bounds=replace(LIMITS.bounds, kinds=("message-loss", "kill", "cut")))
    kinds = {fault.kind for seed in range(100) for fault in draw(seed, kinds=("cut",), limits=few)}
    assert kinds == {"message-loss", "kill", "cut"}
    assert draw(0, kinds=("cut",)) == []
    assert draw(0, kinds=("message-loss",)) == []


def test_no_link_has_all_followers_as_an_end() -> None:
    for seed in range(200):
        assert all(FOLLOWERS not in fault.targets for fault in draw(seed, kinds=("message-hold", *LINKS)))


def test_overtaking_incidents_do_not_depend_on_other_incidents() -> None:
    mix = mixed(ALL, (8, 12), aimed_percent=40, burst_percent=10, overtaking_percent=60)
    told = 0
    for incidents, _ in drawn_plans(mix):
        told += sum(incident.style == OVERTAKING for incident in incidents)
    assert told > 30
