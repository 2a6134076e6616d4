"""What scripts do, and whether brokers can."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from highwater.lab.confirm import actions
from highwater.lab.confirm.observer import SEEN
from highwater.lab.confirm.partitions import FIRST, KafkaPartition
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
            unseen = line.when is not None and line.when.step not in SEEN
            absent = line.do not in actions.ACTIONS
            assert bool(told) == (absent or is_new or elsewhere or held or second or unseen)


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


def test_what_cannot_be_done_with_several_partitions_is_said() -> None:
    several = replace(load("directory-of-last-member"), config={})
    alone = replace(several, topics=())
    stall = ScriptLine("disk-stall", params={"broker": 2, "for_ms": 1_000})
    told = "do = 'disk-stall' has no counterpart in a scenario with several partitions"
    assert actions.missing(several, [stall], NEWEST) == [told]
    assert actions.missing(alone, [stall], NEWEST) == []


@pytest.mark.parametrize(
    ("do", "params", "asked"),
    [
        ("reassignment", {"replicas": [2, 1]}, ("reassign", [2, 1])),
        ("reassignment-cancel", {}, ("reassign", None)),
        ("delete-records", {"offset": 3}, ("delete_records", 3)),
        ("preferred-election", {}, ("elect", 0)),
        ("admin-election", {"election": "unclean"}, ("elect", 1)),
    ],
)
def test_an_action_is_about_the_partition_that_it_names(do: str, params: dict[str, Any], asked: Any) -> None:
    told: list[Any] = []
    audit = KafkaPartition("audit-0", 1, "audit", 0)
    of = {"": FIRST, "audit-0": audit}
    actor: Any = SimpleNamespace(
        partition_of=lambda params: of[params.get("partition", "")],
        cluster=SimpleNamespace(release=NEWEST),
        administrator=SimpleNamespace(
            reassign=lambda *of_it: told.append(("reassign", *of_it)),
            delete_records=lambda *of_it: told.append(("delete_records", *of_it)),
            elect=lambda *of_it: told.append(("elect", *of_it)),
        ),
    )
    actions.ACTIONS[do](actor, params)
    actions.ACTIONS[do](actor, {**params, "partition": "audit-0"})
    assert told == [(*asked, FIRST), (*asked, audit)]


def test_clients_are_those_of_the_partition_that_is_named() -> None:
    told: list[tuple[str, int]] = []
    audit = KafkaPartition("audit-0", 1, "audit", 0)
    of = {"": FIRST, "audit-0": audit}
    actor: Any = SimpleNamespace(
        partition_of=lambda params: of[params.get("partition", "")],
        clients_of={
            partition.name: SimpleNamespace(
                seek=lambda offset, name=partition.name: told.append((name, offset)),
                produce=lambda send, name=partition.name: told.append((name, send.first_id)),
            )
            for partition in of.values()
        },
        batches={},
        next_id=7,
        config={"acks": "all"},
    )
    for name in ("m1", "a1"):
        partition = {"partition": "audit-0"} if name == "a1" else {}
        actions.ACTIONS["produce"](actor, {"batch": name, **partition})
        actions.ACTIONS["seek"](actor, {"offset": 3, **partition})
    assert told == [(FIRST.name, 7), (FIRST.name, 3), ("audit-0", 8), ("audit-0", 3)]


def test_a_quorum_of_controllers_needs_a_release_that_lets_them_be_told_apart_and_a_process_to_end() -> None:
    scenario = load("quorum-empty-voter")
    assert actions.missing(scenario, scenario.script, NEWEST) == []
    assert "only releases from 3.9 on" in actions.missing(scenario, scenario.script, OLD)[0]
    failover = actions.missing(scenario, [ScriptLine("controller-failover")], NEWEST)
    assert failover == ["do = 'controller-failover' has no counterpart with control = quorum: kill the controller"]
