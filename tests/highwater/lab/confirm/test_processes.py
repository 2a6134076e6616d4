"""Nothing is left of a run, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from highwater.lab.confirm import processes
from highwater.lab.confirm.processes import JavaProcesses
from highwater.lab.kafka import releases
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 20.0

PARENT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell starts what is in the background without it.
from pathlib import Path
from highwater.lab.confirm.processes import JavaProcesses
from highwater.lab.kafka import releases
releases.java_command = lambda: Path(sys.argv[1])
one = JavaProcesses(None)
child = one.java([], one.folder / "log")
print(child.pid, one.folder, flush=True)
time.sleep(1000)
"""


@pytest.fixture
def sleeper(tmp_path: Path) -> Path:
    """What stands for Java: it sleeps, whatever it is asked, and its child does, too."""
    script = tmp_path / "java"
    script.write_text("#!/bin/sh\nsleep 1000 &\nexec sleep 1000\n")
    script.chmod(0o755)
    return script


def wait(holds: Callable[[], bool]) -> bool:
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        if holds():
            return True
        time.sleep(0.02)
    return False


def runs(process: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def test_what_was_started_ends_with_the_run(monkeypatch: pytest.MonkeyPatch, sleeper: Path) -> None:
    monkeypatch.setattr(releases, "java_command", lambda: sleeper)
    with closing(JavaProcesses(None)) as one:
        child = one.java([], one.folder / "log")
        assert runs(child.pid)
        folder = one.folder
    assert not runs(child.pid)
    assert not folder.exists()


def test_a_kept_folder_stays(monkeypatch: pytest.MonkeyPatch, sleeper: Path, tmp_path: Path) -> None:
    monkeypatch.setattr(releases, "java_command", lambda: sleeper)
    with closing(JavaProcesses(tmp_path / "kept")) as one:
        (one.folder / "log").write_text("x")
    assert (tmp_path / "kept" / "log").is_file()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_a_parent_that_is_killed(number: signal.Signals, sleeper: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(sleeper)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert parent.stdout is not None
    child, folder = parent.stdout.readline().split()
    assert runs(int(child))
    parent.send_signal(number)
    parent.wait(PATIENCE_S)
    parent.stdout.close()
    assert wait(lambda: not runs(int(child)))
    assert wait(lambda: not Path(folder).exists())


def test_a_process_whose_environment_cannot_be_read_at_once_ends_too(
    monkeypatch: pytest.MonkeyPatch, sleeper: Path
) -> None:
    monkeypatch.setattr(releases, "java_command", lambda: sleeper)
    one = JavaProcesses(None)
    reaper = one._reaper
    assert reaper.stdin is not None
    reaper.stdin.close()
    time.sleep(0.2)  # It looks, and finds nothing.
    child = one.java([], one.folder / "log")
    assert child.wait(PATIENCE_S) == -signal.SIGKILL
    reaper.wait()


def test_ports_are_free_and_given_once(monkeypatch: pytest.MonkeyPatch, sleeper: Path) -> None:
    monkeypatch.setattr(releases, "java_command", lambda: sleeper)
    with closing(JavaProcesses(None)) as one:
        ports = [one.port() for _ in range(30)]
    assert len(set(ports)) == 30


def test_the_end_of_a_log_names_what_went_wrong(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("INFO fine\nERROR no room\nINFO fine again\n")
    assert processes.last_lines(log) == "ERROR no room"
    log.write_text("one\n\ntwo\n")
    assert processes.last_lines(log) == "one | two"
    assert processes.last_lines(tmp_path / "none") == ""
