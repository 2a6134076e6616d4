"""Runs a sweep wave by wave, so that the same command resumes it, whatever stopped it."""

from __future__ import annotations

import errno
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, Final, Protocol

from scenarios import memory, plugged
from scenarios.paths import of_os
from scenarios.single import rows as row_columns
from scenarios.single.rows import ROWS_VERSION
from scenarios.sweep import claim, manifest, ownership, parts, stop_rules, takeover
from scenarios.sweep.claim import FolderClaim
from scenarios.sweep.extent import Extent, Piece, merged, split, take, units
from scenarios.sweep.folder import Folder, open_folder
from scenarios.sweep.manifest import Manifest, Part
from scenarios.sweep.parts import RESULTS, wave_path
from scenarios.sweep.stop_rules import StopRules
from scenarios.sweep.store import Store, StoredRuns, differences, pieces_in, read_back, read_json, write_json
from scenarios.sweep.store_checks import check_run
from scenarios.sweep.summary import SweepSummary
from scenarios.sweep.units import Sweep as Sweep
from scenarios.sweep.units import chunk_count, rows_of, seed_ranges
from scenarios.version import PLAIN, build, code_version, versions
from sim import exit_codes
from sim.errors import InputError, StorageError, UnavailableError, UserError

PILOT_UNITS: Final = 25
"""Most units that are run to measure how long one takes."""
PILOT_SECONDS: Final = 1.0
"""The measurement starts no further unit after this time."""
WAVE_SECONDS: Final = 15.0
"""Target duration of a wave. An interrupt loses at most the running wave and the next, which may have started."""
CUT: Final = 2
"""A task starts no further unit after this multiple of its target time."""
LONG_SECONDS: Final = 600.0
"""For a longer plain sweep, a note recommends the compiled build."""
_SHOWN: Final = ("verdict", "violations", "error", "digest")
"""Columns that show whether two runs of a seed ended in the same way."""
SEEDS_AGAIN: Final = 5
"""So many seeds of a wave are run again while plug-ins are loaded: one alone may end in the same way by chance."""
RESUME: Final = "finished waves are kept, and the same command resumes the sweep"


class Interrupted(Exception):  # noqa: N818 - it is no error
    """SIGINT or SIGTERM has stopped a sweep; finished waves are kept, with a valid summary.

    Attributes:
        kept: runs of finished waves.
    """

    kept = 0

    def __str__(self) -> str:
        if not self.kept:
            return "no wave was finished, so no run is kept; the same command begins the sweep again"
        runs = "run of finished waves is" if self.kept == 1 else "runs of finished waves are"
        return f"{self.kept:,} {runs} kept, and the same command resumes the sweep"


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a sweep.

    Attributes:
        done: runs done, also before the sweep was resumed; never decreases.
        violations: kind -> runs in finished waves.
        errors: runs with verdict ``error`` in finished waves.
    """

    done: int
    total: int
    violations: dict[str, int]
    errors: int


@dataclass(frozen=True, slots=True)
class WavePlan:
    """A wave to run.

    Attributes:
        wave: name of its folder, unique to this driver.
        task_seconds: the time after which a task starts no further unit.
    """

    wave: str
    chunks: Sequence[tuple[Piece, ...]]
    task_seconds: float


Tick = Callable[[Iterable[tuple[WavePlan, int]]], None]
"""Called with running waves and their finished chunks."""


class Copies(Protocol):
    """A place outside the folder, to which the driver copies the rows of each wave that counts."""

    def copy(self, folder: Folder, wave: str, grid: Sequence[str], *, again: bool) -> None:
        """Copy a wave, once; `again`: its rows, or some of them, may have been copied before.

        Raises:
            StorageError: the copy cannot be written.
        """


class Backend(Protocol):
    """Runs chunks in parallel."""

    name: str

    @property
    def copies(self) -> Copies | None:
        """What gets a copy of each wave, once the backend has started."""

    def start(self, folder: Folder, poll: Callable[[], None]) -> int:
        """Start, calling `poll` a few times a second (it may raise); return how many tasks run in parallel.

        Raises:
            UserError: it cannot work here, or cannot write to the folder.
        """

    def run_waves(self, sweep: str, folder: Folder, plans: Iterator[WavePlan], tick: Tick) -> Iterator[WavePlan]:
        """Write the rows of waves, and yield each wave when they are written.

        The next wave, which is generated on demand, starts before the last tasks of a wave end, so that no slot is
        idle; at most two waves run at once. `tick` is called a few times a second; if it raises, the waves are
        abandoned. `sweep` is `Sweep.to_text`.

        Raises:
            UserError: the wave cannot be run here.
        """

    def close(self) -> None:
        """Free all resources; also called without `start` and after errors."""


@contextmanager
def _signals() -> Iterator[Callable[[], None]]:
    """Handle SIGINT and SIGTERM: the yielded function raises `Interrupted` after one of them.

    The first signal restores the previous handlers, so that a user can always end the process with a second one.
    """
    seen: list[int] = []  # An Event has a lock, for which a second signal would wait while the first is handled.
    if threading.current_thread() is not threading.main_thread():  # Only the main thread can handle signals.
        yield lambda: None
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, _frame: FrameType | None) -> None:
        seen.append(number)
        restore()

    def poll() -> None:
        if seen:
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
    reuse: Store | None = None,
    until: StopRules | None = None,
) -> dict[str, Any]:
    """Run or resume a sweep. Returns the content of ``summary.json``.

    Args:
        sweep: the sweep; its seeds are added to those in the folder.
        output: folder for ``run.json``, ``results``, ``violations.jsonl`` and ``summary.json``.
        backend: where to run it; closed at the end.
        chunks: tasks per wave; None: enough for `task_seconds` each.
        task_seconds: target CPU seconds of a task.
        wave_units: units per wave; None: enough for `WAVE_SECONDS`.
        report: called a few times a second.
        note: called with notes for the user.
        reuse: another sweep's folder, from which rows are taken over before anything runs.
        until: rules by which the sweep stops before its last seed; then its seeds are those that have run.

    Raises:
        InputError: `output` contains something else, or rows of `reuse` cannot be taken over.
        UnavailableError: the backend cannot work here, or another driver is at work in `output`.
        StorageError: the disk is full, or `output` cannot be written.
        Interrupted: a signal came. As after any exception, ``summary.json`` is valid and says ``"complete": false``.
    """
    folder = open_folder(output)
    if reuse is not None:
        takeover.check(sweep, reuse)
    arguments = {"backend": backend.name, "chunks": chunks, "task_seconds": task_seconds}
    job: _Job | None = None
    try:
        with _signals() as poll:
            try:
                job = _Job(sweep, folder, backend, report, note, arguments)
                job.run(poll, chunks, task_seconds, wave_units, reuse, until)
            finally:
                backend.close()
            return job.finish()
    except BaseException as error:
        explained = _explained(error, folder)
        # A second failure, such as no space for the summary, must not hide the first.
        with suppress(Exception):
            if job is not None:
                job.abandon(_exit_code(explained))
        if isinstance(error, Interrupted) and job is not None:
            error.kept = job.runs
        if explained is error:
            raise
        raise explained from None
    finally:
        if job is not None:
            job.close()


def _explained(error: BaseException, folder: Folder) -> BaseException:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(f"no space left for {folder.shown}: {RESUME}")
    if isinstance(error, Exception) and not isinstance(error, UserError) and memory.is_lacking(error):
        return UnavailableError(f"out of memory; with fewer processes, {RESUME}")
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        error.filename = folder.shown
    return error


def _exit_code(error: BaseException) -> int:
    if isinstance(error, Interrupted | KeyboardInterrupt):
        return exit_codes.INTERRUPTED
    return error.exit_code if isinstance(error, UserError) else exit_codes.INTERNAL


class _Job:
    """A running sweep, with the counts of its finished waves.

    Raises:
        InputError: the folder contains something else.
        UnavailableError: another driver is at work.
        StorageError: the folder cannot be read or written.
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
        added = (sweep.first_seed, sweep.end_seed)
        seeds = [added] if there is None else merged([*seed_ranges(there), added])
        self._run = {**run, **(there or {}), "schema_version": ROWS_VERSION, "seeds": seeds}
        asked = Extent((variant, *ends) for variant in range(len(sweep.variants)) for ends in seeds)
        self._asked = asked
        self._covered = Extent()
        self._summary = SweepSummary(sweep, asked)
        self._numbers = count()
        self._planned: list[str] = []
        self._begun = there is not None
        self._was_damaged = False
        self._seconds = 0.0
        self._shown = 0
        self._stopped: str | None = None
        self._claim = _claim(folder)

    def run(
        self,
        poll: Callable[[], None],
        chunks: int | None,
        task_seconds: float,
        wave_units: int | None,
        reuse: Store | None,
        until: StopRules | None,
    ) -> None:
        """Take over rows of another folder, then run the missing waves, in steps if there are stop rules."""
        for line in self._idle:
            self._note(line)
        _clear_up(self._folder, self._claim.name)
        there = self._count() if self._begun else []
        self._show(0)
        slots = 0
        if (copies := self._backend.copies) is not None:
            slots = self._start(poll)
            for wave in there:
                poll()
                copies.copy(self._folder, wave, tuple(self._sweep.grid), again=True)
        if reuse is not None:
            self._take_over(poll, reuse)
        begin = time.monotonic()
        for extent in self._steps(until, begin):
            if not extent.minus(self._covered):
                continue
            if not slots:
                slots = self._start(poll)
            self._run_step(extent, slots, chunks, min(task_seconds, WAVE_SECONDS), wave_units, poll)
        self._begin()

    def _steps(self, until: StopRules | None, begin: float) -> Iterator[Extent]:
        """For each step the seeds up to its end, until a stop rule is met. `begin`: when `run` began."""
        sweep = self._sweep
        rest = sweep.extent()
        for end in (sweep.end_seed,) if until is None else stop_rules.ends(sweep.first_seed, sweep.end_seed):
            # Rows that an interrupted later step left would count, too: its end has to be reached first.
            if until is not None and not rest.overlaps(self._covered):
                self._stopped = until.met(self._summary.to_json()["results"], time.monotonic() - begin)
                if self._stopped is not None:
                    self._asked = self._asked.minus(rest)
                    return
            done = Extent((variant, sweep.first_seed, end) for variant in range(len(sweep.variants)))
            yield done
            rest = sweep.extent().minus(done)

    def _start(self, poll: Callable[[], None]) -> int:
        """Start the backend and measure how long a unit takes; return how many tasks run in parallel."""
        if self._backend.name == "spark":
            self._note("starting Spark, which may take a minute")
        slots = self._backend.start(self._folder, poll)
        self._begin()
        if not self._missing():
            return slots
        self._seconds = _pilot_seconds(self._text, self._missing())
        if (text := long_notice(self._seconds * units(self._missing()) / slots)) is not None:
            self._note(text)
        return slots

    def _run_step(
        self,
        extent: Extent,
        slots: int,
        chunks: int | None,
        task_seconds: float,
        wave_units: int | None,
        poll: Callable[[], None],
    ) -> None:
        """Run the missing waves of some seeds."""

        def plans() -> Iterator[WavePlan]:
            left = tuple(extent.minus(self._covered).pieces())
            while left:
                wanted = wave_units or max(slots, round(WAVE_SECONDS * slots / self._seconds))
                # A last wave of a few units is not worth its start.
                head, left = take(left, wanted if wanted * 1.5 < units(left) or wave_units else units(left))
                yield self._plan(head, chunks, slots, task_seconds)

        def tick(begun: Iterable[tuple[WavePlan, int]]) -> None:
            poll()
            self._show(round(sum(self._runs(plan) * done / len(plan.chunks) for plan, done in begun)))

        while extent.minus(self._covered):
            since = time.perf_counter()
            for plan in self._backend.run_waves(self._text, self._folder, plans(), tick):
                done = self._commit(plan)
                now = time.perf_counter()
                self._seconds = (now - since) * slots / done
                since = now
                self._show(0)

    def _take_over(self, poll: Callable[[], None], source: Store) -> None:
        """Write the rows that another folder has for missing units, a wave for each wave there."""
        self._begin()
        taken = 0
        for pieces, rows in takeover.batches(self._sweep, source, Extent(self._missing())):
            poll()
            wave = f"wave={self._claim.name}-{next(self._numbers):05d}"
            self._planned.append(wave)
            parts.write_part(self._folder, wave, 0, rows)
            self._commit(WavePlan(wave, [tuple(pieces)], 0.0))
            taken += len(rows)
            self._show(0)
        self._note(f"{taken:,} runs are taken over from {source.folder.shown}")

    def _missing(self) -> tuple[Piece, ...]:
        return tuple(self._sweep.extent().minus(self._covered).pieces())

    def _begin(self) -> None:
        """Write run.json, once driver and executors are known to be able to write to the folder."""
        write_json(self._folder, ownership.RUN, self._run)
        self._begun = True

    def _count(self) -> list[str]:
        """Add the finished waves to the summary; return their names."""
        store = Store(self._folder).choose(runs=StoredRuns.ALL)
        for _, table in store.tables():
            self._summary.add(table)
        for error in store.damage.values():
            self._note(f"{self._folder.shown}: {error}; the wave does not count and is run again")
        self._covered = store.covered
        self._was_damaged = bool(store.damage)
        return [wave.name for wave in store.waves if wave.name not in store.damage]

    def _plan(self, pieces: Sequence[Piece], chunks: int | None, slots: int, task_seconds: float) -> WavePlan:
        wave = f"wave={self._claim.name}-{next(self._numbers):05d}"
        self._planned.append(wave)
        shares = split(pieces, chunks or chunk_count(self._seconds * units(pieces), slots, task_seconds))
        return WavePlan(wave, shares, CUT * task_seconds)

    def _commit(self, plan: WavePlan) -> int:
        """Read the rows of a wave back and write its manifest; return its number of units.

        Raises:
            RuntimeError: its rows are not the requested ones.
            InputError: a plug-in is not pure.
            UnavailableError: another driver has taken over.
        """
        try:
            parts, rows, covers = self._read_back(plan)
            if plugged.LOADED:
                self._check_pure(rows, covers)
        finally:
            self._claim.check()  # A driver that has taken over removes waves without a manifest.
        listed = Manifest(plan.wave, self._run, tuple(covers), parts)
        self._folder.write(f"{wave_path(plan.wave)}/{manifest.NAME}", listed.to_bytes(), manifest.START)
        self._planned.remove(plan.wave)
        self._summary.add(rows)
        # Rows of a damaged wave, whose seeds run again, may have been copied.
        again = self._was_damaged or self._covered.overlaps(Extent(covers))
        self._covered = self._covered.plus(covers)
        if (copies := self._backend.copies) is not None:
            copies.copy(self._folder, plan.wave, tuple(self._sweep.grid), again=again)
        return units(covers)

    def _read_back(self, plan: WavePlan) -> tuple[tuple[Part, ...], Any, list[Piece]]:
        """The parts of a wave, their rows, and the seeds of these."""
        parts, rows = read_back(self._folder, plan.wave, self._sweep)
        try:
            covers = pieces_in(rows, self._sweep)
        except ValueError as error:
            raise RuntimeError(f"{wave_path(plan.wave)}: {error}") from None
        if not covers or Extent(covers).minus(Extent(piece for chunk in plan.chunks for piece in chunk)):
            raise RuntimeError(f"{wave_path(plan.wave)} contains other rows than requested")
        return parts, rows, covers

    def _check_pure(self, rows: Any, covers: Sequence[Piece]) -> None:
        """Run some seeds of a wave again, which only a plug-in that is not pure can make end in another way.

        The seeds are those in which most rules had an effect. Raises InputError.
        """
        variant, first, end = max(covers, key=lambda piece: piece[2] - piece[1])
        name = self._sweep.variants[variant].name
        key = [*row_columns.key(self._sweep.grid), "warning_us", "variant", "blow"]
        table = rows.select([*key, *_SHOWN, "decided"])
        there = [row for row in table.to_pylist() if row["scenario"] == name and first <= row["seed"] < end]
        there.sort(key=lambda row: (-int(row["decided"] or "0", 16).bit_count(), row["seed"]))
        seeds = list(dict.fromkeys(row["seed"] for row in there))[:SEEDS_AGAIN]
        before = {tuple(row[one] for one in key): row for row in there}
        for row in rows_of(self._text, [(variant, seed, seed + 1) for seed in seeds]):
            earlier = before.get(tuple(row[one] for one in key))
            if earlier is None or any(earlier[one] != row[one] for one in _SHOWN):
                names = " or ".join(plugged.LOADED)
                raise InputError(
                    f"plug-in {names} is not pure: {name} in {row['mode']} with seed {row['seed']} ended "
                    f"in two ways ({_ended(earlier)}, then {_ended(row)}); functions of a plug-in must depend on their "
                    "arguments alone, and not on time, chance, files or earlier runs"
                )

    def _runs(self, plan: WavePlan) -> int:
        return self._sweep.count(piece for chunk in plan.chunks for piece in chunk)

    def _show(self, more: int) -> None:
        """Report progress; `more` estimates the finished runs of unfinished waves."""
        summary = self._summary
        self._shown = max(self._shown, min(summary.runs + more, summary.runs_asked))
        self._report(Progress(self._shown, summary.runs_asked, summary.kinds(), summary.errors()))

    def finish(self) -> dict[str, Any]:
        """Write the summary; raises RuntimeError if rows are missing or duplicate."""
        if self._summary.runs != self._sweep.count(self._covered.pieces()):
            raise RuntimeError(f"{self._folder.shown} lacks rows or has duplicates")
        if self._stopped is not None:
            self._run["seeds"] = list(dict.fromkeys((first, end) for _, first, end in self._asked.pieces()))
            write_json(self._folder, ownership.RUN, self._run)
        return self._write_summary(self._summary.exit_code())

    def abandon(self, exit_code: int) -> None:
        """Remove unfinished waves, which frees space, and write the summary of the finished ones."""
        for wave in self._planned:
            ownership.clear(self._folder, wave_path(wave))
        if self._begun and not self._claim.is_lost():  # A driver that has taken over writes its own.
            self._write_summary(exit_code)

    @property
    def runs(self) -> int:
        """Runs of the finished waves."""
        return self._summary.runs

    def close(self) -> None:
        """Release the folder; if the sweep never started, remove what this driver created."""
        self._claim.end()
        if not self._begun:
            self._folder.vanish()

    def _write_summary(self, exit_code: int) -> dict[str, Any]:
        complete = not self._asked.minus(self._covered)
        summary = {"complete": complete, "exit_code": exit_code, **self._summary.to_json()}
        if self._stopped is not None:
            summary |= {"stopped": self._stopped, "runs_asked": self._sweep.count(self._asked.pieces())}
        # The short file first: on a full disk, only it may fit.
        write_json(self._folder, ownership.SUMMARY, summary)
        ownership.write(self._folder, ownership.FAILING, self._summary.failing_lines())
        return read_json(self._folder, ownership.SUMMARY)


def _ended(row: Mapping[str, Any] | None) -> str:
    return "no run" if row is None else f"verdict {row['verdict']}, digest {row['digest']}"


def _sweep_in(folder: Folder, run: dict[str, Any]) -> dict[str, Any] | None:
    """``run.json`` of a folder in which a sweep may resume, None if the folder is empty; raises InputError with every
    difference.
    """
    try:
        ownership.check(folder)
        there_is = ownership.RUN in folder.entries()
        if not there_is and any(path.endswith(f"/{manifest.NAME}") for path in folder.files(RESULTS)):
            raise InputError(
                f"{folder.shown} has lost its run.json: highwater doctor {folder.shown} --repair restores it"
            )
        if not there_is and not ownership.is_fresh(folder):
            raise InputError(f"{folder.shown} is not empty and contains no sweep; name another folder")
    except OSError as error:
        raise of_os(error, f"cannot write to {folder.shown}", has_folder=True) from None
    if there_is:
        there = check_run(f"{folder.shown}/{ownership.RUN}", read_json(folder, ownership.RUN))
        if problems := list(differences(there, run)):
            lines = [f"{folder.shown} holds another sweep: {problem}" for problem in problems]
            raise InputError(*lines[:-1], f"{lines[-1]}; choose another --output")
        return there
    return None


def _claim(folder: Folder) -> FolderClaim:
    try:
        return FolderClaim(folder)
    except OSError as error:
        folder.vanish()
        raise of_os(error, f"cannot write to {folder.shown}", has_folder=True) from None


def _clear_up(folder: Folder, mine: str) -> None:
    """Remove the leftovers of dead drivers: claims, and waves without a manifest."""
    gone = claim.dead(folder, mine)
    claim.take_over(folder, gone)
    files = folder.files(RESULTS)
    for name in gone:
        waves = {path.split("/")[1] for path in files if path.startswith(wave_path(f"wave={name}-"))}
        for wave in waves:
            if f"{wave_path(wave)}/{manifest.NAME}" not in files:
                ownership.clear(folder, wave_path(wave))


def long_notice(seconds: float) -> str | None:
    """A note on the compiled build; None if the sweep is short, or compiled."""
    if seconds <= LONG_SECONDS or build() != PLAIN:
        return None
    return (
        f"this takes some {seconds / 60:.0f} minutes with the plain build, and half of that with the compiled one: "
        "`make fast`, or HIGHWATER_COMPILE=1 pip install"
    )


def _pilot_seconds(sweep: str, pieces: Sequence[Piece]) -> float:
    """Seconds per unit, measured on a sample of the missing ones."""
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
