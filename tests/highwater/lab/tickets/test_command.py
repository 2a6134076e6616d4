"""``highwater ticket``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scenarios.format.catalogue import text as text_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call


def test_a_ticket_is_printed_or_written(highwater: Callable[..., Call], tmp_path: Path) -> None:
    printed = highwater("ticket", "reassignment-stuck")
    assert printed.code == 0
    assert printed.out.startswith("# ")
    written = highwater("ticket", "reassignment-stuck", "--output", str(tmp_path / "t"))
    assert written.code == 0
    assert (tmp_path / "t" / "reassignment-stuck.md").read_text(encoding="utf-8") == printed.out
    assert (tmp_path / "t" / "reassignment-stuck.sh").stat().st_mode & 0o100
    assert highwater("ticket", "reassignment-stuck", "--output", str(tmp_path / "t")).code == 0


def test_files_of_others_are_kept(highwater: Callable[..., Call], tmp_path: Path) -> None:
    (tmp_path / "reassignment-stuck.md").write_text("mine", encoding="utf-8")
    call = highwater("ticket", "reassignment-stuck", "--output", str(tmp_path))
    assert call.code == 2
    assert "this command did not write it" in call.err


def test_a_story_that_is_none(highwater: Callable[..., Call]) -> None:
    call = highwater("ticket", "reassignment-bakc")
    assert call.code == 2
    assert "did you mean 'reassignment-back'" in call.err


def test_a_title_with_a_command_is_refused(highwater: Callable[..., Call], tmp_path: Path) -> None:
    text = re.sub(
        "^title = .*$", r'title = "harmless\\ntouch PWNED #"', text_of("reassignment-back"), flags=re.MULTILINE
    )
    (tmp_path / "reassignment-back.toml").write_text(text, encoding="utf-8")
    call = highwater("ticket", str(tmp_path / "reassignment-back.toml"), "--output", str(tmp_path / "out"))
    assert call.code == 2
    assert r"title = 'harmless\ntouch PWNED #': one line without control characters is needed" in call.err
    assert not (tmp_path / "out").exists()
