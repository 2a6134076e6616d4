"""Consumer skip: a consumer passed a record that it neither read nor was notified about.

Verifies, at the end of validation, the offsets that a consumer's position passed: the record there in the leader's log,
below the HW and not below the log start, was read by that consumer.

``consumer-skip``: the application was not notified. An exception (a detected truncation, a position out of range with
``auto.offset.reset=none``) notifies it, and so does its own seek. If a position goes back silently, offsets behind it
have to be read again. Only offsets before the last record that the consumer read of the final log are judged: a
consumer that does not know a new leader yet may still detect the truncation.

``reset-skip``: a reset by ``auto.offset.reset`` left records behind. Kafka logs a reset and goes on: the application
does not learn of it. Offsets that the consumer had reached by reading count as passed, also if the application sought
to its position; so do those of a partition that was added while the consumer ran. No mode promises otherwise; but a
reset to the start of the log passes nothing, so records that such a reset leaves behind are a ``consumer-skip``.

Does not verify: how applications react to notifications; a consumer that has no position yet; without a leader,
anything.
"""

from __future__ import annotations

from typing import ClassVar, Final

from sim.checkers.checker import ANY_RECORD, NOT_PROMISED, Checker, Finding, RunEnd
from sim.history import steps
from sim.history.clients import Shown
from sim.history.history import History
from sim.plurals import counted
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log

Ranges = list[tuple[int, int]]
"""Ascending ranges of offsets: [start, end)."""
_OF_GROUP: Final = (steps.NEXT_PROCESS, steps.COMMITTED_OFFSET)
"""A new process has no position until it is told an offset; if none is committed, a reset follows."""
_REWOUND: Final = (steps.REWIND, steps.RESTART_CONSUMER, *_OF_GROUP)
KINDS: Final = {"earliest": "consumer-skip"}
"""``auto.offset.reset`` -> kind of a skip by such a reset; ``reset-skip`` for all others."""


class ConsumerSkip(Checker):
    """Tracks the consumers' positions, and at the end compares the offsets they passed with the records they read."""

    FINDINGS: ClassVar = (Finding("consumer-skip", ANY_RECORD), Finding("reset-skip", NOT_PROMISED))

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._clients = history.clients
        self._passed: dict[int, Ranges] = {}
        """Consumer -> offsets that its position passed since its application was last notified."""
        self._sought: dict[int, Ranges] = {}
        """Consumer -> offsets below the position to which its application sought, and which it had passed before."""
        self._out_at: dict[int, int] = {}
        """Consumer -> its position, which is out of range, until its next step."""
        self._resets: dict[tuple[int, str], Ranges] = {}
        """(consumer, policy) -> offsets that resets left behind."""
        self._shown_when_told: dict[int, int] = {}
        """Consumer -> number of reads of all consumers when its application was last notified, or its position reset.
        """

    def on_read(self, step: steps.Read) -> None:
        ranges = self._passed.get(step.consumer)
        if ranges is None:
            self._passed[step.consumer] = [(step.position, step.end)]
        elif ranges and ranges[-1][1] == step.position:
            ranges[-1] = (ranges[-1][0], step.end)
        else:
            ranges.append((step.position, step.end))

    def on_position(self, step: steps.Position) -> None:
        """See `Position`."""
        consumer, offset = step.consumer, step.offset
        if step.kind is steps.NO_RECORD_IN_TIME:
            return  # The reset is tried again.
        if step.kind is steps.OUT_OF_RANGE:
            self._out_at[consumer] = offset  # A reset follows, unless the application is notified by an exception.
            return
        out_at = self._out_at.pop(consumer, -1)
        if step.kind is steps.RESET:
            reached = self._notified(consumer)
            begin = out_at if out_at >= 0 else max([end for _, end in reached], default=offset)
            self._rewind(consumer, offset)
            left = _below(offset, [*reached, (begin, offset)])
            if left:
                self._resets.setdefault((consumer, step.policy), []).extend(left)
        elif step.kind is steps.SEEK:
            reached = self._notified(consumer)
            self._rewind(consumer, offset)
            if out_at < 0:
                self._sought[consumer] = _below(offset, reached)
        elif step.kind is steps.TRUNCATION_DETECTED:
            self._notified(consumer)
        elif step.kind is steps.DISCOVERY:
            self._passed[consumer] = [(offset, offset)]  # A reset leaves behind what lies between here and its offset.
        elif step.kind in _REWOUND:
            if out_at >= 0:
                self._notified(consumer)
            if step.kind not in _OF_GROUP or (step.kind is steps.COMMITTED_OFFSET and offset >= 0):
                self._rewind(consumer, offset)

    def _notified(self, consumer: int) -> Ranges:
        """What was passed before is the application's responsibility from now on; returns it."""
        self._shown_when_told[consumer] = len(self._clients.shown)
        return [*self._sought.pop(consumer, ()), *self._passed.pop(consumer, ())]

    def _rewind(self, consumer: int, offset: int) -> None:
        """Offsets from a new position on have to be read again, or for the first time."""
        for ranges in (self._passed, self._sought):
            if consumer in ranges:
                ranges[consumer] = _below(offset, ranges[consumer])
        for key in self._resets:
            if key[0] == consumer:
                self._resets[key] = _below(offset, self._resets[key])

    def final(self, end: RunEnd) -> None:
        """Compare the offsets that consumers passed with their reads; at most one violation of each kind, with all
        records.
        """
        if end.leader is None:
            return
        log, hw = end.leader.log, end.leader.hw
        found: dict[str, _Skipped] = {}
        for consumer, ranges in self._passed.items():
            if consumer in self._out_at:
                continue
            shown = _Shown(consumer, self._clients.shown, self._shown_when_told.get(consumer, 0))
            self.decided = self.decided or len(ranges) > 0
            _find(
                found, "consumer-skip", f"consumer {consumer} passed", shown, log, ranges, min(hw, shown.last_of(log))
            )
        for (consumer, policy), ranges in self._resets.items():
            shown = _Shown(consumer, self._clients.shown, 0)
            self.decided = self.decided or len(ranges) > 0
            said = f"a reset (auto.offset.reset={policy}) took consumer {consumer} past"
            _find(found, KINDS.get(policy, "reset-skip"), said, shown, log, ranges, hw)
        for kind, skipped in found.items():
            ids = skipped.ids - self._history.records.deleted
            if ids:
                where = f"the first record {skipped.first[0]} at offset {skipped.first[1]}"
                detail = f"{skipped.said} {counted(len(ids), 'record')} unseen, {where}"
                self._violates(kind, end.now_us, detail, frozenset(ids))


class _Skipped:
    """Records that consumers never read, for the message also the first of them, with its offset."""

    def __init__(self, said: str, first: tuple[int, int]) -> None:
        self.said = said
        self.first = first
        self.ids: set[int] = set()


def _below(offset: int, ranges: Ranges) -> Ranges:
    return [(start, min(end, offset)) for start, end in ranges if start < min(end, offset)]


def _find(
    found: dict[str, _Skipped], kind: str, said: str, shown: _Shown, log: Log, ranges: Ranges, limit: int
) -> None:
    """Find the records below a limit in ranges of offsets that a consumer did not read."""
    for start, stop in ranges:
        for batch in log.between(max(start, log.log_start), min(stop, limit)):
            if shown.begins(batch):
                continue
            lowest = max(start, log.log_start, batch.base_offset)
            missing = shown.missing(batch, lowest, min(stop, limit, batch.last_offset + 1))
            if missing:
                first = missing[0], batch.base_offset + missing[0] - batch.first_id
                found.setdefault(kind, _Skipped(said, first)).ids.update(missing)


class _Shown:
    """The records that one consumer read."""

    def __init__(self, consumer: int, shown: list[Shown], when_told: int) -> None:
        self._reads = [one for one in shown if one.consumer == consumer]
        self._from = {read.batch: read.from_offset for read in reversed(self._reads)}
        self._ids: set[int] | None = None
        self._since = shown[when_told:]
        self._consumer = consumer

    def last_of(self, log: Log) -> int:
        """Last offset read of batches in a log (by first id, base offset, epoch), since it was notified of a jump.

        A record that was lost and resent may return to its earlier offset without having been read there.
        """
        last = 0
        kept: set[tuple[int, int, int]] | None = None
        for shown in reversed(self._since):  # The first that the log has is mostly the last one there.
            batch = shown.batch
            if shown.consumer != self._consumer or batch.last_offset <= last:
                continue
            if not log.contains(batch):
                if kept is None:
                    kept = {(one.first_id, one.base_offset, one.leader_epoch) for one in log.batches}
                if (batch.first_id, batch.base_offset, batch.leader_epoch) not in kept:
                    continue
            last = batch.last_offset
        return last

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
