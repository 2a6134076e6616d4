"""What is equal to anything with the same fields, and is never changed once it is made.

`typing.Final` at each assignment lets mypy refuse any other; a frozen dataclass takes ten times as long to make where
this is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def fields_of(kind: type) -> list[str]:
    """Names of the fields of a slotted class, those of its bases included, compiled or not."""
    found = dict.fromkeys(
        name
        for base in reversed(kind.__mro__)
        for name in base.__dict__.get("__slots__", base.__dict__.get("__mypyc_attrs__", ()))
    )
    return [name for name in found if not isinstance(getattr(kind, name, None), bool)]


def parts(value: Any) -> Any:
    """What a value is equal by: its class and its fields, and theirs in turn."""
    if isinstance(value, list | tuple):
        return tuple(map(parts, value))
    if isinstance(value, Mapping):
        return tuple(sorted((parts(key), parts(part)) for key, part in value.items()))
    kind = type(value)
    names = fields_of(kind)
    return (kind, *[parts(getattr(value, name)) for name in names]) if names else value
