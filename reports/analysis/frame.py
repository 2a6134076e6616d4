"""Columns of a sweep's rows as arrays: a million rows take some tens of megabytes, and counting them takes moments."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Array = npt.NDArray[Any]
    Mask = npt.NDArray[np.bool_]

DRAWN: Final = "drawn_settings"


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of few different values.

    Attributes:
        codes: of each row, the place of its value.
        values: the different ones.
    """

    codes: Array
    values: list[Any]

    def where(self, test: Callable[[Any], bool]) -> Mask:
        """The rows whose value passes a test, which is asked once of each value."""
        import numpy as np

        passes = np.fromiter((test(value) for value in self.values), np.bool_, len(self.values))
        found: Mask = passes[self.codes]
        return found


class Frame:
    """Rows as columns.

    Args:
        columns: name -> values, a list or what Arrow has for one; an Arrow table is such a mapping, too.
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns
        self._coded: dict[str, Coded] = {}
        self._numbers: dict[str, Array] = {}

    @classmethod
    def of_table(cls, table: pa.Table) -> Frame:
        """The columns of an Arrow table."""
        return cls({name: table[name] for name in table.column_names})

    def coded(self, name: str) -> Coded:
        """A column of few different values."""
        if name not in self._coded:
            self._coded[name] = _code(self._columns[name])
        return self._coded[name]

    def numbers(self, name: str) -> Array:
        """A column of numbers or truth values."""
        if name not in self._numbers:
            self._numbers[name] = _array(self._columns[name])
        return self._numbers[name]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def with_drawn(self, key: str) -> Frame:
        """The rows whose seed decided a setting, with a column for it."""
        drawn = self.coded(DRAWN)
        read = [json.loads(text) for text in drawn.values]
        kept = drawn.where(lambda text: key in json.loads(text)).nonzero()[0]
        codes = drawn.codes[kept]
        columns = {name: _taken(column, kept) for name, column in self._columns.items()}
        return Frame(columns | {key: [read[code][key] for code in codes]})

    @cached_property
    def places(self) -> Array:
        """The place of each row."""
        import numpy as np

        return np.arange(len(self))

    def groups(self, names: Sequence[str]) -> dict[tuple[Any, ...], Array]:
        """The different values of some columns together -> places of the rows that have them, in order."""
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


def _code(column: Any) -> Coded:
    import numpy as np

    if hasattr(column, "dictionary_encode"):
        encoded = column.dictionary_encode().unify_dictionaries().combine_chunks()
        chunks = encoded.chunks if hasattr(encoded, "chunks") else [encoded]
        if not chunks:
            return Coded(np.zeros(0, np.int32), [])
        return Coded(chunks[0].indices.to_numpy(), chunks[0].dictionary.to_pylist())
    values = list(dict.fromkeys(column))
    place = {value: number for number, value in enumerate(values)}
    return Coded(np.fromiter((place[value] for value in column), np.int32, len(column)), values)


def _array(column: Any) -> Array:
    import numpy as np

    return column.to_numpy() if hasattr(column, "dictionary_encode") else np.asarray(column)


def _taken(column: Any, places: Array) -> Any:
    return column.take(places) if hasattr(column, "take") else [column[place] for place in places]


def words(cell: str) -> list[str]:
    """The words of a cell that joins them by commas."""
    return cell.split(",") if cell else []


def kinds_in(frame: Frame, column: str, places: Array | None = None) -> set[str]:
    """The words that the cells of a column hold."""
    coded = frame.coded(column)
    codes = coded.codes if places is None else coded.codes[places]
    return {word for code in set(codes.tolist()) for word in words(coded.values[code])}
