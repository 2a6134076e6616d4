from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.kind import OTHER_BROKER, OTHER_REPLICA
from faults.kinds.message_faults import LATE
from faults.kinds.registry import KINDS, LINKS
from faults.plan import ALL_DIRECTORIES, FOLLOWERS, LEADER, Fault, Plan
from faults.stories.copies import ASSIGNED
from faults.stories.swarm import (
    BURST,
    CHAIN,
    EVENTS_OF_FAULT,
    FIRST,
    HAZARDS,
    LONE,
    LOSSES,
    MOMENTS,
    OBJECTS_OF_FAULT,
    ORDERED_PERCENT,
    ORDERS,
    ROLLING,
    STRUCK_DIRECTORIES,
    draw_incidents,
    draw_plan,
)
from sim.history import steps
from sim.hosts.control_plane import CONTROL
from sim.kernel.scheduler import BudgetError
from sim.kernel.streams import Streams
from tests.faults.limits import LIMITS, WINDOW_US, mixed, within
from tests.sim.world import SECOND_US

if TYPE_CHECKING:
    from collections.abc import Callable

    from faults.bounds import FaultBounds, Limits

ALL = mixed(tuple(KINDS), (5, 8), aimed_percent=50, burst_percent=25, chain_percent=25)


def draw(seed: int, mix: FaultBounds = ALL, streams: Callable[[int], Streams] = Streams) -> Plan:
    own = streams(seed)
    return draw_plan(own, within(mix), draw_incidents(own, mix, WINDOW_US))


PLANS = [draw(seed) for seed in range(300)]
MOVERS = tuple(kind.name for kind in KINDS.values() if kind.moves_leader)


def styled(style: str, **percents: int) -> list[tuple[int, tuple[Fault, ...]]]:
    """Incidents of one style, each alone in a plan: (when it begins, its faults)."""
    found = []
    for seed in range(300):
        mix = mixed(tuple(KINDS), (3, 3), **percents)
        streams = Streams(seed)
        incidents = [incident for incident in draw_incidents(streams, mix, WINDOW_US) if incident.style == style][:1]
        found += [(incident.at_us, draw_plan(streams, within(mix), [incident]).faults) for incident in incidents]
    return found


def test_moments_and_hazards_name_what_exists() -> None:
    assert set(MOMENTS) == set(steps.MOMENTS) - {LATE, ASSIGNED}
    for hazard in HAZARDS.values():
        assert set(hazard.then) <= set(HAZARDS)
        assert set(hazard.moments) <= set(steps.MOMENTS)
        assert set(hazard.kinds) <= set(KINDS)
    assert set(FIRST) <= set(HAZARDS)
    assert {name for order in ORDERS for name in order} <= set(HAZARDS)


def test_lists_are_what_kinds_declare_in_the_order_that_plans_rest_upon() -> None:
    assert MOVERS[:6] == ("kill", "power-loss", "controlled-restart", "disk-replaced", "corrupt-tail", "zombie")
    assert LOSSES[:3] == ("power-loss", "disk-replaced", "corrupt-tail")
    assert LINKS[:3] == ["cut", "slow", "lossy"]


def test_plans_are_sorted_and_of_every_allowed_length() -> None:
    assert {len(plan.faults) for plan in PLANS} == {5, 6, 7, 8}
    for plan in PLANS:
        assert list(plan.faults) == sorted(plan.faults, key=lambda fault: fault.at_us)


def test_the_same_seed_draws_the_same_plan_and_another_another() -> None:
    assert [draw(seed) for seed in range(50)] == PLANS[:50]
    assert len({plan.plan_hash() for plan in PLANS}) == len(PLANS)


def test_every_fault_begins_and_strikes_within_the_window() -> None:
    low, high = WINDOW_US
    for plan in PLANS:
        for fault in plan.faults:
            assert low <= fault.at_us <= high
            if fault.trigger is not None:
                assert fault.at_us <= fault.trigger.until_us <= high


def test_seeds_differ_in_the_kinds_that_they_enable() -> None:
    mix = mixed(tuple(KINDS), (60, 60))
    enabled = [{fault.kind for fault in draw(seed, mix).faults} for seed in range(100)]
    sizes = sorted(len(kinds) for kinds in enabled)
    assert sizes[-10] - sizes[10] > len(KINDS) // 3
    assert len({frozenset(kinds) for kinds in enabled}) > 90
    shares = Counter(fault.kind for fault in draw(1, mix).faults)
    assert max(shares.values()) >= 3 * min(shares.values())


def test_every_other_lone_fault_may_move_the_leader() -> None:
    mix = mixed(tuple(KINDS), (8, 8))
    for seed in range(50):
        movers = [fault for fault in draw(seed, mix).faults if fault.kind in MOVERS]
        assert len(movers) >= 4
    struck = Counter(fault.targets == (LEADER,) for plan in PLANS for fault in plan.faults if fault.kind in MOVERS)
    assert struck[True] > struck[False] / 2


def test_about_as_many_faults_wait_for_steps_as_are_asked_for() -> None:
    for percent in (0, 30, 100):
        faults = [fault for seed in range(100) for fault in draw(seed, mixed(tuple(KINDS), (6, 6), percent)).faults]
        waiting = sum(fault.trigger is not None for fault in faults)
        assert waiting == pytest.approx(len(faults) * percent / 100, rel=0.2)
    triggers = [fault.trigger for plan in PLANS for fault in plan.faults if fault.trigger is not None]
    assert {trigger.moment for trigger in triggers} == set(MOMENTS)
    assert {trigger.occurrence for trigger in triggers} == {1, 2, 3, 4, 5, 6}
    assert sum(trigger.after_us <= 3_000 for trigger in triggers) > len(triggers) / 2
    assert max(trigger.after_us for trigger in triggers) > 500_000


def test_seeds_differ_in_how_long_things_last() -> None:
    mix = mixed(("cut", "kill"), (30, 30))
    longest = [max(fault.lasts_us for fault in draw(seed, mix).faults if fault.kind == "cut") for seed in range(60)]
    assert min(longest) < 13 * SECOND_US
    assert max(longest) > 80 * SECOND_US
    shortest = [min(fault.lasts_us for fault in draw(seed, mix).faults if fault.kind == "kill") for seed in range(60)]
    above = sum(lasts_us > 18 * SECOND_US for lasts_us in shortest)
    assert above > 15


def test_a_burst_strikes_several_targets_nearly_at_once() -> None:
    bursts = styled(BURST, burst_percent=100)
    assert {len(faults) for _, faults in bursts} == {2, 3}
    for at_us, faults in bursts:
        assert all(at_us <= fault.at_us <= at_us + 6 * SECOND_US for fault in faults)
    alike = [faults for _, faults in bursts if len({fault.kind for fault in faults}) == 1]
    assert len(alike) > len(bursts) / 3
    kills = [faults for faults in alike if faults[0].kind == "kill"]
    assert kills
    assert all(len({fault.targets for fault in faults}) == len(faults) for faults in kills)


def test_a_burst_of_cuts_is_about_one_node_and_several_peers() -> None:
    bursts = [faults for _, faults in styled(BURST, burst_percent=100) if {fault.kind for fault in faults} == {"cut"}]
    assert bursts
    for faults in bursts:
        assert set.intersection(*(set(fault.targets) for fault in faults))
        assert len({frozenset(fault.targets) for fault in faults}) == len(faults)


def test_a_chain_is_a_fault_and_others_that_wait_for_steps_after_it() -> None:
    chains = styled(CHAIN, chain_percent=100)
    assert {len(faults) for _, faults in chains} == {3}
    for at_us, (first, *others) in chains:
        assert first.at_us == at_us
        assert first.kind in MOVERS
        assert all(fault.trigger is not None for fault in others)


def test_some_chains_keep_to_the_order_of_a_known_failure() -> None:
    chains = [faults for _, faults in styled(CHAIN, chain_percent=100) if faults[0].trigger is not None]
    assert 0 < len(chains) <= 300 * ORDERED_PERCENT / 100 * 1.5
    kept = 0
    for faults in chains:
        follows = [
            all(
                fault.trigger is not None and fault.trigger.moment in hazard.moments and fault.kind in hazard.kinds
                for fault, hazard in zip(faults, (HAZARDS[name] for name in order), strict=False)
            )
            for order in ORDERS
        ]
        kept += any(follows)
    assert kept > len(chains) / 2


def test_a_rolling_restart_takes_every_broker_once() -> None:
    rolling = styled(ROLLING, rolling_percent=100)
    assert len(rolling) == 300
    for at_us, faults in rolling:
        assert {fault.kind for fault in faults} == {"controlled-restart"}
        assert sorted(fault.targets[0] for fault in faults) == [1, 2, 3, 4]
        assert faults[0].at_us == at_us
    assert len({tuple(fault.targets for fault in faults) for _, faults in rolling}) > 15


def test_incidents_have_the_plans_faults_and_some_seeds_crowd_them() -> None:
    spreads = []
    for seed in range(100):
        incidents = draw_incidents(Streams(seed), mixed((), (5, 8), burst_percent=30, chain_percent=30), WINDOW_US)
        assert 5 <= sum(incident.faults for incident in incidents) <= 8
        assert {incident.style for incident in incidents} <= {LONE, BURST, CHAIN}
        assert all((incident.faults == 1) == (incident.style == LONE) or incident.faults == 1 for incident in incidents)
        spreads.append(incidents[-1].at_us - incidents[0].at_us)
    assert sum(spread < 95 * SECOND_US for spread in spreads) > 20
    assert sum(spread > 150 * SECOND_US for spread in spreads) > 20


def test_a_fault_is_drawn_from_a_stream_of_its_own() -> None:
    class Disturbed(Streams):
        """One fault draws one number more."""

        def __call__(self, name: str) -> Any:
            stream = super().__call__(name)
            if name == "fault:1":
                stream.random()
            return stream

    mix = mixed(tuple(KINDS), (6, 6))
    differing = 0
    for seed in range(20):
        plain, disturbed = draw(seed, mix).faults, draw(seed, mix, Disturbed).faults
        assert sum(fault in disturbed for fault in plain) >= 5
        differing += plain != disturbed
    assert differing > 15


ONE = replace(LIMITS, brokers=(1,))
STYLES = mixed(tuple(KINDS), (5, 8), 50, burst_percent=25, chain_percent=25, rolling_percent=10, standing_percent=25)


def drawn_within(limits: Limits, mix: FaultBounds = STYLES, seeds: int = 300) -> list[Plan]:
    return [
        draw_plan(streams, within(mix, limits), draw_incidents(streams, mix, WINDOW_US))
        for streams in map(Streams, range(seeds))
    ]


@pytest.mark.parametrize("everything", [(1,), (1, 2), (1, 2, 3, 4, 5, 6, 7)])
def test_one_replica_is_struck_by_what_needs_no_other_one(everything: tuple[int, ...]) -> None:
    plans = drawn_within(replace(ONE, all_brokers=everything))
    kinds = {fault.kind for plan in plans for fault in plan.faults}
    missing = {OTHER_REPLICA} if len(everything) > 1 else {OTHER_REPLICA, OTHER_BROKER}
    peered = {name for name, kind in KINDS.items() if missing.intersection(kind.needs)}
    assert peered >= ({"preferred-election"} if len(everything) > 1 else {"preferred-election", "reassignment"})
    assert kinds == set(KINDS) - peered
    for plan in plans:
        assert len(plan.faults) >= 5
        for fault in plan.faults:
            assert fault.targets != (FOLLOWERS,)
            if fault.kind in LINKS:
                assert CONTROL in fault.targets
                assert fault.targets[0] != fault.targets[1]


def test_a_kind_that_needs_another_replica_alone_leaves_a_plan_empty() -> None:
    mix = mixed(("preferred-election",), (2, 3))
    assert {len(plan.faults) for plan in drawn_within(ONE, mix, 20)} == {0}
    assert {len(plan.faults) for plan in drawn_within(LIMITS, mix, 20)} == {2, 3}


@pytest.mark.world
@pytest.mark.parametrize("replicas", range(1, 8))
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_any_kind_alone_is_drawn_in_any_style(kind: str, replicas: int) -> None:
    """But for stories of links alone, which scenario files are refused."""
    brokers = tuple(range(1, replicas + 1))
    mix = replace(STYLES, kinds=(kind,), standing_percent=0 if kind in LINKS else 25)
    plans = drawn_within(replace(LIMITS, brokers=brokers, all_brokers=brokers), mix, 30)
    possible = replicas > 1 or not {OTHER_REPLICA, OTHER_BROKER}.intersection(KINDS[kind].needs)
    assert all(bool(plan.faults) is possible for plan in plans)


@given(
    st.integers(0, 1 << 40),
    st.lists(st.sampled_from(sorted(KINDS)), min_size=1, unique=True),
    st.tuples(st.integers(0, 4), st.integers(4, 9)),
    st.integers(0, 100),
    st.integers(0, 50),
    st.integers(0, 50),
)
def test_any_mix_gives_faults_of_its_kinds_within_its_bounds(
    seed: int, kinds: list[str], count: tuple[int, int], aimed: int, burst: int, chain: int
) -> None:
    plan = draw(seed, mixed(tuple(kinds), count, aimed, burst_percent=burst, chain_percent=chain))
    assert count[0] <= len(plan.faults) <= count[1]
    assert {fault.kind for fault in plan.faults} <= set(kinds)
    assert all(WINDOW_US[0] <= fault.at_us <= WINDOW_US[1] for fault in plan.faults)


def test_more_faults_than_a_run_has_events_and_room_for_are_not_drawn() -> None:
    def drawn(count: int, room_for: int, **shares: int) -> int:
        mix, streams = mixed(("kill",), (count, count), **shares), Streams(1)
        incidents = draw_incidents(streams, mix, WINDOW_US, 10 * EVENTS_OF_FAULT)
        return len(draw_plan(streams, within(mix), incidents, room_for * OBJECTS_OF_FAULT).faults)

    assert drawn(10, 10) == 10
    with pytest.raises(BudgetError, match=r"^sim\.event\.budget: 200 events by 0 s, while faults were drawn$"):
        drawn(11, 20)
    with pytest.raises(BudgetError, match=r"^sim\.state\.budget: 450 objects by 0 s, while faults were drawn$"):
        drawn(10, 9)
    assert drawn(4, 100, rolling_percent=100) == 4 * 4
    with pytest.raises(BudgetError, match=r"^sim\.state\.budget: 500 objects by 0 s, while faults were drawn$"):
        drawn(8, 10, rolling_percent=100)


def test_a_share_of_the_faults_of_a_disk_strikes_one_directory_and_nothing_else_changes() -> None:
    kinds = ("disk-stall", "disk-replaced", "corrupt-tail", "kill", "power-loss")
    plain = mixed(kinds, (6, 8), aimed_percent=50, burst_percent=20, standing_percent=20)
    found: Counter[int] = Counter()
    for seed in range(100):
        whole, single = draw(seed, plain), draw(seed, replace(plain, one_directory_percent=60))
        assert [fault.within(ALL_DIRECTORIES) for fault in single.faults] == list(whole.faults)
        found.update(fault.directory for fault in single.faults if KINDS[fault.kind].of_directory)
        assert {fault.directory for fault in single.faults if not KINDS[fault.kind].of_directory} <= {ALL_DIRECTORIES}
    struck = sum(found.values()) - found[ALL_DIRECTORIES]
    assert 0.5 < struck / sum(found.values()) < 0.7
    assert set(found) == {ALL_DIRECTORIES, *STRUCK_DIRECTORIES}
    every = draw(1, replace(plain, one_directory_percent=100))
    assert all(bool(fault.directory) == KINDS[fault.kind].of_directory for fault in every.faults)
