"""Highwater as a library: run, sweep, read, compare, shrink, explain and draw.

What comes back shows itself in a notebook. Where the command line would end with a message, a `UserError` is raised;
where it would only say something on stderr, Python warns.
"""

from __future__ import annotations

from highwater.functions import compare, draw, explain, report, rows, run, shrink, sweep
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
    "shrink",
    "sweep",
]
