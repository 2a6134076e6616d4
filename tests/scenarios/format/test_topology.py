"""Racks, power domains and hosts: placement, latencies, and faults that strike all brokers of one as one."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.format import catalogue, selection
from scenarios.format.json_schema import json_schema
from scenarios.format.schema import of_store, read
from scenarios.single import recording
from scenarios.single.execution import Execution
from scenarios.single.run import run
from sim.environment.topology import Topology
from sim.errors import InputError
from sim.protocol.modes import MODES
from tests.scenarios.format.json_validator import errors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scenarios.format.scenario import Scenario
    from tests.conftest import Call

PLACES = """
[topology]
racks = { a = [1, 2], b = [3, 4], c = [5, 6] }
power_domains = { left = [1, 3], right = [2, 4] }
hosts = { h1 = [5, 6] }
latency_within_rack_us = 100
latency_between_racks_us = 2000
"""
DRAWN = (
    catalogue.template("drawn", "mine")
    .replace("brokers.count = 4", "brokers.count = 6")
    .replace(
        'kinds = ["kill", "power-loss", "controlled-restart", "cut"]',
        'kinds = ["kill", "power-domain-loss", "host-loss", "rack-cut"]',
    )
)


def scripted(line: str, places: str = PLACES) -> Scenario:
    text = catalogue.template("scripted", "mine").replace("brokers.count = 3", "brokers.count = 6")
    head = text.partition("[[script]]")[0]
    return read(
        f"""{head}{places}
[[script]]
when = {{ step = "lead" }}
after_ms = 1000
do = "produce"
batch = "m1"

[[script]]
when = {{ step = "ack", batch = "m1" }}
after_ms = 2000
{line}

[[script]]
after_ms = 15000
do = "wait"

[expect]
kraft = "may-violate"
""",
        "mine.toml",
    )


def steps(scenario: Scenario, kind: str, mode: str = "kraft") -> list[dict[str, Any]]:
    return [step for step in run(scenario, MODES[mode], 0, trace=True).trace or () if step["step"] == kind]


@pytest.mark.parametrize("mode", ["hw", "kip320", "kraft", "elr-4.3"])
def test_replicas_are_placed_over_racks_and_the_first_is_preferred(mode: str) -> None:
    scenario = scripted('do = "wait"')
    execution = Execution(scenario, MODES[mode], 0, {}, None)
    assert execution.cluster.replicas == (1, 3, 5)
    elected = steps(scenario, "elected", mode)
    assert elected[0]["broker"] == 1


@pytest.mark.parametrize(
    ("racks", "count", "replicas"),
    [
        ({}, 3, (1, 2, 3)),
        ({"a": (1, 2, 3), "b": (4, 5, 6)}, 3, (1, 4, 2)),
        ({"z": (1,), "a": (2, 3, 4, 5, 6)}, 4, (2, 1, 3, 4)),
        ({"a": (5, 6), "b": (1, 2), "c": (3, 4)}, 6, (5, 1, 3, 6, 2, 4)),
    ],
)
def test_racks_take_turns(racks: dict[str, tuple[int, ...]], count: int, replicas: tuple[int, ...]) -> None:
    assert Topology(racks=racks).placed(range(1, 7), count) == replicas


def test_a_power_domain_loses_power_as_one() -> None:
    struck = steps(scripted('do = "power-domain-loss"\nbroker = 1'), "power-loss")
    assert [step["broker"] for step in struck] == [1, 3]
    assert len({step["t"] for step in struck}) == 1


def test_a_host_loses_power_as_one_and_returns_as_one() -> None:
    scenario = scripted('do = "host-loss"\nbroker = 6\nrestart_ms = 3000')
    assert [step["broker"] for step in steps(scenario, "power-loss")] == [5, 6]
    assert [step["broker"] for step in steps(scenario, "start")][-2:] == [5, 6]


def test_a_broker_in_no_domain_is_struck_alone() -> None:
    assert [step["broker"] for step in steps(scripted('do = "power-domain-loss"\nbroker = 5'), "power-loss")] == [5]


def test_a_rack_is_cut_off_in_both_directions_and_healed() -> None:
    scenario = scripted('do = "rack-cut"\nbroker = 3\nfor_ms = 5000')
    cut = {(step["source"], step["target"]) for step in steps(scenario, "cut")}
    across = {(inside, outside) for inside in (3, 4) for outside in (0, 1, 2, 5, 6)}
    assert cut == across | {(outside, inside) for inside, outside in across}
    assert {(step["source"], step["target"]) for step in steps(scenario, "heal")} == cut


def test_brokers_of_other_racks_are_further_away() -> None:
    network = Execution(scripted('do = "wait"'), MODES["kraft"], 0, {}, None).cluster.network
    execution = Execution(scripted('do = "wait"'), MODES["kraft"], 0, {}, None)
    execution.cluster.boot()
    lengthened = execution.cluster.network
    for source, target, added_us in ((1, 2, 100), (1, 3, 2_000), (1, 0, 0)):
        before, after = network.link(source, target).table, lengthened.link(source, target).table
        assert [one - other for one, other in zip(after, before, strict=True)] == [added_us] * len(before)


def test_without_a_topology_nothing_is_drawn_differently() -> None:
    plain = selection.scenario("power", {})
    assert plain.topology is None
    assert "topology" not in plain.to_json()
    drawn = read(DRAWN.replace('"power-domain-loss", "host-loss", "rack-cut"', '"power-loss", "cut"'), "mine.toml")
    placed = read(
        DRAWN.replace('"power-domain-loss", "host-loss", "rack-cut"', '"power-loss", "cut"').replace(
            "[config]", "[topology]\nhosts = { a = [6] }\n\n[config]"
        ),
        "mine.toml",
    )
    assert run(drawn, MODES["elr"], 3).row["digest"] == run(placed, MODES["elr"], 3).row["digest"]


@pytest.mark.parametrize("mode", ["kip320", "elr"])
def test_a_random_run_is_the_same_from_its_store_and_its_recording(mode: str) -> None:
    scenario = read(DRAWN.replace("[config]", f"{PLACES}\n[config]"), "mine.toml")
    places = {"power-domain-loss", "host-loss", "rack-cut"}
    runs = (run(scenario, MODES[mode], seed) for seed in range(20))
    found = next(result for result in runs if {fault["kind"] for fault in result.plan["faults"]} & places)
    seed = found.row["seed"]
    assert of_store(scenario.to_json()) == scenario
    assert run(of_store(scenario.to_json()), MODES[mode], seed).row["digest"] == found.row["digest"]
    recorded = recording.of_run(scenario, found)
    assert run(recorded.scenario, MODES[mode], seed, recorded.rules or {}).row["digest"] == found.row["digest"]


@pytest.mark.parametrize(
    ("places", "problem"),
    [
        ("racks = { a = [1, 2, 3, 4, 5], b = [] }", "topology.racks.b = []: list should have at least 1 item"),
        ("racks = { a = [1, 2, 3] }", "broker 4, 5, 6 is in no rack"),
        ("hosts = { a = [1, 7] }", "the brokers are 1 to 6"),
        ("hosts = { a = [1, 2], b = [2] }", "broker 2 is in two of them"),
        ("power_domains = { a = [1, 1] }", "a broker is named twice"),
        ("latency_between_racks_us = -1", "latency_between_racks_us = -1"),
        ("rack = { a = [1] }", "unknown key 'rack'; did you mean 'racks'?"),
    ],
)
def test_places_that_cannot_be_are_refused(
    highwater: Callable[..., Call], tmp_path: Path, places: str, problem: str
) -> None:
    file = tmp_path / "mine.toml"
    kinds = DRAWN.replace('"power-domain-loss", "host-loss", "rack-cut"', '"cut"')
    file.write_text(kinds.replace("[config]", f"[topology]\n{places}\n\n[config]"))
    called = highwater("run", file)
    assert (called.code, called.err.count("\n")) == (2, 1)
    assert problem in called.err


@pytest.mark.parametrize(("kind", "grouping"), [("rack-cut", "racks"), ("host-loss", "hosts")])
def test_faults_of_groups_need_the_groups(kind: str, grouping: str) -> None:
    with pytest.raises(InputError, match=f"{kind} needs topology.{grouping}"):
        read(DRAWN, "mine.toml")


def test_the_schema_knows_topologies() -> None:
    data = tomllib.loads(DRAWN.replace("[config]", f"{PLACES}\n[config]"))
    assert list(errors(json_schema(), data)) == []
    data["topology"]["racks"]["a"] = []
    assert list(errors(json_schema(), data))
