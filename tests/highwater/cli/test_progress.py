from __future__ import annotations

import io
from typing import TYPE_CHECKING

from highwater.cli.console import Ui
from highwater.cli.progress import LINE_SECONDS, noted, status, sweep_progress
from scenarios.sweep.driver import Progress

if TYPE_CHECKING:
    import pytest


def report(done: int, errors: int = 0, **violations: int) -> Progress:
    return Progress(done, 1000, violations, errors)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_status_counts_only_what_this_process_did() -> None:
    now = report(600, errors=1, divergence=2, loss=5, stuck=0)
    assert status(now, 10.0, 500) == "10 runs/s, ETA 0:00:40, divergence 2, loss 5, errors 1"


def test_status_before_anything_is_done() -> None:
    assert status(report(0), 0.0, 0) == "starting"


def test_off_a_terminal_a_line_comes_at_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with sweep_progress(Ui(), clock) as progress:
        for clock.now, done in ((1.0, 0), (9.0, 80), (LINE_SECONDS, 90), (LINE_SECONDS + 1, 100)):
            progress(report(done))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "90 of 1000 runs, 10 runs/s, ETA 0:01:31\n"


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with sweep_progress(Ui(quiet=True), clock) as progress:
        for clock.now in (0.0, 100.0):
            progress(report(10))
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with sweep_progress(Ui()) as progress:
        progress(Progress(1, 1000, {"[red]": 1}, 0))
    assert "1/1000" in stream.getvalue()
    assert "[red] 1" in stream.getvalue()


def test_progress_names_the_time_left(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = iter([100.0, 102.0, 110.0])
    monkeypatch.setattr("highwater.cli.progress.time.monotonic", lambda: next(now))
    tell = noted(Ui())
    for done in (1, 2, 11):
        tell(done, 101)
    assert capsys.readouterr().err == "looked at 11 of 101 failures, 0:01:30 left\n"


def test_the_time_left_ends_with_a_limit_and_is_not_guessed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = iter([100.0, 100.0, 110.0, 0.0, 10.0])
    monkeypatch.setattr("highwater.cli.progress.time.monotonic", lambda: next(now))
    limited = noted(Ui(), limit=60)
    limited(1, 5_001)
    limited(11, 5_001)
    untimed = noted(Ui(), is_timed=False)
    untimed(1, 101)
    untimed(11, 101)
    assert capsys.readouterr().err.splitlines() == [
        "looked at 11 of 5001 failures, 0:00:50 left",
        "looked at 11 of 101 failures",
    ]


def test_a_second_round_begins_with_its_own_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Several passes over a sweep's waves are told as one after another."""
    now = iter([0.0, 2.0, 10.0, 12.0])
    monkeypatch.setattr("highwater.cli.progress.time.monotonic", lambda: next(now))
    tell = noted(Ui(), "read {} of {} waves", 1)
    for done in (0, 5, 0, 1):
        tell(done, 10)
    assert capsys.readouterr().err.splitlines() == [
        "read 5 of 10 waves, 0:00:02 left",
        "read 1 of 10 waves, 0:00:18 left",
    ]
