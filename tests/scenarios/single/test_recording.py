from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pytest

from faults.plan import FOLLOWERS, Fault
from scenarios.format.catalogue import load
from scenarios.single import recording
from sim.errors import InputError
from sim.kernel.streams import Stream, Streams
from sim.protocol.modes import MODES
from tests.named import run, run_row
from tests.plain import needs_sources

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scenarios.format.scenario import Scenario
    from scenarios.single.result import RunResult

RULES = {"isr_join": "leader-epoch-start"}


@pytest.fixture(scope="module")
def recorded() -> tuple[Scenario, RunResult]:
    """A run with everything that a recording has to keep."""
    scenario = replace(
        load("power").with_settings({"acks": "all"}),
        broker_config={2: {"log.flush.interval.messages": 1}},
        broker_modes={3: "kip101"},
        strict=True,
    )
    for seed in range(100):
        result = run(scenario, "hw", seed, RULES)
        if "committed-loss" in result.row["violations"]:
            return scenario, result
    raise AssertionError("no seed of a hundred lost anything")


@pytest.fixture
def seed(recorded: tuple[Scenario, RunResult]) -> int:
    return int(recorded[1].row["seed"])


@pytest.fixture
def data(recorded: tuple[Scenario, RunResult]) -> dict[str, Any]:
    return json.loads(recording.to_text(recording.to_json(*recorded)))  # type: ignore[no-any-return]


def written(folder: Path, data: object) -> Path:
    file = folder / "plan.json"
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    return file


@needs_sources
def test_a_recorded_run_is_the_same_run_without_anything_drawn(
    recorded: tuple[Scenario, RunResult], data: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    call = Streams.__call__

    def noted(self: Streams, name: str) -> Stream:
        drawn.append(name)
        return call(self, name)

    monkeypatch.setattr(Streams, "__call__", noted)
    found = recording.read(written(tmp_path, data))
    assert (found.mode, found.seed, found.rules) == (MODES["hw"], recorded[1].row["seed"], RULES)
    row = run_row(found.scenario, "hw", recorded[1].row["seed"], RULES)
    then = recorded[1].row
    assert row["digest"] == found.digest == then["digest"]
    assert row == {**then, "drawn_settings": "{}", "replay": row["replay"]}
    assert drawn
    assert not [name for name in drawn if name.startswith(("plan", "fault", "workload", "setting"))]


def test_settings_batches_and_faults_have_a_line_each(data: dict[str, Any]) -> None:
    lines = recording.to_text(data).splitlines()
    assert sum('"kind": "' in line for line in lines) == len(data["plan"]["faults"]) > 3
    assert sum('"first_id": ' in line for line in lines) == len(data["sends"]) > 20
    assert sum('"min.insync.replicas": ' in line for line in lines) == 1


def test_a_recorded_run_is_expected_to_show_what_it_showed(data: dict[str, Any], seed: int, tmp_path: Path) -> None:
    scenario = recording.read(written(tmp_path, data)).scenario
    assert scenario.recorded is not None
    assert scenario.recorded.kinds
    for kinds, mode, expected in (
        (scenario.recorded.kinds, "hw", True),
        ((*scenario.recorded.kinds, "no-progress"), "hw", False),
        ((), "hw", False),
        ((), "kip101", True),  # Of another mode nothing is known.
    ):
        other = replace(scenario, recorded=replace(scenario.recorded, kinds=kinds))
        assert run_row(other, mode, seed, RULES)["expected"] is expected


def test_the_replay_line_names_the_file(data: dict[str, Any], seed: int, tmp_path: Path) -> None:
    file = written(tmp_path, data)
    row = run_row(recording.read(file).scenario, "hw", seed, RULES)
    line = f"highwater run --plan {file} --mode hw --seed {seed} --rule isr_join=leader-epoch-start --strict"
    assert row["replay"] == line


@pytest.mark.parametrize("version", [1, 2])
def test_a_plan_alone_goes_with_a_scenario(data: dict[str, Any], seed: int, tmp_path: Path, version: int) -> None:
    plan = {**data["plan"], "schema_version": version}
    if version == 1:
        plan["faults"] = [
            {key: value for key, value in fault.items() if key not in ("value", "replicas")} for fault in plan["faults"]
        ]
    power = replace(load("power"), source="power")
    found = recording.read(written(tmp_path, plan), power)
    assert (found.mode, found.seed) == (None, None)
    row = run_row(found.scenario, "hw", seed)
    drawn = run_row(power, "hw", seed)
    assert (row["plan_hash"], row["digest"], row["expected"]) == (drawn["plan_hash"], drawn["digest"], True)
    assert row["replay"] == f"highwater run power --plan {tmp_path / 'plan.json'} --mode hw --seed {seed}"
    with pytest.raises(InputError, match="it contains only a plan: name its scenario"):
        recording.read(written(tmp_path, plan))
    with pytest.raises(InputError, match="canary draws no faults, so it cannot take a plan"):
        recording.read(written(tmp_path, plan), load("canary"))


def test_a_scripted_run_leaves_an_empty_plan() -> None:
    canary = load("canary")
    assert recording.to_json(canary, run(canary, "hw", 0))["faults"] == []


def without(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda data: data.pop(key)


def to(value: object, *path: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


def fault(kind: str, **fields: Any) -> dict[str, Any]:
    return {**asdict(Fault(kind, 1, (1,))), "targets": [1], **fields}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (to(99, "schema_version"), "it has schema_version 99; this highwater reads up to 1: update it"),
        (without("schema_version"), "it has no schema_version: highwater did not write it"),
        (without("sends"), "'sends' is missing"),
        (to(1, "sedd"), "unknown key 'sedd'; did you mean 'seed'?"),
        (to({"rakcs": {}}, "topology"), "topology: unknown key 'rakcs'; did you mean 'racks'?"),
        (to({"hosts": {"a": [4]}}, "topology"), "topology.hosts.a = 4: the brokers are 1 to 3"),
        (
            to([{"name": "a", "partition": 1}], "topics"),
            "topics 1: unknown key 'partition'; did you mean 'partitions'?",
        ),
        (to(-1, "seed"), "seed = -1: input should be greater than or equal to 0"),
        (to(True, "seed"), "seed = True: input should be a valid integer"),
        (to("kip10", "mode"), "mode = 'kip10': unknown mode 'kip10'; did you mean 'kip101'?"),
        (to(["hw", "kip101"], "mode"), "mode = ['hw', 'kip101']: input should be a valid string"),
        (to("kip10", "broker_modes", "3"), "broker_modes.3 = 'kip10': unknown mode 'kip10'; did you mean 'kip101'?"),
        (to("kip101", "broker_modes", "x"), "broker_modes: 'x' is no broker"),
        (to("kip101", "broker_modes", "4"), "there is no broker 4: brokers is 3"),
        (to("yes", "strict"), "strict = 'yes': input should be a valid boolean"),
        (to("epoch", "rules", "isr_join"), "rules: rule isr_join has no value 'epoch'"),
        (to(0, "config", "min.insync.replicas"), "config: min.insync.replicas = 0 is not valid"),
        (to(1, "config", "min.insync.replica"), "unknown configuration key 'min.insync.replica'; did you mean"),
        (to(["comitted-loss"], "kinds"), "kinds = 'comitted-loss': no such kind of violation; did you mean"),
        (to([], "plan"), "plan = []: a table is needed"),
        (to(99, "plan", "schema_version"), "plan: plan has schema_version 99"),
        (to({}, "plan", "faults"), "plan: faults = {}: a list is needed"),
        (to("kil", "plan", "faults", 0, "kind"), "plan: faults 1: kind = 'kil': no such kind of fault; did you mean"),
        (to("5", "plan", "faults", 1, "at_us"), "plan: faults 2: at_us = '5': input should be a valid integer"),
        (to(-5, "plan", "faults", 1, "at_us"), "plan: faults 2: at_us = -5: input should be greater than"),
        (to([7], "plan", "faults", 0, "targets"), "plan: faults 1: 7 is no broker: these are 1 to 3"),
        (to([], "plan", "faults", 0, "targets"), "plan: faults 1: targets: [] cannot be the targets of"),
        (to([1, 2, 3, 4], "plan", "faults", 0, "delays_us"), "plan: faults 1: delays_us: [1, 2, 3, 4] is not a delay"),
        (to([-8, 1], "plan", "faults", 0, "delays_us"), "plan: faults 1: delays_us: [-8, 1] is not a delay"),
        (to([-9], "plan", "faults", 0, "targets"), "plan: faults 1: -9 is no broker"),
        (to(fault("admin-election", value=4), "plan", "faults", 0),
         "plan: faults 1: value: 4: 'admin-election' takes from 0 to 3"),
        (to(fault("min-isr-change", value=0), "plan", "faults", 0),
         "plan: faults 1: value: 0: 'min-isr-change' takes from 1 upwards"),
        (to(fault("reassignment", targets=[0], replicas=[]), "plan", "faults", 0), "[]: distinct brokers"),
        (to(fault("reassignment", targets=[0], replicas=[2, 2]), "plan", "faults", 0), "[2, 2]: distinct brokers"),
        (to(fault("reassignment", targets=[0], replicas=[1, 0]), "plan", "faults", 0), "distinct brokers"),
        (to(fault("kill", targets=[0]), "plan", "faults", 0), "plan: faults 1: targets: 'kill' strikes brokers"),
        (to(fault("cut", targets=[1]), "plan", "faults", 0), "plan: faults 1: targets: [1] cannot be the targets of"),
        (to({"moment": "ack", "occurrence": 1, "after_us": -1, "until_us": 9}, "plan", "faults", 0, "trigger"),
         "plan: faults 1: trigger.after_us = -1: input should be greater than or equal to 0"),
        (to({"moment": "ack", "occurrence": 0, "after_us": 1, "until_us": 9}, "plan", "faults", 0, "trigger"),
         "plan: faults 1: trigger.occurrence = 0: input should be greater than or equal to 1"),
        (to(1, "plan", "faults", 0, "target"), "plan: faults 1: unknown key 'target'; did you mean 'targets'?"),
        (lambda data: data["plan"]["faults"][0].pop("both_ways"), "plan: faults 1: 'both_ways' is missing"),
        (to(3, "plan", "faults", 0), "plan: faults 1 = 3: a table is needed"),
        (to(5, "sends", 0, "acks"), "sends 1: acks = 5: input should be less than or equal to 1"),
        (to(0, "sends", 1, "first_id"), "sends 2 is out of order: ids and times must ascend"),
        (lambda data: data["sends"][0].pop("acks"), "sends 1: 'acks' is missing"),
    ],
)  # fmt: skip
def test_mistake_in_a_recording_is_said_in_one_line(
    data: dict[str, Any], tmp_path: Path, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    change(data)
    file = written(tmp_path, data)
    with pytest.raises(InputError) as caught:
        recording.read(file)
    (problem,) = caught.value.problems
    assert problem.startswith(f"{file}: ")
    assert said in problem


def test_all_that_is_wrong_is_said_at_once(data: dict[str, Any], tmp_path: Path) -> None:
    data.update(mode="h", seed="7")
    del data["first"]
    with pytest.raises(InputError) as caught:
        recording.read(written(tmp_path, data))
    assert len(caught.value.problems) == 3


def test_a_scenario_is_no_plan(tmp_path: Path) -> None:
    file = tmp_path / "advice.toml"
    file.write_text("schema = 1\n")
    with pytest.raises(InputError, match="this is a scenario: leave out --plan"):
        recording.read(file)


@pytest.mark.parametrize(
    ("text", "said"), [("{", "is not JSON"), ("[]", "contains no JSON object"), ("\xff", "is not JSON")]
)
def test_file_that_is_no_recording(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=said):
        recording.read(file)
    with pytest.raises(InputError, match=r"--plan .*none.json: cannot be read: No such file"):
        recording.read(tmp_path / "none.json")


def test_a_story_of_a_last_replica_is_read_again(tmp_path: Path) -> None:
    """Its first fault strikes all followers, each after a delay of its own."""
    scenario = load("elr-chaos")
    told = []
    for seed in range(6):
        result = run(scenario, "elr", seed)
        told += [
            fault for fault in result.plan["faults"] if tuple(fault["targets"]) == (FOLLOWERS,) and fault["delays_us"]
        ]
        file = written(tmp_path, result.plan)
        assert recording.read(file, scenario).scenario.recorded.plan.to_json() == result.plan  # type: ignore[union-attr]
    assert told


def test_any_run_of_elr_chaos_is_recorded_and_run_again(tmp_path: Path) -> None:
    scenario = load("elr-chaos")
    followers = 0
    for seed in range(20):
        result = run(scenario, "elr", seed)
        found = recording.read(written(tmp_path, recording.to_text(recording.to_json(scenario, result))))
        row = run_row(found.scenario, "elr", seed)
        assert (row["digest"], row["plan_hash"]) == (result.row["digest"], result.row["plan_hash"]), seed
        followers += any(tuple(one["targets"]) == (FOLLOWERS,) for one in result.plan["faults"])
    assert followers >= 10


def test_a_delay_is_that_of_the_targets_beyond_it(tmp_path: Path) -> None:
    """A power loss that was drawn for one broker strikes the leader and another member of the ISR."""
    result = run(load("reassignments"), "hw", 1063)
    blow = result.plan["faults"][-1]
    assert (len(blow["targets"]), len(blow["delays_us"])) == (2, 1)
    file = written(tmp_path, recording.to_text(recording.to_json(load("reassignments"), result)))
    found = recording.read(file)
    assert run_row(found.scenario, "hw", 1063)["digest"] == result.row["digest"]


@pytest.mark.parametrize(
    "late",
    [
        {"at_us": 6_001_000},
        {"at_us": 5_999_000, "delays_us": [2_000]},
        {"trigger": {"moment": "ack", "occurrence": 99, "after_us": 0, "until_us": 6_001_000}},
    ],
)
def test_nothing_strikes_a_healed_cluster(data: dict[str, Any], tmp_path: Path, late: dict[str, Any]) -> None:
    data.update(horizon_us=6_000_000, plan={**data["plan"], "faults": [fault("kill", **late)]}, sends=[], kinds=[])
    result = run(recording.read(written(tmp_path, data)).scenario, "hw", 0, RULES)
    assert (result.faults, result.row["verdict"]) == ([], "ok")


def test_a_run_of_another_scenario_is_refused(data: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a run of power, not of chaos"):
        recording.read(written(tmp_path, data), load("chaos"))
