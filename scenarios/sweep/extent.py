"""Sets of seeds of variants: requested, done and missing ones.

A *variant* is a scenario at one point of a grid, identified by its index in `scenarios.sweep.units.Sweep.variants`. A
*piece* is (variant, first seed, end seed), end exclusive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

Piece = tuple[int, int, int]


class Extent:
    """A set of seeds for each variant, made of pieces that may overlap."""

    def __init__(self, pieces: Iterable[Piece] = ()) -> None:
        self._ranges: dict[int, list[tuple[int, int]]] = {}
        for variant, first, end in pieces:
            self._ranges.setdefault(variant, []).append((first, end))
        for variant, ranges in self._ranges.items():
            self._ranges[variant] = merged(ranges)

    def __bool__(self) -> bool:
        return any(self._ranges.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Extent) and self.pieces() == other.pieces()

    __hash__ = None  # type: ignore[assignment]

    def pieces(self) -> list[Piece]:
        """Its pieces: the fewest, in order."""
        return [(variant, *ends) for variant, ranges in sorted(self._ranges.items()) for ends in ranges]

    def plus(self, pieces: Iterable[Piece]) -> Extent:
        """The union with some pieces."""
        return Extent([*self.pieces(), *pieces])

    def minus(self, other: Extent) -> Extent:
        """The difference to `other`."""
        left: list[Piece] = []
        for variant, first, end in self.pieces():
            start = first
            for there, stop in other._of(variant):
                if there >= end:
                    break
                if start < there:
                    left.append((variant, start, there))
                start = max(start, stop)
            if start < end:
                left.append((variant, start, end))
        return Extent(left)

    def overlaps(self, other: Extent) -> bool:
        """Whether both contain some seed of a variant."""
        return self.minus(other) != self

    def has(self, variant: int, seed: int) -> bool:
        """Whether it contains a seed of a variant."""
        return any(first <= seed < end for first, end in self._of(variant))

    def _of(self, variant: int) -> Sequence[tuple[int, int]]:
        return self._ranges.get(variant, ())


def merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges without overlaps, in order; adjacent ones are joined."""
    found: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif first < end:
            found.append((first, end))
    return found


def runs_of(seeds: Iterable[int]) -> list[tuple[int, int]]:
    """Distinct seeds as ranges."""
    return merged((seed, seed + 1) for seed in seeds)


def units(pieces: Iterable[Piece]) -> int:
    """Number of seeds in some pieces."""
    return sum(end - first for _, first, end in pieces)


def split(pieces: Sequence[Piece], count: int) -> list[tuple[Piece, ...]]:
    """Split pieces into `count` shares that differ by at most one seed; fewer if there are fewer seeds."""
    total = units(pieces)
    count = max(1, min(count, total))
    ends = [total * index // count for index in range(1, count + 1)]
    return list(_cut_at(pieces, ends))


def take(pieces: Sequence[Piece], number: int) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """The first `number` seeds of some pieces, and the rest."""
    total = units(pieces)
    if number >= total:
        return tuple(pieces), ()
    head, rest = _cut_at(pieces, [number, total])
    return head, rest


def _cut_at(pieces: Iterable[Piece], ends: Iterable[int]) -> Iterator[tuple[Piece, ...]]:
    """Cut pieces after given numbers of seeds."""
    left = list(pieces)[::-1]
    done = 0
    for end in ends:
        share: list[Piece] = []
        while done < end:
            variant, first, stop = left.pop()
            cut = min(stop, first + end - done)
            if cut < stop:
                left.append((variant, cut, stop))
            share.append((variant, first, cut))
            done += cut - first
        yield tuple(share)
