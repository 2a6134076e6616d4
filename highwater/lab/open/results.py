"""What a folder holds: results that the program wrote, recognised by how their files begin."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scenarios import own_files, paths
from scenarios.sweep.ownership import RUN
from scenarios.sweep.parts import RESULTS
from sim.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

SWEEP: Final = "sweep"
RUN_OF: Final = "recorded run"
PAGES: Final = ("hunt", "review", "audit", "report", "film")
"""Kinds of pages, as their generator names them."""
FILM: Final = "film"
PLAN: Final = "plan.json"
DEPTH: Final = 4
"""Deepest folder that is looked into."""
ENTRIES: Final = 5_000
"""Files and folders that are looked at."""
LISTED: Final = 500
"""Results that are listed."""
PAGE_BYTES: Final = 1 << 26
_RUN: Final = own_files.json_start("scenarios")
_PLAN: Final = own_files.json_start("scenario", "faults")
_GENERATOR: Final = re.compile(rb'<meta name="generator" content="Highwater (\w+)">')
_TITLE: Final = re.compile(rb"<title>([^<]*)</title>")


@dataclass(frozen=True, slots=True)
class Result:
    """A result.

    Attributes:
        what: `SWEEP`, `RUN_OF` or one of `PAGES`.
        name: its path below the folder; empty: the folder itself.
        path: its folder or file.
        title: the title of a page.
        written: when it was written, in seconds.
    """

    what: str
    name: str
    path: Path
    title: str
    written: float

    @property
    def key(self) -> str:
        """Its name in addresses."""
        return blake2b(f"{self.what}/{self.name}".encode(errors="surrogateescape"), digest_size=6).hexdigest()


def find(folder: Path) -> dict[str, Result]:
    """The results in a folder and below, by key; pages and sweeps first, then by path. No link is followed."""
    found = sorted(_found(folder), key=lambda result: (result.what in (RUN_OF, FILM), result.name))
    return {result.key: result for result in found[:LISTED]}


def _found(folder: Path) -> Iterator[Result]:
    ahead = [(folder, 0)]
    left = ENTRIES
    while ahead and left > 0:
        place, depth = ahead.pop()
        with suppress(OSError):
            entries = sorted(os.scandir(place), key=lambda entry: entry.name)
            left -= len(entries)
            is_sweep = any(entry.name == RUN for entry in entries)
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if depth < DEPTH and not (is_sweep and entry.name == RESULTS):
                        ahead.append((Path(entry.path), depth + 1))
                elif (result := _result(folder, entry)) is not None:
                    yield result


def _result(folder: Path, entry: os.DirEntry[str]) -> Result | None:
    """The result that a file is, or is of."""
    if not (entry.name in (RUN, PLAN) or entry.name.endswith(".html")):
        return None
    state = entry.stat(follow_symlinks=False)
    if not stat.S_ISREG(state.st_mode) or not state.st_size:
        return None
    path = Path(entry.path)
    with suppress(OSError, UserError), paths.regular(path) as file:
        start = file.read(own_files.START_BYTES)
        if entry.name == RUN and _RUN.search(start):
            return Result(SWEEP, _below(folder, path.parent), path.parent, "", state.st_mtime)
        if entry.name == PLAN and _PLAN.search(start):
            return Result(RUN_OF, _below(folder, path), path, "", state.st_mtime)
        generator = _GENERATOR.search(start)
        if generator is not None and (what := generator[1].decode("ascii", "replace")) in PAGES:
            # The style of a page stands behind its title.
            title = _TITLE.search(start)
            told = "" if title is None else unescape(title[1].decode(errors="replace"))
            return Result(what, _below(folder, path), path, told.removeprefix("Highwater: "), state.st_mtime)
    return None


def _below(folder: Path, path: Path) -> str:
    name = path.relative_to(folder).as_posix()
    return "" if name == "." else name


def read_page(result: Result) -> str:
    """The text of a page; raises UserError if it cannot be read."""
    return paths.read(result.path, PAGE_BYTES).decode(errors="replace")


def title_of(result: Result) -> str:
    """The title of a page; the scenarios and modes of a sweep; empty if they cannot be read."""
    if result.what != SWEEP:
        return result.title
    with suppress(UserError, AttributeError, LookupError, TypeError):
        modes = paths.parse_json(paths.read(result.path / RUN, paths.JSON_BYTES))["modes"]
        names = dict.fromkeys(str(name) for some in modes.values() for name in some)
        return f"{', '.join(modes)} in {', '.join(names)}"
    return ""
