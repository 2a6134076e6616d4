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

from bisect import bisect_right
from typing import ClassVar

from sim.checkers.checker import IDEMPOTENT, Checker, Finding, RunEnd
from sim.history import steps
from sim.history.history import History
from sim.plurals import counted
from sim.protocol.batch import Batch


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
        by_sequence: dict[tuple[int, int], list[Batch]] = {}
        for batch in sorted(batches, key=_sequence):
            by_sequence.setdefault((batch.producer_id, batch.producer_epoch), []).append(batch)
        lacking = {one.producer_id for one in self._history.commits.batches if one.first_id not in present}
        behind: dict[tuple[int, int], int] = {}
        detail = ""
        for failed in self._failed:
            key, sequence = failed.sequence[:2], failed.sequence[2]
            own = by_sequence.get(key, [])
            self.decided = self.decided or len(own) > 0
            place = bisect_right(own, sequence, key=_sequence)
            filled = place > 0 and sequence < own[place - 1].base_sequence + own[place - 1].count
            if place == len(own) or filled or failed.first_id in present or key[0] in lacking:
                continue
            behind[key] = min(place, behind.get(key, place))
            detail = detail or (
                f"{counted(failed.count, 'record')} from record {failed.first_id} on, which the producer gave up "
                f"({failed.error}), {'are' if failed.count > 1 else 'is'} not in the log, but record "
                f"{own[place].first_id}, sent later, is at offset {own[place].base_offset}"
            )
        ids = [record for key, place in behind.items() for one in by_sequence[key][place:] for record in one.ids()]
        if ids:
            self._violates("sequence-gap", end.now_us, detail, frozenset(ids))


def _sequence(batch: Batch) -> int:
    return batch.base_sequence
