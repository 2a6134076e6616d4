"""What scripts do, and whether brokers can."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from highwater.lab.confirm import actions
from highwater.lab.confirm.observer import SEEN
from highwater.lab.confirm.producer import REQUEST, RESPONSE
from highwater.lab.confirm.release import InstalledRelease
from scenarios.format.catalogue import load, names
from scenarios.format.scenario import Pattern, ScriptLine
from scenarios.single.script import HOLDS
from sim.history.steps import STEPS
from sim.protocol.kraft.metadata import ELR_FEATURE

NEWEST = InstalledRelease("4.3.1", ())
OLD = InstalledRelease("0.10.2.2", ())


def test_steps_that_can_be_seen_are_steps() -> None:
    assert set(STEPS) >= SEEN


@pytest.mark.parametrize("name", names())
def test_what_has_no_counterpart_is_named_before_anything_starts(name: str) -> None:
    scenario = replace(load(name), control="real", broker_modes={}, config={}, topics=())
    for release in (OLD, NEWEST):
        for line in scenario.script:
            told = actions.missing(scenario, [line], release)
            elsewhere = "partition" in line.params and line.do not in actions.OF_PARTITIONS
            held = line.do in HOLDS and line.params["message"] not in (REQUEST, RESPONSE)
            is_new = release.number < actions.SINCE.get(line.do, ())
            second = line.params.get("producer", 1) > 1
            assert bool(told) == (line.do not in actions.ACTIONS or is_new or elsewhere or held or second)


def test_what_is_missing_is_said_with_the_reason() -> None:
    scenario = load("canary")
    lines = [
        ScriptLine("lossy", params={"from": 1, "to": 2}),
        ScriptLine("set-config", params={"config": {}}),
        ScriptLine("wait", when=Pattern("maximal-isr")),
        ScriptLine("admin-election", params={"election": "longest-log-balanced"}),
        ScriptLine("disk-replaced", params={"broker": 1, "directory": 2}),
        ScriptLine("hold-messages", params={"broker": 1, "message": "ProduceRequest"}),
        ScriptLine("hold-messages", params={"broker": 1, "message": "FetchRequest"}),
    ]
    assert actions.missing(scenario, lines, InstalledRelease("0.10.2.2", ())) == [
        "do = 'lossy' has no counterpart",
        "do = 'set-config' has no counterpart in 0.10.2.2: brokers take it from 0.11 on",
        "when.step = 'maximal-isr' cannot be seen on real brokers",
        "do = 'admin-election' has no counterpart for election = 'longest-log-balanced'",
        "do = 'disk-replaced' has no counterpart for one log directory",
        (
            "do = 'hold-messages', message = 'FetchRequest' has no counterpart: only ProduceRequest and "
            "ProduceResponse of a scenario with one partition are held"
        ),
    ]


def test_a_script_that_decides_needs_zookeeper() -> None:
    scenario = load("kip101-scenario-1")
    assert actions.missing(scenario, scenario.script, OLD) == []
    assert "only ZooKeeper's releases" in actions.missing(scenario, scenario.script, NEWEST)[0]


def test_an_idempotent_producer_needs_brokers_that_know_it() -> None:
    scenario = load("idempotent-retry")
    assert actions.missing(scenario, scenario.script, NEWEST) == []
    assert "enable.idempotence has no counterpart in 0.10.2.2" in actions.missing(scenario, scenario.script, OLD)[0]


def test_brokers_of_several_releases() -> None:
    scenario = load("mixed-versions")
    assert "several releases" in actions.missing(scenario, scenario.script, OLD)[0]


def test_steps_of_a_story_that_cannot_be_seen() -> None:
    assert actions.unseen(load("kip320-consumer-skip").story) == sorted(
        {line.pattern.step for line in load("kip320-consumer-skip").story} - SEEN
    )


def test_only_a_followers_disk_can_be_stalled() -> None:
    calls: list[tuple[int, bool]] = []
    proxies = SimpleNamespace(stall=lambda broker, stalled: calls.append((broker, stalled)))
    later: list[Any] = []
    actor: Any = SimpleNamespace(cluster=SimpleNamespace(leader=1, proxies=proxies), later_as_simulated=later.append)
    with pytest.raises(TimeoutError, match="broker 1 leads"):
        actions.ACTIONS["disk-stall"](actor, {"broker": 1, "for_ms": 5})
    actions.ACTIONS["disk-stall"](actor, {"broker": 2})
    assert later == []
    actions.ACTIONS["disk-stall"](actor, {"broker": 3, "for_ms": 5})
    later.pop()()
    assert calls == [(2, True), (3, True), (3, False)]


def test_metadata_lags_at_the_cluster_s_pace() -> None:
    calls: list[tuple[int, float]] = []
    later: list[tuple[float, Any]] = []
    cluster = SimpleNamespace(
        proxies=SimpleNamespace(lag=lambda *lag: calls.append(lag)), paced_ms=lambda value: value // 5
    )
    actor: Any = SimpleNamespace(cluster=cluster, later=lambda *one: later.append(one))
    actions.ACTIONS["metadata-lag"](actor, {"broker": 1, "by_ms": 10_000, "for_ms": 20_000})
    ((seconds, undo),) = later
    undo()
    assert (calls, seconds) == ([(1, 2.0), (1, 0.0)], 4.0)


@pytest.mark.parametrize(("level", "levels"), [(1, [0, 1]), (0, [1, 0])])
def test_a_change_of_the_feature_is_taken_back(level: int, levels: list[int]) -> None:
    asked: list[Any] = []
    later: list[tuple[float, Any]] = []
    actor: Any = SimpleNamespace(
        config={ELR_FEATURE: level},
        administrator=SimpleNamespace(set_config=asked.append),
        cluster=SimpleNamespace(paced_ms=lambda value: value),
        later=lambda *one: later.append(one),
    )
    actions.ACTIONS["feature-change"](actor, {"for_ms": 2_000})
    ((seconds, undo),) = later
    undo()
    assert (asked, seconds) == ([{ELR_FEATURE: one} for one in levels], 2.0)
