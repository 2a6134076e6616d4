"""What commands can do in the playground: Python in a browser, without processes, threads, pyarrow and numpy."""

from __future__ import annotations

from typing import Final

from scenarios.requirements import REQUIRED, is_browser
from sim.errors import UnavailableError

COMMANDS: Final = frozenset(
    {
        "scenarios",
        "modes",
        "rules",
        "settings",
        "run",
        "columns",
        "replay",
        "explain",
        "show",
        "draw",
        "shrink",
        "explore",
        "zoo",
        "ticket",
    }
)
"""Commands that work there, `zoo` without its hunts."""


def check(command: str) -> None:
    """Check before a command is carried out.

    Raises:
        UnavailableError: this is a browser, and the command needs more.
    """
    if is_browser() and command and command not in COMMANDS:
        raise UnavailableError(_sentence(f"{command} needs processes or packages"))


def lacking(error: BaseException) -> str:
    """The package that a command misses in a browser, in a sentence; empty if it is another error."""
    if is_browser() and isinstance(error, ModuleNotFoundError) and error.name in REQUIRED.values():
        return _sentence(f"this needs the package {error.name}")
    return ""


def _sentence(needs: str) -> str:
    return f"{needs} that a browser does not have: install Highwater to use it"
