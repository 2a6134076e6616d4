"""Consumer skip: a consumer went past a record without being shown it, and without being told.

Verifies, at the end of validation, for every offset that a consumer's position went over since its application last
heard of a reset, a seek, a truncation or a position out of range: the record that the leader's log holds there, below
the HW and not below the log start, was shown to that consumer. A consumer that goes back silently has what lies behind
ahead of it again. Judged is what lies before the last record that it has read of the final log: a consumer that has yet
to hear of a new leader may still find out.

Does not verify: what applications do when they are told; without a leader, anything.
"""

from __future__ import annotations

from typing import ClassVar, Final

from sim.checkers.checker import ANY_RECORD, Checker, Finding, RunEnd
from sim.history import steps
from sim.history.clients import Shown
from sim.history.history import History
from sim.plurals import counted
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log

_TOLD: Final = (steps.OUT_OF_RANGE, steps.RESET, steps.SEEK, steps.TRUNCATION_DETECTED)
"""After these a consumer's application knows that it goes elsewhere."""
_REWOUND: Final = (steps.REWIND, steps.RESTART_CONSUMER)


class ConsumerSkip(Checker):
    """Follows the consumers' positions, and compares what they went over with what was shown at the end.

    Args:
        history: what was shown; where violations go.
    """

    __slots__ = ("_clients", "_passed", "_shown_when_told")

    FINDINGS: ClassVar = (Finding("consumer-skip", ANY_RECORD),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._clients = history.clients
        self._passed: dict[int, list[tuple[int, int]]] = {}
        """Consumer -> ranges of offsets that its position went over, ascending, since its application was last told."""
        self._shown_when_told: dict[int, int] = {}
        """Consumer -> how much had been shown then, to all of them."""

    def on_read(self, step: steps.Read) -> None:
        """See `Read`."""
        ranges = self._passed.get(step.consumer)
        if ranges is None:
            self._passed[step.consumer] = [(step.position, step.end)]
        elif ranges and ranges[-1][1] == step.position:
            ranges[-1] = (ranges[-1][0], step.end)
        else:
            ranges.append((step.position, step.end))

    def on_position(self, step: steps.Position) -> None:
        """See `Position`.

        What was passed before its application was told is its own business. What lies behind a position to which it
        went back silently is ahead again.
        """
        consumer, offset = step.consumer, step.offset
        if step.kind in _TOLD:
            self._passed.pop(consumer, None)
            self._shown_when_told[consumer] = len(self._clients.shown)
        elif step.kind in _REWOUND:
            ranges = self._passed.get(consumer, [])
            self._passed[consumer] = [(start, min(end, offset)) for start, end in ranges if start < offset]

    def final(self, end: RunEnd) -> None:
        """See `Checker.final`."""
        if end.leader is not None:
            self.check(end.leader.log, end.leader.hw, end.now_us)

    def check(self, log: Log, hw: int, now_us: int) -> None:
        """Compare what consumers went over with what they were shown; at most one violation, with all records.

        Args:
            log: the leader's log.
            hw: the leader's high watermark.
            now_us: time of the check.
        """
        ids: set[int] = set()
        first: tuple[int, int, int] | None = None
        kept = {(batch.first_id, batch.base_offset, batch.leader_epoch) for batch in log.batches}
        for consumer, ranges in self._passed.items():
            shown = _Shown(consumer, self._clients.shown, self._shown_when_told.get(consumer, 0))
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
            where = f"the first record {record} at offset {offset}"
            detail = f"consumer {consumer} passed {counted(len(ids), 'record')} unseen, {where}"
            self._violates("consumer-skip", now_us, detail, frozenset(ids))


class _Shown:
    """What one consumer was shown."""

    def __init__(self, consumer: int, shown: list[Shown], when_told: int) -> None:
        self._reads = [one for one in shown if one.consumer == consumer]
        self._from = {one.batch: one.from_offset for one in reversed(self._reads)}
        self._ids: set[int] | None = None
        self._since = shown[when_told:]
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
