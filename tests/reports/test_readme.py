"""What README shows is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from reports import cli, exits
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.reports.conftest import Call

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if line.startswith("highwater ")]
CODES = {"highwater run canary --rule follower_truncation=leader-epoch": exits.UNEXPECTED}
"""Commands that do not exit with 0."""


def without_numbers(text: str) -> list[str]:
    """Lines with digests, times and counts blotted out: they move with every change of the protocol core."""
    return [re.sub(r"\b[0-9a-f]{32}\b|\d+", "#", line).rstrip() for line in text.strip().splitlines()]


def test_every_command_works(highwater: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in COMMANDS:
        words = ["0..20" if re.fullmatch(r"\d+\.\.\d+", word) else word for word in shlex.split(line)[1:]]
        call = highwater(*words)
        assert call.code == CODES.get(line, 0), f"{line}: {call.err}"
        assert call.out, line


def test_every_command_is_shown() -> None:
    assert {line.split()[1] for line in COMMANDS} == set(cli.COMMANDS)


def test_the_example_is_what_is_printed(highwater: Callable[..., Call]) -> None:
    command, _, shown = BLOCKS[0].partition("\n")
    assert command.startswith("$ highwater ")
    assert without_numbers(highwater(*shlex.split(command)[2:]).out) == without_numbers(shown)


def test_every_mode_and_exit_code_has_its_row() -> None:
    rows = re.findall(r"^\| `?([\w.-]+)`? \|", README, re.MULTILINE)
    codes = (value for name, value in vars(exits).items() if name.isupper() and type(value) is int)
    assert {*MODES, *map(str, codes)} <= {*rows}
