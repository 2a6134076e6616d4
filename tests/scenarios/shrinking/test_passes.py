from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.plan import FOLLOWERS, LEADER, STEP_BROKER, Fault, Trigger
from scenarios.shrinking import passes
from scenarios.shrinking.case import Case
from sim.config import resolve
from tests.scenarios.shrinking.failing import failing

if TYPE_CHECKING:
    from sim.config import Value

SECOND = 1_000_000
KILL = Fault("kill", 6 * SECOND, (1,), SECOND)


def case(*faults: Fault, sends: tuple[int, ...] = (), horizon_us: int = 60 * SECOND) -> Case:
    batches = tuple((number * 10, 3, 1, due_us) for number, due_us in enumerate(sends))
    return failing("power", "hw").with_horizon(horizon_us).with_faults(faults).with_sends(batches)


def struck(kind: str, at_us: int, *targets: int) -> dict[str, object]:
    return {"kind": kind, "at_us": at_us, "targets": list(targets), "effective": True}


def test_settings_go_back_to_their_defaults_but_those_that_are_kept() -> None:
    settings: dict[str, Value] = {
        "acks": "1",
        "min.insync.replicas": 2,
        "default.replication.factor": 3,
        "sim.spare.brokers": 1,
    }
    changed = case().with_scenario(config=resolve(settings))
    assert passes.changed_settings(changed) == ("min.insync.replicas", "acks")
    kept = passes.only_settings(changed, ("acks",)).scenario.config
    assert kept == resolve({**settings, "min.insync.replicas": 1})


def test_smaller_clusters_have_fewer_brokers_which_may_get_other_numbers() -> None:
    large = case(replace(KILL, targets=(3,))).with_scenario(brokers=3)
    large = large.with_settings({"default.replication.factor": 3, "sim.spare.brokers": 0})
    found = [
        (cluster.scenario.config["default.replication.factor"], cluster.scenario.brokers, cluster.faults[0].targets)
        for cluster in passes.smaller_clusters(large)
    ]
    assert found[:3] == [(2, 2, (3,)), (2, 2, (1,)), (2, 3, (3,))]
    assert (2, 2, (1,)) in found
    assert (3, 3, (3,)) not in found


@pytest.mark.parametrize(("factor", "least"), [(1, 1), (2, 2), (3, 2)])
def test_a_partition_keeps_two_replicas_if_it_had_several(factor: int, least: int) -> None:
    large = case(KILL).with_scenario(brokers=4).with_settings({"default.replication.factor": factor})
    factors = [cluster.scenario.config["default.replication.factor"] for cluster in passes.smaller_clusters(large)]
    assert min(factors) == least


def test_batches_become_plain() -> None:
    found = [send.sends for send in passes.simpler_sends(case(sends=(SECOND, 2 * SECOND)))]
    assert found[0] == ((0, 1, 1, SECOND), (10, 1, 1, 2 * SECOND))
    assert ((0, 3, -1, SECOND), (10, 3, 1, 2 * SECOND)) in found
    assert found[-1] == ((0, 3, 1, SECOND), (3, 3, 1, 2 * SECOND))


def test_a_fault_is_given_the_time_and_the_broker_that_it_had() -> None:
    aimed = replace(KILL, targets=(LEADER,), trigger=Trigger("ack", 2, 0, 50 * SECOND))
    realised = [struck("kill", 7_000_123, 2), struck("cut", 8 * SECOND, 1, 2)]
    found = list(passes.simpler_faults(aimed, realised))
    assert found[0] == Fault("kill", 7_000_123, (2,), SECOND)
    assert found[1] == Fault("kill", 7_000_124, (2,), SECOND)
    assert Fault("kill", 7_000_123, (LEADER,), SECOND) in found
    there = list(passes.simpler_faults(replace(aimed, targets=(STEP_BROKER,)), realised))
    assert {fault.targets for fault in there} == {(2,)}  # Without its trigger nothing happened there.
    assert list(passes.simpler_faults(KILL, realised)) == []


def test_all_followers_become_brokers_that_are_struck_one_after_the_other() -> None:
    fault = Fault("kill", 6 * SECOND, (FOLLOWERS,), SECOND, (0, 5))
    found = list(passes.simpler_faults(fault, [struck("kill", 6 * SECOND, 3), struck("kill", 6 * SECOND + 5, 2)]))
    assert found[0] == Fault("kill", 6 * SECOND, (3, 2), SECOND, (0, 5))


def test_a_burst_loses_targets_and_a_cut_a_direction() -> None:
    burst = Fault("power-loss", 6 * SECOND, (1, 2, 3), SECOND, (0, 10, 30))
    found = list(passes.simpler_faults(burst, []))
    assert replace(burst, targets=(2, 3), delays_us=(0, 20)) in found
    assert replace(burst, targets=(1, 3), delays_us=(0, 30)) in found
    assert replace(burst, delays_us=()) in found
    at_once = replace(burst, delays_us=())
    assert replace(at_once, targets=(1, 2)) in list(passes.simpler_faults(at_once, []))
    cut = Fault("cut", 6 * SECOND, (1, 2), SECOND, both_ways=True)
    assert list(passes.simpler_faults(cut, [])) == [replace(cut, both_ways=False)]


@given(st.integers(0, 10**9))
def test_rounder_times_are_near_and_rounder(us: int) -> None:
    found = list(passes.rounder(us))
    assert us not in found
    for near in found:
        unit = next(unit for unit in passes.ROUND_US if near % unit == 0)
        assert us % unit
        assert abs(near - us) < unit


def test_what_lasts_becomes_shorter_or_rounder() -> None:
    assert list(passes.shorter(4_300_000)) == [SECOND, 2 * SECOND, 10 * SECOND, 4 * SECOND, 5 * SECOND]
    assert [fault.lasts_us for fault in passes.shorter_faults(replace(KILL, lasts_us=2 * SECOND))] == [SECOND]
    assert list(passes.shorter_faults(replace(KILL, lasts_us=-1))) == []


def test_a_trigger_waits_less() -> None:
    aimed = replace(KILL, trigger=Trigger("ack", 3, 1_500, 50 * SECOND))
    triggers = [fault.trigger for fault in passes.shorter_faults(aimed)]
    assert Trigger("ack", 3, 0, 50 * SECOND) in triggers
    assert Trigger("ack", 1, 1_500, 50 * SECOND) in triggers


def test_gaps_close_and_what_comes_later_comes_sooner() -> None:
    aimed = replace(KILL, at_us=40 * SECOND, trigger=Trigger("ack", 1, 0, 50 * SECOND))
    long = case(KILL, aimed, sends=(30 * SECOND,))
    assert passes.moments(long) == [6 * SECOND, 30 * SECOND, 40 * SECOND]
    ways = list(passes.compressed(long))
    first = ways[0](long)
    assert first is not None
    assert [fault.at_us for fault in first.faults] == [2 * SECOND, 36 * SECOND]
    assert first.faults[1].trigger == Trigger("ack", 1, 0, 46 * SECOND)
    assert first.sends[0][3] == 26 * SECOND
    assert first.horizon_us == 56 * SECOND
    second = ways[len(passes.SHORT_US)](long)
    assert second is not None
    assert passes.moments(second) == [6 * SECOND, 7 * SECOND, 17 * SECOND]
    assert all(way(first) is None for way in ways[: len(passes.SHORT_US)])


def test_horizons_come_soon_after_the_last_thing() -> None:
    horizons = [horizon.horizon_us for horizon in passes.shorter_horizons(case(KILL, horizon_us=61_500_000))]
    assert horizons[:2] == [7 * SECOND, 8 * SECOND]
    assert horizons[-1] > 60 * SECOND
    assert passes.prefixes(case(KILL, sends=(8 * SECOND,))) == (7 * SECOND, 34 * SECOND)
