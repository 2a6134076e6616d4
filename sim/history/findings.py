"""What was found: violations, early warnings, and what became of acknowledged records."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(slots=True)
class Violation:
    """A broken guarantee, or an early warning of one.

    Attributes:
        kind: ``committed-loss``, ``divergence``, ...
        at_us: when it was seen.
        detail: one sentence with offsets, epochs and brokers.
        ids: the records concerned (empty where the kind is not about records).
        inside: whether the mode's promise covers it; decided later.
    """

    kind: str
    at_us: int
    detail: str
    ids: AbstractSet[int] = frozenset()
    inside: bool = True


class LossCount:
    """What became of acknowledged records: `lost`, `acks1_lost`, `relocated`."""

    __slots__ = ("acks1_lost", "lost", "relocated")

    def __init__(self) -> None:
        self.lost = 0
        self.acks1_lost = 0
        self.relocated = 0


class Findings:
    """What was found in one run.

    Attributes:
        violations: so far.
        warnings: early warnings so far.
        stale_reads: ListOffsets answers of an older epoch below what was exposed.
        losses: what became of acknowledged records, once the run has ended.
    """

    __slots__ = ("losses", "stale_reads", "violations", "warnings")

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.warnings: list[Violation] = []
        self.stale_reads = 0
        self.losses = LossCount()
