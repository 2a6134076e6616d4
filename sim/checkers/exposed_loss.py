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
from sim.plurals import counted


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
        ids: set[int] = set()
        first: tuple[int, int] | None = None
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
                    ids.add(record)
                    first = first or (record, offset)
        if first is not None:
            record, offset = first
            gone = counted(len(ids), "record")
            detail = f"shown to a consumer and gone: {gone}, the first record {record} at offset {offset}"
            self._violates("exposed-loss", end.now_us, detail, frozenset(ids))
