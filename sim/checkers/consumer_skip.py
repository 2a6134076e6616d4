"""Consumer skip: a consumer went past a record without being shown it, and without being told.

Verifies, at the end of validation, for every offset that a consumer's position went over since its application last
heard of a reset, a seek, a truncation or a position out of range: the record that the leader's log holds there, below
the HW and not below the log start, was shown to that consumer. A consumer that goes back silently has what lies behind
ahead of it again. Judged is what lies before the last record that it has read of the final log: a consumer that has yet
to hear of a new leader may still find out.

Does not verify: what applications do when they are told; without a leader, anything.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import ANY_RECORD, Checker, Finding, RunEnd
from sim.history.ledger import Ledger, Violation
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log


def check(ledger: Ledger, log: Log, hw: int, now_us: int) -> None:
    """Compare what consumers went over with what they were shown; at most one violation, with all records.

    Args:
        ledger: what consumers did; a violation is added to it.
        log: the leader's log.
        hw: the leader's high watermark.
        now_us: time of the check.
    """
    ids: set[int] = set()
    first: tuple[int, int, int] | None = None
    kept = {(batch.first_id, batch.base_offset, batch.leader_epoch) for batch in log.batches}
    for consumer, ranges in ledger.passed.items():
        shown = _Shown(ledger, consumer)
        limit = min(hw, shown.last_of(kept))
        for start, end in ranges:
            for batch in log.between(max(start, log.log_start), min(end, limit)):
                if shown.begins(batch):
                    continue
                lowest = max(start, log.log_start, batch.base_offset)
                missing = shown.missing(batch, lowest, min(end, limit, batch.last_offset + 1))
                if missing:
                    ids.update(missing)
                    record = missing[0]
                    first = first or (record, batch.base_offset + record - batch.first_id, consumer)
    if first is not None:
        record, offset, consumer = first
        detail = f"consumer {consumer} passed {len(ids)} records unseen, the first record {record} at offset {offset}"
        ledger.violations.append(Violation("consumer-skip", now_us, detail, frozenset(ids)))


class _Shown:
    """What one consumer was shown."""

    def __init__(self, ledger: Ledger, consumer: int) -> None:
        self._reads = [shown for shown in ledger.shown if shown.consumer == consumer]
        self._from = {shown.batch: shown.from_offset for shown in reversed(self._reads)}
        self._ids: set[int] | None = None
        self._since = ledger.shown[ledger.shown_when_told.get(consumer, 0) :]
        self._consumer = consumer

    def last_of(self, kept: set[tuple[int, int, int]]) -> int:
        """Last offset that it was shown of batches (first id, base offset, epoch) since it was told of a jump.

        What was lost and sent again may come to the offset where it stood before, and was not read there.
        """
        own = (shown.batch for shown in self._since if shown.consumer == self._consumer)
        read = (batch.last_offset for batch in own if (batch.first_id, batch.base_offset, batch.leader_epoch) in kept)
        return max(read, default=0)

    def begins(self, batch: Batch) -> bool:
        """Whether it was shown a batch from its first record on, and so misses none of it."""
        from_offset = self._from.get(batch)
        return from_offset is not None and from_offset <= batch.base_offset

    def missing(self, batch: Batch, start: int, end: int) -> list[int]:
        """Records of a batch at offsets from `start` to before `end` that it was not shown."""
        if start >= end or self._from.get(batch, end) <= start:
            return []
        if self._ids is None:
            self._ids = {
                record
                for shown in self._reads
                for record in shown.batch.ids()[shown.from_offset - shown.batch.base_offset :]
            }
        records = batch.ids()[start - batch.base_offset : end - batch.base_offset]
        return [record for record in records if record not in self._ids]


class ConsumerSkip(Checker):
    """Looks at the end."""

    FINDINGS: ClassVar = (Finding("consumer-skip", ANY_RECORD),)

    def final(self, end: RunEnd) -> None:
        """See `Checker.final`."""
        if end.leader is not None:
            check(self._ledger, end.leader.log, end.leader.hw, end.now_us)
