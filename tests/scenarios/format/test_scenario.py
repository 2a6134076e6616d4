from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from scenarios.format import catalogue
from scenarios.format.finding import FindingTable
from scenarios.format.scenario import (
    SCENARIO_VERSION,
    AlsoOccurs,
    Expectation,
    FinalLog,
    OnBrokers,
    Scenario,
    ScriptLine,
    from_json,
)


@pytest.mark.parametrize("name", catalogue.names())
def test_json_holds_the_whole_scenario(name: str) -> None:
    scenario = catalogue.load(name)
    assert from_json(json.loads(json.dumps(scenario.to_json()))) == scenario


def test_a_newer_version_is_refused() -> None:
    newer = {**catalogue.load("canary").to_json(), "schema_version": SCENARIO_VERSION + 1}
    with pytest.raises(ValueError, match="schema_version 2; this version reads 1"):
        from_json(newer)


def test_scenarios_of_earlier_versions_are_read() -> None:
    scenario = catalogue.load("hw-two-failovers")
    stored = scenario.to_json()
    for name in ("final", "broken_by", "broker_modes"):
        del stored[name]
    for probe in stored["story"]:
        probe["rules"] = {name: values[0] for name, values in probe["rules"].items()}
    firsts = [
        replace(probe, rules={name: values[:1] for name, values in probe.rules.items()}) for probe in scenario.story
    ]
    assert from_json(stored) == replace(scenario, story=tuple(firsts), final=(), broken_by={}, broker_modes={})


def test_a_scenario_in_full_survives_json() -> None:
    scenario = Scenario(
        "a", "t", "", 2, "scripted",
        broker_modes={2: "kip101"},
        final=(FinalLog(1, ("m1", "m2"), 3, {"isr_join": ("high-watermark", "leader-epoch-start")}),),
        broken_by={"kip101": {"follower_truncation": "high-watermark"}},
    )  # fmt: skip
    assert from_json(json.loads(json.dumps(scenario.to_json()))) == scenario


def test_drawn() -> None:
    assert catalogue.load("power").drawn
    assert not catalogue.load("canary").drawn


@pytest.mark.parametrize(
    "change",
    [
        {"title": "x"},
        {"strict": True},
        {"description": "x"},
        {"expect": {"hw": Expectation("may-violate")}},
        {"broken_by": {"kip101": {"follower_truncation": "high-watermark"}}},
        {"also": (AlsoOccurs("divergence", ("hw",), "inside", "x"),)},
        {"confirm": OnBrokers(("4.4.0",))},
        {"finding": FindingTable(number=1)},
    ],
)
def test_hash_leaves_out_what_is_said_about_a_scenario(change: dict[str, Any]) -> None:
    scenario = catalogue.load("canary")
    changed = replace(scenario, **change)
    assert changed != scenario
    assert changed.scenario_hash() == scenario.scenario_hash()


@pytest.mark.parametrize(
    "change",
    [
        {"brokers": 4},
        {"config": {"default.replication.factor": 3, "min.insync.replicas": 2}},
        {"broker_config": {1: {"acks": "1"}}},
        {"draw_config": {"acks": ("1",)}},
        {"script": (ScriptLine("heal"),)},
        {"settle_us": 1},
        {"broker_modes": {1: "kip101"}},
        {"first": 2},
        {"final": (FinalLog(1, ("m1",)),)},
    ],
)
def test_hash_covers_settings_and_story(change: dict[str, Any]) -> None:
    scenario = catalogue.load("canary")
    assert replace(scenario, **change).scenario_hash() != scenario.scenario_hash()
