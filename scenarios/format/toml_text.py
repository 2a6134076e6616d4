"""A scenario as the text of its file: TOML of its tables (`Scenario.as_file`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def to_toml(tables: Mapping[str, Any]) -> str:
    """Plain values first, then a table for each mapping, and one for each item of a list."""
    plain = {name: value for name, value in tables.items() if not isinstance(value, dict | list)}
    parts = ["".join(_pairs(plain))]
    for name, value in tables.items():
        if isinstance(value, dict):
            parts.append(f"[{name}]\n{''.join(_pairs(value))}")
        elif isinstance(value, list):
            parts += [f"[[{name}]]\n{''.join(_pairs(item))}" for item in value]
    return "\n".join(parts)


def _pairs(table: Mapping[str, Any]) -> Iterator[str]:
    return (f"{json.dumps(name)} = {_value(value)}\n" for name, value in table.items())


def _value(value: Any) -> str:
    """A value in TOML, which equals JSON for strings, numbers and lists of them."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_value(inner)}" for name, inner in value.items()) + " }"
    return json.dumps(value)
