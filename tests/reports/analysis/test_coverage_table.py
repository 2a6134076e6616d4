from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from faults.kinds.registry import KINDS
from reports.analysis import coverage_table as coverage
from scenarios.sweep.store import Store
from sim.errors import InputError
from sim.protocol.probes import PROBES, TRANSITIONS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call


def test_every_probe_is_shown_or_named(highwater: Callable[..., Call], swept: Path) -> None:
    call = highwater("coverage", swept)
    assert (call.code, call.err) == (0, "")
    lines = call.out.splitlines()
    words = {line.split()[0] for line in lines if line}
    never = {line.split()[1] for line in lines if line.startswith("never: ")}
    foreign = {name for line in lines if line.startswith("of no mode") for name in line.split(": ")[1].split(", ")}
    assert {probe.name for probe in PROBES} <= words | never | foreign
    assert "leader-begins" in words - never
    assert "follower_truncation=high-watermark-delayed" in foreign
    assert "isr_update=zookeeper-write" not in never


def test_every_pair_is_counted_or_named(swept: Path) -> None:
    report = coverage.read(Store(swept))
    transitions = {probe.name for probe in PROBES[:TRANSITIONS]}
    impossible = {name for group in report.groups for name in group.foreign} & transitions
    assert {wake.kind for wake in report.wakes} >= {"kill", "power-loss", "cut"}
    for wake in report.wakes:
        assert wake.reached.keys() | set(wake.never) == transitions - impossible
        assert wake.reached.keys().isdisjoint(wake.never)
        assert wake.runs
    kinds = [*(wake.kind for wake in report.wakes), *report.idle, *report.undrawn]
    assert sorted(kinds) == sorted(KINDS)
    assert "zombie" in report.undrawn
    assert all(set(report.missing) <= set(wake.never) for wake in report.wakes)
    assert "elected-first" in report.missing  # That is over before the first fault.


def test_counts_are_runs_by_mode(swept: Path) -> None:
    report = coverage.read(Store(swept))
    assert not report.shortcomings
    assert report.runs == {"hw": 40, "kip101": 40, "kip279": 20, "kip320": 20} | report.runs
    leadership = report.groups[0]
    assert leadership.name == "leadership"
    assert leadership.probes["leader-begins"] == report.runs
    assert leadership.meaning("leader-begins") == "a broker begins to lead"
    assert leadership.meaning("of-yesterday") == ""


def test_json(highwater: Callable[..., Call], swept: Path) -> None:
    data = highwater("coverage", swept, "--json").json
    assert data["schema_version"] == coverage.COVERAGE_VERSION
    assert data["runs"] == coverage.read(Store(swept)).runs
    kill = next(fault for fault in data["faults"] if fault["kind"] == "kill")
    assert kill["pairs"]["leader-begins"]
    assert "elected-first" in kill["never"]


def test_names_are_shown_as_they_are(highwater: Callable[..., Call], swept: Path, tmp_path: Path) -> None:
    shutil.copytree(swept, tmp_path, dirs_exist_ok=True)
    summary = json.loads((swept / "summary.json").read_text())
    summary["coverage"]["probes"]["leadership"] |= {"[red]x\x1b[0m": {"hw": 1}, "[link]": {}}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    call = highwater("coverage", tmp_path)
    assert "[red]x\\x1b[0m" in call.out
    assert "never: [link]\n" in call.out
    assert (call.code, call.err) == (0, "")


def test_a_sweep_without_rows_has_none_yet(tmp_path: Path, swept: Path) -> None:
    shutil.copy(swept / "run.json", tmp_path)
    none: dict[str, object] = {"probes": {}, "faults": {}, "pairs": {}}
    empty = {"schema_version": 8, "complete": False, "coverage": {"runs": {"hw": 0}, **none}}
    (tmp_path / "summary.json").write_text(json.dumps(empty))
    with pytest.raises(InputError, match="has no rows yet"):
        coverage.read(Store(tmp_path))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "DIR is missing"),
        (("nowhere",), "cannot read nowhere/run.json"),
        (("nowhere", "--by", "mode"), "no such option"),
    ],
)
def test_bad_input_gets_one_message(highwater: Callable[..., Call], words: tuple[str, ...], problem: str) -> None:
    call = highwater("coverage", *words)
    assert (call.code, call.out) == (2, "")
    assert problem in call.err
    assert len(call.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["coverage", "triage", "compare", "report"])
def test_a_damaged_wave_is_named(
    highwater: Callable[..., Call],
    sweeps_here: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    """Bits that flipped in one of two waves, and then in both."""
    monkeypatch.chdir(tmp_path)
    for seeds in ("0..2", "2..4"):
        highwater("sweep", "canary", "--seeds", seeds, "--output", "out", "--local", 1, "--chunks", 1, "-q")
    first, second = sorted(tmp_path.glob("out/results/*/part-*.parquet"))
    for part, code, said in ((first, 3, "2 of 4 runs are missing"), (second, 3, "has no rows: its waves are damaged")):
        content = bytearray(part.read_bytes())
        content[len(content) // 2] ^= 1
        part.write_bytes(content)
        call = highwater(command, "out")
        assert call.code == code
        assert f"out: {part.relative_to(tmp_path / 'out')} differs from what was written" in call.err
        assert said in call.err


def test_no_failure_in_what_is_left_of_a_sweep_says_little(
    highwater: Callable[..., Call], sweeps_here: None, tmp_path: Path
) -> None:
    words = ["--modes", "kip320", "--output", tmp_path / "out", "--local", 1, "-q"]
    assert highwater("sweep", "kafka-7164", "--seeds", "0..2", *words).code == 0
    call = highwater("triage", tmp_path / "out")
    assert (call.code, call.err) == (
        2,
        f"highwater: {tmp_path / 'out'}: no run violated anything\n",
    )
    assert highwater("sweep", "kafka-7164", "--seeds", "2..4", *words).code == 0
    next(tmp_path.glob("out/results/*/part-*")).unlink()
    call = highwater("triage", tmp_path / "out")
    assert call.code == 3
    assert "2 of 4 runs are missing" in call.err
    assert "no run violated anything" in call.err


def test_coverage_of_one_mode_or_scenario(highwater: Callable[..., Call], swept: Path) -> None:
    whole = highwater("coverage", swept, "--json").json
    chosen = highwater("coverage", swept, "--scenario", "power", "--mode", "hw", "--json").json
    assert chosen["runs"] == {"hw": 20}
    assert set(whole["runs"]) > {"hw"}
    assert highwater("coverage", swept, "--mode", "hw", "--json").json["runs"] == {"hw": whole["runs"]["hw"]}
    missing = highwater("coverage", swept, "--mode", "kraft-3.5")
    assert (missing.code, missing.err.count("\n")) == (2, 1)
    assert "holds no mode 'kraft-3.5'" in missing.err


def test_other_code_cannot_tell_one_scenario(swept: Path, tmp_path: Path) -> None:
    shutil.copytree(swept, tmp_path / "old")
    run = json.loads((tmp_path / "old" / "run.json").read_text())
    (tmp_path / "old" / "run.json").write_text(json.dumps({**run, "code_version": "0" * 12}))
    store = Store(tmp_path / "old").choose("power")
    with pytest.raises(InputError, match="only the code that ran the sweep"):
        coverage.read(store)


@pytest.mark.parametrize(
    ("mode", "never", "foreign"),
    [
        ("hw", "elected-again", {"elected-from-isr", "elr-grows", "recovery-begins", "directory-fails"}),
        ("kraft", "broker-behind", {"elected-offline", "bounce", "elr-grows", "recovery-begins", "expiry-heard"}),
        ("elr-4.3", "alter-invalid", {"elected-offline", "isr-refused-version", "recovery-begins"}),
        ("elr-recovery", "recovery-dropped", {"elected-offline", "leader-removed"}),
    ],
)
@pytest.mark.usefixtures("sweeps_here")
def test_what_cannot_happen_in_a_mode_is_not_missed(
    highwater: Callable[..., Call], tmp_path: Path, mode: str, never: str, foreign: set[str]
) -> None:
    words = ("sweep", "rolling", "--modes", mode, "--seeds", "0..2", "--local", 1, "--output", tmp_path, "-q")
    assert highwater(*words).code in (0, 1, 3)
    report = coverage.read(Store(tmp_path))
    missed = {name for group in report.groups for name in group.never}
    assert never in missed
    assert foreign <= {name for group in report.groups for name in group.foreign}
    assert not missed & foreign
    assert not foreign & {*report.missing, *(name for wake in report.wakes for name in wake.never)}
