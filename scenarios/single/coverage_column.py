"""The coverage of runs as a column of their rows, and summed over many runs.

The column is a hexadecimal number. Its bits are all probes, then the kinds of faults that took effect, then for each
kind the transitions that followed it (`sim.history.coverage`). The meaning of a bit may change with every version; a
sweep has one version, and its summary contains the names.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from faults.kinds.injection import RealisedFault
from faults.kinds.registry import KINDS
from sim.history.coverage import Coverage
from sim.protocol.probes import BRANCHES, PROBES, TRANSITIONS
from sim.protocol.rules import RULES, Rules


def width() -> int:
    """Number of bits."""
    return len(PROBES) + len(KINDS) * (1 + TRANSITIONS)


def column(coverage: Coverage, realised: Iterable[RealisedFault]) -> str:
    """The column of a run."""
    effective = {fault.kind for fault in realised if fault.effective}
    return f"{coverage.bits(_numbers(tuple(KINDS)), effective):x}"


@lru_cache(maxsize=4)
def _numbers(kinds: tuple[str, ...]) -> dict[str, int]:
    """The kinds of faults, which plug-ins may add to, with their numbers."""
    return {kind: number for number, kind in enumerate(kinds)}


def moved(column: str, rules: Rules, others: Rules) -> str:
    """The column of a run whose rules had no effect against those of `others`, as a run with the others has it.

    The branch of a rule's value becomes that of the other value, which has acted alike.
    """
    found, first = int(column, 16), width() - 1
    for name, one, other in _differences(rules, others):
        bit = 1 << (first - BRANCHES[name, one])
        if found & bit:
            found = found & ~bit | 1 << (first - BRANCHES[name, other])
    return f"{found:x}"


@lru_cache(maxsize=256)
def _differences(rules: Rules, others: Rules) -> list[tuple[str, str, str]]:
    """Rules in which both differ, with both values. A plug-in's rule that neither names has one value in both."""
    values = [(name, rules.value(name), others.value(name)) for name in RULES]
    return [(name, one, other) for name, one, other in values if one != other]


class Reached:
    """Counts for each bit the runs that reached it.

    All counts are stored across a few long integers: the first contains the ones of all counts, the next the twos, and
    so on. Adding a run is a carry, two or three operations for all bits together.

    Attributes:
        runs: number of runs added; rows of older versions without the column are skipped.
    """

    def __init__(self) -> None:
        self.runs = 0
        self._digits: list[int] = []

    def add(self, text: str) -> None:
        """Add the column of a run."""
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
        """Number of runs for each bit, the most significant first."""
        bits = width()
        totals = [0] * bits
        for place, digit in enumerate(self._digits):
            for index, bit in enumerate(f"{digit:0{bits}b}"):
                totals[index] += (bit == "1") << place
        return totals


def to_json(by_mode: dict[str, Reached]) -> dict[str, Any]:
    """Names and counts by mode, without zero counts.

    Returns:
        ``runs`` by mode; ``probes``: group, name, mode; ``faults``: kind, mode; reached ``pairs``: kind, transition,
        mode.
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
        for start, kind in zip(range(first, width(), TRANSITIONS), KINDS, strict=True)
    }
    runs = {mode: reached.runs for mode, reached in by_mode.items()}
    return {"runs": runs, "probes": probes, "faults": faults, "pairs": pairs}
