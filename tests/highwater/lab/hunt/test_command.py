"""``highwater hunt``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sim import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--kafka", "4.4.1"], "release '4.4.1' of Kafka is not pinned; did you mean '4.4.0'?"),
        (["--kafka", "./no-build"], "--kafka no-build: there is no such folder"),
        (["--kafka", "4.4.0", "--for", "8 hours"], "--budget '8 hours' is not valid: give a time such as 30s or 2m"),
        (["--kafka", "4.4.0", "--hide", "forgoten-expansion"], "did you mean 'forgotten-expansion'?"),
        (["--kafka", "4.4.0", "--scenarios", "reasignments"], "did you mean 'reassignments'?"),
        (["--kafka", "0.10.2.2", "--scenarios", "canary"], "hw runs no such random scenario"),
    ],
)
def test_bad_input_is_one_line(highwater: Callable[..., Call], words: list[str], told: str, tmp_path: Path) -> None:
    call = highwater("hunt", *words, "--output", str(tmp_path / "hunt"), "--confirm", "0")
    assert call.code == exit_codes.BAD_INPUT
    assert told in call.err
    assert len([line for line in call.err.splitlines() if line.startswith("highwater")]) == 1
    assert not (tmp_path / "hunt").exists()


def test_a_folder_of_other_results_is_refused(highwater: Callable[..., Call], tmp_path: Path) -> None:
    (tmp_path / "row.json").write_text("{}", encoding="utf-8")
    call = highwater("hunt", "--kafka", "4.4.0", "--output", str(tmp_path), "--confirm", "0")
    assert call.code == exit_codes.BAD_INPUT
    assert "holds something else than a hunt (row.json)" in call.err
    assert [path.name for path in tmp_path.iterdir()] == ["row.json"]


def test_hours_are_a_time(highwater: Callable[..., Call], tmp_path: Path) -> None:
    call = highwater("hunt", "--kafka", "4.4.0", "--for", "0h", "--output", str(tmp_path))
    assert call.code == exit_codes.BAD_INPUT
    assert "--budget '0h' is not valid" in call.err
