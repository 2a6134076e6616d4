"""Mode files: a mode of your own, as TOML, wherever the command line takes the name of a mode.

A mode file names the mode that it is based on, and the rules in which it differs. Its mode is stored with all its rules
in the results, so that a sweep refuses to go on with a file that has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from scenarios import paths
from scenarios.format.validation import StrictTable, validated
from scenarios.format.values import OneLine
from sim.errors import InputError, UserError, did_you_mean
from sim.protocol.modes import MODES, NO_RELEASE, Mode

DEEPEST: Final = 8
"""Most files that build on one another."""


class _Promise(StrictTable):
    """Parts of the promise that do not follow from the rules: `sim.protocol.modes.Promised`."""

    keeps_all_shown: bool | None = None
    never_diverges: bool | None = None
    deduplicates: bool | None = None
    counts_damage: bool | None = None
    damaged_by_loss: bool | None = None


def _as_written(value: object) -> object:
    """A number or boolean as text: no rule has such a value, and the error then names the values that there are."""
    return str(value).lower() if isinstance(value, bool | int | float) else value


class _File(StrictTable):
    version: Annotated[Literal[1], Field(alias="schema")]
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")]
    title: Annotated[OneLine, Field(max_length=200)]
    base: Annotated[str, Field(min_length=1)]
    description: str = ""
    sources: tuple[str, ...] = Field(default=(), strict=False)
    release: str | None = None
    rules: dict[str, Annotated[str, BeforeValidator(_as_written)]] = Field(default_factory=dict)
    promise: _Promise = Field(default_factory=_Promise)


@dataclass(frozen=True, slots=True)
class ModeFile:
    """A mode file.

    Attributes:
        mode: the mode.
        base: name of the mode that it is based on; `based_on` is that mode.
        description: for readers.
        sources: where the rules are proposed or discussed.
        changed: rule -> value, of the rules that the file sets.
    """

    mode: Mode
    base: str
    description: str
    sources: tuple[str, ...]
    changed: Mapping[str, str]
    based_on: Mode


def read(word: str) -> ModeFile:
    """Read a mode file.

    Raises:
        InputError: there is none, or everything that is wrong with it.
        StorageError: it is there and cannot be read.
    """
    return _read(Path(word), word, ())


def of_text(text: str) -> ModeFile:
    """The mode file with this text, which is based on a mode of a name; raises InputError as `read`."""
    found = validated(_File, paths.parse_toml(text), tables={"": _File, "promise": _Promise})
    if paths.is_path(found.base):
        raise InputError(f"mode {found.name}: base = {found.base!r}: a mode of a plug-in is based on a name")
    return _of(found, Path(), "", ())


def _read(path: Path, word: str, before: tuple[Path, ...]) -> ModeFile:
    resolved = path.resolve()
    if resolved in before:
        chain = " -> ".join(one.name for one in (*before, resolved))
        raise InputError(f"{word}: base = {path.name!r} is based on itself: {chain}")
    if len(before) == DEEPEST:
        raise InputError(f"{word}: more than {DEEPEST} files are based on one another")
    try:
        text = paths.read(path, paths.SCENARIO_BYTES).decode("utf-8-sig")
        found = validated(_File, paths.parse_toml(text), tables={"": _File, "promise": _Promise})
        return _of(found, path, word, (*before, resolved))
    except UnicodeDecodeError:
        raise InputError(f"{word}: not UTF-8 text") from None
    except UserError as error:
        told = (problem if problem.startswith(word) else f"{word}: {problem}" for problem in error.problems)
        raise type(error)(*told) from None


def _of(file: _File, path: Path, word: str, before: tuple[Path, ...]) -> ModeFile:
    if file.name in MODES:
        raise InputError(f"name = {file.name!r} is a mode of Highwater; choose another name")
    if paths.is_path(file.base):
        base = _read(path.parent / file.base, str(path.parent / file.base), before).mode
    elif file.base in MODES:
        base = MODES[file.base]
    else:
        raise InputError(f"base = {file.base!r}: no such mode{did_you_mean(file.base, MODES)}")
    changed = base.override(file.rules)
    promise = replace(changed.promise, **_given(file.promise))
    follows = base.follows if base.release == NO_RELEASE else base.release
    release = file.release or NO_RELEASE
    mode = Mode(file.name, release, file.title, changed.rules, promise, "" if file.release else follows, source=word)
    return ModeFile(mode, file.base, file.description.strip(), file.sources, file.rules, base)


def _given(promise: _Promise) -> dict[str, Any]:
    return {name: value for name, value in promise.model_dump().items() if value is not None}
