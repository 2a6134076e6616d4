"""Signals that come before anything has begun, as the installed command meets them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KILL = "import os, signal\nos.kill(os.getpid(), signal.{})\n"


def interrupted(folder: Path, module: str, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command with a module in the place of another's."""
    (folder / f"{module}.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}
    command = [sys.executable, "-m", "reports.entry", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signal_while_the_first_modules_are_imported(tmp_path: Path, name: str) -> None:
    done = interrupted(tmp_path, "click", KILL.format(name), "modes", "list")
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "interrupted")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signal_while_a_command_imports_what_it_needs(tmp_path: Path, name: str) -> None:
    done = interrupted(tmp_path, "pydantic", KILL.format(name), "run", "canary")
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "interrupted")


def test_signal_in_a_callback_that_would_swallow_it(tmp_path: Path) -> None:
    text = (
        f"class Last:\n    def __del__(self):\n        {'; '.join(KILL.format('SIGINT').splitlines())}; 1 + 1\nLast()\n"
    )
    done = interrupted(tmp_path, "pydantic", text, "run", "canary")
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "interrupted")


def test_the_installed_command_begins_there() -> None:
    assert 'highwater = "reports.entry:main"' in (ROOT / "pyproject.toml").read_text()
