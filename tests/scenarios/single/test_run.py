from __future__ import annotations

import gc
import json
import shlex
from dataclasses import replace
from functools import partial

import pytest

from faults.plan import plan_from_json
from scenarios.format.catalogue import load, names
from scenarios.format.scenario import Expectation, FinalLog, Scenario
from scenarios.single.rows import COLUMNS
from scenarios.single.run import _execute
from sim.config import NEVER, Value
from sim.errors import InputError
from sim.history.history import History
from sim.hosts.zookeeper import ZooKeeper
from sim.kernel.scheduler import AUDIT_EVENTS, Kernel, Watcher
from sim.protocol.modes import mode as mode_named
from tests.named import run, run_row
from tests.plain import needs_sources

TYPES = {"string": str, "bigint": int, "int": int, "boolean": bool}


def test_the_canary_is_expected_to_fail_and_must_not_when_it_is_repaired() -> None:
    canary = load("canary")
    assert run_row(canary, "hw", 1)["expected"]
    repaired = run_row(canary, "hw", 1, {"follower_truncation": "leader-epoch"})
    assert (repaired["verdict"], repaired["expected"]) == ("ok", False)


def test_brokers_can_have_a_mode_of_their_own() -> None:
    mixed = load("mixed-versions")
    assert "committed-loss" in run_row(mixed, "kip320", 1)["violations"]
    result = run(replace(mixed, broker_modes={}), "kip320", 1)
    assert (result.row["mode"], result.violations) == ("kip320", [])
    assert result.row["error"].startswith("not as told: story did not happen: no step 'truncate broker=1 offset=1'")


def test_a_final_log_that_is_not_the_story_fails_the_run() -> None:
    scenario = load("kip101-scenario-1")
    row = run_row(replace(scenario, final=(FinalLog(2, ("m2",)),)), "kip101", 1)
    assert row["verdict"] == "error"
    assert row["error"] == "not as told: final log of broker 2: m1 m2 up to 2, expected m2"


def test_a_row_has_all_columns_in_order_and_of_their_types(power: Scenario) -> None:
    row = run_row(power, "hw", 3)
    assert list(row) == list(COLUMNS)
    assert [type(row[name]) for name in COLUMNS] == [TYPES[column.type] for column in COLUMNS.values()]
    assert (row["scenario"], row["mode"], row["seed"]) == ("power", "hw", 3)


def test_a_row_is_that_of_the_full_result(power: Scenario) -> None:
    for seed in range(3):
        result = run(power, "kip101", seed)
        assert result.row == run_row(power, "kip101", seed)
        assert result.trace is None
        kinds = {violation["kind"] for violation in result.violations}
        assert result.row["violations"] == ",".join(sorted(kinds))


def test_a_result_is_plain_data(power: Scenario) -> None:
    result = run(power, "hw", 3, trace=True)
    assert result.trace
    for part in (result.row, result.trace, result.faults, result.story, result.violations):
        assert json.loads(json.dumps(part)) == part
    assert plan_from_json(json.loads(json.dumps(result.plan))).plan_hash() == result.row["plan_hash"]
    assert result.row["faults"] == sum(fault["effective"] for fault in result.faults)
    assert result.row["records_acked"] == sum(step["count"] for step in result.trace if step["step"] == "ack")


def test_a_seed_means_the_same_plan_and_the_same_settings_in_both_modes(power: Scenario) -> None:
    for seed in range(10):
        hw, kip101 = run(power, "hw", seed), run(power, "kip101", seed)
        assert hw.plan == kip101.plan
        assert hw.row["plan_hash"] == kip101.row["plan_hash"]
        assert hw.settings == kip101.settings
    assert len({run_row(power, "hw", seed)["plan_hash"] for seed in range(10)}) == 10


def test_drawn_settings_are_those_of_the_scenario(power: Scenario) -> None:
    drawn = [run(power, "hw", seed).settings for seed in range(30)]
    assert {settings["min.insync.replicas"] for settings in drawn} == {1, 2}
    assert {settings["log.flush.interval.messages"] for settings in drawn} == {NEVER, 1, 10}


def test_drawn_settings_are_in_the_row(power: Scenario) -> None:
    for seed in range(10):
        result = run(power, "hw", seed)
        drawn = json.loads(result.row["drawn_settings"])
        assert list(drawn) == sorted(power.draw_config)
        assert drawn == {key: result.settings[key] for key in power.draw_config}
    assert (
        "min.insync.replicas" not in run_row(power.with_settings({"min.insync.replicas": 1}), "hw", 1)["drawn_settings"]
    )
    assert run_row(load("canary"), "hw", 1)["drawn_settings"] == "{}"


def test_the_kinds_of_faults_that_took_effect_are_in_the_row(power: Scenario) -> None:
    results = [run(load("chaos"), "hw", seed) for seed in range(20)]
    for result in results:
        kinds = {fault["kind"] for fault in result.faults if fault["effective"]}
        assert result.row["fault_kinds"] == ",".join(sorted(kinds))
    assert any(not fault["effective"] for result in results for fault in result.faults)
    assert power.faults is not None
    calm = replace(power, faults=replace(power.faults, count=(0, 0)))
    assert run_row(calm, "hw", 1)["fault_kinds"] == ""


def test_final_logs_and_files_are_shown(power: Scenario) -> None:
    result = run(power, "kip101", 1)
    assert [replica.broker for replica in result.replicas] == list(range(1, len(result.replicas) + 1))
    for replica in result.replicas:
        assert replica.running
        assert replica.leo == replica.batches[-1][1] + 1
        assert replica.log_start <= replica.high_watermark <= replica.leo
        assert replica.replication_offset_checkpoint is not None
        assert replica.leader_epoch_checkpoint == sorted(replica.leader_epoch_checkpoint)
        assert not replica.clean_shutdown_marker


@needs_sources
def test_an_exception_in_a_run_is_its_verdict(power: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(ZooKeeper, "end_session", explode)
    rows = [run_row(power, "hw", seed) for seed in range(8)]
    failed = [row for row in rows if row["verdict"] == "error"]
    assert failed
    for row in failed:
        assert row["error"].startswith("ZeroDivisionError: boom (at test_run.py:")
        assert not row["expected"]
        assert row["replay"]


@needs_sources
def test_no_memory_is_no_verdict(power: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(ZooKeeper, "end_session", fail)
    with pytest.raises(MemoryError):
        list(map(partial(run_row, power, "hw"), range(8)))


@needs_sources
def test_an_interruption_is_not_swallowed(power: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ZooKeeper, "on_request", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_row(power, "hw", 1)


def test_unknown_modes_and_rules_are_bad_input(power: Scenario) -> None:
    with pytest.raises(InputError, match="did you mean 'kip101'"):
        run_row(power, "kip11", 1)
    with pytest.raises(InputError, match="unknown rule"):
        run_row(power, "hw", 1, {"truncation": "never"})


def test_the_replay_line_says_all_that_the_run_depends_on(power: Scenario) -> None:
    scenario = replace(power, source="my files/power.toml", overrides=("min.insync.replicas=1",), expect={
        "hw": Expectation("clean")
    })  # fmt: skip
    rows = [run_row(scenario, "hw", seed, {"late_reply": "leader-epoch"}) for seed in range(60)]
    row = next(row for row in rows if not row["expected"])
    words = shlex.split(row["replay"])
    assert words[:3] == ["highwater", "replay", "my files/power.toml"]
    assert words[3:] == [
        "--mode", "hw", "--seed", str(row["seed"]), "--rule", "late_reply=leader-epoch",
        "--set", "min.insync.replicas=1", "--expect-digest", row["digest"],
    ]  # fmt: skip
    assert all(not row["replay"] for row in rows if row["verdict"] == "ok" and row["expected"])


def test_early_warnings_are_kept_and_count_when_asked_for_or_expected() -> None:
    canary = load("canary")
    kinds = "candidate-incomplete,global-loss,leader-incomplete"
    plain = run(canary, "hw", 1)
    assert (plain.row["violations"], plain.row["warnings"]) == ("committed-loss", kinds)
    assert sorted(warning["kind"] for warning in plain.warnings) == kinds.split(",")
    assert all(warning["inside"] for warning in plain.warnings)
    strict = run_row(replace(canary, strict=True), "hw", 1)
    assert (
        strict["violations"]
        == strict["violations_inside"]
        == "candidate-incomplete,committed-loss,global-loss,leader-incomplete"
    )
    assert (strict["warnings"], strict["digest"], strict["expected"]) == (kinds, plain.row["digest"], True)
    assert strict["first_violation_us"] < plain.row["first_violation_us"]
    assert "--strict" in strict["replay"]
    named = replace(canary, expect={"hw": Expectation("violates", ("candidate-incomplete",))})
    assert run_row(named, "hw", 1)["violations"] == "candidate-incomplete,committed-loss"


def test_labels_and_the_first_violation_are_in_the_row(power: Scenario) -> None:
    results = [run(power, "hw", seed) for seed in range(60)]
    violating = [result for result in results if result.violations]
    assert violating
    for result in violating:
        row = result.row
        assert row["verdict"] == "violation"
        inside = sorted({entry["kind"] for entry in result.violations if entry["inside"]})
        assert row["violations_inside"] == ",".join(inside)
        assert row["first_violation_us"] == min(entry["at_us"] for entry in result.violations)
        kinds, faults = row["signature"].split("/")
        assert kinds == row["violations"]
        assert faults
    assert all(result.row["first_violation_us"] == -1 for result in results if not result.violations)


@pytest.mark.parametrize("ties", ["random", "pct"])
def test_ties_can_be_broken_otherwise_by_seed(power: Scenario, ties: str) -> None:
    scenario = replace(power, config={**power.config, "sim.ties": ties})
    rows = [run_row(scenario, "kip101", seed) for seed in range(4)]
    assert rows == [run_row(scenario, "kip101", seed) for seed in range(4)]
    assert not [row["error"] for row in rows if row["error"]]


def test_a_run_without_faults_is_clean_and_vacuous(power: Scenario) -> None:
    assert power.faults is not None
    row = run_row(replace(power, faults=replace(power.faults, count=(0, 0))), "hw", 1)
    assert (row["verdict"], row["faults"], row["elections"], row["vacuous"]) == ("ok", 0, 0, True)
    # Validation's own record is shown to its reader, and also to the consumer if that comes in time.
    assert row["records_shown"] - row["records_acked"] in (0, 1)


def test_brokers_without_a_replica_run_as_far_as_they_are_asked_for(power: Scenario) -> None:
    def brokers(replicas: int, spare: int) -> list[int]:
        config = {**power.config, "default.replication.factor": replicas, "sim.spare.brokers": spare}
        draws = {key: values for key, values in power.draw_config.items() if key not in config}
        return [view.broker for view in run(replace(power, config=config, draw_config=draws), "hw", 1).replicas]

    assert [brokers(2, 0), brokers(2, 1), brokers(2, 9), brokers(3, 0)] == [[1, 2], [1, 2, 3], [1, 2, 3], [1, 2, 3]]


def test_brokers_are_upgraded_when_they_start_again() -> None:
    scenario = load("rolling")
    upgraded, kept = 0, 0
    for seed in range(30):
        one, error = _execute(scenario, mode_named("kip320"), seed, {})
        assert not error
        rules = one.cluster.rules
        waiting = one.cluster._upgraded
        assert all(rules[broker] != mode_named("kip320").rules for broker in waiting)
        assert all(one.cluster._incarnations[broker] == 1 for broker in waiting)
        kept += len(waiting)
        upgraded += sum(rules[broker] == mode_named("kip320").rules for broker in rules)
    assert upgraded > kept > 0
    one, _ = _execute(scenario, mode_named("hw"), 1, {})
    assert set(one.cluster.rules.values()) == {mode_named("hw").rules}


@pytest.mark.parametrize("mode", ["kip320-2.1", "kip320", "kip320-repaired", "hw"])
def test_brokers_are_upgraded_from_earlier_releases_only(mode: str) -> None:
    scenario, chosen = load("rolling"), mode_named(mode)
    begun = {name for seed in range(12) for name in run(scenario, mode, seed).older.values()}
    earlier = {name for name in scenario.upgraded_from if mode_named(name).place < chosen.place}
    assert begun == earlier
    assert ("kip320" in begun) is (mode == "kip320-repaired")


def test_a_random_scenario_draws_the_same_plan_in_every_mode() -> None:
    for name in ("chaos", "sessions", "partitions", "power", "rolling"):
        scenario = load(name)
        for seed in range(5):
            results = [run(scenario, each, seed) for each in ("hw", "kip320-repaired")]
            assert results[0].settings == results[1].settings
            assert results[0].row["plan_hash"] == results[1].row["plan_hash"]


def test_a_run_that_uses_up_its_events_is_exhausted(power: Scenario) -> None:
    whole, other = run(power, "hw", 3, trace=True), power.with_settings({"sim.event.budget": 400})
    result = run(other, "hw", 3, trace=True)
    row = result.row
    assert whole.trace is not None
    assert whole.row["events"] > 400
    assert (row["verdict"], row["events"], row["expected"]) == ("exhausted", 400, True)
    assert row["error"] == f"sim.event.budget: 400 events by {row['sim_us'] / 1e6:.6f} s"
    assert result.trace == whole.trace[: len(result.trace or ())]
    assert row == run_row(other, "hw", 3)
    assert row["replay"].endswith(f"--set sim.event.budget=400 --expect-digest {row['digest']}")
    assert list(row) == list(COLUMNS)
    assert 0 < row["window_ms"] < whole.row["window_ms"]


@needs_sources
def test_time_that_stands_still_uses_up_events(power: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(control: ZooKeeper, *_: object) -> None:
        kernel = control.kernel
        kernel.call_at(kernel.now_us, control.life, lambda _: again(control), None)

    monkeypatch.setattr(ZooKeeper, "end_session", again)
    rows = [run_row(power.with_settings({"sim.event.budget": 5_000}), "hw", seed) for seed in range(8)]
    given_up = [row for row in rows if row["verdict"] == "exhausted"]
    assert given_up
    assert {row["events"] for row in given_up} == {5_000}
    assert not [row for row in rows if row["verdict"] == "error"]


@pytest.mark.parametrize(("mode", "budget"), [("hw", 100), ("elr", 100), ("elr", 60)])
def test_a_run_that_uses_up_its_records_is_exhausted(power: Scenario, mode: str, budget: int) -> None:
    row = run_row(power.with_settings({"sim.record.budget": budget}), mode, 3)
    assert (row["verdict"], row["records_acked"] + row["records_shown"] <= budget) == ("exhausted", True)
    assert row["error"].startswith(f"sim.record.budget: {budget} records by ")
    assert run_row(power, mode, 3)["verdict"] != "exhausted"


def test_a_run_that_holds_too_much_is_exhausted(power: Scenario) -> None:
    whole, other = run_row(power, "hw", 3), power.with_settings({"sim.state.budget": 600})
    kernel = Kernel()
    kernel.watcher = Watcher()
    rows = [run_row(other, "hw", 3), run(other, "hw", 3, trace=True).row, run(other, "hw", 3, kernel=kernel).row]
    assert whole["events"] > AUDIT_EVENTS
    assert rows[0]["verdict"] == "exhausted"
    assert rows[0]["error"] == f"sim.state.budget: 600 objects by {rows[0]['sim_us'] / 1e6:.6f} s"
    assert rows[0]["events"] % AUDIT_EVENTS == 0
    assert rows[0] == rows[1] == rows[2]


def test_batches_that_no_answer_ends_count(power: Scenario) -> None:
    """Healing tries a write each minute, and with these settings no producer ever gives one up."""
    settings: dict[str, Value] = {
        "sim.network.loss.permille": 1000,
        "sim.recovery.ms": NEVER,
        "delivery.timeout.ms": NEVER,
        "sim.state.budget": 4_000,
    }
    row = run_row(power.with_settings(settings), "kip320", 3)
    assert row["error"].startswith("sim.state.budget: 4,000 objects by ")


def test_a_cluster_of_as_many_brokers_as_a_file_may_have_runs(power: Scenario) -> None:
    """Sets of more than 62 brokers had no room in a digest."""
    row = run_row(replace(power, brokers=99).with_settings({"default.replication.factor": 70}), "elr", 3)
    assert (row["verdict"], row["error"]) in (("ok", ""), ("violation", ""))


def test_plan_that_is_too_large_is_not_drawn(power: Scenario) -> None:
    assert power.workload is not None
    assert power.faults is not None
    many = (10**9, 10**9)
    for scenario in (
        replace(power, workload=replace(power.workload, batches=many)),
        replace(power, faults=replace(power.faults, count=many)),
    ):
        row = run_row(scenario, "hw", 3)
        assert (row["verdict"], row["events"], row["vacuous"]) == ("exhausted", 0, True)


def test_violations_before_a_run_was_given_up_count(power: Scenario) -> None:
    rows = (run_row(power, "hw", seed) for seed in range(120))
    diverged = (row for row in rows if "divergence" in row["violations_inside"])
    seen = next(row for row in diverged if row["first_violation_us"] < row["sim_us"] - 10_000_000)
    budget = {"sim.event.budget": seen["events"] - 5}
    clean = replace(power, expect={"hw": Expectation("clean")}).with_settings(budget)
    row = run_row(clean, "hw", seen["seed"])
    assert (row["verdict"], "divergence" in row["violations_inside"]) == ("exhausted", True)
    assert (row["first_violation_us"], row["expected"]) == (seen["first_violation_us"], False)


def test_a_story_that_was_given_up_is_neither_broken_nor_told() -> None:
    canary = load("canary").with_settings({"sim.event.budget": 50})
    row = run_row(canary, "hw", 0)
    assert (row["verdict"], row["violations"], row["expected"]) == ("exhausted", "", True)


def histories() -> int:
    """How many histories of runs are in memory, lost ones included."""
    return sum(isinstance(one, History) for one in gc.get_objects())


@pytest.mark.parametrize("mode", [pytest.param("hw", marks=pytest.mark.world), "kip320", "elr-recovery"])
def test_a_run_leaves_nothing_to_the_garbage_collector(mode: str) -> None:
    """What is in no cycle is freed at once, and its memory used by the next run while the processor still has it."""
    drawn = [scenario for name in names() if (scenario := load(name)).faults is not None]
    left = {}
    for scenario in drawn:
        run_row(scenario, mode, 0)
        gc.collect()
        kept = histories()
        gc.disable()
        try:
            for seed in (1, 2, 3):
                run_row(scenario, mode, seed)
            left[scenario.name] = gc.collect(), histories() - kept
        finally:
            gc.enable()
    assert len(left) > 20
    assert {name: found for name, found in left.items() if found != (0, 0)} == {}
