"""Early warnings ``flushed-loss``: after a restart, a log does not begin with the batches that had been flushed; and
``unflushed``: a log has more records that are not flushed than its settings allow.

A flush (fsync) survives every end of a process and every power loss. So recovery may drop unflushed batches only, and
batches that the protocol truncated before the end are not flushed any more.

Verifies, when a process has loaded its log: the last batch that was flushed at the end of the process before is in the
log, after as many batches as then, unless it lies below the log start. A controlled shutdown flushes the whole log. At
the end of a process: fewer than ``log.flush.interval.messages`` records are not flushed, and all are up to the last
segment. So a power loss that loses more is no excuse.

Does not verify: batches that only write-back had reached; disks that were replaced, and batches that became unreadable,
which nothing can keep.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import LogsChecker, warning
from sim.history import steps
from sim.history.history import History
from sim.plurals import counted
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log, place_of


class FlushedLoss(LogsChecker):
    """Compares logs after restarts with what was flushed before."""

    FINDINGS: ClassVar = (warning("flushed-loss"), warning("unflushed"))

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._flushed: dict[int, tuple[Batch, int, int]] = {}
        """Broker that is down -> last flushed batch, number of flushed batches, log start."""

    def on_flushed(self, step: steps.Flushed) -> None:
        if step.unflushed > step.most_unflushed and not step.damaged:
            detail = (
                f"broker {step.broker} ends with {counted(step.unflushed, 'record')} that are not flushed, and its "
            )
            detail += f"settings allow {step.most_unflushed}"
            self._warns("unflushed", step.at_us, detail, (), (step.broker,))
        if step.damaged or step.broker not in self._flushed:
            if step.last is not None:
                self._flushed[step.broker] = step.last, step.count, step.log_start
            else:
                self._flushed.pop(step.broker, None)

    def on_end(self, step: steps.End) -> None:
        log = self._logs.pop(step.broker, None)
        if log is not None and step.kind is steps.SHUTDOWN and not step.unclean and log.batches:
            self._flushed[step.broker] = log.batches[-1], len(log.batches), log.log_start

    def on_recovered(self, step: steps.Recovered) -> None:
        super().on_recovered(step)
        flushed = self._flushed.pop(step.broker, None)
        if flushed is None:
            return
        self.decided = True
        last, count, log_start = flushed
        log = step.replica.log
        if last.last_offset < log.log_start or _begins_with(log, last, count, log_start):
            return
        gone = [batch for batch in step.lost if batch.base_offset <= last.base_offset] or [last]
        ids = frozenset(record for batch in gone for record in batch.ids())
        detail = (
            f"broker {step.broker} loaded a log with LEO {log.leo} that lacks flushed records; "
            f"{count} batches up to offset {last.last_offset} had been flushed"
        )
        self._warns("flushed-loss", step.at_us, detail, ids, (step.broker,))


def _begins_with(log: Log, last: Batch, count: int, log_start: int) -> bool:
    """Whether a log has a batch, after as many other batches as it had with this log start."""
    place = place_of(log.lasts, last.last_offset)
    if place >= len(log.batches) or log.batches[place] is not last:
        return False
    return log.log_start > log_start or place + 1 - place_of(log.lasts, log_start) == count
