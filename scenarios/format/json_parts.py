"""Parts of the JSON Schema of scenario files that pydantic cannot derive from types: settings, rules and expectations.

TOML makes nested tables of bare dotted keys, and keys may be quoted at any place. So the schema of a table of settings
has a table for each beginning of a key, with all ways to write the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from sim.config import KEYS, NEVER, Key
from sim.protocol.rules import RULES

Schema = dict[str, Any]
PART: Final = "part"
"""Keyword of a type that stands for one of `parts`, because the whole would be repeated in every table."""
ACKS: Final[Schema] = {"enum": ["all", "1", "0", "-1", 1, 0, -1]}
BROKERS_MAX: Final = 99


def table(leaves: Mapping[str, Schema], least: int = 0, further: Mapping[str, Schema] | None = None) -> Schema:
    """The schema of a table whose dotted keys may be nested.

    Args:
        leaves: dotted key -> the schema of its value.
        least: fewest keys.
        further: keys without dots that the outermost table has besides.
    """
    properties: dict[str, Schema] = dict(further or {})
    for key, leaf in leaves.items():
        words = key.split(".")
        properties[key] = leaf
        for length in range(1, len(words)):
            beginning = ".".join(words[:length])
            if beginning not in properties:
                inner = {
                    other.removeprefix(f"{beginning}."): one
                    for other, one in leaves.items()
                    if other.startswith(f"{beginning}.")
                }
                properties[beginning] = table(inner, 1)
    limits = {"minProperties": least} if least else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **limits}


def setting(spec: Key) -> Schema:
    """The schema of a setting's value."""
    if spec.choices == ("0", "1", "all"):
        return {"description": spec.meaning, **ACKS}
    if spec.pattern:
        words: Schema = {"type": "string", "pattern": f"^({'|'.join(spec.choices)}|{_ungrouped(spec.pattern)})$"}
        return {"description": spec.meaning, **words}
    if spec.choices:
        return {"description": spec.meaning, "enum": list(spec.choices)}
    if isinstance(spec.default, bool):
        text = {"type": "string", "pattern": "^([tT][rR][uU][eE]|[fF][aA][lL][sS][eE])$"}
        return {"description": spec.meaning, "anyOf": [{"type": "boolean"}, text]}
    number: Schema = {"type": "integer", "minimum": spec.minimum, "maximum": spec.maximum}
    never = [{"const": "never"}] if spec.maximum == NEVER else []
    return {"description": spec.meaning, "anyOf": [number, *never, {"type": "string", "pattern": "^[0-9]+$"}]}


def _ungrouped(pattern: str) -> str:
    """A pattern without names of groups, which JSON Schema's dialect writes otherwise."""
    return re.sub(r"\?P<\w+>", "", pattern)


def settings(keys: Collection[str] = KEYS, least: int = 0, further: Mapping[str, Schema] | None = None) -> Schema:
    """The schema of a table of settings."""
    return table({key: _referred(key) for key in keys}, least, further)


def _referred(key: str) -> Schema:
    return part(f"setting.{key}")


def draws() -> Schema:
    """The schema of ``[draw]``."""
    return table({key: {"type": "array", "items": _referred(key), "minItems": 1} for key in KEYS})


def rules(*, several: bool) -> Schema:
    """The schema of a table of rules, each with a value, or if `several` also with a list of values."""
    leaves: dict[str, Schema] = {}
    for name, spec in RULES.items():
        one: Schema = {"enum": list(spec.values)}
        many = {"type": "array", "items": one, "minItems": 1}
        leaves[name] = {"description": spec.meaning, **({"anyOf": [one, many]} if several else one)}
    return table(leaves)


def brokers(count: Schema, first: Schema, upgraded_from: Schema, mode: Schema) -> Schema:
    """The schema of ``brokers``: their number, or a table with it and a table for single brokers."""
    own = settings(further={"mode": mode})
    whole: Schema = {
        "type": "object",
        "properties": {"count": count, "first": first, "upgraded_from": upgraded_from},
        "patternProperties": {"^[1-9][0-9]?$": own},
        "required": ["count"],
        "additionalProperties": False,
    }
    return {"anyOf": [count, whole]}


def part(name: str) -> Schema:
    """The type that stands for a part."""
    return {PART: name}


def parts() -> dict[str, Schema]:
    """The parts by name."""
    tables = {"settings": settings(), "draws": draws(), "rule": rules(several=False), "rules": rules(several=True)}
    return {**tables, **{f"setting.{key}": setting(spec) for key, spec in KEYS.items()}}


def expectation(kinds: Collection[str], *, named: bool) -> str:
    """The pattern of an expectation; if `named`, it has to name kinds, except for may-violate."""
    one = "|".join(map(re.escape, kinds))
    kinds_part = f":({one})([|]({one}))*"
    return f"^(may-violate|(violates|clean){kinds_part if named else f'({kinds_part})?'})$"
