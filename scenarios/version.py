"""Which code made a result: a hash over its sources, and the versions of what it ran on."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib import metadata, resources
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

CODE: Final = ("faults", "scenarios", "sim")
"""The packages that decide what is in a row."""


@cache
def code_version() -> str:
    """Hash over the sources of sim, faults and scenarios, equal in a checkout, a wheel and a zip (16 hex digits)."""
    digest = hashlib.blake2b(digest_size=8)
    for name, content in sorted(pair for package in CODE for pair in _sources(resources.files(package), package)):
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _sources(entry, name)
        elif name.endswith((".py", ".toml")):
            yield name, entry.read_bytes()


def versions() -> dict[str, str]:
    """Versions that a reader of the results may want to know; they are not compared."""
    return {"highwater": _version("highwater"), "python": platform.python_version(), "simpy": _version("simpy")}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # run from a checkout or a zip
        return "not installed"
