from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from faults import plan
from highwater.lab.confirm import files
from reports.evidence import kafka_text
from reports.evidence import replay as replaying
from scenarios.single import rows
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

CANARY = ("replay", "canary", "--mode", "hw", "--seed", "0")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_replay_line_replays(highwater: Callable[..., Call], here: Path) -> None:
    line = highwater("run", "canary", "--json").json["runs"][0]["row"]["replay"]
    call = highwater(*shlex.split(line)[1:])
    assert call.code == 0
    assert "digest as expected" in call.out
    assert (here / "store/canary/seeds/0-hw/history.txt").is_file()


def test_rules_and_settings_are_in_the_line(highwater: Callable[..., Call]) -> None:
    words = ["--rule", "follower_truncation=leader-epoch", "--set", "log.flush.interval.messages=never"]
    line = highwater("run", "canary", *words, "--json").json["runs"][0]["row"]["replay"]
    call = highwater(*shlex.split(line)[1:], "--json")
    assert call.code == 1
    assert not call.json["replays"][0]["digest"]["differs"]


def test_another_digest_is_4_and_named(highwater: Callable[..., Call]) -> None:
    call = highwater(*CANARY, "--expect-digest", "0" * 32)
    assert call.code == 4
    assert f"DIGEST DIFFERS: expected {'0' * 32}, got " in call.out
    assert highwater(*CANARY, "--expect-digest", "0" * 32, "--json").json["exit_code"] == 4


def test_a_plan_is_not_replayed_over_the_whole_run_of_its_seed() -> None:
    recorded = next((ROOT / "tests" / "corpus").glob("*.json"))
    origin = replaying.of_plan(recorded, None, None, {}, {})
    place = origin.place(None, origin.seed, "hw")
    assert str(place.path) == f"store/{origin.scenario.name}/plans/seeds/{origin.seed}-hw"


def test_written_files_agree_with_the_run(highwater: Callable[..., Call], here: Path) -> None:
    call = highwater(*CANARY, "--output", here / "out", "--json")
    replay = call.json["replays"][0]
    folder = here / "out" / "seeds" / "0-hw"
    assert replay["folder"] == str(folder)
    row = json.loads((folder / "row.json").read_text())
    assert row == {"schema_version": rows.ROWS_VERSION, **replay["row"]}
    assert json.loads((folder / "plan.json").read_text())["schema_version"] == plan.PLAN_VERSION
    assert json.loads((folder / "trace.jsonl").read_text().splitlines()[0])["digest"] == row["digest"]
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["schema_version"] == 1
    assert metrics["integral_ms"]["UnderMinIsrPartitionCount"] == row["under_min_isr_ms"]
    assert [value for _, value in metrics["series"]["OfflinePartitionsCount"]][:2] == [1, 0]
    assert min(value for _, value in metrics["series"]["ElectableLeaders"]) < 3
    assert metrics["integral_ms"]["UnderReplicatedPartitions"] > 0
    for replica in replay["replicas"]:
        broker = folder / f"broker-{replica['broker']}"
        log = broker / "highwater-0"
        batches = [tuple(batch) for batch in replica["batches"]]
        dumped = kafka_text.dump_log(f"{broker.name}/{log.name}/{'0' * 20}.log", replica["log_start"], batches)
        assert (log / f"{'0' * 20}.log.txt").read_text() == dumped
        epochs = files.epochs_in_checkpoint(log / "leader-epoch-checkpoint")
        assert epochs == [tuple(entry) for entry in replica["leader_epoch_checkpoint"]]
        for file in ("replication-offset", "recovery-point-offset", "log-start-offset"):
            known = replica[f"{file.replace('-', '_')}_checkpoint"]
            assert files.offset_in_checkpoint(broker / f"{file}-checkpoint", "highwater") == known


def test_the_history_tells_steps_and_violations(highwater: Callable[..., Call], here: Path) -> None:
    highwater(*CANARY)
    history = (here / "store/canary/seeds/0-hw/history.txt").read_text()
    assert history.startswith("canary, mode hw, seed 0: acknowledged record LOST")
    assert "broker 2   elected      leader_epoch=1" in history
    assert "*** VIOLATION committed-loss (inside the promise): " in history


def test_the_description_has_the_last_leader_and_isr(highwater: Callable[..., Call], here: Path) -> None:
    highwater(*CANARY)
    described = (here / "store/canary/seeds/0-hw/describe.txt").read_text()
    fields = dict(field.split(": ", 1) for field in re.split(r"[\t\n]+", described.strip()))
    assert [fields[name] for name in ("Topic", "Leader", "Replicas", "Isr")] == ["highwater", "3", "1,2,3", "1,2,3"]
    assert fields["Configs"] == "min.insync.replicas=1"
    leader_epoch, partition_epoch = int(fields["LeaderEpoch"]), int(fields["PartitionEpoch"])
    assert 1 < leader_epoch <= partition_epoch
    assert int(fields["ControllerEpoch"]) > 0


def test_early_warnings_are_in_the_history_and_count_with_strict(highwater: Callable[..., Call], here: Path) -> None:
    highwater("replay", "canary", "--seed", "0", "--output", here)
    assert (
        "*** early warning candidate-incomplete (inside the promise)" in (here / "seeds/0-hw/history.txt").read_text()
    )
    call = highwater("replay", "canary", "--seed", "0", "--strict", "--output", here)
    assert call.code == 0
    assert "*** VIOLATION candidate-incomplete (inside the promise)" in (here / "seeds/0-hw/history.txt").read_text()


def test_all_expected_modes_are_replayed(highwater: Callable[..., Call], here: Path) -> None:
    assert highwater("replay", "kip101-scenario-1", "--seed", "0").code == 0
    assert sorted(folder.name for folder in (here / "store/kip101-scenario-1/seeds").iterdir()) == [
        f"0-{mode}" for mode in ("elr", "elr-recovery", "hw", "kip101", "kip279", "kip320", "kraft")
    ]


def test_an_earlier_replay_is_replaced(highwater: Callable[..., Call], here: Path) -> None:
    folder = here / "store/canary/seeds/0-hw"
    highwater(*CANARY)
    (folder / "broker-9").mkdir()
    assert highwater(*CANARY).code == 0
    assert not (folder / "broker-9").exists()


def test_other_things_are_not_overwritten(highwater: Callable[..., Call], here: Path) -> None:
    folder = here / "out/seeds/0-hw"
    folder.mkdir(parents=True)
    (folder / "thesis.txt").touch()
    call = highwater(*CANARY, "--output", here / "out")
    assert call.code == 2
    assert "holds something else than a replay" in call.err
    assert [file.name for file in folder.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["power", "--mode", "hw"], "power runs with any seed: choose one with --seed N"),
        (["canary", "--seed", "x"], "seed 'x' is not valid"),
        (["kip101-scenario-1", "--seed", "0", "--expect-digest", "00"], "choose one with --mode: hw, kip101"),
        (["canary", "--seed", "0", "--expect-digest", "zz"], "'zz' is no digest: 32 hex digits are needed"),
        (["canary", "--seed", "0", "--expect-digest", "0" * 31 + "\n"], "is no digest"),
        (["canary", "--seed", "0", "--scenario", "power"], "'canary' is not"),
        ([".", "--seed", "0"], "run.json"),
        (["canry", "--seed", "0"], "did you mean 'canary'?"),
    ],
)
def test_bad_input(highwater: Callable[..., Call], words: list[str], said: str) -> None:
    call = highwater("replay", *words)
    assert (call.code, call.out, call.err.count("\n")) == (2, "", 1)
    assert said in call.err


def test_a_folder_does_not_hide_a_scenario(highwater: Callable[..., Call], here: Path) -> None:
    (here / "canary").mkdir()
    assert highwater(*CANARY).code == 0
    (here / "canary" / "run.json").write_text("{}")
    call = highwater(*CANARY)
    assert (call.code, "canary is the bundled scenario here; the sweep of this name is ./canary" in call.err) == (
        0,
        True,
    )


def test_a_broken_output_folder(highwater: Callable[..., Call], here: Path) -> None:
    (here / "file").touch()
    call = highwater(*CANARY, "--output", here / "file")
    assert call.code == 2
    assert "cannot be written" in call.err


@pytest.mark.parametrize("command", ["replay", "explain", "show", "shrink", "draw"])
def test_a_seed_outside_the_sweep_is_told_with_its_range(
    highwater: Callable[..., Call], swept: Path, command: str
) -> None:
    call = highwater(command, swept, "--scenario", "power", "--mode", "hw", "--seed", 99999)
    assert (call.code, call.out, call.err.count("\n")) == (2, "", 1)
    assert "seed 99999 is outside the sweep: " in call.err
    assert re.search(r"holds seeds \d+\.\.\d+ ", call.err)
