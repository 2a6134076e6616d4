"""Looks a sweep's folder over, file by file, and puts right what can be: `highwater doctor DIR`."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from scenarios.single.rows import key
from scenarios.sweep import claim, manifest, ownership
from scenarios.sweep.claim import Claim
from scenarios.sweep.extent import Extent, merged
from scenarios.sweep.manifest import DamageError, digest_of
from scenarios.sweep.parts import RESULTS, is_part, wave_path
from scenarios.sweep.store import IDENTITY, Store, pieces_in, read_json, write_json
from scenarios.sweep.store_checks import check_run
from scenarios.sweep.units import from_run, seed_ranges
from scenarios.version import code_version
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from scenarios.sweep.driver import Backend, Progress
    from scenarios.sweep.extent import Piece
    from scenarios.sweep.folder import Entry, Folder
    from scenarios.sweep.store import Wave

FOREIGN: Final = "is none of the sweep's: move it elsewhere"
"""Nobody else's file is moved or removed here."""
DOUBLE: Final = "holds rows that other waves hold, too"
"""They count once here, and twice to whoever reads the folder as it is."""
_WAVE: Final = re.compile(r"wave=([0-9a-f]{8}-\d+|\d{5})")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong.

    Attributes:
        where: file or folder, relative to the sweep's.
        what: what is wrong with it.
        wave: the wave that is dropped for it, empty if none is; what is missing then is run again.
        removed: whether the file goes: the copy of a part.
    """

    where: str
    what: str
    wave: str = ""
    removed: bool = False

    def __str__(self) -> str:
        return f"{self.where} {self.what}"


@dataclass(frozen=True, slots=True)
class Checkup:
    """What was found.

    Attributes:
        findings: what is wrong, in order.
        missing: runs that were asked for and are not there, those of damaged waves among them.
        at_work: the driver that is at work, empty if none is.
    """

    findings: tuple[Finding, ...]
    missing: int
    at_work: str


def check(folder: Folder) -> Checkup:
    """Read every file of a sweep's folder.

    Raises:
        InputError: it is no sweep's, or of a newer version.
    """
    files = folder.files()
    run, wrong = _run(folder, files)
    findings = [Finding(ownership.RUN, wrong)] if wrong else []
    store = Store(folder, run)
    working = {name: owner.shown for name, _, owner, _ in claim.others(folder)}
    findings += _of_waves(store, files, working)
    findings += [Finding(f"{ownership.CLAIMS}/{name}.json", "is a dead driver's") for name in claim.dead(folder)]
    missing = store.sweep.count(store.missing.pieces())
    if not missing and not working:
        findings += _of_summary(store, files)
    return Checkup(tuple(findings), missing, next(iter(working.values()), ""))


def _readable(folder: Folder, name: str) -> bool:
    try:
        data = json.loads(folder.read(name))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and "schema_version" in data


def _run(folder: Folder, files: Mapping[str, Entry]) -> tuple[dict[str, Any], str]:
    """What ``run.json`` should hold, and what is wrong with the one that is there, if anything is.

    Each manifest holds it as it was then. Should it be lost or changed, what most of them say goes.

    Raises:
        InputError: there is neither, or it is of a newer version.
    """
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for path in files:
        if path.startswith(f"{RESULTS}/") and path.endswith(f"/{manifest.NAME}"):
            with suppress(DamageError, FileNotFoundError):
                run = manifest.from_bytes(path, folder.read(path)).run
                kinds.setdefault(json.dumps({key: run.get(key) for key in IDENTITY}), []).append(run)
    most = max(kinds.values(), key=len, default=[])
    if not _readable(folder, ownership.RUN):
        if not most:
            read_json(folder, ownership.RUN)  # Says what is wrong.
        return _joined(most), "is missing or torn"
    there = read_json(folder, ownership.RUN)
    try:
        check_run(ownership.RUN, there)
    except InputError:
        if not most:
            raise
        return _joined(most), "is not what a sweep wrote"
    alike = kinds.get(json.dumps({key: there.get(key) for key in IDENTITY}), [])
    if most and not alike:
        return _joined(most), "is of another sweep than the waves"
    whole = _joined([there, *alike])
    if seed_ranges(whole) != seed_ranges(there):
        return whole, "asks for fewer seeds than the waves are of"
    return there, ""


def _joined(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The first of some runs, with the seeds of all."""
    seeds = merged(ends for run in runs for ends in seed_ranges(run))
    return {**runs[0], "seeds": [list(ends) for ends in seeds]}


def _of_waves(store: Store, files: Mapping[str, Entry], working: Container[str]) -> Iterator[Finding]:
    wrong = {
        wave.name: list(_wrong_rows(wave, partial(pieces_in, rows, store.sweep)))
        for wave, rows in store.tables(list(key(store.grid)))
    }
    counted = {wave.name: wave for wave in store.waves if wave.name not in store.damage}
    for path in files:
        place, _, name = path.removeprefix(f"{RESULTS}/").rpartition("/")
        if path.startswith(f"{RESULTS}/") and not _WAVE.fullmatch(place.partition("/")[0]) and not name.startswith("."):
            yield Finding(path, FOREIGN)
    for wave in sorted({path.split("/")[1] for path in files if path.startswith(f"{RESULTS}/wave=")}):
        if _WAVE.fullmatch(wave):
            there = {path: entry for path, entry in files.items() if path.startswith(f"{wave_path(wave)}/")}
            names = [path.rpartition("/")[2] for path in there]
            yield from _strange(store, there, counted[wave].parts if wave in counted else None)
            if wave in store.damage:
                yield Finding(store.damage[wave].where, store.damage[wave].what, wave=wave)
            elif wave in counted:
                yield from wrong[wave]
                if counted[wave].beside:
                    yield Finding(wave_path(wave), DOUBLE, wave=wave)
            elif manifest.NAME in names:
                yield Finding(wave_path(wave), DOUBLE, wave=wave)
            elif store.mark not in names and wave[5:13] not in working:
                yield Finding(wave_path(wave), f"has no {store.mark}: its rows do not count", wave=wave)


def _strange(store: Store, files: Mapping[str, Entry], parts: Mapping[str, str | None] | None) -> Iterator[Finding]:
    """Files in a wave's folder that are none of its own, as far as its manifest tells."""
    known = {digest: name for name, digest in (parts or {}).items()}
    for path, entry in files.items():
        name = path.rpartition("/")[2]
        with suppress(FileNotFoundError):  # A driver at work has moved it since.
            is_own = (
                name in {*parts, "_SUCCESS", manifest.NAME}
                if parts
                else ownership.is_of_wave(store.folder, path, entry)
            )
            if not (is_own and entry.regular) and not name.startswith("."):
                twin = None
                if is_part(name) and entry.regular:
                    twin = known.get(digest_of(store.folder.read(path)))
                yield Finding(path, f"is a double of {twin}" if twin else FOREIGN, removed=twin is not None)


def _wrong_rows(wave: Wave, pieces: Callable[[], list[Piece]]) -> Iterator[Finding]:
    where = wave_path(wave.name)
    try:
        found = Extent(pieces())
    except ValueError as error:
        yield Finding(where, f"holds other rows than it says: {error}", wave=wave.name)
    else:
        if found != Extent(wave.covers).minus(wave.beside):
            yield Finding(where, "holds other rows than it says", wave=wave.name)


def _of_summary(store: Store, files: Mapping[str, Entry]) -> Iterator[Finding]:
    folder, listed = store.folder, None
    if ownership.SUMMARY not in files:
        yield Finding(ownership.SUMMARY, "is missing")
    else:
        found = read_json(folder, ownership.SUMMARY) if _readable(folder, ownership.SUMMARY) else {}
        runs, listed = found.get("runs"), found.get("failing_listed")
        asked = store.sweep.count(store.asked.pieces())
        if not isinstance(runs, int) or not isinstance(listed, int):
            yield Finding(ownership.SUMMARY, "is torn")
        elif runs != asked or not found.get("complete"):
            yield Finding(ownership.SUMMARY, f"tells of {runs} of {asked} runs")
    if ownership.FAILING not in files:
        yield Finding(ownership.FAILING, "is missing")
    elif listed not in (None, there := _lines(folder, ownership.FAILING)):
        yield Finding(ownership.FAILING, f"lists {there} of {listed} runs")


def _lines(folder: Folder, name: str) -> int:
    """How many lines of a file are JSON objects; none of them, if it cannot be read."""
    try:
        return sum(isinstance(json.loads(line), dict) for line in folder.read(name).splitlines())
    except (OSError, ValueError, RecursionError):
        return 0


def repair(
    folder: Folder,
    found: Checkup,
    backend: Backend,
    report: Callable[[Progress], None] = lambda _: None,
) -> dict[str, Any]:
    """Drop doubles and damaged waves, and run what is missing; files that are none of the sweep's stay.

    Args:
        folder: of the sweep.
        found: what `check` said of it.
        backend: where to run.
        report: called a few times a second.

    Returns:
        What ``summary.json`` holds then.

    Raises:
        InputError: the sweep is of other code, whose rows cannot be made here, or a file of somebody else's stands
            where one of the sweep's belongs.
        UnavailableError: another driver is at work.
    """
    from scenarios.sweep.driver import run_sweep

    run, _ = _run(folder, folder.files())
    if run["code_version"] != code_version():
        raise InputError(
            f"{folder.shown} was made by code {run['code_version']}, this is {code_version()}: only that one repairs it"
        )
    ownership.check(folder)
    held = Claim(folder)
    try:
        write_json(folder, ownership.RUN, run)
        for finding in found.findings:
            if finding.removed:
                folder.remove(finding.where)
        for wave in {finding.wave for finding in found.findings if finding.wave}:
            ownership.clear(folder, wave_path(wave))
        claim.take_over(folder, claim.dead(folder, held.name))
    finally:
        held.end()
    summary = {}
    for first, end in seed_ranges(run):
        summary = run_sweep(from_run({**run, "seeds": [[first, end]]}), folder, backend, report=report)
    return summary
