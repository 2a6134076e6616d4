"""Handles unexpected exceptions: one line for the user, the traceback in a file."""

from __future__ import annotations

import os
import re
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from scenarios import own_files
from scenarios.redaction import masked
from scenarios.sweep.java import cache_folder
from sim.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from highwater.cli.console import Ui

KEPT: Final = 20
"""Number of traceback files to keep; the oldest are removed."""
_NAME: Final = re.compile(r"traceback-\d{19}-\d+\.txt")
_START: Final = re.compile(rb"Traceback \(most recent call last\):")


def report(ui: Ui, error: BaseException) -> None:
    """Report an unexpected exception in one line on stderr.

    With ``-v`` the traceback goes to stderr, else into a file that the line names.
    """
    text = "".join(traceback.format_exception(error))
    where = ""
    if ui.verbose:
        ui.warn(text)
    else:
        try:
            where = f"; traceback in {_write(masked(text))}"
        except (OSError, UserError) as reason:
            why = reason.strerror if isinstance(reason, OSError) else reason
            where = f"; the traceback cannot be written ({why}), -v shows it"
    lines = str(error).splitlines() or [""]
    ui.warn(f"highwater: internal error: {type(error).__name__}: {lines[0]}{where}")


def _write(text: str) -> Path:
    place = cache_folder() / "tracebacks"
    own_files.make_folder(place, 0o700)
    file = place / f"traceback-{time.time_ns()}-{os.getpid()}.txt"
    own_files.create(file, text, 0o600)
    with suppress(OSError, UserError):
        named = [path for path in sorted(place.iterdir()) if _NAME.fullmatch(path.name)]
        own = [path for path in named if own_files.is_own_file(path, _START)]
        for old in own[:-KEPT]:  # Names begin with the time.
            own_files.remove(old, _START)
    return file
