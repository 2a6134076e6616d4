"""Consumer skip: a consumer's position passed a record that it neither read nor was notified about.

Verifies, at the end of validation, for every offset that a consumer's position passed since its application was last
notified of a reset, a seek, a truncation or a position out of range: the record at that offset of the leader's log,
below the HW and not below the log start, was read by that consumer. If a position goes back silently, offsets behind it
have to be read again. Only offsets before the last record that the consumer read of the final log are judged: a
consumer that does not know a new leader yet may still detect the truncation.

Does not verify: how applications react to notifications; without a leader, anything.
"""

from __future__ import annotations

from typing import ClassVar, Final

from sim.checkers.checker import ANY_RECORD, Checker, Finding, RunEnd
from sim.history import steps
from sim.history.clients import Shown
from sim.history.history import History
from sim.plurals import counted
from sim.protocol.batch import Batch

_TOLD: Final = (steps.OUT_OF_RANGE, steps.RESET, steps.SEEK, steps.TRUNCATION_DETECTED)
"""Steps by which a consumer's application is notified of a jump."""
_REWOUND: Final = (steps.REWIND, steps.RESTART_CONSUMER)


class ConsumerSkip(Checker):
    """Tracks the consumers' positions, and at the end compares the offsets they passed with the records they read."""

    FINDINGS: ClassVar = (Finding("consumer-skip", ANY_RECORD),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._clients = history.clients
        self._passed: dict[int, list[tuple[int, int]]] = {}
        """Consumer -> ascending ranges of offsets that its position passed since its application was last notified."""
        self._shown_when_told: dict[int, int] = {}
        """Consumer -> number of reads of all consumers at that time."""

    def on_read(self, step: steps.Read) -> None:
        ranges = self._passed.get(step.consumer)
        if ranges is None:
            self._passed[step.consumer] = [(step.position, step.end)]
        elif ranges and ranges[-1][1] == step.position:
            ranges[-1] = (ranges[-1][0], step.end)
        else:
            ranges.append((step.position, step.end))

    def on_position(self, step: steps.Position) -> None:
        """See `Position`.

        Offsets passed before a notification are the application's responsibility. Offsets behind a position that went
        back silently have to be read again.
        """
        consumer, offset = step.consumer, step.offset
        if step.kind in _TOLD:
            self._passed.pop(consumer, None)
            self._shown_when_told[consumer] = len(self._clients.shown)
        elif step.kind in _REWOUND:
            ranges = self._passed.get(consumer, [])
            self._passed[consumer] = [(start, min(end, offset)) for start, end in ranges if start < offset]

    def final(self, end: RunEnd) -> None:
        """Compare the offsets that consumers passed with their reads; at most one violation, with all records."""
        if end.leader is None:
            return
        log, hw = end.leader.log, end.leader.hw
        ids: set[int] = set()
        first: tuple[int, int, int] | None = None
        kept = {(batch.first_id, batch.base_offset, batch.leader_epoch) for batch in log.batches}
        for consumer, ranges in self._passed.items():
            shown = _Shown(consumer, self._clients.shown, self._shown_when_told.get(consumer, 0))
            limit = min(hw, shown.last_of(kept))
            self.decided = self.decided or len(ranges) > 0
            for start, stop in ranges:
                for batch in log.between(max(start, log.log_start), min(stop, limit)):
                    if shown.begins(batch):
                        continue
                    lowest = max(start, log.log_start, batch.base_offset)
                    missing = shown.missing(batch, lowest, min(stop, limit, batch.last_offset + 1))
                    if missing:
                        ids.update(missing)
                        record = missing[0]
                        first = first or (record, batch.base_offset + record - batch.first_id, consumer)
        if first is not None:
            record, offset, consumer = first
            where = f"the first record {record} at offset {offset}"
            detail = f"consumer {consumer} passed {counted(len(ids), 'record')} unseen, {where}"
            self._violates("consumer-skip", end.now_us, detail, frozenset(ids))


class _Shown:
    """The records that one consumer read."""

    def __init__(self, consumer: int, shown: list[Shown], when_told: int) -> None:
        self._reads = [one for one in shown if one.consumer == consumer]
        self._from = {one.batch: one.from_offset for one in reversed(self._reads)}
        self._ids: set[int] | None = None
        self._since = shown[when_told:]
        self._consumer = consumer

    def last_of(self, kept: set[tuple[int, int, int]]) -> int:
        """Last offset read of batches (first id, base offset, epoch) since it was notified of a jump.

        A record that was lost and resent may return to its earlier offset without having been read there.
        """
        own = (shown.batch for shown in self._since if shown.consumer == self._consumer)
        read = (batch.last_offset for batch in own if (batch.first_id, batch.base_offset, batch.leader_epoch) in kept)
        return max(read, default=0)

    def begins(self, batch: Batch) -> bool:
        """Whether it read a batch from the first record on, and so misses none of it."""
        from_offset = self._from.get(batch)
        return from_offset is not None and from_offset <= batch.base_offset

    def missing(self, batch: Batch, start: int, end: int) -> list[int]:
        """Records of a batch at offsets in [start, end) that it did not read."""
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
