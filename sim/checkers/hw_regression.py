"""HW regression: a client is told a smaller end offset than one that was exposed before it asked.

Verifies: exposures are received ListOffsets(latest) answers and shown records (their offset + 1), each with the epoch
of the answering leader. An answer is a violation if it lies below an exposure that was received before its request was
sent, from the same or an older epoch. Below one of a newer epoch it is a stale read: counted only.

Does not verify: HW fields, empty fetches and OFFSET_NOT_AVAILABLE, which promise nothing.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import ALL_RECORDS, Checker, Finding
from sim.history import steps
from sim.history.findings import Violation
from sim.history.history import History
from sim.history.steps import Exposed


def check_answer(history: History, known: Exposed | None, end_offset: int, leader_epoch: int, now_us: int) -> None:
    """Judge one successful ListOffsets(latest) answer.

    Args:
        history: what was committed; where a violation goes.
        known: `sim.history.clients.Clients.exposed` as it was when the request was sent.
        end_offset: the answer.
        leader_epoch: epoch of the answering leader.
        now_us: when it was received.
    """
    if known is None:
        return
    earlier = known.until(leader_epoch)
    if end_offset < earlier:
        ids = history.commits.ids_between(end_offset, earlier)
        detail = f"end offset {earlier} was exposed, then epoch {leader_epoch} answered {end_offset}"
        found = history.findings.violations
        if not found or found[-1].ids is not ids:
            history.budget.take(len(ids), now_us)
        found.append(Violation("hw-regression", now_us, detail, ids))
    elif end_offset < known.end:
        history.findings.stale_reads += 1


class HwRegression(Checker):
    """Judges each answer that a consumer receives.

    Args:
        history: what was committed; where violations go.
    """

    __slots__ = ("_history",)

    FINDINGS: ClassVar = (Finding("hw-regression", ALL_RECORDS),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._history = history

    def on_end_offset(self, step: steps.EndOffset) -> None:
        """See `EndOffset`."""
        check_answer(self._history, step.known, step.offset, step.epoch, step.at_us)
