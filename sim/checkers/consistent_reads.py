"""Early warning ``inconsistent-read``: a consumer read a record that the newest leader does not have at that offset.

Reads must be repeatable: at the offset at which a consumer read a record, the log of the leader of the newest leader
epoch has that record (Vanlightly: ConsistentReadProperty). `sim.checkers.exposed_loss` requires this of the final log
only, and is a violation.

Verifies: all records read, when a broker begins to lead in the newest leader epoch; and records read from another
leader later, when they are read. A leader only appends, so reads from the newest leader need no check. Each batch is
reported once.

Does not verify: offsets below the leader's log start, and records that a leader's retention deleted; reads while the
newest epoch has no leader, until it has one; the order of reads, or skipped records (`sim.checkers.consumer_skip`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from sim.checkers.checker import Checker, warning
from sim.history import steps
from sim.history.clients import Shown
from sim.history.history import History
from sim.plurals import named
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log


class ConsistentReads(Checker):
    """Compares records that consumers read with the newest leader's log."""

    FINDINGS: ClassVar = (warning("inconsistent-read"),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._clients = history.clients
        self._records = history.records
        self._epoch = -1
        """The newest leader epoch."""
        self._leader = 0
        self._log: Log | None = None
        self._reported: set[int] = set()
        self._first: dict[Batch, int] = {}
        """Index of each batch's first read."""
        self._placed = 0
        """Number of reads included in `_first`."""
        self._sound: dict[int, tuple[list[Batch], int, int]] = {}
        """Broker -> (its log's batches, length of the prefix of reads that they were found to match, its log start)."""

    def on_elected(self, step: steps.Elected) -> None:
        # The new epoch has no leader yet.
        if step.epoch > self._epoch:
            self._epoch, self._leader, self._log = step.epoch, 0, None

    def on_lead(self, step: steps.Lead) -> None:
        if step.epoch >= self._epoch:
            self._epoch, self._leader, self._log = step.epoch, step.broker, step.partition.log
            self._compare_all(step.broker, step.partition.log, step.at_us)

    def on_read(self, step: steps.Read) -> None:
        if step.epoch != self._epoch:
            self._compare(self._clients.shown[-len(step.batches) :], step.at_us)

    def on_truncate(self, step: steps.Truncate) -> None:
        if step.removed:
            self.removed(step.broker, step.removed)

    def on_deleted(self, step: steps.Deleted) -> None:
        self.removed(step.broker, step.removed)

    def on_end(self, step: steps.End) -> None:
        if not step.was_down and step.broker == self._leader:
            self._leader, self._log = 0, None
        self.removed(step.broker, step.lost)

    def _compare_all(self, broker: int, log: Log, now_us: int) -> None:
        """Compare all reads, except those that the log was found to match and has not lost since."""
        reads = self._clients.shown
        self.decided = self.decided or len(reads) > 0
        first = self._first
        for place in range(self._placed, len(reads)):
            first.setdefault(reads[place].batch, place)
        self._placed = len(reads)
        batches, found, log_start = self._sound.get(broker, (log.batches, 0, 0))
        if batches is not log.batches or log.log_start < log_start:
            found = 0
        if found == len(reads):
            return
        gone = set(log.missing([shown.batch for shown in reads[found:]]))
        absent = [shown for shown in reads[found:] if shown.batch in gone] if gone else []
        self._compare(absent, now_us)
        found = len(reads)
        for shown in absent:
            if shown.batch.first_id not in self._reported and shown.batch.last_offset >= log.log_start:
                found = first[shown.batch]
                break
        self._sound[broker] = (log.batches, found, log.log_start)

    def removed(self, broker: int, batches: list[Batch]) -> None:
        """Batches were removed from a log: shorten the prefix that it was found to match."""
        known = self._sound.get(broker)
        if known is not None:
            gone = min([self._first[batch] for batch in batches if batch in self._first], default=known[1])
            self._sound[broker] = (known[0], min(known[1], gone), known[2])

    def _compare(self, reads: Iterable[Shown], now_us: int) -> None:
        log = self._log
        if log is None:
            return
        gone: dict[int, int] = {}
        for shown in reads:
            batch = shown.batch
            if batch.first_id in self._reported:
                continue
            first = batch.first_id - batch.base_offset
            for offset in range(max(shown.from_offset, log.log_start), batch.last_offset + 1):
                if first + offset not in self._records.deleted and not _stands(log, first + offset, offset):
                    gone[first + offset] = offset
                    self._reported.add(batch.first_id)
        if gone:
            lacking = named(gone, gone[min(gone)])
            detail = f"leader {self._leader} (epoch {self._epoch}) lacks {lacking}, which a consumer has read there"
            self._warns("inconsistent-read", now_us, detail, frozenset(gone), (self._leader,))


def _stands(log: Log, record: int, offset: int) -> bool:
    found = log.batch_at(offset)
    return found is not None and found.first_id + offset - found.base_offset == record
