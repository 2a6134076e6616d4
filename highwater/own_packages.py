"""Whether Python finds Highwater's own packages: their names are common words, and others may have one, too."""

from __future__ import annotations

from importlib import import_module
from typing import Final

NAMES: Final = ("sim", "faults", "scenarios", "reports")
UNAVAILABLE: Final = 69
"""As in `sim.exit_codes`, which may be somebody else's."""


def problem() -> str:
    """Which package of these names is not Highwater's, in a sentence; empty if all are."""
    for name in NAMES:
        package = import_module(name)
        if getattr(package, "PART_OF", None) != "highwater":
            place = getattr(package, "__file__", None) or ", ".join(package.__path__)
            return (
                f"the package {name!r} in {place} is not Highwater's; install Highwater in an environment of its own "
                "(pipx, or python -m venv)"
            )
    return ""
