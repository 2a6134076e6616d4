"""Takes a sweep through its waves, so that whatever stops the process, the same command goes on from there."""

from __future__ import annotations

import errno
import signal
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol

from scenarios import memory
from scenarios.paths import of_os
from scenarios.single.rows import ROWS_VERSION
from scenarios.sweep import claim, manifest, ownership
from scenarios.sweep.claim import Claim
from scenarios.sweep.extent import Extent, merged, split, take, units
from scenarios.sweep.folder import Folder, open_folder
from scenarios.sweep.manifest import Manifest
from scenarios.sweep.parts import RESULTS, wave_path
from scenarios.sweep.store import Store, differences, pieces_in, read_back, read_json, write_json
from scenarios.sweep.store_checks import check_run
from scenarios.sweep.summary import Summary
from scenarios.sweep.units import Sweep as Sweep
from scenarios.sweep.units import chunk_count, rows_of, seed_ranges
from scenarios.version import PLAIN, build, code_version, versions
from sim import exit_codes
from sim.errors import InputError, StorageError, UnavailableError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType

    from scenarios.sweep.extent import Piece
    from scenarios.sweep.manifest import Part


PILOT_UNITS: Final = 25
PILOT_SECONDS: Final = 1.0
WAVE_SECONDS: Final = 15.0
"""How long a wave should take: with the one that is begun before it ends, what an interrupt may cost."""
CUT: Final = 2
"""A task stops after so many times the seconds that it should take."""
LONG_SECONDS: Final = 600.0
"""A plain sweep that takes longer is told of the compiled build."""
GO_ON: Final = "finished waves are kept, and the same command goes on from there"


class Interrupted(Exception):  # noqa: N818 - it is no error
    """SIGINT or SIGTERM has stopped a sweep; what is done is kept, with a valid summary."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep is.

    Attributes:
        done: runs done, those of an earlier process included; it never becomes less.
        total: runs in all.
        violations: kind -> runs, over the waves that are done.
        errors: runs with verdict ``error``, over the waves that are done.
    """

    done: int
    total: int
    violations: dict[str, int]
    errors: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A wave to be run.

    Attributes:
        wave: name of its folder, which no other driver uses.
        chunks: what each task does.
        task_seconds: when a task stops to begin further units.
    """

    wave: str
    chunks: Sequence[tuple[Piece, ...]]
    task_seconds: float


class Backend(Protocol):
    """Something that runs chunks side by side."""

    name: str

    def start(self, folder: Folder, poll: Callable[[], None]) -> int:
        """Get ready, calling `poll` a few times a second (it may raise); returns how many tasks run at once.

        Raises:
            UserError: it cannot work here, or not write to the folder.
        """

    def run_waves(
        self, sweep: str, folder: Folder, plans: Iterator[Plan], tick: Callable[[Iterable[tuple[Plan, int]]], None]
    ) -> Iterator[Plan]:
        """Write the rows of waves.

        The next wave is begun before the last task of one ends, so that nothing stands still meanwhile; no wave is
        begun before the one before the last has been handed back.

        Args:
            sweep: `Sweep.to_text`.
            folder: of the sweep.
            plans: the waves; each is made when it is wanted.
            tick: to be called a few times a second with the waves that were not handed back, and how many chunks of
                each are done; it may raise, then the waves are to be given up at once.

        Yields:
            Each wave, its rows written.

        Raises:
            UserError: the wave cannot be done here.
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
    output: Folder | Path | str,
    backend: Backend,
    *,
    chunks: int | None = None,
    task_seconds: float = 3.0,
    wave_units: int | None = None,
    report: Callable[[Progress], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Run a sweep, or what a stopped one has left.

    Args:
        sweep: what to run; a folder that holds other seeds of the same sweep gets these as well.
        output: folder for ``run.json``, ``results``, ``violations.jsonl`` and ``summary.json``.
        backend: where to run it; closed at the end.
        chunks: tasks per wave; None: measured so that one takes `task_seconds`.
        task_seconds: CPU seconds that a task should take.
        wave_units: units per wave; None: measured so that one takes `WAVE_SECONDS`.
        report: called a few times a second.
        note: told what a user should know meanwhile.

    Returns:
        What ``summary.json`` holds.

    Raises:
        InputError: `output` holds something else.
        UnavailableError: the backend cannot work here, or another driver is at work in `output`.
        StorageError: the disk is full, or `output` cannot be written.
        Interrupted: a signal came. As after any exception, ``summary.json`` is valid and says ``"complete": false``.
    """
    folder = open_folder(output)
    arguments = {"backend": backend.name, "chunks": chunks, "task_seconds": task_seconds}
    job: _Job | None = None
    try:
        with _signals() as poll:
            try:
                job = _Job(sweep, folder, backend, report, note, arguments)
                job.run(poll, chunks, task_seconds, wave_units)
            finally:
                backend.close()
            return job.finish()
    except BaseException as error:
        explained = _explained(error, folder)
        # The reason is worth more than a second failure, such as no room for the summary.
        with suppress(Exception):
            if job is not None:
                job.give_up(_exit_code(explained))
        if explained is error:
            raise
        raise explained from None
    finally:
        if job is not None:
            job.close()


def _explained(error: BaseException, folder: Folder) -> BaseException:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(f"no space left for {folder.shown}: {GO_ON}")
    if isinstance(error, Exception) and not isinstance(error, UserError) and memory.is_lacking(error):
        return UnavailableError(f"out of memory; with fewer processes, {GO_ON}")
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        error.filename = folder.shown
    return error


def _exit_code(error: BaseException) -> int:
    if isinstance(error, Interrupted | KeyboardInterrupt):
        return exit_codes.INTERRUPTED
    return error.exit_code if isinstance(error, UserError) else exit_codes.INTERNAL


class _Job:
    """A sweep on its way, with the counts of its waves so far.

    Raises:
        InputError: the folder holds something else.
        UnavailableError: another driver is at work there.
        StorageError: it cannot be read or written.
    """

    def __init__(
        self,
        sweep: Sweep,
        folder: Folder,
        backend: Backend,
        report: Callable[[Progress], None],
        note: Callable[[str], None],
        arguments: dict[str, Any],
    ) -> None:
        self._sweep = sweep
        self._text = sweep.to_text()
        self._folder = folder
        self._backend = backend
        self._report = report
        self._note = note
        code = {"code_version": code_version(), "versions": versions(), "arguments": arguments}
        self._idle = sweep.idle()
        run = {**sweep.to_json(), **code, "decides_nothing": self._idle}
        there = _sweep_in(folder, run)
        ownership = (sweep.first_seed, sweep.end_seed)
        seeds = [ownership] if there is None else merged([*seed_ranges(there), ownership])
        self._run = {**run, **(there or {}), "schema_version": ROWS_VERSION, "seeds": seeds}
        asked = Extent((variant, *ends) for variant in range(len(sweep.variants)) for ends in seeds)
        self._asked = asked
        self._covered = Extent()
        self._summary = Summary(sweep, asked)
        self._numbers = count()
        self._planned: list[str] = []
        self._begun = there is not None
        self._seconds = 0.0
        self._shown = 0
        self._claim = _claim(folder)

    def run(self, poll: Callable[[], None], chunks: int | None, task_seconds: float, wave_units: int | None) -> None:
        """Do the waves that are missing."""
        for line in self._idle:
            self._note(line)
        _clear_up(self._folder, self._claim.name)
        if self._begun:
            self._count()
        self._show(0)
        if not self._missing():
            self._begin()
            return
        slots = self._backend.start(self._folder, poll)
        self._begin()
        self._seconds = _pilot_seconds(self._text, self._missing())
        if (text := long_notice(self._seconds * units(self._missing()) / slots)) is not None:
            self._note(text)

        def plans() -> Iterator[Plan]:
            left = self._missing()
            while left:
                wanted = wave_units or max(slots, round(WAVE_SECONDS * slots / self._seconds))
                # A last wave of a few units would not be worth its start.
                head, left = take(left, wanted if wanted * 1.5 < units(left) or wave_units else units(left))
                yield self._plan(head, chunks, slots, min(task_seconds, WAVE_SECONDS))

        def tick(begun: Iterable[tuple[Plan, int]]) -> None:
            poll()
            self._show(round(sum(self._runs(plan) * done / len(plan.chunks) for plan, done in begun)))

        while self._missing():
            since = time.perf_counter()
            for plan in self._backend.run_waves(self._text, self._folder, plans(), tick):
                done = self._commit(plan)
                now = time.perf_counter()
                self._seconds = (now - since) * slots / done
                since = now
                self._show(0)

    def _missing(self) -> tuple[Piece, ...]:
        return tuple(self._sweep.extent().minus(self._covered).pieces())

    def _begin(self) -> None:
        """Leave a first trace of the sweep: it can be written, here and there."""
        write_json(self._folder, ownership.RUN, self._run)
        self._begun = True

    def _count(self) -> None:
        """Take the waves that are done into the summary."""
        store = Store(self._folder)
        for _, table in store.tables():
            self._summary.add(table)
        for error in store.damage.values():
            self._note(f"{self._folder.shown}: {error}; the wave does not count and is run again")
        self._covered = store.covered

    def _plan(self, pieces: Sequence[Piece], chunks: int | None, slots: int, task_seconds: float) -> Plan:
        wave = f"wave={self._claim.name}-{next(self._numbers):05d}"
        self._planned.append(wave)
        shares = split(pieces, chunks or chunk_count(self._seconds * units(pieces), slots, task_seconds))
        return Plan(wave, shares, CUT * task_seconds)

    def _commit(self, plan: Plan) -> int:
        """Let a wave count, after its rows were read back; returns how many units it is.

        Raises:
            RuntimeError: its rows are not those that were asked for.
            UnavailableError: another driver has taken over.
        """
        try:
            parts, rows, covers = self._read_back(plan)
        finally:
            self._claim.check()  # Whoever has taken over removes what does not count yet.
        listed = Manifest(plan.wave, self._run, tuple(covers), parts)
        self._folder.write(f"{wave_path(plan.wave)}/{manifest.NAME}", listed.to_bytes())
        self._planned.remove(plan.wave)
        self._summary.add(rows)
        self._covered = self._covered.plus(covers)
        return units(covers)

    def _read_back(self, plan: Plan) -> tuple[tuple[Part, ...], Any, list[Piece]]:
        """Parts of a wave as written, their rows, and what these cover."""
        parts, rows = read_back(self._folder, plan.wave, self._sweep)
        try:
            covers = pieces_in(rows, self._sweep)
        except ValueError as error:
            raise RuntimeError(f"{wave_path(plan.wave)}: {error}") from None
        if not covers or Extent(covers).minus(Extent(piece for chunk in plan.chunks for piece in chunk)):
            raise RuntimeError(f"{wave_path(plan.wave)} holds other rows than were asked for")
        return parts, rows, covers

    def _runs(self, plan: Plan) -> int:
        return self._sweep.count(piece for chunk in plan.chunks for piece in chunk)

    def _show(self, more: int) -> None:
        """Tell how far it is; `more` runs are done of waves that do not count yet, if no task stopped early."""
        summary = self._summary
        self._shown = max(self._shown, min(summary.runs + more, summary.runs_asked))
        self._report(Progress(self._shown, summary.runs_asked, summary.kinds(), summary.errors()))

    def finish(self) -> dict[str, Any]:
        """Write the summary.

        Raises:
            RuntimeError: rows are missing or were counted twice.
        """
        if self._summary.runs != self._sweep.count(self._covered.pieces()):
            raise RuntimeError(f"{self._folder.shown} lacks rows or holds some twice")
        return self._write_summary(self._summary.exit_code())

    def give_up(self, exit_code: int) -> None:
        """Write the summary of what is done, in the room that the rest takes."""
        # A wave that was planned and has no manifest is none.
        for wave in self._planned:
            ownership.clear(self._folder, wave_path(wave))
        if self._begun and not self._claim.is_lost():  # Whoever has taken over writes its own.
            self._write_summary(exit_code)

    def close(self) -> None:
        """Give the folder up; if nothing was begun, as if it had never been there."""
        self._claim.end()
        if not self._begun:
            self._folder.vanish()

    def _write_summary(self, exit_code: int) -> dict[str, Any]:
        complete = not self._asked.minus(self._covered)
        summary = {"complete": complete, "exit_code": exit_code, **self._summary.to_json()}
        # The short file first: on a full disk it may be all that fits.
        write_json(self._folder, ownership.SUMMARY, summary)
        ownership.write(self._folder, ownership.FAILING, self._summary.failing_lines())
        return read_json(self._folder, ownership.SUMMARY)


def _sweep_in(folder: Folder, run: dict[str, Any]) -> dict[str, Any] | None:
    """``run.json`` of a folder in which a sweep may go on, None if the folder is empty.

    Raises:
        InputError: it holds something else; every difference is named.
    """
    try:
        ownership.check(folder)
        there_is = ownership.RUN in folder.entries()
        if not there_is and any(path.endswith(f"/{manifest.NAME}") for path in folder.files(RESULTS)):
            raise InputError(
                f"{folder.shown} has lost its run.json: highwater doctor {folder.shown} --repair restores it"
            )
        if not there_is and not ownership.is_fresh(folder):
            raise InputError(f"{folder.shown} is not empty and holds no sweep; name another folder")
    except OSError as error:
        raise _unusable(folder, error) from None
    if there_is:
        there = check_run(f"{folder.shown}/{ownership.RUN}", read_json(folder, ownership.RUN))
        if problems := list(differences(there, run)):
            raise InputError(*(f"{folder.shown} holds another sweep: {problem}" for problem in problems))
        return there
    return None


def _claim(folder: Folder) -> Claim:
    try:
        return Claim(folder)
    except OSError as error:
        folder.vanish()
        raise _unusable(folder, error) from None


def _unusable(folder: Folder, error: OSError) -> UserError:
    return of_os(error, f"cannot write to {folder.shown}")


def _clear_up(folder: Folder, mine: str) -> None:
    """Take over what dead drivers have left: their claims, and attempts at waves that never counted."""
    gone = claim.dead(folder, mine)
    claim.take_over(folder, gone)
    files = folder.files(RESULTS)
    for name in gone:
        waves = {path.split("/")[1] for path in files if path.startswith(wave_path(f"wave={name}-"))}
        for wave in waves:
            if f"{wave_path(wave)}/{manifest.NAME}" not in files:
                ownership.clear(folder, wave_path(wave))


def long_notice(seconds: float) -> str | None:
    """What would halve a long sweep; None if it is not long, or compiled."""
    if seconds <= LONG_SECONDS or build() != PLAIN:
        return None
    return (
        f"this takes some {seconds / 60:.0f} minutes with the plain build, with the compiled one half of that: "
        "`make fast`, or HIGHWATER_COMPILE=1 pip install"
    )


def _pilot_seconds(sweep: str, pieces: Sequence[Piece]) -> float:
    """Seconds that a unit takes, measured on some from all over what is missing."""
    shares = split(pieces, PILOT_UNITS)
    begin = time.perf_counter()
    done = 0
    for (variant, first, _), *_ in shares:
        for _ in rows_of(sweep, [(variant, first, first + 1)]):
            pass
        done += 1
        if time.perf_counter() - begin > PILOT_SECONDS:
            break
    return (time.perf_counter() - begin) / done
