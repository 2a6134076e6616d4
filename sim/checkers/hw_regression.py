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
from sim.native import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class HwRegression(Checker):
    """Judges each response that a consumer receives."""

    FINDINGS: ClassVar = (Finding("hw-regression", ALL_RECORDS),)

    def on_end_offset(self, step: steps.EndOffset) -> None:
        history, known, end_offset, leader_epoch = self._history, step.known, step.offset, step.epoch
        if known is None:
            return
        self.decided = True
        earlier = known.until(leader_epoch)
        if end_offset < earlier:
            ids = history.commits.ids_between(end_offset, earlier)
            detail = f"clients saw end offset {earlier}; later ListOffsets answered {end_offset} (epoch {leader_epoch})"
            found = history.findings.violations
            if not found or found[-1].ids is not ids:
                history.budget.take(len(ids), step.at_us)
            found.append(Violation("hw-regression", step.at_us, detail, ids))
        elif end_offset < known.end:
            history.findings.stale_reads += 1
