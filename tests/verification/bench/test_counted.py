from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.verification.bench import counted

if TYPE_CHECKING:
    from pathlib import Path


def told(runs: int) -> str:
    events = f"Events    : Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim\nCollected : {1_000 + 60 * runs} 0 0"
    return f"==1== {events} {7 + 3 * runs} {2 * runs} {runs} 0 0 0 0 {30 * runs} 0 {30 * runs}\n"


def test_a_run_costs_what_many_cost_more_than_few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert words[-5:-1] == [str(tmp_path), "run", "chaos", "kip320"]
        return subprocess.CompletedProcess(words, 0, "", told(int(words[-1])))

    monkeypatch.setattr(subprocess, "run", run)
    assert counted.counts(tmp_path, "run", "chaos", "kip320") == {
        "instructions": 60,
        "instruction-cache misses (L1)": 3,
        "data-cache misses (L1)": 3,
        "mispredicted branches": 60,
    }


def test_runs_that_fail_count_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    failed = subprocess.CompletedProcess([], 1, "", told(1) + "no such mode")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(RuntimeError, match="no such mode"):
        counted.counts(tmp_path, "run", "chaos", "kip32")
