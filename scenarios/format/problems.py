"""Pydantic's errors as sentences that name key, value and the nearest valid name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from scenarios.format.actions import ACTIONS
from sim.errors import did_you_mean

LISTS: Final = ("script", "story", "final", "also", "sends", "faults", "topics")
"""Arrays of tables, whose entries are numbered from 1."""
_NOT_WRITTEN: Final = ("sections", "keys", "[key]")
"""Parts of a path that do not appear in files."""
_WHOLE_KEYS: Final[Mapping[Any, str]] = {"brokers": "brokers.count"}
"""Table without which a file is not valid -> the key that is meant."""
_CLIPPED: Final = 60


def describe(error: Mapping[str, Any], keys: Callable[[str], Iterable[str]]) -> str:
    """One sentence for an error of pydantic's; `keys` gives the valid keys of a table by the last name in its path."""
    path = [part for part in error["loc"] if part not in _NOT_WRITTEN]
    kind = error["type"]
    parent = _where(path[:-1])
    inside = f"{parent}: " if parent else ""
    if kind == "said":  # The text names key and value, except for a whole table.
        return (f"{_where(path)}: " if isinstance(error["input"], Mapping) else inside) + str(error["msg"])
    if kind == "missing":
        name = path[-1] if parent else _WHOLE_KEYS.get(path[-1], path[-1])
        return f"{inside}{name!r} is missing"
    if kind == "extra_forbidden":
        table = next((part for part in reversed(path[:-1]) if isinstance(part, str)), "")
        return f"{inside}unknown key {path[-1]!r}{did_you_mean(str(path[-1]), keys(table))}"
    if kind == "union_tag_invalid":
        tag = error["ctx"]["tag"]
        return f"{_where(path)}: do = {tag!r}: no such action{did_you_mean(tag, ACTIONS)}"
    if kind == "union_tag_not_found":
        return f"{_where(path)}: 'do' is missing"
    value = "" if error["loc"][-1:] == ("[key]",) else f" = {_shown(error['input'])}"
    return f"{_where(path) or 'it'}{value}: {_message(error)}"


def _where(path: list[str | int]) -> str:
    names = [part for part in path if isinstance(part, str)]
    if len(path) < 2 or path[0] not in LISTS or not isinstance(path[1], int):
        return ".".join(names)
    entry = f"{names.pop(0)} {path[1] + 1}"
    if path[0] == "script" and names:
        entry += f" ({names.pop(0)})"
    return ": ".join(filter(None, (entry, ".".join(names))))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _CLIPPED else text[:_CLIPPED] + "..."


def _message(error: Mapping[str, Any]) -> str:
    if error["type"] in ("dict_type", "model_type", "model_attributes_type"):
        return "a table is needed"
    if error["type"] in ("list_type", "tuple_type"):
        return "a list is needed, such as [1, 2]"
    if error["type"] == "string_type" and isinstance(error["input"], Mapping):
        return "text is needed; a key that contains a dot has to stand in quotes"
    text = str(error["msg"]).removeprefix("Value error, ")
    return text[:1].lower() + text[1:]
