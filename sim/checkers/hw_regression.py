"""HW regression: a client gets a smaller end offset than one exposed before its request.

Verifies: no ListOffsets(latest) response is below an end offset exposed before its request was sent, by a leader of the
same or an older epoch. Exposed are received ListOffsets(latest) responses and offsets of records read (+ 1), each with
the epoch of the responding leader. A response below one of a newer epoch is a stale read, which is only counted.

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
    """Judge one successful ListOffsets(latest) response, by what was exposed when the request was sent."""
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
    """Judges each response that a consumer receives."""

    FINDINGS: ClassVar = (Finding("hw-regression", ALL_RECORDS),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._history = history

    def on_end_offset(self, step: steps.EndOffset) -> None:
        check_answer(self._history, step.known, step.offset, step.epoch, step.at_us)
