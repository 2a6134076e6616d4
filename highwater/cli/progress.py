"""Progress of a sweep: a bar on a terminal, lines at growing intervals elsewhere, nothing with ``-q``."""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress

    from highwater.cli.console import Ui
    from scenarios.sweep.driver import Progress as Report

NOTE_SECONDS: Final = 5
"""Seconds between two progress notes."""
NOTE: Final = "looked at {} of {} failures"
SHRINKS: Final = "shrunk the smallest seed of {} of {} buckets"
READS: Final = "read {} of {} waves"
LINE_SECONDS: Final = 10
"""Seconds before the first line off a terminal; each interval is twice as long as the one before."""
LINE_SECONDS_MOST: Final = 320
"""The longest interval between two lines."""


@contextmanager
def sweep_progress(ui: Ui, clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[[Report], None]]:
    """Show the progress of a sweep: yields a function that shows one report. `clock` returns seconds."""
    start: tuple[float, int] | None = None
    last_line, interval = clock(), LINE_SECONDS
    with _bar(ui) if not ui.quiet and ui.stderr().is_terminal else nullcontext() as bar:
        task = None if bar is None else bar.add_task("", total=None)

        def show(report: Report) -> None:
            nonlocal start, last_line, interval
            now = clock()
            start = start or (now, report.done)
            text = status(report, now - start[0], start[1])
            if bar is not None and task is not None:
                bar.update(task, total=report.total, completed=report.done, description=text)
            elif now - last_line >= interval:
                last_line, interval = now, min(interval * 2, LINE_SECONDS_MOST)
                ui.note(f"{report.done} of {report.total} runs, {text}")

        yield show


def status(report: Report, elapsed: float, done_before: int) -> str:
    """Rate, remaining time, and violations by kind, `elapsed` seconds after the first report.

    `done_before` runs were already done by then, perhaps by another process.
    """
    words = []
    if elapsed > 0 and report.done > done_before:
        rate = (report.done - done_before) / elapsed
        words = [f"{rate:.0f} runs/s", f"ETA {duration((report.total - report.done) / rate)}"]
    words += [f"{kind} {count}" for kind, count in sorted(report.violations.items()) if count]
    if report.errors:
        words.append(f"errors {report.errors}")
    return ", ".join(words) or "starting"


def duration(seconds: float) -> str:
    """Seconds as ``0:01:30``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def _bar(ui: Ui) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    text = TextColumn("{task.description}", markup=False)
    return Progress(BarColumn(bar_width=24), MofNCompleteColumn(), text, console=ui.stderr(), transient=True)


def noted(
    ui: Ui, note: str = NOTE, seconds: float = NOTE_SECONDS, limit: float | None = None, *, is_timed: bool = True
) -> Callable[[int, int], None]:
    """Note progress every so many seconds, with the time left at the rate since the first report.

    Args:
        ui: prints it.
        note: takes the numbers of what is done and of all.
        seconds: between two notes.
        limit: seconds from now after which the work ends, whatever is done by then.
        is_timed: whether all of it will be done, so that a rate tells the time left.
    """
    first: tuple[float, int] | None = None
    end = None if limit is None else time.monotonic() + limit
    last = 0.0

    def tell(done: int, there: int) -> None:
        nonlocal first, last
        now = time.monotonic()
        if first is None or done <= first[1]:
            first, last = (now, done), now
        elif now - last >= seconds and done < there:
            last = now
            left = (now - first[0]) / (done - first[1]) * (there - done)
            if end is not None:
                left = max(0.0, min(left, end - now))
            ui.note(note.format(done, there) + (f", {duration(left)} left" if is_timed else ""))

    return tell
