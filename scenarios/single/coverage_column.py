"""What runs have reached, as one column of their rows, and summed over many.

The column is a number in hexadecimal. Its bits stand for all probes, then for the kinds of faults that took effect,
then, kind by kind, for the transitions in the wake of one (`sim.history.coverage`). Which bit is which changes from
version to version of the code; a sweep is made by one, and its summary spells the names out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from faults.kinds.registry import KINDS as FAULTS
from sim.protocol.probes import PROBES, TRANSITIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from faults.kinds.injection import RealisedFault
    from sim.history.coverage import Coverage

KINDS: Final = {kind: number for number, kind in enumerate(FAULTS)}
BITS: Final = len(PROBES) + len(KINDS) * (1 + TRANSITIONS)


def column(coverage: Coverage, realised: Iterable[RealisedFault]) -> str:
    """What goes into the row of a run."""
    effective = {fault.kind for fault in realised if fault.effective}
    return f"{coverage.bits(KINDS, effective):x}"


class Reached:
    """How many runs have reached what.

    A number for each bit, all of them kept as bits of a few long integers: the first holds the ones of all numbers, the
    next the twos, and so on. To add a run is to carry, and costs two or three operations for all bits together.

    Attributes:
        runs: how many runs were added; those of older versions, whose rows have no such column, are not.
    """

    def __init__(self) -> None:
        self.runs = 0
        self._digits: list[int] = []

    def add(self, text: str) -> None:
        """Take the column of one run."""
        if not text:
            return
        self.runs += 1
        carry = int(text, 16)
        for place, digit in enumerate(self._digits):
            if not carry:
                return
            self._digits[place] = digit ^ carry
            carry &= digit
        if carry:
            self._digits.append(carry)

    def counts(self) -> list[int]:
        """For each bit, the most significant first, how many runs have it."""
        totals = [0] * BITS
        for place, digit in enumerate(self._digits):
            for index, bit in enumerate(f"{digit:0{BITS}b}"):
                totals[index] += (bit == "1") << place
        return totals


def to_json(by_mode: dict[str, Reached]) -> dict[str, Any]:
    """Names and counts by mode; a mode that has none of something is left out there.

    Returns:
        ``runs`` by mode; ``probes``: group, name, mode; ``faults``: kind, mode; ``pairs``: kind, transition, mode, of
        those that were reached.
    """
    counts = {mode: reached.counts() for mode, reached in by_mode.items()}

    def of(index: int) -> dict[str, int]:
        return {mode: totals[index] for mode, totals in counts.items() if totals[index]}

    probes: dict[str, dict[str, dict[str, int]]] = {}
    for index, probe in enumerate(PROBES):
        probes.setdefault(probe.group, {})[probe.name] = of(index)
    first = len(PROBES)
    faults = {kind: of(first + index) for index, kind in enumerate(KINDS)}
    first += len(KINDS)
    pairs = {
        kind: {PROBES[index].name: found for index in range(TRANSITIONS) if (found := of(start + index))}
        for start, kind in zip(range(first, BITS, TRANSITIONS), KINDS, strict=True)
    }
    runs = {mode: reached.runs for mode, reached in by_mode.items()}
    return {"runs": runs, "probes": probes, "faults": faults, "pairs": pairs}
