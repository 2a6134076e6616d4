"""Checks of the shape of plain data that came from outside."""

from __future__ import annotations

from typing import Any

from sim.errors import InputError


def check(value: object, shape: Any, where: str = "") -> None:
    """Check the shape of plain data.

    Args:
        value: the data.
        shape: a type; ``[SHAPE]`` for a list; ``{str: SHAPE}`` for a table; ``{"key": SHAPE}`` for one with these keys
            among others, of which those with a ``?`` may be missing; ``(SHAPE,)`` for one that may be null.
        where: what to call it.

    Raises:
        InputError: the first part that has another.
    """
    if isinstance(shape, tuple):
        if value is None:
            return
        (shape,) = shape
    kind = type(shape) if isinstance(shape, list | dict) else shape
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InputError(f"{where or 'it'} is {type(value).__name__}, where {kind.__name__} is needed")
    if isinstance(value, list) and isinstance(shape, list):
        for entry in value:
            check(entry, shape[0], where)
    elif isinstance(value, dict) and isinstance(shape, dict):
        for key, entry_shape in shape.items():
            if key is str:
                for name, entry in value.items():
                    check(entry, entry_shape, f"{where}.{name}" if where else name)
            elif (name := key.removesuffix("?")) in value:
                check(value[name], entry_shape, f"{where}.{name}" if where else name)
            elif name == key:
                raise InputError(f"{where}: {key!r} is missing" if where else f"{key!r} is missing")
