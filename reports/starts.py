"""How the files begin that commands write where the user says: what shows that a file may be replaced."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from scenarios.paths import check_own
from sim.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

REPORT: Final = re.compile(rb"<title>Highwater: ")
PICTURE: Final = re.compile(rb'<title>[^<]+, mode [^<]+, seed \d+: |\A<svg role="img" aria-label="[^"]*" xmlns=')
"""Of a run, and of rates."""
FILM: Final = re.compile(rb'<meta name="generator" content="Highwater film">')
"""Of the page of one run."""
PERFETTO: Final = re.compile(rb'\A\{"displayTimeUnit": "ms", "otherData": \{"title": "')
TRACE: Final = re.compile(rb'\A\{"schema_version": \d+, "scenario": "')
DRIVER: Final = re.compile(rb"\Aimport sys\nfrom (highwater|reports)\.cli(\.main)? import main\n")
HISTORY: Final = re.compile(rb"\A[a-z0-9.-]+, mode \S+, seed \d+: ")
DESCRIPTION: Final = re.compile(rb"\ATopic: highwater\t")
SCRIPT: Final = re.compile(rb"\nShrunk from a run of ")
LOG: Final = re.compile(rb"\ADumping broker-\d+/")
CHECKPOINT: Final = re.compile(rb"\A0\n\d+\n")


def check_file(option: str, file: Path, start: re.Pattern[bytes]) -> None:
    """Check before anything runs that a file can be written, and replaces none but one of its kind.

    Raises:
        InputError: it is no file in a folder that exists, or another file is there.
        StorageError: a file that is there cannot be read.
    """
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise InputError(f"{option} {str(file)!r} cannot be written: it is no file in a folder that exists")
    check_own(file, start)
