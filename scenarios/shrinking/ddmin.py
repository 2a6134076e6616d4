"""Delta debugging: the algorithm ddmin of Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input"
(IEEE TSE 28(2), 2002), section 3.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")


def ddmin(items: Sequence[T], holds: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """A part of the items, in their order, for which a test still holds.

    Args:
        items: for all of them the test is taken to hold.
        holds: the test.

    Returns:
        A 1-minimal part: the test was made without each single one of it, and held for none of these.
    """
    kept = tuple(items)
    parts = 2
    while kept:
        parts = min(parts, len(kept))
        smaller = next((candidate for candidate in _candidates(kept, parts) if holds(candidate)), None)
        if smaller is not None:
            # A chunk begins anew, a complement goes on at the same size.
            parts = 2 if len(smaller) * 2 <= len(kept) else max(2, parts - 1)
            kept = smaller
        elif parts == len(kept):
            break
        else:
            parts *= 2
    return kept


def _candidates(items: tuple[T, ...], parts: int) -> Iterator[tuple[T, ...]]:
    """Each of so many chunks of about one size, then all but each of them."""
    ends = [len(items) * part // parts for part in range(parts + 1)]
    chunks = list(pairwise(ends))
    if parts > 1:
        yield from (items[begin:end] for begin, end in chunks)
    if parts != 2:  # Of two, each is what the other leaves.
        yield from (items[:begin] + items[end:] for begin, end in chunks)
