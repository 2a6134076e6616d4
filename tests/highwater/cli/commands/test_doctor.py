from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from highwater.cli.commands import doctor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call


def test_runs_are_deterministic_here_and_in_a_fresh_process(highwater: Callable[..., Call]) -> None:
    call = highwater("doctor", "--json")
    assert call.code == call.json["exit_code"] == 0
    assert call.json["digests"].keys() == {"here", "here again", "fresh process"}
    assert len(set(call.json["digests"].values())) == 1
    assert call.json["packages"]["simpy"] is not None


def test_another_digest_is_4(highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_digest_elsewhere", lambda: "f00")
    call = highwater("doctor")
    assert call.code == 4
    assert "DIFFERS: here " in call.out
    assert "fresh process f00" in call.out


def test_missing_java_is_said_and_no_failure(highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    call = highwater("doctor")
    assert call.code == 0
    assert "java: " in call.out


def test_a_sweeps_folder_is_looked_over_and_repaired(
    highwater: Callable[..., Call], swept: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    shutil.copytree(swept, output)
    call = highwater("doctor", output)
    assert (call.code, call.out) == (0, f"{output} is complete and sound\n")
    part = next(output.rglob("part-*.parquet"))
    part.unlink()
    call = highwater("doctor", output)
    assert call.code == 1
    assert f"{part.relative_to(output)} is missing\n" in call.out
    assert "runs are missing: repeat the sweep's command, or use --repair" in call.out
    found = highwater("doctor", output, "--json").json
    assert [finding["what"] for finding in found["findings"]] == ["is missing"]
    call = highwater("doctor", output, "--repair", "--local", 1)
    assert (call.code, call.out) == (0, f"{output} is complete and sound, after repair\n")
    assert f"{part.relative_to(output)} is missing" in call.err


def test_an_interrupt_of_a_repair_is_130(
    highwater: Callable[..., Call], swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_self: object, _folder: object, poll: Callable[[], None]) -> int:
        signal.raise_signal(signal.SIGINT)
        poll()
        return 1

    output = tmp_path / "damaged"
    shutil.copytree(swept, output)
    next(output.rglob("part-*.parquet")).write_bytes(b"")
    monkeypatch.setattr("scenarios.sweep.local.LocalBackend.start", interrupt)
    call = highwater("doctor", output, "--repair", "-q")
    assert (call.code, call.out) == (130, "")
    assert call.err == "interrupted: no wave was finished, so no run is kept; the same command begins the sweep again\n"


@pytest.mark.parametrize("words", [["--repair"], ["--local", "1"], ["nowhere"], ["nowhere", "--repair"]])
def test_a_folder_is_needed(highwater: Callable[..., Call], tmp_path: Path, words: list[str]) -> None:
    call = highwater("doctor", *words)
    assert (call.code, call.out, call.err.count("\n")) == (2, "", 1)
