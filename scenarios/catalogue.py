"""The bundled scenarios, and scenario files of the user's own."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from sim.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from scenarios.scenario import Scenario


def names() -> list[str]:
    """Names of the bundled scenarios, sorted."""
    return sorted(entry.name.removesuffix(".toml") for entry in _folder().iterdir() if entry.name.endswith(".toml"))


def load(name_or_path: str) -> Scenario:
    """Read a scenario.

    Args:
        name_or_path: name of a bundled scenario, or the path of a file: what ends in ``.toml`` or holds a separator.

    Returns:
        The scenario.

    Raises:
        InputError: there is none, or everything that is wrong with it.
    """
    if name_or_path.endswith(".toml") or "/" in name_or_path or "\\" in name_or_path:
        return _read(Path(name_or_path), name_or_path)
    if name_or_path not in names():
        raise InputError(f"unknown scenario {name_or_path!r}{did_you_mean(name_or_path, names())}")
    return _read(_folder() / f"{name_or_path}.toml", name_or_path)


def _folder() -> Traversable:
    return files("scenarios") / "files"


def _read(file: Traversable, source: str) -> Scenario:
    from scenarios.schema import read  # Imports pydantic, which only this call needs.

    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{source}: not UTF-8 text") from None
    return read(text, source)
