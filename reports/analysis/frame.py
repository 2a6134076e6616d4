"""Columns of a sweep's rows as arrays: a million rows take some tens of megabytes, and counting them takes moments."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Array = npt.NDArray[Any]
    Mask = npt.NDArray[np.bool_]

DRAWN: Final = "drawn_settings"
DIFFERENT: Final = ("faults_hash",)
"""Text columns whose values are mostly different."""


@dataclass(frozen=True, slots=True)
class Coded:
    """A column with few different values.

    Attributes:
        codes: index in `values` for each row.
        values: the different values.
    """

    codes: Array
    values: list[Any]

    def where(self, test: Callable[[Any], bool]) -> Mask:
        """Mask of the rows whose value passes a test, which is called once per value."""
        import numpy as np

        passes = np.fromiter((test(value) for value in self.values), np.bool_, len(self.values))
        found: Mask = passes[self.codes]
        return found


class Frame:
    """Rows as columns.

    Args:
        columns: name -> values: a list, an array, or coded.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any] | Array | Coded]) -> None:
        self._columns = dict(columns)

    @classmethod
    def of_tables(cls, tables: Iterable[pa.Table]) -> Frame:
        """Collect the columns of several Arrow tables, without keeping the tables."""
        import numpy as np

        columns: dict[str, _Column] = {}
        for table in tables:
            for name in table.column_names:
                columns.setdefault(name, _Column(name)).add(table[name])
        found = {}
        while columns:  # The parts of a column go as soon as it is whole.
            name, column = columns.popitem()
            found[name] = column.whole(np)
        return cls(found)

    def coded(self, name: str) -> Coded:
        """A column of few different values."""
        column = self._columns[name]
        if not isinstance(column, Coded):
            column = self._columns[name] = _code(column)
        return column

    def numbers(self, name: str) -> Array:
        """A column of numbers, booleans, or texts that are mostly different."""
        import numpy as np

        column = self._columns[name]
        if isinstance(column, Coded):
            found: Array = np.asarray(column.values)[column.codes]
            return found
        if not isinstance(column, np.ndarray):
            column = self._columns[name] = np.asarray(column)
        return column

    def __len__(self) -> int:
        column = next(iter(self._columns.values()), ())
        return len(column.codes) if isinstance(column, Coded) else len(column)

    def with_drawn(self, key: str) -> Frame:
        """The rows whose seed decided a setting, with that setting as a column."""
        drawn = self.coded(DRAWN)
        read = [json.loads(text) for text in drawn.values]
        kept = drawn.where(lambda text: key in json.loads(text)).nonzero()[0]
        columns = {name: self._taken(name, kept) for name in self._columns}
        return Frame(columns | {key: [read[code][key] for code in drawn.codes[kept]]})

    def _taken(self, name: str, places: Array) -> Array | Coded:
        column = self._columns[name]
        if isinstance(column, Coded):
            return Coded(column.codes[places], column.values)
        found: Array = self.numbers(name)[places]
        return found

    def groups(self, names: Sequence[str]) -> dict[tuple[Any, ...], Array]:
        """Combination of values of some columns -> indices of its rows, in order."""
        import numpy as np

        columns = [self.coded(name) for name in names]
        code = np.zeros(len(self), np.int64)
        for column in columns:
            code = code * max(len(column.values), 1) + column.codes
        order = np.argsort(code, kind="stable")
        starts = np.flatnonzero(np.diff(code[order], prepend=-1))
        found = {}
        for places in np.split(order, starts[1:]) if len(self) else ():
            found[tuple(column.values[column.codes[places[0]]] for column in columns)] = places
        return found


class _Column:
    """A column that grows table by table."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._parts: list[Array] = []
        self._place: dict[str, int] = {}
        self._is_coded = False

    def add(self, column: Any) -> None:
        import numpy as np

        if str(column.type) != "string":
            self._parts.append(column.to_numpy())
        elif self._name in DIFFERENT:
            self._parts.append(np.array(column.to_pylist(), dtype=np.bytes_))
        else:
            self._is_coded = True
            for chunk in column.chunks:
                encoded = chunk.dictionary_encode()
                places = [self._place.setdefault(word, len(self._place)) for word in encoded.dictionary.to_pylist()]
                smallest = np.min_scalar_type(len(self._place))
                self._parts.append(np.array(places, smallest)[encoded.indices.to_numpy()])

    def whole(self, np: Any) -> Array | Coded:
        found: Array = np.concatenate(self._parts) if self._parts else np.zeros(0, np.int32)
        return Coded(found, list(self._place)) if self._is_coded else found


def _code(column: Sequence[Any] | Array) -> Coded:
    import numpy as np

    if isinstance(column, np.ndarray):
        values, codes = np.unique(column, return_inverse=True)
        return Coded(codes, values.tolist())
    different = list(dict.fromkeys(column))
    place = {value: number for number, value in enumerate(different)}
    return Coded(np.fromiter((place[value] for value in column), np.int32, len(column)), different)


def words(cell: str) -> list[str]:
    """Split a comma-separated cell."""
    return cell.split(",") if cell else []


def kinds_in(frame: Frame, column: str, places: Array | None = None) -> set[str]:
    """All words in a column of comma-separated cells."""
    coded = frame.coded(column)
    codes = coded.codes if places is None else coded.codes[places]
    return {word for code in set(codes.tolist()) for word in words(coded.values[code])}
