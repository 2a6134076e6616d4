"""What to do with an exception that nobody expected: one line for the user, the traceback into a file."""

from __future__ import annotations

import re
import tempfile
import traceback
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from reports.console import Ui

_NAMED: Final = re.compile(r"""((?:password|secret|token|key)['"]?\s*[=:]\s*)("[^"]*"|'[^']*'|\S+)""", re.IGNORECASE)
_USER_INFO: Final = re.compile(r"(\w+://)[^/\s@]+@")


def report(ui: Ui, error: Exception) -> None:
    """Say what happened in one line on stderr.

    Args:
        ui: with ``-v`` the traceback goes to stderr, else into a file that the line names.
        error: what was raised.
    """
    text = without_secrets("".join(traceback.format_exception(error)))
    where = ""
    if ui.verbose:
        ui.warn(text)
    else:
        with tempfile.NamedTemporaryFile("w", prefix="highwater-", suffix=".txt", delete=False) as file:
            file.write(text)
        where = f"; traceback in {file.name}"
    first_line = without_secrets(f"{type(error).__name__}: {error}").splitlines()[0]
    ui.warn(f"highwater: internal error: {first_line}{where}")


def without_secrets(text: str) -> str:
    """Text without the values of what is named password, secret, token or key, and without user info in URIs."""
    return _USER_INFO.sub(r"\1", _NAMED.sub(r"\1***", text))
