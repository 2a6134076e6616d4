"""Highwater as a library: run, sweep, read, compare, shrink, explain, show and draw.

What comes back shows itself in a notebook. Where the command line would end with a message, a `UserError` is raised;
where it would only say something on stderr, Python warns.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from highwater.functions import compare, draw, explain, report, rows, run, show, shrink, sweep
    from highwater.results import Comparisons, Drawing, Explanation, Run, Shrunk, Swept
    from sim.errors import InputError, UserError

__all__ = [
    "Comparisons",
    "Drawing",
    "Explanation",
    "InputError",
    "Run",
    "Shrunk",
    "Swept",
    "UserError",
    "compare",
    "draw",
    "explain",
    "report",
    "rows",
    "run",
    "show",
    "shrink",
    "sweep",
]
_MODULES = ("highwater.functions", "highwater.results", "sim.errors")


def __getattr__(name: str) -> object:
    """Import what is asked for, since the command line, which is below this package, has to begin before that."""
    for module in _MODULES if name in __all__ else ():
        if hasattr(import_module(module), name):
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
