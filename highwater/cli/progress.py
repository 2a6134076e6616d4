"""Progress of a sweep: a bar on a terminal, a line every ten seconds elsewhere, nothing with ``-q``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rich.progress import Progress, TaskID

    from highwater.cli.console import Ui
    from scenarios.sweep.driver import Progress as Report

LINE_SECONDS: Final = 10
"""Seconds between two lines off a terminal."""


class SweepProgress:
    """Shows the progress of a sweep; a context manager that is called with each report.

    Args:
        ui: decides on bar, lines or silence.
        clock: returns seconds; by default the wall clock.
    """

    def __init__(self, ui: Ui, clock: Callable[[], float] = time.monotonic) -> None:
        self._ui = ui
        self._clock = clock
        self._start: tuple[float, int] | None = None
        self._last_line = clock()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if not self._ui.quiet and self._ui.stderr().is_terminal:
            self._bar = _bar(self._ui)
            self._task = self._bar.add_task("", total=None)
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, report: Report) -> None:
        """Show one report."""
        now = self._clock()
        if self._start is None:
            self._start = now, report.done
        text = status(report, now - self._start[0], self._start[1])
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=report.total, completed=report.done, description=text)
        elif now - self._last_line >= LINE_SECONDS:
            self._last_line = now
            self._ui.note(f"{report.done} of {report.total} runs, {text}")


def status(report: Report, elapsed: float, done_before: int) -> str:
    """Rate, remaining time, and violations by kind.

    Args:
        report: the latest report.
        elapsed: seconds since the first report.
        done_before: runs already done at the first report, perhaps by another process.
    """
    words = []
    if elapsed > 0 and report.done > done_before:
        rate = (report.done - done_before) / elapsed
        words = [f"{rate:.0f} runs/s", f"ETA {_duration((report.total - report.done) / rate)}"]
    words += [f"{kind} {count}" for kind, count in sorted(report.violations.items()) if count]
    if report.errors:
        words.append(f"errors {report.errors}")
    return ", ".join(words) or "starting"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def _bar(ui: Ui) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    text = TextColumn("{task.description}", markup=False)
    return Progress(BarColumn(bar_width=24), MofNCompleteColumn(), text, console=ui.stderr(), transient=True)
