"""Looks a sweep's folder over, file by file, and puts right what can be: `highwater doctor DIR`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scenarios import claim, manifest
from scenarios.claim import Claim
from scenarios.extent import Extent
from scenarios.folder import remove_all
from scenarios.manifest import DamageError, digest_of
from scenarios.rows import key
from scenarios.store import RESULTS, Store, is_part, pieces_in, read_json, wave_path, write_json
from scenarios.units import from_run, seed_ranges
from scenarios.version import code_version
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scenarios.folder import Entry, Folder
    from scenarios.sweep import Backend, Progress

ASIDE: Final = "set-aside"
"""Where files go that no sweep wrote; nothing of other people is removed."""
_WAVE: Final = re.compile(r"wave=([0-9a-f]{8}-\d+|\d{5})")
_TOP: Final = ("run.json", "summary.json", "violations.jsonl")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong.

    Attributes:
        where: file or folder, relative to the sweep's.
        what: what is wrong with it.
        wave: the wave that is run again for it, empty if none is.
        foreign: whether the file is none of the sweep's.
    """

    where: str
    what: str
    wave: str = ""
    foreign: bool = False

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
    findings = []
    if not _readable(folder, "run.json"):
        run = _run_of_manifests(folder, files)
        if run is None:
            read_json(folder, "run.json")  # Says what is wrong.
        findings.append(Finding("run.json", "is missing or torn"))
        store = Store(folder, run)
    else:
        store = Store(folder)
    alive = [owner.shown for _, _, owner, _ in claim.others(folder)]
    working = {name for name, *_ in claim.others(folder)}
    findings += _of_waves(store, files, working)
    findings += [Finding(f"{claim.CLAIMS}/{name}.json", "is a dead driver's") for name in claim.dead(folder)]
    missing = store.sweep.count(store.missing.pieces())
    if not missing and not alive:
        findings += _of_summary(store, files)
    return Checkup(tuple(findings), missing, alive[0] if alive else "")


def _readable(folder: Folder, name: str) -> bool:
    try:
        data = json.loads(folder.read(name))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and "schema_version" in data


def _run_of_manifests(folder: Folder, files: Mapping[str, Entry]) -> dict[str, Any] | None:
    """``run.json`` as the manifests knew it, with all seeds that any of them did; None if there is none."""
    runs = []
    for path in files:
        if path.startswith(f"{RESULTS}/") and path.endswith(f"/{manifest.NAME}"):
            try:
                runs.append(manifest.from_bytes(path, folder.read(path)).run)
            except DamageError:
                continue
    if not runs:
        return None
    return {**runs[0], "seeds": [list(ends) for ends in seed_ranges({"seeds": [e for r in runs for e in r["seeds"]]})]}


def _of_waves(store: Store, files: Mapping[str, Entry], working: set[str]) -> Iterator[Finding]:
    for _ in store.tables([]):
        pass
    counted = {wave.name: wave for wave in store.waves}
    waves = sorted({path.split("/")[1] for path in files if path.startswith(f"{RESULTS}/") and path.count("/") > 1})
    for path in files:
        if path.startswith(f"{RESULTS}/") and path.count("/") == 1 and not _is_hidden(path):
            yield Finding(path, "is none of the sweep's", foreign=True)
    for wave in waves:
        names = [path for path in files if path.startswith(f"{wave_path(wave)}/")]
        if not _WAVE.fullmatch(wave):
            yield from (Finding(path, "is none of the sweep's", foreign=True) for path in names)
        elif wave in store.damage:
            error = store.damage[wave]
            yield Finding(error.where, error.what, wave=wave)
        elif wave in counted:
            yield from _of_wave(store, wave, names)
        elif wave.removeprefix("wave=").split("-")[0] not in working and _counts_not(store, wave, files):
            yield Finding(wave_path(wave), "has no manifest: its rows do not count", wave=wave)


def _counts_not(store: Store, wave: str, files: Mapping[str, Entry]) -> bool:
    """Whether a wave has no manifest; one that has may hold what others hold as well, and that is no harm."""
    return f"{wave_path(wave)}/{store.mark}" not in files


def _of_wave(store: Store, wave: str, names: list[str]) -> Iterator[Finding]:
    """What is beside the parts of a wave that counts, or rows that are not those that it says."""
    own = next(one for one in store.waves if one.name == wave)
    parts = {digest: name for name, digest in own.parts.items()}
    for path in names:
        name = path.rpartition("/")[2]
        if name in own.parts or name in ("_SUCCESS", manifest.NAME) or _is_hidden(path):
            continue
        twin = parts.get(digest_of(store.folder.read(path))) if is_part(name) else None
        yield Finding(path, f"is a double of {twin}" if twin else "is none of the sweep's", foreign=True)
    try:
        found = Extent(pieces_in(own.table(store.sweep, list(key(store.grid))), store.sweep))
    except ValueError as error:
        yield Finding(wave_path(wave), f"holds other rows than it says: {error}", wave=wave)
        return
    covers = Extent(own.covers).minus(own.beside)
    if found != covers:
        yield Finding(wave_path(wave), "holds other rows than it says", wave=wave)


def _of_summary(store: Store, files: Mapping[str, Entry]) -> Iterator[Finding]:
    for name in _TOP[1:]:
        if name not in files:
            yield Finding(name, "is missing")
    if "summary.json" in files:
        asked = store.sweep.count(store.asked.pieces())
        if not _readable(store.folder, "summary.json"):
            yield Finding("summary.json", "is torn")
        elif (found := read_json(store.folder, "summary.json"))["runs"] != asked or not found["complete"]:
            yield Finding("summary.json", f"tells of {found['runs']} of {asked} runs")


def _is_hidden(path: str) -> bool:
    """Whether a file is one of those that Hadoop and unfinished writes leave: readers pass over them."""
    return path.rpartition("/")[2].startswith(".")


def repair(
    folder: Folder,
    found: Checkup,
    backend: Backend,
    report: Callable[[Progress], None] = lambda _: None,
) -> dict[str, Any]:
    """Put files aside that are not the sweep's, drop damaged waves, and run what is missing.

    Args:
        folder: of the sweep.
        found: what `check` said of it.
        backend: where to run.
        report: called a few times a second.

    Returns:
        What ``summary.json`` holds then.

    Raises:
        InputError: another driver is at work, or the sweep is of other code, whose rows cannot be made here.
    """
    from scenarios.sweep import run_sweep

    files = folder.files()
    run = read_json(folder, "run.json") if _readable(folder, "run.json") else _run_of_manifests(folder, files)
    assert run is not None
    if run["code_version"] != code_version():
        raise InputError(
            f"{folder.shown} was made by code {run['code_version']}, this is {code_version()}: only that one repairs it"
        )
    held = Claim(folder)
    try:
        write_json(folder, "run.json", run)
        for finding in found.findings:
            if finding.foreign:
                folder.move(finding.where, f"{ASIDE}/{finding.where}")
        for wave in {finding.wave for finding in found.findings if finding.wave}:
            remove_all(folder, [path for path in files if path.startswith(f"{wave_path(wave)}/")])
        claim.take_over(folder, claim.dead(folder, held.name))
    finally:
        held.end()
    summary = {}
    for first, end in seed_ranges(run):
        summary = run_sweep(from_run({**run, "seeds": [[first, end]]}), folder, backend, report=report)
    return summary
