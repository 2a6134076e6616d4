"""Sequence gap: a log has a later batch of an idempotent producer, but not one that was sent before it.

Verifies, at the end of validation, for each batch that a producer gave up: if the leader's log lacks it, the log has no
batch of the same producer id and epoch with a later sequence. A leader refuses a batch whose sequence is not the next
one, but accepts any sequence of a producer that it does not know (KAFKA-15591). The order that an idempotent producer
promises is broken then: the records behind the gap stand in the log, and those before it never will.

Does not verify: a producer of which a committed record is missing in the log, lost or deleted, because its state went
with that record; batches that stand in the log with another sequence; batches that the producer still retries; without
a leader, anything.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import IDEMPOTENT, Checker, Finding, RunEnd
from sim.history import steps
from sim.history.history import History
from sim.plurals import counted


class SequenceGap(Checker):
    """Collects the batches that producers gave up, and looks for what follows them in the final log."""

    FINDINGS: ClassVar = (Finding("sequence-gap", IDEMPOTENT),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._failed: list[steps.BatchFailed] = []

    def on_batch_failed(self, step: steps.BatchFailed) -> None:
        if step.sequence[0] >= 0:
            self._failed.append(step)

    def final(self, end: RunEnd) -> None:
        """Compare the failed batches with the final log; at most one violation, with all records behind gaps."""
        if end.leader is None or not self._failed:
            return
        batches = end.leader.log.batches
        present = {batch.first_id for batch in batches}
        ids: set[int] = set()
        detail = ""
        for failed in self._failed:
            producer_id, producer_epoch, sequence = failed.sequence
            own = [one for one in batches if (one.producer_id, one.producer_epoch) == (producer_id, producer_epoch)]
            self.decided = self.decided or len(own) > 0
            later = [one for one in own if one.base_sequence > sequence]
            filled = any(one.base_sequence <= sequence < one.base_sequence + one.count for one in own)
            if not later or filled or failed.first_id in present or self._lacks_committed(producer_id, present):
                continue
            ids.update(record for one in later for record in one.ids())
            detail = detail or (
                f"{counted(failed.count, 'record')} from record {failed.first_id} on, which the producer gave up "
                f"({failed.error}), {'are' if failed.count > 1 else 'is'} not in the log, but record "
                f"{later[0].first_id}, sent later, stands at offset {later[0].base_offset}"
            )
        if ids:
            self._violates("sequence-gap", end.now_us, detail, frozenset(ids))

    def _lacks_committed(self, producer_id: int, present: set[int]) -> bool:
        """Whether a committed batch of a producer is missing in the final log."""
        committed = self._history.commits.batches
        return any(one.producer_id == producer_id and one.first_id not in present for one in committed)
