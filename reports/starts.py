"""First characters of files that commands write to paths of the user's choice: only such files are replaced."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Final

from scenarios.own_files import check_own
from sim.errors import InputError, StorageError

REPORT: Final = re.compile(rb"<title>Highwater: ")
PICTURE: Final = re.compile(rb'<title>[^<]+, mode [^<]+, seed \d+: |\A<svg role="img" aria-label="[^"]*" xmlns=')
"""Pictures of runs and of rates."""
FILM: Final = re.compile(rb'<meta name="generator" content="Highwater film">')
"""Pages of single runs."""
PERFETTO: Final = re.compile(rb'\A\{"displayTimeUnit": "ms", "otherData": \{"title": "')
JUNIT: Final = re.compile(rb"""\A<\?xml version='1.0' encoding='utf-8'\?>\n<testsuites name="highwater" """)
TRACE: Final = re.compile(rb'\A\{"schema_version": \d+, "scenario": "')
DRIVER: Final = re.compile(rb"\Aimport sys\nfrom (highwater|reports)\.cli(\.main)? import main\n")
HISTORY: Final = re.compile(rb"\A[a-z0-9.-]+, mode \S+, seed \d+: ")
DESCRIPTION: Final = re.compile(rb"\ATopic: highwater\t")
REVIEW: Final = re.compile(rb"\A# Review of ")
REVIEW_PAGE: Final = re.compile(rb'<meta name="generator" content="Highwater review">')
REVIEWED: Final = re.compile(rb'\Aschema = 1\nname = "([a-z0-9.-]+-(up|down)grade|back)"\n')
"""A review, as Markdown and HTML, and the files of its upgrade and downgrade."""
HUNT: Final = re.compile(rb"\A# Hunt over Kafka ")
HUNT_PAGE: Final = re.compile(rb"<title>Hunt over Kafka ")
TICKET: Final = re.compile(rb"(<!--|#|//) Written by highwater ticket ")
"""A ticket, and the script and test that repeat it."""
EXPLORED: Final = re.compile(rb'\Aschema = 1\nname = "explored-')
"""A counterexample of explore as a scenario."""
SCRIPT: Final = re.compile(rb"\nShrunk from a run of ")
LOG: Final = re.compile(rb"\ADumping broker-\d+/")
CHECKPOINT: Final = re.compile(rb"\A0\n\d+\n")
_SUFFIXES: Final = {
    **dict.fromkeys((REPORT, FILM), (".html", ".htm")),
    PICTURE: (".svg",),
    PERFETTO: (".json",),
    JUNIT: (".xml",),
    TRACE: (".jsonl",),
    EXPLORED: (".toml",),
}
"""How the names of files end, by what is in them."""
_FORMATS: Final = {
    ".pdf",
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".webp",
    *(each for own in _SUFFIXES.values() for each in own),
}
"""Ends of names that promise a format; other names may have any text."""


def check_suffix(option: str, file: Path, start: re.Pattern[bytes]) -> None:
    """Raise InputError if the name of a file promises another format than the one that begins with `start`."""
    own = _SUFFIXES[start]
    if (suffix := file.suffix.lower()) in _FORMATS and suffix not in own:
        raise InputError(f"{option} {str(file)!r} is not valid: what is written is no {suffix}, but {own[0]}")


def denied(folder: Path) -> str:
    """Why nothing may be written to a folder, in the words of the system."""
    return os.strerror(errno.EROFS if os.statvfs(folder).f_flag & os.ST_RDONLY else errno.EACCES)


def check_file(option: str, file: Path, start: re.Pattern[bytes]) -> None:
    """Check before anything runs that a file can be written, and replaces only a file of its own kind.

    `option` is the one that named it; empty if none did.

    Raises:
        InputError: its folder does not exist, another kind of file is there, or its name promises another format.
        StorageError: the existing file cannot be read, or nothing may be written there.
    """
    folder = file.absolute().parent
    if file.is_dir() or not folder.is_dir():
        raise InputError(f"{option} {str(file)!r} cannot be written: it is no file in a folder that exists".lstrip())
    if not os.access(file if file.exists() else folder, os.W_OK):
        raise StorageError(f"{option} {str(file)!r} cannot be written: {denied(folder)}".lstrip())
    check_own(file, start)
    if start in _SUFFIXES:
        check_suffix(option, file, start)
