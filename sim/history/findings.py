"""Findings: violations, early warnings, and the fate of acknowledged records."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(slots=True)
class Violation:
    """A broken guarantee, or an early warning of one.

    Attributes:
        at_us: when it was detected.
        detail: one sentence with offsets, epochs and brokers.
        ids: the records concerned (empty if the kind is not about records).
        inside: whether the mode's promise covers it; set later.
        weak: brokers that an early warning is about: those that lack records or that the leader does not wait for.
        unless_lost: the promise does not cover it if one of these records was lost by an end that the promise excuses.
        promised: when a mode's promise covers it, if that is another word than for its kind.
        partition: the partition, if that is not the first; set when the run is judged, and named in `detail`.
    """

    kind: str
    at_us: int
    detail: str
    ids: AbstractSet[int] = frozenset()
    inside: bool = True
    weak: tuple[int, ...] = ()
    unless_lost: AbstractSet[int] = frozenset()
    promised: str = ""
    partition: str = ""


class LossCount:
    """The fate of acknowledged records: `lost`, `acks1_lost`, `relocated`."""

    def __init__(self) -> None:
        self.lost = 0
        self.acks1_lost = 0
        self.relocated = 0


class Findings:
    """The findings of one run so far; early warnings stand apart.

    Attributes:
        stale_reads: ListOffsets responses of an older epoch below an exposed offset.
        losses: the fate of acknowledged records, set at the end of the run.
    """

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.warnings: list[Violation] = []
        self.stale_reads = 0
        self.losses = LossCount()
