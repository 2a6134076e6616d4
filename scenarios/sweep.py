"""Takes a sweep through its waves, so that whatever stops the process, the same command goes on from there."""

from __future__ import annotations

import errno
import shutil
import signal
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from scenarios import run, store
from scenarios.summary import Summary, failing_lines
from scenarios.units import Sweep as Sweep
from scenarios.units import chunk_count, chunks_of, waves
from scenarios.version import code_version, versions
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType

PILOT_UNITS: Final = 25
PILOT_SECONDS: Final = 1.0
GO_ON: Final = "finished waves are kept, and the same command goes on from there"
INTERRUPTED: Final = 130


class Interrupted(Exception):  # noqa: N818 - it is no error
    """SIGINT or SIGTERM has stopped a sweep; what is done is kept, with a valid summary."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep is.

    Attributes:
        done: runs done, those of an earlier process included.
        total: runs in all.
        violations: kind -> runs, over the waves that are done.
        errors: runs with verdict ``error``, over the waves that are done.
    """

    done: int
    total: int
    violations: dict[str, int]
    errors: int


class Backend(Protocol):
    """Something that runs chunks side by side."""

    name: str

    def start(self, poll: Callable[[], None]) -> int:
        """Get ready, calling `poll` a few times a second (it may raise); returns how many tasks run at once."""

    def run_wave(self, sweep: str, chunks: Sequence[range], folder: Path, tick: Callable[[int], None]) -> None:
        """Write the rows of a wave.

        Args:
            sweep: `Sweep.to_text`.
            chunks: units of each task.
            folder: where parts go; what is there of an earlier attempt must vanish.
            tick: to be called a few times a second with the number of chunks done; it may raise, then the wave is to
                be given up at once.

        Raises:
            InputError: the wave cannot be done here.
        """

    def close(self) -> None:
        """Free everything; also called when `start` has not been, and after errors."""


@contextmanager
def _signals() -> Iterator[Callable[[], None]]:
    """Turn SIGINT and SIGTERM into a question: the function given raises `Interrupted` once one has come.

    A second signal does what it did before, so that a user is never stuck.
    """
    seen = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # Python has signals in the main thread only.
        yield lambda: None
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(_number: int, _frame: FrameType | None) -> None:
        seen.set()
        restore()

    def poll() -> None:
        if seen.is_set():
            raise Interrupted

    for number in before:
        signal.signal(number, note)
    try:
        yield poll
    finally:
        restore()


def run_sweep(
    sweep: Sweep,
    output: Path,
    backend: Backend,
    *,
    chunks: int | None = None,
    task_seconds: float = 3.0,
    report: Callable[[Progress], None] = lambda _: None,
) -> dict[str, Any]:
    """Run a sweep, or what a stopped one has left.

    Args:
        sweep: what to run.
        output: folder for ``run.json``, ``results``, ``violations.jsonl`` and ``summary.json``.
        backend: where to run it; closed at the end.
        chunks: tasks per wave; None: measured so that one takes `task_seconds`.
        task_seconds: CPU seconds that a task should take.
        report: called a few times a second.

    Returns:
        What ``summary.json`` holds.

    Raises:
        InputError: `output` holds something else, the backend cannot work here, or the disk is full.
        Interrupted: a signal came. As after any exception, ``summary.json`` is valid and says ``"complete": false``.
    """
    arguments = {"backend": backend.name, "chunks": chunks, "task_seconds": task_seconds}
    job = _Job(sweep, output, backend, report, arguments)
    try:
        with _signals() as poll:
            try:
                job.run(poll, chunks, task_seconds)
            finally:
                backend.close()
            return job.finish()
    except BaseException as error:
        explained = _explained(error, output)
        # The reason is worth more than a second failure, such as no room for the summary.
        with suppress(Exception):
            job.give_up(_exit_code(explained))
        if explained is error:
            raise
        raise explained from None


def _explained(error: BaseException, output: Path) -> BaseException:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InputError(f"no space left for {output}: {GO_ON}")
    return error


def _exit_code(error: BaseException) -> int:
    if isinstance(error, Interrupted | KeyboardInterrupt):
        return INTERRUPTED
    return 2 if isinstance(error, InputError) else 70


class _Job:
    """A sweep on its way, with the counts of its waves so far."""

    def __init__(
        self,
        sweep: Sweep,
        output: Path,
        backend: Backend,
        report: Callable[[Progress], None],
        arguments: dict[str, Any],
    ) -> None:
        layout = [[wave.start, wave.stop] for wave in waves(sweep.units())]
        code = {"code_version": code_version(), "versions": versions(), "arguments": arguments}
        begun = store.begin(output, {**sweep.to_json(), **code, "waves": layout})
        self._sweep = sweep
        self._text = sweep.to_text()
        self._output = output
        self._backend = backend
        self._report = report
        self._waves = [(range(*wave), store.wave_folder(output, index)) for index, wave in enumerate(begun["waves"])]
        self._summary = Summary(sweep)
        self._counted: list[Path] = []

    def run(self, poll: Callable[[], None], chunks: int | None, task_seconds: float) -> None:
        """Do the waves that are missing."""
        self._count()
        self._show(0)
        missing = [(wave, folder) for wave, folder in self._waves if folder not in self._counted]
        if not missing:
            return
        slots = self._backend.start(poll)
        seconds = 0.0 if chunks else _pilot_seconds(self._sweep)
        for wave, folder in missing:
            count = chunks or chunk_count(seconds * self._sweep.count(wave), slots, task_seconds)
            self._run_wave(chunks_of(wave, count), self._sweep.count(wave), folder, poll)

    def _count(self) -> None:
        """Take the waves that are done into the summary."""
        for _, folder in self._waves:
            if folder not in self._counted and store.is_done(folder):
                self._summary.add(folder)
                self._counted.append(folder)

    def _run_wave(self, chunks: list[range], runs: int, folder: Path, poll: Callable[[], None]) -> None:
        def tick(chunks_done: int) -> None:
            poll()
            self._show(runs * chunks_done // len(chunks))

        tick(0)
        self._backend.run_wave(self._text, chunks, folder, tick)
        store.mark_done(folder)
        self._count()
        self._show(0)

    def _show(self, more: int) -> None:
        summary = self._summary
        self._report(Progress(summary.runs + more, summary.runs_asked, summary.kinds(), summary.errors()))

    def finish(self) -> dict[str, Any]:
        """Check that every key is there exactly once, and write the summary.

        Raises:
            RuntimeError: rows are missing or occur twice.
        """
        found, expected = store.seed_ranges(self._output), self._sweep.seed_ranges()
        if found != expected:
            keys = [key for key in found.keys() | expected if found.get(key) != expected.get(key)]
            wrong = sorted("/".join(map(str, key)) for key in keys)
            raise RuntimeError(f"{self._output} lacks rows or holds some twice: {', '.join(wrong)}")
        return self._write_summary(self._summary.exit_code(), complete=True)

    def give_up(self, exit_code: int) -> None:
        """Write the summary of what is done, in the room that the rest takes."""
        # A wave may have ended although it was to be given up.
        self._count()
        for _, folder in self._waves:
            if folder not in self._counted:
                shutil.rmtree(folder, ignore_errors=True)
        self._write_summary(exit_code, complete=False)

    def _write_summary(self, exit_code: int, *, complete: bool) -> dict[str, Any]:
        lines, failing = failing_lines(self._counted, self._sweep.grid)
        summary = {"complete": complete, "exit_code": exit_code, **self._summary.to_json(), **failing}
        # The short file first: on a full disk it may be all that fits.
        store.write_json(self._output / "summary.json", summary)
        store.write_atomically(self._output / "violations.jsonl", lines)
        return store.read_json(self._output / "summary.json")


def _pilot_seconds(sweep: Sweep) -> float:
    """Seconds that a run takes, measured on units from all over the sweep."""
    units = sweep.units()
    begin = time.perf_counter()
    done = 0
    for scenario, mode, seed in sweep.runs(units[:: -(-len(units) // PILOT_UNITS)]):
        run.run_row(scenario, mode, seed, sweep.rules)
        done += 1
        if time.perf_counter() - begin > PILOT_SECONDS:
            break
    return (time.perf_counter() - begin) / done
