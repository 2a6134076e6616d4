"""Immutable values, equal if their classes and fields are.

Fields are declared `typing.Final`, so mypy refuses reassignment. A frozen dataclass would take ten times as long to
construct in a compiled build.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def fields_of(kind: type) -> list[str]:
    """Field names of a slotted class and its bases, in both builds."""
    found = dict.fromkeys(
        name
        for base in reversed(kind.__mro__)
        for name in base.__dict__.get("__slots__", base.__dict__.get("__mypyc_attrs__", ()))
    )
    return [name for name in found if not isinstance(getattr(kind, name, None), bool)]


def parts(value: Any) -> Any:
    """The class and fields of a value, recursively: values are equal if these are."""
    if isinstance(value, list | tuple):
        return tuple(map(parts, value))
    if isinstance(value, Mapping):
        return tuple(sorted((parts(key), parts(part)) for key, part in value.items()))
    kind = type(value)
    if not any("__slots__" in base.__dict__ or "__mypyc_attrs__" in base.__dict__ for base in kind.__mro__):
        return value  # Its class declares no fields: a number or a string.
    return (kind, *[parts(getattr(value, name)) for name in fields_of(kind)])
