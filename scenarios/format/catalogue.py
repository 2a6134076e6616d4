"""The bundled scenarios and modes, and the user's own scenario and mode files."""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scenarios import paths
from sim.errors import InputError, UserError, did_you_mean
from sim.protocol.modes import MODES, changed
from sim.protocol.modes import mode as mode_named
from sim.protocol.rules import parse_overrides

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from importlib.resources.abc import Traversable

    from scenarios.format.mode_file import ModeFile
    from scenarios.format.scenario import Scenario
    from sim.protocol.modes import Mode


ADDED: Final[dict[str, str]] = {}
"""Name of a scenario of a plug-in -> its text."""
ADDED_MODES: Final[dict[str, ModeFile]] = {}
"""Name of a mode of a plug-in -> its mode file."""


LISTING: Final = "'highwater scenarios list'"
"""The command that lists scenarios."""


def names() -> list[str]:
    """Names of the bundled scenarios and those of plug-ins, sorted."""
    own = [entry.name.removesuffix(".toml") for entry in _folder().iterdir() if entry.name.endswith(".toml")]
    return sorted([*own, *ADDED])


def load(name_or_path: str) -> Scenario:
    """Read a bundled scenario by name, or a file: what ends in ``.toml`` or holds a separator is a path.

    Raises:
        InputError: there is none, or everything that is wrong with it.
        StorageError: it is there and cannot be read.
    """
    if paths.is_path(name_or_path):
        if Path(name_or_path).is_dir():
            raise InputError(f"{name_or_path} is a folder, not a scenario; replay, show and explain take sweeps")
        return _read(lambda: paths.read(Path(name_or_path), paths.SCENARIO_BYTES), name_or_path)
    if name_or_path not in names():
        raise InputError(f"unknown scenario {name_or_path!r}{_hint(name_or_path)}")
    if name_or_path in ADDED:
        return _parsed(ADDED[name_or_path], name_or_path)
    return _bundled(name_or_path)


def _hint(word: str) -> str:
    """What is meant by a word that is no scenario."""
    if word in MODES or re.fullmatch(r"\d+(\.\d+)+", word):
        what = "mode" if word in MODES else "release"
        return f": it is a {what}, and {what}s are listed with commas: --{what} A,B"
    if Path(word).exists():
        return ": a file or folder, and a scenario file is needed, whose name ends in .toml"
    return did_you_mean(word, names(), LISTING)


def check(name_or_path: str) -> Scenario:
    """Find every mistake of a scenario, also of a bundled one; errors as in `load`."""
    scenario = load(name_or_path)
    if not paths.is_path(name_or_path):
        _parsed(text(name_or_path), name_or_path)
    return scenario


def text(name_or_path: str) -> str:
    """The TOML text of a valid scenario; errors as in `load`."""
    load(name_or_path)
    if paths.is_path(name_or_path):
        return paths.read(Path(name_or_path), paths.SCENARIO_BYTES).decode("utf-8-sig")
    if name_or_path in ADDED:
        return ADDED[name_or_path]
    return (_folder() / f"{name_or_path}.toml").read_text("utf-8")


def with_table(table: str) -> Iterator[dict[str, Any]]:
    """The bundled scenarios and those of plug-ins that have a table of this name, as their files have them: parsed, and
    not checked.
    """
    own = (entry for entry in sorted(_folder().iterdir(), key=lambda entry: entry.name) if entry.name.endswith(".toml"))
    for text in (*(entry.read_text("utf-8") for entry in own), *ADDED.values()):
        if f"\n[{table}]\n" in text.replace("\r\n", "\n"):
            yield tomllib.loads(text)


def template(kind: str, name: str) -> str:
    """A commented ``scripted`` or ``drawn`` scenario of this name, to begin with; raises InputError if it is none."""
    paths.name(name, "scenario's name")
    return (files("scenarios") / "templates" / f"{kind}.toml").read_text("utf-8").replace("NAME", name, 1)


def mode(word: str, known: Mapping[str, Mode] = MODES) -> Mode:
    """The mode of that name, or of a mode file, either with ``+RULE=VALUE`` for each rule that is changed.

    Raises:
        InputError: there is none, or everything that is wrong with the file.
        StorageError: the file is there and cannot be read.
    """
    base, *rules = word.split("+") if word not in known else (word,)
    if rules and all("=" in rule for rule in rules):
        return changed(mode(base, known), parse_overrides(rules))
    if not paths.is_path(word):
        return mode_named(word, known)
    from scenarios.format.mode_file import read  # Imports pydantic, which only this call needs.

    return read(word).mode


def base_of(one: Mode) -> Mode | None:
    """The mode on which one with changed rules, of a mode file or of a plug-in is based; None for all others, and if
    the file is gone from which a stored mode came.
    """
    word = one.source or one.name
    base, *rules = word.split("+")
    if rules:
        return mode(base)
    if word in ADDED_MODES:
        return ADDED_MODES[word].based_on
    if not paths.is_path(word) or not Path(word).is_file():
        return None
    from scenarios.format.mode_file import read  # Imports pydantic, which only this call needs.

    return read(word).based_on


def _folder() -> Traversable:
    return files("scenarios") / "files"


def _read(content: Callable[[], bytes], source: str) -> Scenario:
    try:
        text = content().decode("utf-8-sig")
    except UserError as error:
        raise type(error)(*(f"{source}: {problem}" for problem in error.problems)) from None
    except UnicodeDecodeError:
        raise InputError(f"{source}: not UTF-8 text") from None
    return _parsed(text, source)


@cache
def _bundled(name: str) -> Scenario:
    """A bundled scenario, whose file the tests validate, so that this need not."""
    from scenarios.format.scenario import of_file

    text = (_folder() / f"{name}.toml").read_text("utf-8")
    try:
        return of_file(tomllib.loads(text))
    except (AttributeError, KeyError, TypeError, ValueError):
        return _parsed(text, name)  # It was changed, and this names its mistakes.


@lru_cache(maxsize=64)
def _parsed(text: str, source: str) -> Scenario:
    from scenarios.format.schema import read  # Imports pydantic, which only this call needs.

    return read(text, source)
