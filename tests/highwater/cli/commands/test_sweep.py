from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.sweep import driver as sweep
from scenarios.sweep import local, store
from sim.config import NEVER
from sim.errors import InputError
from sim.hosts.zookeeper import ZooKeeper
from tests import named
from tests.places import FIXTURES, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios.sweep.folder import Folder
    from tests.conftest import Call

CANARY = ROOT / "scenarios" / "files" / "canary.toml"
WARNINGS = {"candidate-incomplete": 20, "global-loss": 20, "inconsistent-read": 3, "leader-incomplete": 20}
"""Early warnings of `canary` in twenty seeds; in three of them a consumer was shown m1."""
NONE: dict[str, int] = {"ok": 0, "violation": 0, "stalled": 0, "error": 0, "exhausted": 0}


def summary(**changes: Any) -> dict[str, Any]:
    """What `run_sweep` returns for one scenario in one mode."""
    result = {
        "scenario": "power",
        "mode": "hw",
        "settings": {},
        "runs": 10,
        "verdicts": {**NONE, "ok": 9, "violation": 1},
        "kinds": {"committed-loss": {"n": 1, "inside": 0, "rate": 0.1, "runs_inside_share": 0.9}},
        "warnings": {},
        "rounds": {"1": 0, "2": 0, "more": 0},
        "inside_share": 0.9,
        "inside_unclean": None,
        "inside_lossy": None,
        "vacuous": 2,
        "expectation": "clean",
        "met": True,
    }
    whole = {"complete": True, "exit_code": 0, "runs": 10, "results": [result], "inconclusive": [], "failing": 0}
    return {**whole, **changes}


def header(out: str) -> str:
    """The heading of the first table, after the answer."""
    return next(line for line in out.splitlines() if line.startswith("scenario "))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the command asks of `run_sweep`; nothing is run, and its summary says 3."""
    seen: dict[str, Any] = {}

    def run_sweep(asked: sweep.Sweep, output: Folder, backend: object, **options: Any) -> dict[str, Any]:
        seen.update(sweep=asked, output=output, backend=backend, **options)
        return summary(exit_code=3)

    monkeypatch.setattr(sweep, "run_sweep", run_sweep)
    return seen


@pytest.mark.parametrize(
    ("expectations", "inside", "said"),
    [
        (["clean", "violates:committed-loss"], 3, "20 runs, as expected"),
        (["clean", "may-violate"], 0, "20 runs, as expected; no particular verdict is expected of b"),
        (["may-violate"], 0, "10 runs, none with an error; no particular verdict is expected of them"),
        (
            ["may-violate", "may-violate"],
            3,
            (
                "20 runs, none with an error; no particular verdict is expected of them; inside the promise: "
                "committed-loss in 3 runs of b"
            ),
        ),
    ],
)
def test_a_sweep_says_no_more_than_it_checked(
    highwater: Callable[..., Call],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    expectations: list[str],
    inside: int,
    said: str,
) -> None:
    """`inside`: losses inside the promise, in the last mode."""
    (one,) = summary()["results"]
    results = [{**one, "mode": mode, "expectation": found} for mode, found in zip("ab", expectations, strict=False)]
    results[-1]["kinds"] = {"committed-loss": {"n": 4, "inside": inside, "rate": 0.4}}
    done = summary(results=results, runs=10 * len(results))
    monkeypatch.setattr(sweep, "run_sweep", lambda *_, **__: done)
    call = highwater("sweep", "power", "--modes", "hw", "--seeds", "0..1", "--local", 1, "--output", tmp_path / "out")
    assert call.out.splitlines()[-1] == said


def test_several_releases_are_swept_together(
    highwater: Callable[..., Call], asked: dict[str, Any], tmp_path: Path
) -> None:
    words = ["sweep", "chaos", "--seeds", "0..1", "--local", 1, "--output", tmp_path / "out", "-q"]
    assert highwater(*words, "--release", "3.9,4.3").code == 3
    assert [mode.name for mode in asked["sweep"].modes["chaos"]] == ["kraft", "elr-4.3"]
    differ = highwater(*words, "--release", "2.4,3.9")
    assert (differ.code, differ.err) == (
        2,
        (
            "highwater: --release 2.4,3.9: their defaults of zookeeper.session.timeout.ms (6000, 18000), "
            "retry.backoff.max.ms (100, 1000) differ, and a sweep has one value for all its modes: choose, as by "
            "--set zookeeper.session.timeout.ms=6000 --set retry.backoff.max.ms=100\n"
        ),
    )


def test_words_reach_the_sweep(highwater: Callable[..., Call], asked: dict[str, Any], tmp_path: Path) -> None:
    words = ["--modes", "kip101,hw", "--seeds", "0x10..20", "--output", tmp_path, "--local", 2, "--chunks", 5]
    overrides = ["--set", "min.insync.replicas=2", "--rule", "isr_join=leader-epoch-start"]
    call = highwater("sweep", "power", "canary", *words, *overrides)
    assert call.code == 3
    swept = asked["sweep"]
    assert [scenario.name for scenario in swept.scenarios] == ["power", "canary"]
    assert swept.modes == {"power": named.modes("kip101", "hw"), "canary": named.modes("kip101", "hw")}
    assert (swept.first_seed, swept.end_seed) == (16, 20)
    assert swept.rules == {"isr_join": "leader-epoch-start"}
    assert swept.scenarios[0].config["min.insync.replicas"] == 2
    assert swept.grid == {}
    assert (asked["output"].local, asked["chunks"], asked["task_seconds"]) == (tmp_path, 5, 3.0)
    assert isinstance(asked["backend"], local.LocalBackend)


def test_modes_default_to_each_scenarios_own(
    highwater: Callable[..., Call], asked: dict[str, Any], tmp_path: Path
) -> None:
    highwater("sweep", "power", "canary", "--seeds", "0..1", "--output", tmp_path, "--local", 1)
    modes = named.modes("hw", "kip101", "kip279", "kip320", "kraft", "elr", "elr-recovery")
    assert asked["sweep"].modes == {"power": modes, "canary": named.modes("hw")}


@pytest.mark.parametrize(("master", "seconds"), [(None, 3.0), ("local[2,4]", 3.0), ("spark://host:7077", 10.0)])
def test_spark_is_used_without_local(
    highwater: Callable[..., Call], asked: dict[str, Any], tmp_path: Path, master: str | None, seconds: float
) -> None:
    spark = pytest.importorskip("scenarios.sweep.spark")
    words = [] if master is None else ["--master", master]
    highwater("sweep", "power", "--seeds", "0..1", "--output", tmp_path, *words, "--conf", "spark.a=b=c")
    assert isinstance(asked["backend"], spark.SparkBackend)
    assert asked["task_seconds"] == seconds


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["powr", "--local", "1"], "did you mean 'power'?"),
        (["power", "--local", "1", "--modes", "kip10"], "did you mean 'kip101'?"),
        (["power", "--local", "1", "--master", "local"], "--local excludes Spark"),
        (["power", "--local", "1", "--until", "commited-loss=3"], "did you mean 'committed-loss'?"),
        (["power", "--local", "1", "--until", "8d"], "--until '8d' is not valid"),
        (["power", "--conf", "spark.ssl.keyPassword"], "is not of the form KEY=VALUE"),
        (["power", "--local", "0"], "--local"),
        (["power", "--local", "1", "--set", "acks=1,al"], "acks = 'al' is not valid; did you mean 'all'?"),
        (["power", "--local", "1", "--set", "ack=1,all"], "unknown configuration key 'ack'; did you mean 'acks'?"),
        (["power", "--local", "1", "--set", "acks=1,1"], "--set acks=1,1 lists a value twice"),
        (["power", "--local", "1", "--set", "acks=1", "--set", "acks=0"], "--set acks is given twice"),
        (["power", "--local", "1", "--set", "default.replication.factor=3,4"], "power has 3 brokers"),
    ],
)
def test_bad_input(highwater: Callable[..., Call], tmp_path: Path, words: list[str], said: str) -> None:
    call = highwater("sweep", *words, "--seeds", "0..1", "--output", tmp_path / "out")
    assert (call.code, call.out, call.err.count("\n")) == (2, "", 1)
    assert said in call.err
    assert "keyPassword" not in call.err
    assert not (tmp_path / "out").exists()


@pytest.mark.world
def test_it_says_why_a_sweep_stopped(highwater: Callable[..., Call], tmp_path: Path) -> None:
    words = ["--modes", "hw", "--seeds", "0..3000", "--local", 1, "--output", tmp_path / "out", "--until", "inside=1"]
    call = highwater("sweep", "canary", *words, "--json")
    found = json.loads(call.out)
    assert (found["complete"], found["runs"]) == (True, 1_000)
    assert found["stopped"] == "a violation inside the promise in 1,000 runs: --until inside=1 is met"
    assert f"stopped after 1,000 runs: {found['stopped']}" in call.err


def test_lists_of_values_make_a_grid(highwater: Callable[..., Call], asked: dict[str, Any], tmp_path: Path) -> None:
    words = ["--set", "min.insync.replicas=1,2", "--set", "log.flush.interval.messages=1,never", "--set", "acks=1"]
    highwater("sweep", "power", "--seeds", "0..1", "--output", tmp_path, "--local", 1, *words)
    assert asked["sweep"].grid == {"min.insync.replicas": (1, 2), "log.flush.interval.messages": (1, NEVER)}
    assert asked["sweep"].scenarios[0].overrides == ("acks=1",)


@pytest.mark.usefixtures("sweeps_here")
def test_a_grid_is_swept_compared_and_replayed(highwater: Callable[..., Call], tmp_path: Path) -> None:
    flush, age = "log.flush.interval.messages", "metadata.max.age.ms"
    words = ["--modes", "hw", "--set", f"{flush}=never,1", "--set", f"{age}=300000,200000", "--local", 1]
    call = highwater("sweep", "power", "canary", "--seeds", "6..9", "--output", tmp_path, *words)
    assert call.code == 0
    assert header(call.out).split()[:4] == ["scenario", "mode", flush, age]
    assert re.search(rf"canary --mode hw --seed 6 --set {flush}=\S+ --set {age}=\d+ --expect-digest", call.out)
    results = json.loads((tmp_path / "summary.json").read_text())["results"]
    points = [{flush: every, age: most} for every in (NEVER, 1) for most in (300_000, 200_000)]
    assert [result["settings"] for result in results] == points * 2
    lines = [json.loads(line) for line in (tmp_path / "violations.jsonl").read_text().splitlines()]
    canary = [line for line in lines if (line["scenario"], line["seed"]) == ("canary", 6)]
    assert sorted((line[flush], line[age]) for line in canary) == sorted(tuple(point.values()) for point in points)
    compared = highwater("compare", tmp_path, "--by", flush)
    assert (compared.code, compared.err) == (0, "")
    assert f"canary, mode = hw, {age} = 200000" in compared.out
    assert f"{flush} = never against 1 on 3 common seeds" in compared.out
    assert "leaderless_ms" in compared.out
    point = ["--set", f"{age}=200000", "--set", f"{flush}=never"]
    replayed = highwater("replay", tmp_path, "--scenario", "power", "--seed", 6, *point)
    assert (replayed.code, "digest as expected" in replayed.out) == (0, True)
    folder = tmp_path / "power" / f"{flush}=never,{age}=200000" / "seeds" / "6-hw"
    assert (folder / "row.json").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "acks=1"], "holds several values of min.insync.replicas; choose one with --set"),
        (["--set", "acks=1", "--set", "min.insync.replicas=3"], "holds no min.insync.replicas = 3; one of: 1, never"),
        (["--set", "acks=1", "--set", "min.insync.replicas=1", "--set", "request.timeout.ms=1"], "knows its settings"),
        (["--set", "acks=1,0", "--set", "min.insync.replicas=1"], "only a sweep takes several values"),
    ],
)
def test_a_point_of_a_grid_must_be_named(
    highwater: Callable[..., Call], swept: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    run = json.loads((swept / "run.json").read_text())
    run["grid"] = {"min.insync.replicas": [1, NEVER], "acks": ["0", "1"]}
    (tmp_path / "run.json").write_text(json.dumps(run))
    call = highwater("replay", tmp_path, "--scenario", "power", "--seed", 6, *words)
    assert (call.code, call.out, call.err.count("\n")) == (2, "", 1)
    assert said in call.err


@pytest.mark.parametrize("command", ["run", "replay"])
def test_one_run_takes_no_list(highwater: Callable[..., Call], command: str) -> None:
    call = highwater(command, "power", "--seed", 1, "--set", "min.insync.replicas=1,2")
    assert (call.code, call.out) == (2, "")
    assert call.err == "highwater: --set min.insync.replicas=1,2: only a sweep takes several values; give one\n"


@pytest.mark.parametrize("seeds", ["five", "5..5", "a..b"])
def test_bad_ranges(highwater: Callable[..., Call], tmp_path: Path, seeds: str) -> None:
    assert highwater("sweep", "power", "--seeds", seeds, "--output", tmp_path, "--local", 1).code == 2


def test_two_scenarios_of_one_name_are_refused(highwater: Callable[..., Call], tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        shutil.copy(CANARY, folder)
    files = [folder / "canary.toml" for folder in folders]
    call = highwater("sweep", *files, "--seeds", "0..1", "--output", tmp_path / "out", "--local", 1)
    assert (call.code, "two scenarios are called 'canary'" in call.err) == (2, True)


def test_an_interrupted_sweep_is_130(
    highwater: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise sweep.Interrupted

    monkeypatch.setattr(sweep, "run_sweep", interrupted)
    call = highwater("sweep", "power", "--seeds", "0..1", "--output", tmp_path, "--local", 1)
    assert (call.code, call.out) == (130, "")
    assert call.err == "interrupted: no wave was finished, so no run is kept; the same command begins the sweep again\n"


def test_a_sweep_is_done_once_and_shown_again(highwater: Callable[..., Call], swept: Path) -> None:
    words = ["sweep", "power", "canary", "--seeds", "0..20", "--output", swept, "--local", 1]
    call = highwater(*words)
    assert (call.code, call.err) == (0, "")
    answer, *_ = call.out.splitlines()
    assert answer.startswith("On 20 runs of canary, hw loses records")
    assert any(line.startswith("scenario ") and line.endswith(" met") for line in call.out.splitlines())
    assert "highwater replay canary --mode hw --seed 0 --expect-digest" in call.out
    assert "canary    hw            candidate-incomplete    20" in call.out
    assert "truncations in one round" in call.out
    data = highwater(*words, "--json").json
    results = {(result["scenario"], result["mode"]): result for result in data["results"]}
    assert results["canary", "hw"]["warnings"] == WARNINGS
    assert results["power", "hw"]["rounds"] == {"1": 0, "2": 0, "more": 0}
    assert results["power", "kip101"]["rounds"]["1"] > 20
    assert data == json.loads((swept / "summary.json").read_text())


@pytest.mark.usefixtures("sweeps_here")
def test_strictness_is_part_of_a_sweep_and_of_its_replays(highwater: Callable[..., Call], tmp_path: Path) -> None:
    words = ["sweep", "canary", "--seeds", "0..2", "--output", tmp_path, "--local", 1]
    strict = highwater(*words, "--modes", "hw", "--strict")
    assert strict.code == 0
    assert "--seed 0 --strict --expect-digest" in strict.out
    assert json.loads((tmp_path / "run.json").read_text())["scenarios"][0]["strict"]
    again = highwater(*words, "--modes", "hw")
    assert (again.code, "has changed in strict" in again.err) == (2, True)
    replayed = highwater("replay", tmp_path, "--seed", 0)
    assert "LOST (candidate-incomplete, committed-loss, global-loss, leader-incomplete)" in replayed.out


def test_another_sweep_does_not_mix_in(highwater: Callable[..., Call], swept: Path) -> None:
    call = highwater("sweep", "power", "--seeds", "0..10", "--output", swept, "--local", 1)
    assert call.code == 2
    assert "another sweep" in call.err


def test_a_sweep_is_compared(highwater: Callable[..., Call], swept: Path) -> None:
    call = highwater("compare", swept)
    assert (call.code, call.err) == (0, "")
    assert "hw against kip101 on 20 common seeds" in call.out
    canary, power = highwater("compare", swept, "--json").json["comparisons"]
    rate = canary["groups"][0]["rates"][0]
    assert (rate["kind"], rate["k"], rate["n"], rate["inside"], rate["outside"]) == ("any", 20, 20, 20, 0)
    assert power["pairs"][0]["n"] == 20
    assert canary["groups"][0]["warnings"] == WARNINGS
    assert "leader-incomplete" in call.out
    assert "truncations" in call.out.splitlines()


def test_only_what_varied_is_compared(highwater: Callable[..., Call], swept: Path) -> None:
    call = highwater("compare", swept, "--by", "acks")
    assert (call.code, call.out) == (2, "")
    assert call.err.startswith("highwater: --by 'acks' did not vary in this sweep; one of: mode, ")
    assert "min.insync.replicas" in call.err
    assert call.err.count("\n") == 1


def test_a_setting_that_was_drawn_is_compared(highwater: Callable[..., Call], swept: Path) -> None:
    rows = store.Store(swept).rows(["mode", "drawn_settings"], "power")
    drawn = [json.loads(text)["min.insync.replicas"] for text in rows["drawn_settings"]]
    call = highwater("compare", swept, "--by", "min.insync.replicas", "--json")
    assert call.code == 0
    found = call.json["comparisons"]
    assert {one["scenario"] for one in found} == {"power"}
    assert [one["fixed"] for one in found] == [{"mode": mode} for mode in sorted(set(rows["mode"]))]
    assert all(one["pairs"] == [] for one in found)
    for one in found:
        here = [value for value, mode in zip(drawn, rows["mode"], strict=True) if mode == one["fixed"]["mode"]]
        groups = {group["name"]: group["runs"] + group["errors"] for group in one["groups"]}
        assert groups == {str(value): here.count(value) for value in (1, 2)}
    assert "min.insync.replicas" in highwater("compare", swept, "--by", "min.insync.replicas").out


def test_sweeps_of_old_are_compared(highwater: Callable[..., Call]) -> None:
    call = highwater("compare", FIXTURES / "store-v8")
    assert (call.code, "hw_wait_ms" in call.out) == (0, True)


def test_folder_that_is_no_sweep_is_not_compared(highwater: Callable[..., Call], tmp_path: Path) -> None:
    call = highwater("compare", tmp_path)
    assert (call.code, call.out, call.err.count("\n")) == (2, "", 1)
    assert str(tmp_path) in call.err


def test_a_sweep_without_rows_is_not_compared(highwater: Callable[..., Call], swept: Path, tmp_path: Path) -> None:
    shutil.copy(swept / "run.json", tmp_path)
    call = highwater("compare", tmp_path)
    assert (call.code, call.err) == (2, f"highwater: {tmp_path} has no rows yet: no wave of its sweep is done\n")


def test_a_seed_of_a_sweep_is_replayed_and_checked(highwater: Callable[..., Call], swept: Path) -> None:
    call = highwater("replay", swept, "--scenario", "power", "--seed", 7, "--mode", "kip101", "--json")
    assert call.code == 0
    replay = call.json["replays"][0]
    rows = store.Store(swept).rows(["scenario", "mode", "seed", "digest"])
    index = list(zip(rows["scenario"], rows["mode"], rows["seed"], strict=True)).index(("power", "kip101", 7))
    assert replay["digest"] == {"expected": rows["digest"][index], "differs": False}
    assert (swept / "power" / "seeds" / "7-kip101" / "history.txt").is_file()


def test_other_code_and_another_scenario_are_said_first(
    highwater: Callable[..., Call], swept: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(swept, copy)
    run = json.loads((copy / "run.json").read_text())
    run["code_version"] = "0ld"
    run["scenarios"][0]["brokers"] = 4
    (copy / "run.json").write_text(json.dumps(run))
    call = highwater("replay", copy, "--scenario", "power", "--seed", 7, "--mode", "hw", "--json")
    assert "the sweep ran code 0ld" in call.err
    assert "scenario power has changed since the sweep" in call.err
    differs = call.json["replays"][0]["digest"]["differs"]
    assert call.code == (4 if differs else 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "choose one with --scenario: power, canary"),
        (["--scenario", "powr"], "did you mean 'power'?"),
        (["--scenario", "power", "--rule", "isr_join=high-watermark"], "--rule goes with a scenario only"),
        (["--scenario", "power", "--set", "acks=1"], "--set acks goes with a scenario only"),
    ],
)
def test_a_replay_must_be_clear(highwater: Callable[..., Call], swept: Path, words: list[str], said: str) -> None:
    call = highwater("replay", swept, "--seed", 7, *words)
    assert (call.code, said in call.err) == (2, True)


def test_a_newer_folder_is_refused(highwater: Callable[..., Call], swept: Path, tmp_path: Path) -> None:
    run = json.loads((swept / "run.json").read_text())
    for newer in ({**run, "schema_version": 99}, {**run, "scenarios": [{**run["scenarios"][0], "schema_version": 99}]}):
        (tmp_path / "run.json").write_text(json.dumps(newer))
        call = highwater("replay", tmp_path, "--seed", 7)
        assert call.code == 2
        assert "schema_version 99" in call.err


def test_a_backend_that_cannot_work_is_bad_input(
    highwater: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise InputError("Spark needs Java 17 or later")

    monkeypatch.setattr(sweep, "run_sweep", refused)
    call = highwater("sweep", "power", "--seeds", "0..1", "--output", tmp_path, "--local", 1)
    assert (call.code, call.err) == (2, "highwater: Spark needs Java 17 or later\n")


@pytest.mark.usefixtures("sweeps_here")
def test_runs_that_are_given_up_are_named_everywhere(highwater: Callable[..., Call], tmp_path: Path) -> None:
    words = ["sweep", "power", "--modes", "hw", "--seeds", "0..20", "--output", tmp_path, "--local", 1]
    call = highwater(*words, "--set", "sim.event.budget=800")
    (result,) = json.loads((tmp_path / "summary.json").read_text())["results"]
    given_up = result["verdicts"]["exhausted"]
    assert (call.code, 0 < given_up < 20, result["runs"]) == (3, True, 20)
    assert "exhausted" in header(call.out)
    assert "# exhausted" in call.out
    compared = highwater("compare", tmp_path)
    said = f"hw: {given_up} of 20 runs were given up (exhausted) and may have shown more"
    assert (compared.code, said in compared.out.splitlines(), "/20" in compared.out) == (3, True, True)
    assert f"highwater: inconclusive: power: {given_up} of 20 runs are exhausted" in compared.err
    covered = highwater("coverage", tmp_path, "--json").json
    assert (covered["runs"], covered["exhausted"]) == ({"hw": 20}, {"hw": given_up})
    failing = [json.loads(line) for line in (tmp_path / "violations.jsonl").read_text().splitlines()]
    seed = next(line["seed"] for line in failing if line["verdict"] == "exhausted")
    replayed = highwater("replay", tmp_path, "--seed", seed)
    assert (replayed.code, "(exhausted). Expected or not: undecided" in replayed.out) == (3, True)
    assert "digest as expected" in replayed.out + replayed.err


@pytest.mark.usefixtures("sweeps_here")
def test_errors_are_named_beside_n(
    highwater: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(ZooKeeper, "end_session", explode)
    call = highwater("sweep", "power", "--modes", "hw", "--seeds", "0..8", "--output", tmp_path, "--local", 1)
    (result,) = json.loads((tmp_path / "summary.json").read_text())["results"]
    errors = result["verdicts"]["error"]
    assert (call.code, errors > 0) == (70, True)
    said = f"hw: {errors} runs that ended with an error are in no n; nothing is known of them"
    assert said in highwater("compare", tmp_path).out.splitlines()


@pytest.mark.usefixtures("sweeps_here")
def test_more_processes_than_cores_are_named(highwater: Callable[..., Call], tmp_path: Path) -> None:
    call = highwater("sweep", "canary", "--modes", "hw", "--seeds", "0..2", "--output", tmp_path, "--local", 1000)
    assert (call.code, "--local 1000: this machine has " in call.err) == (0, True)


def test_values_of_a_rule_are_modes_of_their_own(highwater: Callable[..., Call], tmp_path: Path) -> None:
    words = ["sweep", "power", "--modes", "kip320", "--rule", "stop_replica=unchecked,checked", "--seeds", "0..4"]
    call = highwater(*words, "--rule", "isr_lag=end-offset", "--local", 1, "--output", tmp_path / "out")
    assert call.code == 0
    assert "4 of 8 runs were taken over from another mode" in call.out
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    changed = "kip320+stop_replica=unchecked"
    assert run["modes"] == {"power": [changed, "kip320"]}
    assert run["rules"] == {"isr_lag": "end-offset"}
    assert highwater("replay", tmp_path / "out", "--mode", changed, "--seed", 3).code == 0
    assert highwater("replay", "power", "--mode", changed, "--seed", 3).code == 0
    ran = highwater(*words, "--no-reuse", "--local", 1, "--output", tmp_path / "each")
    assert "taken over" not in ran.out


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("isr_lag=time,times", "rule isr_lag has no value 'times'"),
        ("isr_lag=time,time", "--rule isr_lag=time,time lists a value twice"),
        ("isr_lags=time,end-offset", "unknown rule 'isr_lags'"),
    ],
)
def test_a_wrong_list_of_values_of_a_rule_is_refused(highwater: Callable[..., Call], rule: str, words: str) -> None:
    call = highwater("sweep", "power", "--mode", "kip320", "--rule", rule, "--seeds", "0..1", "--output", "unused")
    assert (call.code, call.out) == (2, "")
    assert words in call.err


@pytest.mark.usefixtures("sweeps_here")
def test_a_number_of_seeds_is_run_and_said(highwater: Callable[..., Call], tmp_path: Path) -> None:
    words = ("sweep", "canary", "--modes", "hw", "--local", 1, "--output")
    many = highwater(*words, tmp_path / "many", "--seeds", "3")
    assert "--seeds 3: 3 seeds, 0..3; --seed 3 is that seed alone" in many.err
    one = highwater(*words, tmp_path / "one", "--seed", "3", "--json")
    assert "--seeds" not in one.err
    assert json.loads((tmp_path / "many" / "run.json").read_text())["seeds"] == [[0, 3]]
    assert json.loads((tmp_path / "one" / "run.json").read_text())["seeds"] == [[3, 4]]
    for wrong in ((), ("--seed", 1, "--seeds", 3)):
        call = highwater(*words, tmp_path / "none", *wrong)
        assert (call.code, "a sweep needs --seeds, as in --seeds 0..1000" in call.err) == (2, True)


@pytest.mark.parametrize("command", ["run", "replay", "draw", "show", "explain", "shrink"])
def test_a_command_about_one_seed_takes_no_seeds(highwater: Callable[..., Call], command: str) -> None:
    call = highwater(command, "power", "--mode", "hw", "--seeds", "1000")
    line = (
        f"highwater: --seeds 1000: {command} is about one seed, --seed N; highwater sweep runs many, --seeds A..B or N"
    )
    assert (call.code, call.err.splitlines()[0]) == (2, line)


def test_a_sweep_starts_without_heavy_libraries(tmp_path: Path) -> None:
    """pyarrow would import pandas, in the driver and in each worker; pandas takes as long as all the rest."""
    words = [
        "sweep",
        "canary",
        "--modes",
        "hw",
        "--seeds",
        "0..2",
        "--local",
        "1",
        "-q",
        "--output",
        str(tmp_path / "o"),
    ]
    command = [sys.executable, "-X", "importtime", "-m", "highwater.cli.entry", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    imported = Counter(line.rpartition("|")[2].strip() for line in done.stderr.splitlines())
    assert imported["pyarrow.lib"] == 2  # By the driver and by the worker: both are looked at.
    assert imported["numpy._core"] == 1  # By the driver, whose tables of a finished sweep count with it.
    assert not {"pandas._libs", "scipy", "pyspark"} & {*imported}
