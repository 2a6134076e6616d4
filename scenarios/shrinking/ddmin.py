"""Delta debugging: the algorithm ddmin of Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input"
(IEEE TSE 28(2), 2002), section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def ddmin(items: Sequence[T], holds: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """A 1-minimal subsequence for which `holds` is true: removing any single item makes it false. It must be true for
    all items together.
    """
    kept = tuple(items)
    parts = 2
    while kept:
        parts = min(parts, len(kept))
        smaller = next((candidate for candidate in _candidates(kept, parts) if holds(candidate)), None)
        if smaller is not None:
            # After a chunk, start again with halves; after a complement, keep the size of chunks.
            parts = 2 if len(smaller) * 2 <= len(kept) else max(2, parts - 1)
            kept = smaller
        elif parts == len(kept):
            break
        else:
            parts *= 2
    return kept


def _candidates(items: tuple[T, ...], parts: int) -> Iterator[tuple[T, ...]]:
    """Each of `parts` chunks of about equal size, then the complement of each."""
    ends = [len(items) * part // parts for part in range(parts + 1)]
    chunks = list(pairwise(ends))
    if parts > 1:
        yield from (items[begin:end] for begin, end in chunks)
    if parts != 2:  # Of two chunks, each is the complement of the other.
        yield from (items[:begin] + items[end:] for begin, end in chunks)
