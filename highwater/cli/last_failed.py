"""Runs that were not as expected when they last ran, for ``run --last-failed``: a file in the user's cache folder."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from scenarios.own_files import is_own_file, json_start, os_errors, replace
from scenarios.paths import parse_json
from scenarios.sweep.java import cache_folder
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NAME: Final = "last-failed.json"
KEPT: Final = 1_000
"""Runs to remember; the oldest are forgotten."""
_START: Final = json_start("last_failed")
Words = tuple[str, ...]
"""A run as words of ``highwater run``."""


def read() -> list[Words]:
    """The runs that were not as expected, the oldest first.

    Raises:
        InputError: the file is not ours, or was changed.
        StorageError: it cannot be read.
    """
    file = cache_folder() / NAME
    if not os.path.lexists(file):
        return []
    found = None
    with os_errors(file), suppress(InputError):
        found = parse_json(file.read_bytes())["last_failed"] if is_own_file(file, _START) else None
    if not isinstance(found, list) or not all(_is_words(words) for words in found):
        raise InputError(f"{file} is not what 'highwater run' wrote; move it elsewhere")
    return [tuple(words) for words in found]


def _is_words(found: object) -> bool:
    return isinstance(found, list) and bool(found) and all(isinstance(word, str) for word in found)


def remember(ran: Mapping[Words, bool]) -> None:
    """Note which runs were as expected; runs that did not run now keep their state.

    Raises:
        InputError: the file is not ours, or was changed.
        StorageError: it cannot be read or written.
    """
    before = read()
    now = [
        *(words for words in before if words not in ran),
        *(words for words, expected in ran.items() if not expected),
    ]
    if now != before:
        _write(cache_folder() / NAME, {"schema_version": 1, "last_failed": now[-KEPT:]})


def _write(file: Path, data: Mapping[str, object]) -> None:
    with os_errors(file):
        replace(file, json.dumps(data, ensure_ascii=False).encode(), _START)
