from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.single import recording
from tests.places import FIXTURES
from tests.scenarios.shrinking.failing import failing

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios.shrinking.case import Case
    from tests.conftest import Call

SEED = ("sessions", "--mode", "kip320", "--seed", "50120")


@pytest.fixture(scope="module")
def case() -> Case:
    return failing("sessions", "kip320", 50_120)


@pytest.fixture
def plan(case: Case, tmp_path: Path) -> Path:
    return written(tmp_path, recording.to_json(case.scenario, case.run()))


def written(folder: Path, data: dict[str, Any], **changes: object) -> Path:
    file = folder / "a-plan.json"
    file.write_text(json.dumps({**data, **changes}))
    return file


def test_a_seed_becomes_a_plan_that_runs_by_itself(highwater: Callable[..., Call], tmp_path: Path) -> None:
    call = highwater("shrink", *SEED, "--output", tmp_path)
    assert call.code == 0
    folder = tmp_path / "shrunk" / "50120-kip320"
    lines = call.out.splitlines()
    assert " faults, " in lines[-4]
    assert " -> 1 batches, " in lines[-4]
    assert lines[-3].startswith("Kept: committed-loss, outside the promise. Cured by each of: log.flush.interval.mess")
    assert lines[-1] == f"written to {folder}"
    assert f"Replay: highwater run --plan {folder / 'plan.json'} --mode kip320 --seed 50120" in lines
    digest = json.loads((folder / "plan.json").read_text())["digest"]
    again = highwater("run", "--plan", folder / "plan.json")
    assert again.code == 0
    assert digest in again.out
    assert "digest as recorded" in again.err
    assert (folder / "history.txt").is_file()
    assert lines[-2] == f"As a script: {folder / 'scenario.toml'}"
    script = highwater("run", folder / "scenario.toml")
    assert script.code == 0
    assert "acknowledged record LOST (committed-loss, exposed-loss). Expected here" in script.out


def test_a_plan_is_shrunk_and_the_result_is_told_as_json(
    highwater: Callable[..., Call], plan: Path, tmp_path: Path
) -> None:
    call = highwater("shrink", "--plan", plan, "--output", tmp_path, "--kind", "committed-loss", "--json")
    assert call.code == call.json["exit_code"] == 0
    assert call.json["kind"] == "committed-loss"
    assert call.json["inside"] is False
    assert call.json["cause"] == ["log.flush.interval.messages=1"]
    assert call.json["after"]["faults"] < call.json["before"]["faults"]
    assert call.json["whole"] is True
    assert call.json["row"]["expected"] is True
    assert Path(call.json["folder"], "plan.json").is_file()


@pytest.mark.usefixtures("sweeps_here")
def test_a_sweep_gives_its_seeds(highwater: Callable[..., Call], tmp_path: Path) -> None:
    store = tmp_path / "store"
    sweep = ("sweep", "sessions", "--modes", "kip320", "--seeds", "50120..50121", "--output", store, "--local", "1")
    assert highwater(*sweep, "-q").code == 0
    call = highwater("shrink", store, "--seed", "50120")
    assert call.code == 0
    assert (store / "shrunk" / "50120-kip320" / "plan.json").is_file()
    assert highwater("doctor", store).code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "a failed run is missing"),
        (("sessions", "--mode", "kip320"), "choose one with --seed N"),
        (("sessions", "--seed", "50120"), "choose one with --mode"),
        (("sessions", "--mode", "kip320", "--seed", "50123"), "sessions, mode kip320, seed 50123 violates nothing"),
        ((*SEED, "--kind", "divergence"), "has no violation 'divergence'; one of: committed-loss"),
        ((*SEED, "--kind", "\x1b[1m[red]"), r"has no violation '\x1b[1m[red]'"),
        ((*SEED, "--budget", "soon"), "--budget 'soon' is not valid: give a time such as 30s or 2m"),
        ((*SEED, "--budget", "0"), "--budget '0' is not valid"),
        ((*SEED, "--budget", "0.001"), "--budget: 0.001 s were not enough to find the cause"),
        (("canary", "--seed", "0", "--mode", "hw"), "canary is a script"),
        (("nowhere", "--seed", "0"), "nowhere"),
        (("--plan", "nowhere.json"), "nowhere.json"),
        (("--plan", "nowhere.json", "--scenario", "x"), "--scenario chooses"),
    ],
)
def test_what_cannot_be_shrunk_is_told_in_one_line(
    highwater: Callable[..., Call], words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    call = highwater("shrink", *words, "--output", tmp_path)
    assert call.code == 2
    assert said in call.err
    assert len(call.err.splitlines()) == 1
    assert call.out == ""
    assert not list(tmp_path.iterdir())


def test_an_empty_folder_is_none_of_a_sweep(highwater: Callable[..., Call], tmp_path: Path) -> None:
    call = highwater("shrink", tmp_path, "--seed", "0")
    assert call.code == 2
    assert len(call.err.splitlines()) == 1


def test_a_run_of_other_code_is_refused(highwater: Callable[..., Call], plan: Path, case: Case, tmp_path: Path) -> None:
    data = json.loads(plan.read_text())
    call = highwater("shrink", "--plan", written(tmp_path, data, digest="0" * 32))
    assert call.code == 2
    assert f"and was {'0' * 32}: other code ran then, or it was edited" in call.err
    assert len(call.err.splitlines()) == 1


def test_a_plan_of_faults_alone_needs_its_scenario(highwater: Callable[..., Call], plan: Path, tmp_path: Path) -> None:
    data = json.loads(plan.read_text())
    faults = written(tmp_path, data["plan"])
    assert "name its scenario" in highwater("shrink", "--plan", faults).err
    call = highwater("shrink", *SEED, "--plan", faults, "--output", tmp_path / "out", "--json")
    assert call.code == 0
    assert call.json["before"]["faults"] == len(data["plan"]["faults"])


def test_a_store_of_another_version_is_told(highwater: Callable[..., Call], tmp_path: Path) -> None:
    stores = sorted(FIXTURES.glob("store-v*"))
    call = highwater("shrink", stores[0], "--seed", "0", "--mode", "hw", "--output", tmp_path)
    assert call.code == 2
    assert "Traceback" not in call.err


def test_an_explanation_has_story_necessities_and_remedies(highwater: Callable[..., Call], tmp_path: Path) -> None:
    call = highwater("explain", *SEED, "--output", tmp_path, "--budget", "10m")
    assert call.code == 0
    lines = call.out.splitlines()
    assert lines[0] == "sessions, mode kip320, seed 50120: committed-loss, outside the promise"
    titles = [
        "Story",
        "Necessary",
        "Point of no return",
        "What would have prevented it, each by itself, with the same plan",
    ]
    assert [line for line in lines if line in titles] == titles
    assert "Produce response   broker 1 -> producer, record=0 offset=0" in call.out
    assert "The order of these messages suffices: with other latencies 20 of 20 runs fail in the same way" in call.out
    assert "From 10.000 s on all 200 continuations end in" in call.out
    story = " ".join(call.out.split())
    assert (
        "The machine of broker 1 loses power; record 0 had not been flushed to disk, and is no longer there." in story
    )
    assert "setting  log.flush.interval.messages=1" in call.out
    assert (tmp_path / "shrunk" / "50120-kip320" / "trace.jsonl").is_file()


@pytest.mark.world
def test_an_explanation_as_json(highwater: Callable[..., Call], plan: Path, tmp_path: Path) -> None:
    found = highwater("explain", "--plan", plan, "--output", tmp_path, "--budget", "10m", "--json").json
    assert found["kind"] == "committed-loss"
    flush = "log.flush.interval.messages=1"
    assert {"what": "setting", "change": flush, "advice": flush, "keeps": True, "decides": True} in found["remedies"]
    assert all(found["necessary"][part] for part in ("faults", "batches", "messages"))
    assert all(one["gone_without"] for one in (*found["necessary"]["faults"], *found["necessary"]["batches"]))
    assert [one["what"] for one in found["necessary"]["messages"]][-1] == "Produce response"
    assert found["no_return"]["step_us"][1] == found["necessary"]["faults"][0]["at_us"]
    for one in found["no_return"]["shares"]:
        assert one["interval"][0] <= one["violating"] / one["runs"] <= one["interval"][1]
    assert all(sentence.keys() == {"at_us", "text", "line"} for sentence in found["story"])


def test_what_did_not_fail_cannot_be_explained(highwater: Callable[..., Call]) -> None:
    call = highwater("explain", "sessions", "--mode", "kip320", "--seed", "50123")
    assert (call.code, len(call.err.splitlines())) == (2, 1)


STALLED = ("elr-chaos", "--mode", "elr", "--seed", "57")


def test_a_stalled_run_says_what_it_waits_for_and_how_to_do_it_again(
    highwater: Callable[..., Call], tmp_path: Path
) -> None:
    run = highwater("run", *STALLED)
    assert run.code == 0
    assert "Stalled\nSince 211.550 s the partition is without a leader, in leader epoch 4: " in run.out
    assert "Replay: highwater replay elr-chaos --mode elr --seed 57 --expect-digest " in run.out
    call = highwater("replay", *STALLED, "--output", tmp_path, "--json")
    waits = call.json["replays"][0]["waits_for"]
    assert "kafka-leader-election.sh --election-type unclean" in waits[2]
    assert waits[3].startswith("Broker 1 is up, with LEO 29, and lacks 0 of ")


@pytest.mark.world
@pytest.mark.usefixtures("few_continuations")
def test_a_stall_is_shrunk_and_explained(highwater: Callable[..., Call], tmp_path: Path) -> None:
    call = highwater("explain", "elr-chaos", "--mode", "elr", "--seed", "57", "--output", tmp_path, "--budget", "10m")
    assert call.code == 0
    lines = call.out.splitlines()
    assert lines[0] == "elr-chaos, mode elr, seed 57: stalled"
    assert lines[2].startswith("Since ")
    assert "Necessary" in lines
    assert "stalled becomes more likely gradually, or was certain from the beginning" in call.out
    again = highwater("run", "--plan", tmp_path / "shrunk" / "57-elr" / "plan.json")
    assert again.code == 0
    assert "digest as recorded" in again.err
    assert "Stalled" in again.out


def test_who_does_not_stall_waits_for_nobody(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "canary", "--mode", "hw", "--json")
    assert call.json["runs"][0]["waits_for"] == []


@pytest.mark.parametrize("command", ["shrink", "explain"])
@pytest.mark.parametrize("there", ["file", "shrunk", "shrunk/50120-kip320", "shrunk/50120-kip320/mine.txt"])
def test_an_unusable_output_folder_is_refused_before_shrinking(
    highwater: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, there: str
) -> None:
    file = tmp_path / there
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")
    monkeypatch.setattr("reports.evidence.shrunk_run.shrunk", lambda *_: pytest.fail("it was shrunk"))
    call = highwater(command, *SEED, "--output", file if there == "file" else tmp_path)
    assert (call.code, call.out, call.err.count("\n")) == (2, "", 1)
    assert re.search(rf" is no folder$|something else than a replay \({file.name}\)", call.err, re.MULTILINE)
    assert file.read_text() == "mine"


@pytest.mark.usefixtures("few_continuations")
def test_a_script_is_explained_unshrunk_with_modes_that_keep_the_record(highwater: Callable[..., Call]) -> None:
    call = highwater("explain", "kip101-scenario-1", "--mode", "hw")
    assert call.code == 0
    assert "drops record 1, which had been acknowledged" in " ".join(call.out.split())
    last = call.out.splitlines()[-1]
    assert last.startswith("Prevented in newer modes: kip101, kip279")
    assert last.endswith(", elr, elr-4.3")
    told = highwater("explain", "kip101-scenario-1", "--mode", "hw", "--json").json
    assert {one["change"] for one in told["remedies"] if one["keeps"]} >= {"kip101", "elr"}
    last = highwater("explain", "leo-of-skipped-epoch", "--mode", "elr-4.3").out.splitlines()[-1]
    assert last == "No newer release prevents it; rule skipped_epoch=forgets-leo (mode elr-repaired) does"


@pytest.mark.usefixtures("few_continuations")
def test_an_explanation_as_markdown_can_be_pasted(highwater: Callable[..., Call]) -> None:
    lines = highwater("explain", "kip101-scenario-1", "--mode", "hw", "--format", "markdown").out.splitlines()
    assert (
        lines[0]
        == "### kip101-scenario-1, mode hw, seed 0: acknowledged record LOST (committed-loss, exposed-loss). Expected "
        "here: Kafka 0.10.2 has this bug (it promises to survive these faults)"
    )
    assert "| at | what happened |" in lines
    assert "- mode: kip101 (Kafka 1.1)" in lines
    assert lines[-2].startswith("highwater replay kip101-scenario-1 --mode hw --seed 0 --expect-digest ")
    assert lines[-3] == lines[-1] == "```"
