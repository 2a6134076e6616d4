"""Minimises a case that differs: removes operations, then lowers numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tests.verification.oracle.subject import Case, Operation

LOWERED: int = 64
"""Numbers are lowered in cases of no more operations than this."""


def minimise(case: Case, differing: Callable[[Sequence[Case]], int | None], *, numbers: bool = True) -> Case:
    """A case that cannot be made smaller in one step.

    Args:
        case: one that differs.
        differing: the place of the first of some cases that differs, None if none does.
        numbers: whether numbers may be lowered, too: not where they name brokers.
    """
    for candidates in (_without, _lowered) if numbers else (_without,):
        going = True
        while going:
            going = False
            smaller = list(candidates(case))
            found = differing(smaller) if smaller else None
            if found is not None:
                case, going = smaller[found], True
    return case


def _without(case: Case) -> Iterator[Case]:
    """Cases with fewer operations: without halves, quarters, then single ones, the last ones first."""
    size = len(case) // 2
    while size:
        for start in range(len(case) - size, -1, -size):
            yield case[:start] + case[start + size :]
        size //= 2


def _lowered(case: Case) -> Iterator[Case]:
    if len(case) > LOWERED:
        return
    for place, operation in enumerate(case):
        for smaller in _smaller(operation):
            yield [*case[:place], smaller, *case[place + 1 :]]


def _smaller(operation: Operation) -> Iterator[Operation]:
    for place, value in enumerate(operation):
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            for lower in sorted({0, value // 2, value - 1}):
                yield [*operation[:place], lower, *operation[place + 1 :]]
