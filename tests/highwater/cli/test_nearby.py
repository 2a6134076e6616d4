"""Names that files of the working folder declare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from highwater.cli.nearby import with_hint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

PLUGIN = "from highwater.plugin import Plugin\n\nNAMES = ['mine', 'blink']\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_mode_file_beside_it_is_named(folder: Path, highwater: Callable[..., Call]) -> None:
    (folder / "elr-careful.toml").touch()
    call = highwater("run", "chaos", "--mode", "elr-careful")
    assert (call.code, call.err) == (
        2,
        "highwater: unknown mode 'elr-careful'; a mode file is named by its path: ./elr-careful.toml\n",
    )


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ("unknown mode 'mine'; did you mean 'hw'?", "unknown mode 'mine'; a.py has it: --plugin a.py"),
        ("rule a has no value 'mine'; one of: b, c", "rule a has no value 'mine'; a.py has it: --plugin a.py"),
        (
            "kinds.0 = 'blink': no such fault kind; one of: b",
            "kinds.0 = 'blink': no such fault kind; a.py has it: --plugin a.py",
        ),
        ("unknown mode 'other'; did you mean 'hw'?", "unknown mode 'other'; did you mean 'hw'?"),
        ("the sweep has plug-in a: load it with --plugin", "the sweep has plug-in a: load it with --plugin a.py"),
        ("the sweep has plug-in d: load it with --plugin", "the sweep has plug-in d: load it with --plugin"),
        ("--plugin b.py: unknown mode 'mine'; one of: hw", "--plugin b.py: unknown mode 'mine'; one of: hw"),
        ("--seed 'mine' is not valid", "--seed 'mine' is not valid"),
    ],
)
def test_a_plugin_beside_it_is_named(problem: str, said: str, folder: Path) -> None:
    (folder / "a.py").write_text(PLUGIN)
    (folder / "b.py").write_text("NAMES = ['mine', 'other']\n")
    (folder / "c.py").write_bytes(b"\xff")
    assert with_hint(problem) == said
