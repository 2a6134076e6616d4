"""Early warning ``log-mismatch``: logs differ at or below a record of the same offset and epoch.

Raft's log matching: if two logs have a record of the same epoch at the same offset, they have the same records from the
higher log start up to there. `sim.checkers.divergence` makes this a violation below both HWs, which is what clients
depend on; the protocol also needs it above the HW, and for logs that are not truncated yet.

Verifies, at each append: a batch follows the same batch in every log that has it as in the log of the leader that
created it; by induction the logs below it are equal, since truncation and loss only remove suffixes. When a leader
creates a batch at offsets for which its epoch was used before: no other log, of a live or stopped broker, has another
record of that epoch there.

Does not verify: logs that differ without a common (offset, epoch) above the difference, which is legal until they are
truncated; offsets below a log start; batches of a fetch response that was in flight when the last log lost them.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import LogsChecker, warning
from sim.history import steps
from sim.history.history import History
from sim.protocol.batch import Batch


class LogMatching(LogsChecker):
    """Records the predecessor of each batch."""

    FINDINGS: ClassVar = (warning("log-mismatch"),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._before: dict[Batch, Batch | int] = {}
        """Batch -> its predecessor in the log of the leader that created it: a batch, or the log start."""
        self._ends: dict[int, int] = {}
        """Leader epoch -> offset up to which it was used."""

    def on_append(self, step: steps.Append) -> None:
        broker, batch, before, now_us = step.broker, step.batch, step.before, step.at_us
        expected = self._before.get(batch)
        if expected is None:
            self._before[batch] = before
            end = self._ends.get(batch.leader_epoch, 0)
            if batch.base_offset < end:
                self._look_for_others(broker, batch, now_us)
            if batch.last_offset >= end:
                self._ends[batch.leader_epoch] = batch.last_offset + 1
            return
        self.decided = True
        if before is not expected and not _begins_between(before, expected):
            self._report(broker, batch, before, expected, now_us)

    def _report(self, broker: int, batch: Batch, before: Batch | int, expected: Batch | int, now_us: int) -> None:
        detail = (
            f"broker {broker} appended offset {batch.base_offset} of epoch {batch.leader_epoch} after {_said(before)}; "
            f"where it was made it follows {_said(expected)}"
        )
        ids = frozenset(record for one in (before, expected) if not isinstance(one, int) for record in one.ids())
        self._warns("log-mismatch", now_us, detail, ids, (broker,))

    def _look_for_others(self, broker: int, batch: Batch, now_us: int) -> None:
        for other, log in self._logs.items():
            for offset in range(max(batch.base_offset, log.log_start), batch.last_offset + 1):
                found = log.batch_at(offset)
                if found is not None and found is not batch and found.leader_epoch == batch.leader_epoch:
                    detail = (
                        f"at offset {offset} of epoch {batch.leader_epoch} broker {broker} has record "
                        f"{batch.first_id + offset - batch.base_offset} and broker {other} has record "
                        f"{found.first_id + offset - found.base_offset}"
                    )
                    ids = frozenset((*batch.ids(), *found.ids()))
                    self._warns("log-mismatch", now_us, detail, ids, (broker,))
                    break


def _begins_between(one: Batch | int, other: Batch | int) -> bool:
    """Whether two logs with different predecessors of a batch differ only below the higher of their log starts."""
    if isinstance(one, int):
        return isinstance(other, int) or other.last_offset < one
    return isinstance(other, int) and one.last_offset < other


def _said(before: Batch | int) -> str:
    if isinstance(before, int):
        return f"nothing from {before} on"
    return f"record {before.first_id} at offset {before.base_offset} of epoch {before.leader_epoch}"
