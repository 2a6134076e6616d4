from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from highwater.cli import in_browser
from highwater.cli.main import COMMANDS
from scenarios.requirements import IN_BROWSER, REQUIRED
from sim import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

BROWSER = """
import signal, sys

del signal.setitimer

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from scenarios import requirements
requirements.is_browser = lambda: True
from highwater.cli.main import main
for line in {lines}:
    code = main(line.split())
    print("exit", code, line)
"""
"""A process that lacks what a browser lacks."""
PLUGIN = """
from highwater.plugin import RECORDS_OR_NONE, Checker, Finding, Plugin

API_VERSION = 1


class Truncated(Checker):
    FINDINGS = (Finding("truncated", RECORDS_OR_NONE, is_warning=True),)

    def on_truncate(self, step):
        self._warns("truncated", step.at_us, "seen")


PLUGIN = Plugin(checkers=[Truncated])
"""
MISSING = {REQUIRED[package] for package in REQUIRED.keys() - set(IN_BROWSER)} | {"resource", "_multiprocessing"}
LINES = (
    "run kip101-scenario-1 --mode hw",
    "show kip101-scenario-1 --mode hw --against kip101",
    "draw kip101-scenario-1 --mode hw",
    "explain kip101-scenario-1 --mode hw --brief",
    "shrink power --mode hw --seed 20",
    "replay canary --mode hw --seed 0",
    "explore --mode kraft --losses 0 --fences 0",
    "scenarios new ./mine.toml --drawn",
    "run ./mine.toml --mode hw",
    "run canary --mode hw --plugin mine.py",
)


def test_what_the_playground_offers_needs_nothing_that_a_browser_lacks(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    script = BROWSER.format(missing=MISSING, lines=LINES)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert "internal error" not in done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("exit")] == [
        f"exit 0 {line}" for line in LINES
    ]
    assert done.stderr.count("highwater: ") == 0


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_browser, "is_browser", lambda: True)


def test_commands_are_refused_that_a_browser_cannot_carry_out(browser: None, highwater: Callable[..., Call]) -> None:
    for command in sorted({*COMMANDS} - in_browser.COMMANDS):
        called = highwater(command, "power")
        assert called.code == exit_codes.UNAVAILABLE
        assert called.err.count("\n") == 1
        assert f"{command} needs processes or packages that a browser does not have" in called.err


def test_a_package_that_a_browser_does_not_have_is_one_line(browser: None) -> None:
    error = ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")
    assert in_browser.lacking(error) == (
        "this needs the package pyarrow that a browser does not have: install Highwater to use it"
    )
    assert in_browser.lacking(ModuleNotFoundError("No module named 'mine'", name="mine")) == ""


def test_elsewhere_all_commands_work_and_a_missing_package_is_an_error_of_its_own() -> None:
    in_browser.check("sweep")
    assert in_browser.lacking(ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")) == ""
    assert {*COMMANDS} > in_browser.COMMANDS
    assert {*IN_BROWSER} < REQUIRED.keys()
