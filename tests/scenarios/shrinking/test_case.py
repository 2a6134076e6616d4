from __future__ import annotations

from dataclasses import replace

import pytest

from faults.plan import LEADER, Fault, Trigger
from scenarios.format.catalogue import load
from sim.environment.topology import Topology
from sim.protocol.modes import mode as mode_named
from tests.named import run_row
from tests.scenarios.shrinking.failing import failing


def test_a_recorded_case_is_the_run_that_was_drawn() -> None:
    case = failing("power", "hw")
    assert case.row()["digest"] == run_row(load("power"), "hw", case.seed)["digest"]


def test_a_shorter_horizon_drops_later_faults_and_shortens_waits() -> None:
    early = Fault("kill", 6_000_000, (1,), 1_000_000)
    waiting = replace(early, targets=(LEADER,), trigger=Trigger("ack", 1, 0, 90_000_000))
    late = replace(early, at_us=20_000_000)
    case = failing("power", "hw").with_faults((early, waiting, late))
    case = case.with_sends(((0, 1, -1, 5_000_000), (1, 1, -1, 10_000_000))).with_horizon(10_000_000)
    assert case.horizon_us == 10_000_000
    assert [fault.at_us for fault in case.faults] == [6_000_000, 6_000_000]
    assert case.faults[1].trigger == Trigger("ack", 1, 0, 10_000_000)
    assert case.sends == ((0, 1, -1, 5_000_000),)


def test_equal_runs_have_equal_keys() -> None:
    case = failing("power", "hw")
    assert case.with_faults(case.faults).key == case.key
    others = [
        case.with_faults(()),
        case.with_sends(()),
        case.with_settings({"acks": "1"}),
        case.with_rule("isr_join", "leader-epoch-start"),
        case.with_older({1: "hw"}),
        case.with_scenario(settle_us=1),
        case.with_scenario(topology=Topology()),
        replace(case, seed=case.seed + 1),
        replace(case, mode=mode_named("kip101")),
    ]
    assert len({case.key, *(other.key for other in others)}) == len(others) + 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault("kill", 6_000_000, (9,)),
        Fault("kill", 6_000_000, (0,)),
        Fault("cut", 6_000_000, (1,)),
        Fault("reassignment", 6_000_000, (0,), replicas=(1, 9)),
    ],
)
def test_what_names_a_broker_that_is_not_there_does_not_fit(fault: Fault) -> None:
    case = failing("power", "hw")
    assert case.fits
    assert not case.with_faults((fault,)).fits


def test_what_kafka_would_not_start_with_does_not_fit() -> None:
    case = failing("power", "hw")
    assert not case.with_settings({"replica.fetch.wait.max.ms": 40_000}).fits
    assert not case.with_scenario(broker_config={1: {"replica.fetch.wait.max.ms": 40_000}}).fits
    assert not case.with_settings({"default.replication.factor": 9}).fits


def test_the_mode_and_rules_are_run() -> None:
    case = failing("power", "hw")
    assert replace(case, mode=mode_named("kip101")).row()["mode"] == "kip101"
    rule = ("follower_truncation", "leader-epoch")
    repaired = case.with_rule(*rule).row()
    assert repaired["digest"] == run_row(load("power"), "hw", case.seed, dict([rule]))["digest"]
