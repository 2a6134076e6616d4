"""Grids of settings: a sweep runs its scenarios at every combination of some keys' values.

A key that varies is a column of the rows, under its exact name. Streams depend only on the seed, so a seed has the same
draws at every point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final

from sim.config import KEYS, Value, shown

Grid = Mapping[str, tuple[Value, ...]]
"""Key -> at least two values, in the order of runs and tables."""
Point = dict[str, Value]
"""Key -> its value at one point of a grid."""

_SQL: Final = {bool: "boolean", int: "bigint", str: "string"}


def points(grid: Grid) -> Iterator[Point]:
    """All combinations, the last key changing fastest; for an empty grid one empty point."""
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def sql_type(key: str) -> str:
    """Spark SQL type of the column of a configuration key."""
    return _SQL[type(KEYS[key].default)]


def words(point: Mapping[str, Value]) -> str:
    """A point as ``key=value`` words for ``--set``."""
    return " ".join(f"{key}={shown(value)}" for key, value in point.items())
