"""Highwater as a library: run, sweep, read, compare, shrink, explain, show and draw; `highwater.spark` for Spark jobs.

Results display themselves in notebooks. Errors that end a command are raised as `UserError`; messages that a command
prints on stderr are Python warnings.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from highwater import own_packages

if TYPE_CHECKING:
    from highwater import spark
    from highwater.functions import compare, draw, examples, explain, report, rows, run, runs, show, shrink, sweep
    from highwater.lab.review.functions import Reviewed, review
    from highwater.results import Comparisons, Drawing, Explanation, Run, Shrunk, Swept
    from sim.errors import InputError, UserError

__all__ = [
    "Comparisons",
    "Drawing",
    "Explanation",
    "InputError",
    "Reviewed",
    "Run",
    "Shrunk",
    "Swept",
    "UserError",
    "compare",
    "draw",
    "examples",
    "explain",
    "report",
    "review",
    "rows",
    "run",
    "runs",
    "show",
    "shrink",
    "spark",
    "sweep",
]
_MODULES = ("highwater.functions", "highwater.results", "sim.errors", "highwater.lab.review.functions")


def __getattr__(name: str) -> object:
    """Import attributes lazily: the command line, a subpackage, must start before its imports.

    Raises:
        ImportError: a package with the name of one of ours is not ours.
    """
    if name in __all__ and (problem := own_packages.problem()):
        raise ImportError(problem)
    if name == "spark":
        return import_module("highwater.spark")
    for module in _MODULES if name in __all__ else ():
        if hasattr(import_module(module), name):
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is public, for completion and ``help``, though it is imported lazily."""
    return __all__
