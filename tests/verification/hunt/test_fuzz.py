"""A small part of `make fuzz`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.verification.hunt import fuzz

if TYPE_CHECKING:
    import random
    from pathlib import Path

    import pytest

CASES = 50


@pytest.mark.world
def test_strange_input_ends_as_readme_says() -> None:
    report = fuzz.fuzz(0, CASES)
    assert report.cases == CASES
    assert {0, 2} <= report.codes.keys()
    assert not report.findings, "\n".join(map(str, report.findings))


def test_wrong_behaviour_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Were there a crash, a secret or a stray file, a case would be a finding."""

    def bad(words: list[str]) -> tuple[int, str, str]:
        (tmp_path / "root" / "stray").touch()
        return 70, fuzz.SECRET, "Traceback (most recent call last)"

    monkeypatch.setattr(fuzz, "here", bad)
    monkeypatch.chdir(tmp_path)
    report = fuzz.Report()
    fuzz.case(fuzz.ELSEWHERE_ONE_EVERY * 2 + 1, tmp_path / "root", report)
    (finding,) = report.findings
    assert finding.why == f"exit code 70, a traceback, a secret, changed {tmp_path / 'root' / 'stray'}"


def test_files_that_a_command_writes_by_default_are_no_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "KINDS", (lambda _folder, _chance: ["draw", "canary", "--mode", "hw"],))
    assert [str(finding) for finding in fuzz.fuzz(1, 1).findings] == []

    def replaced(folder: Path, _: random.Random) -> list[str]:
        (folder / "canary-hw-0.svg").write_text("mine")
        monkeypatch.setattr(fuzz, "here", lambda _: ((folder / "canary-hw-0.svg").write_text("ours"), "", ""))
        return []

    monkeypatch.setattr(fuzz, "KINDS", (replaced,))
    (finding,) = fuzz.fuzz(1, 1).findings
    assert "canary-hw-0.svg" in finding.why
