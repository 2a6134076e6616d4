"""The guarantee map: runs without violations, and with some inside or outside the promise, by faults and settings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from reports.analysis.compare import release_order
from reports.analysis.frame import DRAWN, kinds_in, words
from reports.analysis.statistics import interval
from reports.formatting import LEAST, percent
from sim.config import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from reports.analysis.frame import Array, Frame, Mask
    from scenarios.sweep.store import Store
    from sim.config import Value

FAULTS: Final = "fault_kinds"
NEEDS: Final = ("scenario", "mode", "verdict", "violations", "violations_inside", FAULTS, DRAWN)
"""Columns to read, besides the settings that vary."""
NONE: Final = "(no fault)"


@dataclass(frozen=True, slots=True)
class RunCounts:
    """A set of runs: how many, how many with violations inside the promise, how many with violations only outside."""

    runs: int
    inside: int
    outside: int

    @property
    def kept(self) -> int:
        """Number of runs without violations."""
        return self.runs - self.inside - self.outside

    @property
    def worst(self) -> str:
        """The worst outcome: ``inside``, ``outside``, ``kept``, or ``none`` without runs."""
        if not self.runs:
            return "none"
        return "inside" if self.inside else "outside" if self.outside else "kept"

    @property
    def said(self) -> str:
        """The counts, with an upper bound on the rate if nothing was violated."""
        if not self.runs:
            return "no run"
        if self.worst == "kept":
            bound = f", <= {percent(interval(0, self.runs)[1])}" if self.runs >= LEAST else ""
            return f"0 of {self.runs:,}{bound}"
        parts = [f"{self.inside:,} inside"] if self.inside else []
        parts += [f"{self.outside:,} outside"] if self.outside else []
        return f"{', '.join(parts)} of {self.runs:,}"


@dataclass(frozen=True, slots=True)
class Map:
    """A table of cells.

    Attributes:
        title: its title.
        rows_are: what rows stand for.
        columns_are: what columns stand for.
        columns: names of the columns.
        rows: row name -> cells.
    """

    title: str
    rows_are: str
    columns_are: str
    columns: tuple[str, ...]
    rows: dict[str, tuple[RunCounts, ...]]


def maps(store: Store, frame: Frame) -> list[Map]:
    """The maps of a scenario's rows: faults by modes, and settings that vary or are drawn."""
    import numpy as np

    counted = np.flatnonzero(~frame.coded("verdict").where("error".__eq__))
    if not len(counted):
        return []
    modes = sorted({frame.coded("mode").values[code] for code in frame.coded("mode").codes}, key=release_order)
    maker = _Maker(frame, counted)
    by_mode = {name: maker.has("mode", name) for name in modes}
    return [
        _by_faults(maker, by_mode),
        *_by_grid(maker, by_mode, store.grid),
        *_by_drawn(maker, by_mode),
    ]


class _Maker:
    """Makes cells of the rows that are not errors."""

    def __init__(self, frame: Frame, counted: Array) -> None:
        self.frame = frame
        self.counted = counted
        self._inside = frame.coded("violations_inside").where(bool)[counted]
        self._outside = frame.coded("violations").where(bool)[counted] & ~self._inside

    def has(self, column: str, value: Any) -> Mask:
        """Mask of the rows with a value in a column."""
        found: Mask = self.frame.coded(column).where(value.__eq__)[self.counted]
        return found

    def cell(self, rows: Mask) -> RunCounts:
        """The cell of a mask's rows."""
        return RunCounts(int(rows.sum()), int((rows & self._inside).sum()), int((rows & self._outside).sum()))

    def table(
        self, title: str, are: tuple[str, str], rows: Iterable[tuple[str, Mask]], columns: Mapping[str, Mask]
    ) -> Map:
        """The table of all combinations of rows and columns."""
        cells = {name: tuple(self.cell(row & column) for column in columns.values()) for name, row in rows}
        return Map(title, *are, tuple(columns), cells)


def _by_faults(maker: _Maker, by_mode: Mapping[str, Mask]) -> Map:
    coded = maker.frame.coded(FAULTS)

    def rows() -> Iterator[tuple[str, Mask]]:
        for kind in sorted(kinds_in(maker.frame, FAULTS)):
            yield kind, coded.where(partial(_names, kind))[maker.counted]
        yield NONE, coded.where(lambda cell: not cell)[maker.counted]

    found = maker.table("Kinds of fault that took effect in a run, by mode", ("fault", "mode"), rows(), by_mode)
    if not any(cell.runs for cell in found.rows[NONE]):
        del found.rows[NONE]
    return found


def _names(kind: str, cell: str) -> bool:
    return kind in words(cell)


def _by_grid(maker: _Maker, by_mode: Mapping[str, Mask], grid: Mapping[str, Sequence[Value]]) -> Iterator[Map]:
    """Each setting by mode; and each two settings, mode by mode."""
    masks = {key: {shown(value): maker.has(key, value) for value in values} for key, values in grid.items()}
    for key, values in masks.items():
        yield maker.table(f"{key}, by mode", (key, "mode"), values.items(), by_mode)
    keys = list(masks)
    for place, key in enumerate(keys):
        for other in keys[place + 1 :]:
            for mode, those in by_mode.items():
                rows = [(name, mask & those) for name, mask in masks[key].items()]
                yield maker.table(f"{mode}: {key}, by {other}", (key, other), rows, masks[other])


def _by_drawn(maker: _Maker, by_mode: Mapping[str, Mask]) -> Iterator[Map]:
    """Each setting that the seed decides, by mode."""
    coded = maker.frame.coded(DRAWN)
    read = {cell: json.loads(cell) for cell in coded.values}
    for key in sorted({key for settings in read.values() for key in settings}):
        values = sorted({settings[key] for settings in read.values() if key in settings})
        rows = [(shown(value), coded.where(_drew(read, key, value))[maker.counted]) for value in values]
        yield maker.table(f"{key}, as the seed drew it, by mode", (key, "mode"), rows, by_mode)


def _drew(read: Mapping[str, Mapping[str, Any]], key: str, value: Value) -> Callable[[str], bool]:
    return lambda cell: read[cell].get(key) == value
