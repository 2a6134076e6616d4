"""Recognises the files in a sweep's folder that this program wrote; it changes and removes no others.

A file is recognised by name and content, and is no link; README.md beside this file has the rule.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from scenarios.own_files import is_own, json_start
from scenarios.sweep.folder import FILE, FOLDER, FileInfo, Folder
from scenarios.sweep.manifest import NAME as MANIFEST
from scenarios.sweep.manifest import START as MANIFEST_START
from scenarios.sweep.parts import PARQUET, PARQUET_START, RESULTS, VERSION_KEY
from sim.errors import InputError

CLAIMS: Final = "claims"
RUN: Final = "run.json"
SUMMARY: Final = "summary.json"
FAILING: Final = "violations.jsonl"
_PLACES: Final = {RUN: FILE, SUMMARY: FILE, FAILING: FILE, CLAIMS: FOLDER, RESULTS: FOLDER}
"""Paths that a sweep writes -> kind."""
_STARTS: Final = {RUN: json_start("scenarios"), SUMMARY: json_start("complete"), FAILING: json_start("scenario")}
"""File -> how it begins."""
_REMOVABLE: Final = (
    (re.compile(r"part-[\w.-]+\.parquet|\.part-\d+\.parquet\.[0-9a-f]+"), PARQUET_START),
    (re.compile(re.escape(MANIFEST)), MANIFEST_START),
    # Of Spark and Hadoop: a committer for object stores writes its name into _SUCCESS.
    (re.compile(r"_SUCCESS"), re.compile(rb"org\.apache\.hadoop")),
    (re.compile(r"\..+\.crc"), re.compile(rb"\Acrc\0")),
)
"""Names of the files of waves, and their first bytes."""
_CLAIM: Final = re.compile(rf"{CLAIMS}/[0-9a-f]{{8}}\.json")
CLAIM_START: Final = re.compile(rb'\A\{"state": "')
_UNFINISHED: Final = re.compile(rf"({CLAIMS}/)?\.[\w.]+\.json\.[0-9a-f]+|{CLAIMS}/probe-[0-9a-f]{{8}}/.*")
"""Leftovers of a driver that was killed while it started; they are never removed."""


def check(folder: Folder) -> None:
    """Check that no foreign file is at a path that a sweep writes; raises InputError with all links and foreign files
    there.
    """
    if others := foreign(folder):
        raise InputError(*(f"{folder.shown}/{name} was not written by highwater: move it elsewhere" for name in others))


def foreign(folder: Folder) -> list[str]:
    """The paths that a sweep writes and where there is a link, or what another program wrote."""
    there = folder.entries()
    return [name for name, kind in _PLACES.items() if name in there and not _is_place(folder, name, there[name], kind)]


def _is_place(folder: Folder, name: str, kind: str, wanted: str) -> bool:
    return kind == wanted and (kind == FOLDER or is_own(folder.read(name), _STARTS[name]))


def write(folder: Folder, name: str, content: bytes) -> None:
    """Write ``run.json``, ``summary.json`` or ``violations.jsonl``; raises InputError as `check`."""
    check(folder)
    folder.write(name, content, _STARTS[name])


def is_fresh(folder: Folder) -> bool:
    """Whether a folder without ``run.json`` contains at most leftovers of starting drivers."""
    there = folder.entries()
    if not there:
        return True
    files = folder.files()
    alone = all(kind == FILE or (name, kind) == (CLAIMS, FOLDER) for name, kind in there.items())
    return alone and bool(files) and all(_is_beginning(folder, path) for path in files)


def _is_beginning(folder: Folder, path: str) -> bool:
    if not _CLAIM.fullmatch(path):
        return _UNFINISHED.fullmatch(path) is not None
    with suppress(FileNotFoundError):  # Its driver ended meanwhile.
        return is_own(folder.read(path), CLAIM_START)
    return True


def clear(folder: Folder, under: str) -> None:
    """Remove a wave's files that this program wrote, and its folder if it is empty then."""
    for path, entry in folder.files(under).items():
        start = _start(path)
        if start is not None and is_of_wave(folder, path, entry):
            folder.remove(path, start)
    folder.prune(under)


def _start(path: str) -> re.Pattern[bytes] | None:
    """How a file of a wave begins, by its name; None: no wave has a file of this name."""
    name = path.rpartition("/")[2]
    return next((start for names, start in _REMOVABLE if names.fullmatch(name)), None)


def is_of_wave(folder: Folder, path: str, entry: FileInfo) -> bool:
    """Whether this program, or Spark for it, wrote a file of a wave; a torn file is judged by its first bytes."""
    start = _start(path)
    with suppress(FileNotFoundError):  # Another driver removed it.
        if entry.regular and start is not None:
            content = folder.read(path)
            # A whole Parquet file contains our key.
            whole = content.startswith(PARQUET) and content[len(PARQUET) :].endswith(PARQUET)
            return is_own(content, start) and (not whole or VERSION_KEY.encode() in content)
    return False
