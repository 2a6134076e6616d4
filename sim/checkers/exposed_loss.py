"""Exposed loss: a consumer read a record, and at the end its offset has no record or another one.

Verifies, at the end of validation, for every (record, offset) read at or above the log start of the leader's log: the
log has that record at that offset, unless a leader's retention deleted it. Reported apart from committed loss. Without
a leader nothing is judged.

Does not verify: whether the record is at another offset of the log.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import READABLE, Checker, Finding, RunEnd
from sim.native import mypyc_attr
from sim.plurals import named


@mypyc_attr(allow_interpreted_subclasses=True)
class ExposedLoss(Checker):
    """Checks the final state."""

    FINDINGS: ClassVar = (Finding("exposed-loss", READABLE),)

    def final(self, end: RunEnd) -> None:
        """Compare reads with the final log; at most one violation, with all records."""
        if end.leader is None:
            return
        history, log = self._history, end.leader.log
        self.decided = len(history.clients.shown) > 0
        lost: dict[int, int] = {}
        """Record -> its offset."""
        kept = set(log.batches)
        for shown in history.clients.shown:
            batch = shown.batch
            if batch in kept:
                continue
            start = max(shown.from_offset, log.log_start)
            for offset in range(start, batch.last_offset + 1):
                record = batch.first_id + offset - batch.base_offset
                if record in history.records.deleted:
                    continue
                found = log.batch_at(offset)
                if found is None or found.first_id + offset - found.base_offset != record:
                    lost.setdefault(record, offset)
        if lost:
            gone = "it is" if len(lost) == 1 else "they are"
            detail = f"a consumer read {named(lost, lost[min(lost)])}; {gone} no longer there"
            self._violates("exposed-loss", end.now_us, detail, frozenset(lost))
