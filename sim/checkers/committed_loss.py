"""Committed loss: a record acknowledged with acks=all is lost at the end of the run.

Verifies, at the end of validation: every record acknowledged with acks=all is in the leader's log at or above the log
start, unless the log start passed it by deletion, of this log or of one that no longer exists (a disk that is replaced
forgets its log start). Without a leader the record must be in some replica's log, in memory or on disk. A record found
only at another offset was relocated, which is counted but is no loss.

Does not verify: records acknowledged with acks=1 or 0, which are only counted; temporary absence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from sim.checkers.checker import ANY_RECORD, Checker, Finding, RunEnd
from sim.history import steps
from sim.history.findings import LossCount, Violation
from sim.history.history import History
from sim.plurals import counted
from sim.protocol.log.log import Log


def check(history: History, logs: Iterable[Log], log_start: int, now_us: int) -> LossCount:
    """Look for all acknowledged records in the leader's log, or without a leader in all existing logs.

    Below `log_start`, deletion explains absence.
    """
    count = LossCount()
    batches = [batch for log in logs for batch in log.batches if batch.last_offset >= log.log_start]
    in_place = {(batch.first_id, batch.base_offset) for batch in batches}
    elsewhere = [
        ack
        for ack in history.clients.acks
        if (ack.first_id, ack.base_offset) not in in_place and ack.base_offset + ack.count > log_start
    ]
    if not elsewhere:
        return count
    present = {record for batch in batches for record in batch.ids()}
    deleted = history.records.deleted
    gone: list[tuple[steps.Ack, frozenset[int]]] = []
    for ack in elsewhere:
        below = max(log_start - ack.base_offset, 0)
        expected = frozenset(range(ack.first_id + below, ack.first_id + ack.count))
        missing = expected - present - deleted
        if not missing:
            count.relocated += len(expected & present)
        elif ack.acks == -1:
            count.lost += len(missing)
            gone.append((ack, missing))
        else:
            count.acks1_lost += len(missing)
    if gone:
        ids = frozenset().union(*(missing for _, missing in gone))
        first = gone[0][0]
        detail = (
            f"acknowledged and gone: {counted(count.lost, 'record')}, the first of them record {min(ids)}; "
            f"its batch was acknowledged at offset {first.base_offset} at {first.at_us / 1e6:.6f} s"
        )
        history.findings.violations.append(Violation("committed-loss", now_us, detail, ids))
    return count


class CommittedLoss(Checker):
    """Checks the final state."""

    FINDINGS: ClassVar = (Finding("committed-loss", ANY_RECORD),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._history = history

    def final(self, end: RunEnd) -> None:
        if end.leader is not None:
            log = end.leader.log
            self._findings.losses = check(self._history, [log], log.log_start, end.now_us)
        else:
            log_start = max(log.log_start for log in end.logs)
            self._findings.losses = check(self._history, end.logs, log_start, end.now_us)
