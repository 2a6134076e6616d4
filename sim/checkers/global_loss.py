"""Early warning ``global-loss``: a committed record is no longer in any log.

A record is committed once the HW of a broker which believes it leads has passed it. From then on at least one replica
must have it, running or down, elected or not: an operator could still recover it (Vanlightly:
NoCommittedRecordLostGlobally, there of acknowledged records only). Leader completeness does not cover this, since it
requires nothing while there is no leader.

Verifies: whenever a log loses batches, by a crash, a damaged or replaced disk, truncation, or deletion of a replica,
each committed record among them is in another log, or a second time in this one. Each batch is reported once.

Does not verify: records that a leader's retention deleted; logs of crashed brokers before recovery, beyond the batches
known to be lost; whether a record reappears, resent by a producer or from a fetch response that a paused follower has
not processed.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import LogsChecker, warning
from sim.history import steps
from sim.history.history import History
from sim.plurals import named
from sim.protocol.batch import Batch


class GlobalLoss(LogsChecker):
    """Tracks all logs, including those of stopped brokers."""

    FINDINGS: ClassVar = (warning("global-loss"),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._commits = history.commits
        self._records = history.records
        self._reported: set[int] = set()

    def on_truncate(self, step: steps.Truncate) -> None:
        if step.removed:
            self._removed(step.removed, step.at_us)

    def on_deleted(self, step: steps.Deleted) -> None:
        super().on_deleted(step)
        self._removed(step.removed, step.at_us)

    def on_end(self, step: steps.End) -> None:
        super().on_end(step)
        self._removed(step.lost, step.at_us)

    def _removed(self, batches: list[Batch], now_us: int) -> None:
        commits = self._commits.first_us
        gone = [batch for batch in batches if batch.first_id in commits and batch.first_id not in self._reported]
        self.decided = self.decided or len(gone) > 0
        for log in self._logs.values():
            if gone:
                gone = [batch for batch in log.missing(gone) if not self._records.survive_in(log, batch)]
        ids = frozenset(record for batch in gone for record in batch.ids()) - self._records.deleted
        if ids:  # If no other log is left, `gone` still includes records that retention deleted.
            self._reported.update(batch.first_id for batch in gone)
            record = min(ids)
            offset = next(batch.base_offset + record - batch.first_id for batch in gone if record in batch.ids())
            are = "is" if len(ids) == 1 else "are"
            detail = f"{named(ids, offset, 'committed record')} {are} in no broker's log any more"
            self._warns("global-loss", now_us, detail, ids)
