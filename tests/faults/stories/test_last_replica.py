from __future__ import annotations

from collections import Counter
from dataclasses import replace

from faults.bounds import Limits
from faults.kinds.injection import Injection
from faults.kinds.registry import KINDS
from faults.plan import FOLLOWERS, LAST_MEMBER, Fault
from faults.stories import last_replica
from faults.stories.swarm import STANDING, draw_incidents, draw_plan
from sim.kernel.streams import Streams
from tests.faults.limits import LIMITS, WINDOW_US, mixed, within
from tests.sim.world import SECOND_US, World

ALL = tuple(kind for kind in KINDS if kind != "corrupt-tail")


def draw(seed: int, faults: int = 4, allowed: tuple[str, ...] = ALL, limits: Limits = LIMITS) -> list[Fault]:
    return last_replica.draw(Streams(seed)("standing"), faults, allowed, limits, 50 * SECOND_US, WINDOW_US[1])


def test_the_others_leave_and_who_is_left_is_struck() -> None:
    for seed in range(200):
        leaves, blow, *more = draw(seed)
        assert leaves.targets == (FOLLOWERS,)
        assert leaves.kind in last_replica.LEAVE_ISR
        assert leaves.lasts_us >= last_replica.AWAY_US[0]
        assert list(leaves.delays_us) == sorted(leaves.delays_us)
        assert (blow.targets, blow.kind in last_replica.STRIKE_LAST) == ((LAST_MEMBER,), True)
        assert blow.trigger is not None
        assert (blow.trigger.moment, blow.trigger.occurrence in (1, 2)) == ("isr", True)
        assert len(more) == 2
        assert {fault.kind for fault in more} <= {*last_replica.BACKGROUND, last_replica.WHILE_DOWN}


def test_four_of_five_replicas_have_to_leave() -> None:
    five = replace(LIMITS, brokers=(1, 2, 3, 4, 5), all_brokers=(1, 2, 3, 4, 5))
    drawn = [draw(seed, limits=five)[1].trigger for seed in range(100)]
    assert {trigger.occurrence for trigger in drawn if trigger is not None} == {3, 4}


def test_stories_differ() -> None:
    plans = [draw(seed) for seed in range(300)]
    assert {plan[0].kind for plan in plans} == set(last_replica.LEAVE_ISR)
    assert {plan[1].kind for plan in plans} == set(last_replica.STRIKE_LAST)
    meanwhile = Counter(fault.kind for plan in plans for fault in plan[2:])
    assert set(meanwhile) == {*last_replica.BACKGROUND, last_replica.WHILE_DOWN}
    assert min(meanwhile.values()) > 20
    back_first = [plan[1].at_us + plan[1].lasts_us < plan[0].at_us + plan[0].lasts_us for plan in plans]
    assert 60 < sum(back_first) < 240


def test_only_kinds_of_the_scenario_are_drawn() -> None:
    few = ("pause", "power-loss", "cut")
    assert {fault.kind for seed in range(50) for fault in draw(seed, allowed=few)} <= set(few)


def test_links_neither_make_the_others_leave_nor_strike_who_is_left() -> None:
    for seed in range(50):
        leaves, blow, *more = draw(seed, allowed=("cut", "slow", "pause"))
        assert (leaves.kind, blow.kind) == ("pause", "pause")
        assert {fault.kind for fault in more} <= {"cut", "slow", "pause"}


def test_a_seed_draws_the_same_story_whatever_other_incidents_there_are() -> None:
    mix = mixed(ALL, (6, 8), aimed_percent=40, burst_percent=10, standing_percent=50)
    for seed in range(50):
        streams = Streams(seed)
        incidents = draw_incidents(streams, mix, WINDOW_US)
        plan = draw_plan(streams, within(mix), incidents)
        stories = sum(incident.style == STANDING for incident in incidents)
        assert sum(fault.targets == (FOLLOWERS,) for fault in plan.faults) == stories
        again = Streams(seed)
        assert draw_plan(again, within(mix), draw_incidents(again, mix, WINDOW_US)) == plan


# Striking those that do not lead.


def test_all_that_follow_and_run_are_struck_each_after_its_delay() -> None:
    world = World(brokers=4).ready()
    world.cluster.kill(3)
    injection = Injection(world.cluster)
    injection.strike(Fault("kill", 0, (FOLLOWERS,), delays_us=(0, 5_000)))
    world.run(1)
    struck = [(entry.targets, entry.effective) for entry in injection.realised]
    assert struck == [((2,), True), ((4,), True)]
    assert injection.realised[1].at_us - injection.realised[0].at_us == 5_000
    assert list(world.cluster.running) == [1]


def test_those_outside_the_isr_are_struck_first() -> None:
    world = World(config={"replica.lag.time.max.ms": 2_000}).ready()
    world.cluster.links.cut(2, 1)
    world.cluster.links.cut(1, 2)
    world.write(seconds=20)
    assert world.cluster.control.state.isr == (1, 3)
    injection = Injection(world.cluster)
    injection.strike(Fault("pause", 0, (FOLLOWERS,), SECOND_US))
    assert [entry.targets for entry in injection.realised] == [(2,), (3,)]


def test_followers_are_none_where_all_others_are_down() -> None:
    world = World().ready()
    for broker in (2, 3):
        world.cluster.kill(broker)
    injection = Injection(world.cluster)
    injection.strike(Fault("kill", 0, (FOLLOWERS,), delays_us=(0, 5_000)))
    assert injection.realised == []
