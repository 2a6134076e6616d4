"""Checks a sweep's folder file by file, and repairs it: `highwater doctor DIR`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from scenarios.single.rows import key
from scenarios.sweep import claim, manifest, ownership
from scenarios.sweep.claim import FolderClaim
from scenarios.sweep.driver import Backend, Progress, run_sweep
from scenarios.sweep.extent import Extent, Piece, merged
from scenarios.sweep.folder import FileInfo, Folder
from scenarios.sweep.manifest import DamageError, digest_of
from scenarios.sweep.parts import PARQUET_START, RESULTS, is_part, wave_path
from scenarios.sweep.store import IDENTITY, Store, Wave, pieces_in, read_json, write_json
from scenarios.sweep.store_checks import check_run
from scenarios.sweep.units import from_run, seed_ranges
from scenarios.version import code_version
from sim.errors import InputError

NOT_OURS: Final = "was not written by highwater: move it elsewhere; --repair then writes its own"
FOREIGN: Final = "does not belong to the sweep: move it elsewhere"
"""Foreign files are never moved or removed."""
DOUBLE: Final = "has the same rows as other waves"
"""They count once here, but twice for a program that reads the folder directly."""
_WAVE: Final = re.compile(r"wave=([0-9a-f]{8}-\d+|\d{5})")


@dataclass(frozen=True, slots=True)
class Defect:
    """A problem of a file or folder.

    Attributes:
        wave: the wave to drop and rerun; empty if none.
        removed: whether to remove the file, a copy of a part.
    """

    where: str
    what: str
    wave: str = ""
    removed: bool = False

    def __str__(self) -> str:
        return f"{self.where} {self.what}"


@dataclass(frozen=True, slots=True)
class Checkup:
    """The result of a check: problems, missing runs (including those of damaged waves), and the driver at work."""

    findings: tuple[Defect, ...]
    missing: int
    at_work: str


def check(folder: Folder) -> Checkup:
    """Read every file of a sweep's folder; raises InputError if it is no sweep's, or of a newer version."""
    files = folder.files()
    run, wrong = _run(folder, files)
    findings = [Defect(ownership.RUN, wrong)] if wrong else []
    store = Store(folder, run)
    working = {name: owner.shown for name, _, owner, _ in claim.others(folder)}
    findings += _of_waves(store, files, working)
    findings += [Defect(f"{ownership.CLAIMS}/{name}.json", "is a dead driver's") for name in claim.dead(folder)]
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


def _run(folder: Folder, files: Mapping[str, FileInfo]) -> tuple[dict[str, Any], str]:
    """The correct content of ``run.json``, and the problem of the existing one; empty if none.

    Each manifest contains a copy. If the file is lost or changed, the majority of copies decides.

    Raises:
        InputError: there is neither file nor copy, or it has a newer version.
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
            read_json(folder, ownership.RUN)  # Raises the reason.
        if ownership.RUN not in folder.entries():
            return _joined(most), "is missing"
        return _joined(most), NOT_OURS if ownership.RUN in ownership.foreign(folder) else "is torn"
    there = read_json(folder, ownership.RUN)
    try:
        check_run(ownership.RUN, there)
    except InputError:
        if not most:
            raise
        return _joined(most), "is not what a sweep wrote"
    alike = kinds.get(json.dumps({key: there.get(key) for key in IDENTITY}), [])
    if most and not alike:
        return _joined(most), "belongs to another sweep than the waves"
    whole = _joined([there, *alike])
    if seed_ranges(whole) != seed_ranges(there):
        return whole, "has fewer seeds than the waves"
    return there, ""


def _joined(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The first of some copies, with the seeds of all."""
    seeds = merged(ends for run in runs for ends in seed_ranges(run))
    return {**runs[0], "seeds": [list(ends) for ends in seeds]}


def _of_waves(store: Store, files: Mapping[str, FileInfo], working: Container[str]) -> Iterator[Defect]:
    wrong = {
        wave.name: list(_wrong_rows(wave, partial(pieces_in, rows, store.sweep)))
        for wave, rows in store.tables(list(key(store.grid)))
    }
    counted = {wave.name: wave for wave in store.waves if wave.name not in store.damage}
    for path in files:
        place, _, name = path.removeprefix(f"{RESULTS}/").rpartition("/")
        if path.startswith(f"{RESULTS}/") and not _WAVE.fullmatch(place.partition("/")[0]) and not name.startswith("."):
            yield Defect(path, FOREIGN)
    for wave in sorted({path.split("/")[1] for path in files if path.startswith(f"{RESULTS}/wave=")}):
        if _WAVE.fullmatch(wave):
            there = {path: entry for path, entry in files.items() if path.startswith(f"{wave_path(wave)}/")}
            names = [path.rpartition("/")[2] for path in there]
            yield from _strange(store, there, counted[wave].parts if wave in counted else None)
            if wave in store.damage:
                yield Defect(store.damage[wave].where, store.damage[wave].what, wave=wave)
            elif wave in counted:
                yield from wrong[wave]
                if counted[wave].beside:
                    yield Defect(wave_path(wave), DOUBLE, wave=wave)
            elif manifest.NAME in names:
                yield Defect(wave_path(wave), DOUBLE, wave=wave)
            elif wave[5:13] not in working:
                yield Defect(wave_path(wave), f"has no {manifest.NAME}: its rows do not count", wave=wave)


def _strange(store: Store, files: Mapping[str, FileInfo], parts: Mapping[str, str | None] | None) -> Iterator[Defect]:
    """Files in a wave's folder that its manifest does not list."""
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
                yield Defect(path, f"is a copy of {twin}" if twin else FOREIGN, removed=twin is not None)


def _wrong_rows(wave: Wave, pieces: Callable[[], list[Piece]]) -> Iterator[Defect]:
    where = wave_path(wave.name)
    try:
        found = Extent(pieces())
    except ValueError as error:
        yield Defect(where, f"has other rows than its manifest lists: {error}", wave=wave.name)
    else:
        if found != Extent(wave.covers).minus(wave.beside):
            yield Defect(where, "has other rows than its manifest lists", wave=wave.name)


def _of_summary(store: Store, files: Mapping[str, FileInfo]) -> Iterator[Defect]:
    folder, listed = store.folder, None
    if ownership.SUMMARY not in files:
        yield Defect(ownership.SUMMARY, "is missing")
    else:
        found = read_json(folder, ownership.SUMMARY) if _readable(folder, ownership.SUMMARY) else {}
        runs, listed = found.get("runs"), found.get("failing_listed")
        asked = store.sweep.count(store.asked.pieces())
        if not isinstance(runs, int) or not isinstance(listed, int):
            yield Defect(ownership.SUMMARY, "is torn")
        elif runs != asked or not found.get("complete"):
            yield Defect(ownership.SUMMARY, f"counts {runs} of {asked} runs")
    if ownership.FAILING not in files:
        yield Defect(ownership.FAILING, "is missing")
    elif listed not in (None, there := _lines(folder, ownership.FAILING)):
        yield Defect(ownership.FAILING, f"lists {there} of {listed} runs")


def _lines(folder: Folder, name: str) -> int:
    """Number of lines that are JSON objects; 0 if the file cannot be read."""
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
    """Drop duplicate and damaged waves, and run missing seeds; foreign files stay. Returns the new content of
    ``summary.json``.

    Raises:
        InputError: another version made the sweep, or a foreign file is at a path that the sweep writes.
        UnavailableError: another driver is at work.
    """
    run, _ = _run(folder, folder.files())
    if run["code_version"] != code_version():
        raise InputError(
            f"{folder.shown} was made by code {run['code_version']}, this is {code_version()}: use the former"
        )
    ownership.check(folder)
    held = FolderClaim(folder)
    try:
        write_json(folder, ownership.RUN, run)
        for finding in found.findings:
            if finding.removed:
                folder.remove(finding.where, PARQUET_START)
        for wave in {finding.wave for finding in found.findings if finding.wave}:
            ownership.clear(folder, wave_path(wave))
        claim.take_over(folder, claim.dead(folder, held.name))
    finally:
        held.end()
    summary = {}
    for first, end in seed_ranges(run):
        summary = run_sweep(from_run({**run, "seeds": [[first, end]]}), folder, backend, report=report)
    return summary
