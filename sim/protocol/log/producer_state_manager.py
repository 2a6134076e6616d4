"""A leader's state of idempotent producers: their batches in its log, except those that Kafka has forgotten.

Kafka keeps the last five batches of each producer id beside the log, rebuilds them from it after a load or a
truncation, and followers build them from replicated batches. So the state is a function of the log, and is derived from
its end when a batch with a producer id arrives; only what snapshots omit is kept here.
Kafka: ProducerStateEntry (1.1-4.4), ProducerAppendInfo (1.1-4.4), UnifiedLog#rebuildProducerState (3.9-4.4),
Log#rebuildProducerState (2.0-2.6).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from sim.protocol.messages import INVALID_PRODUCER_EPOCH, NONE, OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID

if TYPE_CHECKING:
    from sim.protocol.batch import Batch, Sequence
    from sim.protocol.log.log import Log

RETAINED: Final = 5
"""Number of a producer's batches that are checked for duplicates.

Kafka: ProducerStateEntry#NUM_BATCHES_TO_RETAIN (3.9-4.4), ProducerStateEntry#NumBatchesToRetain (1.1-2.6).
"""


class ProducerStateManager:
    """Which part of a log the producer state covers; a snapshot has the last batch of each producer.

    Kafka: ProducerStateManager (1.1-4.4).

    Args:
        log_start: the log start.

    Attributes:
        snapshots: offsets of the snapshot files, ascending; each covers the batches below its offset.
        loaded_at: offset of the last loaded snapshot: of the batches that end below, only the last one of each producer
            is known.
        known_from: batches that end below are unknown, because the log was read from here without a snapshot.
        log_start: the highest log start while the state was built.
        loaded_start: the log start when the snapshot was written and loaded; if deleted producers are forgotten, it has
            none whose last batch ends below.
        highest_start: the highest log start so far, whatever snapshot is loaded.
        doubt: with another value of rule ``producer_snapshots``, snapshots up to here might differ.
        snapshots_reloads: a truncation also takes a snapshot: rule ``producer_snapshots`` is not ``rolled``.
        unreadable: the last of the snapshots, if it is half written and not yet met; otherwise -1.
        are_snapshots_lost: whether damage to files is why a process finds no snapshot.
        began_empty: whether the process began without producers for that reason.
        empty_from: it did at this offset, and may have no producer since; -1: it has.
    """

    __slots__ = (
        "_last_snapshot",
        "_log_starts",
        "are_snapshots_lost",
        "began_empty",
        "doubt",
        "empty_from",
        "highest_start",
        "known_from",
        "loaded_at",
        "loaded_start",
        "log_start",
        "snapshots",
        "snapshots_reloads",
        "unreadable",
    )

    def __init__(self, log_start: int) -> None:
        self.snapshots: list[int] = []
        self._log_starts: dict[int, int] = {}
        self.loaded_at = self.known_from = log_start
        self.loaded_start = self.log_start = self.highest_start = log_start
        self._last_snapshot = log_start
        self.doubt = 0
        self.snapshots_reloads = True
        self.are_snapshots_lost = self.began_empty = False
        self.empty_from = self.unreadable = -1

    def lose_snapshots(self, *, all_of_them: bool) -> bool:
        """Lose the last snapshot file, or all of them; False without any."""
        if not self.snapshots:
            return False
        del self.snapshots[0 if all_of_them else -1 :]
        self._last_snapshot = self.snapshots[-1] if self.snapshots else self.log_start
        self.are_snapshots_lost = not self.snapshots
        return True

    def half_write_snapshot(self) -> bool:
        """Leave the last snapshot file half written: it is deleted when it should be loaded, and the one before is
        loaded, or the whole log read. False without any.

        Kafka: ProducerStateManager#loadFromSnapshot (1.1-4.4).
        """
        if not self.snapshots:
            return False
        self.unreadable = self.snapshots[-1]
        return True

    def begin_empty(self, log_start: int, leo: int, segments: list[int]) -> None:
        """Begin without any producer after a clean shutdown, because there is no snapshot: empty ones are taken of the
        last two segments and of the LEO, so that no log is read in vain after an upgrade.

        Kafka: UnifiedLog#rebuildProducerState (3.9-4.4), Log#rebuildProducerState (2.0-2.6), Log#loadProducerState
        (1.1-2.6).
        """
        self.began_empty, self.are_snapshots_lost = self.are_snapshots_lost, False
        self.known_from = self.loaded_at = self.empty_from = leo
        self.loaded_start = self.log_start = log_start
        self.raise_log_start(log_start)
        self._last_snapshot = 0
        for offset in (*segments[-2:], leo):
            self.take_snapshot(offset)
        self._last_snapshot = leo

    def take_snapshot(self, offset: int) -> None:
        """Write a snapshot unless a later one exists. Kafka: ProducerStateManager#takeSnapshot (1.1-4.4)."""
        if offset > self._last_snapshot:
            if offset == self.unreadable:
                self._delete_unreadable()
            self.snapshots.append(offset)
            self._log_starts[offset] = self.log_start
            self._last_snapshot = offset

    def reload(self, log_start: int, end: int) -> None:
        """Rebuild the state up to an offset: from the last snapshot in range, then from the log.

        Kafka: ProducerStateManager#truncateAndReload (1.1-4.4).

        Args:
            log_start: snapshots at or below are removed.
            end: snapshots above are removed, and one is taken here if reloads take snapshots.
        """
        self._load_snapshot(log_start, end)
        if end > self._last_snapshot:
            self.doubt = max(self.doubt, end)
            if self.snapshots_reloads:
                self.take_snapshot(end)

    def truncate_fully(self, offset: int) -> None:
        """Forget everything. Kafka: ProducerStateManager#truncateFullyAndStartAt (3.9-4.4)."""
        self.empty_from = -1
        self.reload(offset, offset)

    def reload_truncated(self, log: Log, removed: list[Batch]) -> None:
        """`reload` after a truncation, which leaves a state without producers as it is.

        Kafka: UnifiedLog#rebuildProducerState (3.9-4.4), Log#rebuildProducerState (2.0-2.6), Log#loadProducerState
        (1.1-2.6).
        """
        empty_from = self.empty_from
        self.reload(log.log_start, log.leo)
        if empty_from >= 0:
            for batch in (*log.below, *log.batches, *removed):
                if batch.producer_id >= 0 and batch.last_offset >= empty_from:
                    self.empty_from = -1
                    return
            self.known_from = self.empty_from = min(empty_from, log.leo)

    def _load_snapshot(self, log_start: int, end: int) -> None:
        """Remove snapshots out of range; load the last left. Kafka: ProducerStateManager#loadFromSnapshot (1.1-4.4)."""
        snapshots = self.snapshots
        self.snapshots = snapshots[bisect_right(snapshots, log_start) : bisect_right(snapshots, end)]
        if self.unreadable >= 0 and (not self.snapshots or self.snapshots[-1] == self.unreadable):
            self._delete_unreadable()
        if self.snapshots:
            self.loaded_at = self._last_snapshot = self.snapshots[-1]
            self.known_from = min(self.known_from, self.loaded_at)
        else:
            self.loaded_at = self.known_from = self._last_snapshot = log_start
        self.loaded_start = self.log_start = max(log_start, self._log_starts.get(self.loaded_at, log_start))
        self.highest_start = max(self.highest_start, log_start)

    def _delete_unreadable(self) -> None:
        self.snapshots = [offset for offset in self.snapshots if offset != self.unreadable]
        self.unreadable = -1

    def raise_log_start(self, log_start: int) -> None:
        """Note the log start, if it is higher. Without a snapshot, none is taken there.

        Kafka: ProducerStateManager#onLogStartOffsetIncremented (3.9-4.4).
        """
        self.log_start = max(self.log_start, log_start)
        self.highest_start = max(self.highest_start, log_start)
        if not self.snapshots:
            self._last_snapshot = log_start

    def recover_segment(self, log_start: int, first: int, base: int, end: int) -> None:
        """Scan a segment after an unclean shutdown, including data below the log start.

        Kafka: LogLoader#recoverSegment (3.9-4.4), Log#recoverSegment (1.1-2.6).

        Args:
            log_start: the checkpointed log start, perhaps below the first segment.
            first: base offset of the first segment.
            base: base offset of the segment.
            end: end of its data.
        """
        self.empty_from = -1
        self._load_snapshot(log_start, base)
        if not self.snapshots:
            self.known_from = max(min(self.known_from, base), first)
        self.take_snapshot(base)
        self.take_snapshot(end)

    def load(self, log_start: int, leo: int, segments: list[int], *, keeps_all: bool) -> None:
        """Load the state when a process loads the log.

        Kafka: ProducerStateManager#removeStraySnapshots (3.9-4.4), UnifiedLog#loadProducerState (3.9-4.4),
        Log#loadProducerState (1.1-2.6).

        Args:
            log_start: the log start.
            leo: the LEO.
            segments: base offsets of its segments.
            keeps_all: rule ``producer_snapshots`` is not ``of-segments``; otherwise only the last of the snapshots at
                which no segment begins is kept.
        """
        self.are_snapshots_lost = False
        begins, last = frozenset(segments), self.snapshots[-1] if self.snapshots else 0
        kept = [offset for offset in self.snapshots if offset in begins or (offset > segments[-1] and offset == last)]
        if kept != self.snapshots:
            self.doubt = max(self.doubt, *(offset for offset in self.snapshots if offset not in kept))
            if not keeps_all:
                self.snapshots = kept
        self.reload(log_start, leo)


def latest_batches(
    log: Log, producer_id: int, *, forgets_deleted: bool = False, snapshots_have_last: bool = True
) -> list[Batch]:
    """The last known batches of a producer's latest epoch, newest first, at most `RETAINED`.

    Kafka: ProducerStateManager#lastEntry (1.1-4.4).

    Args:
        log: the log.
        producer_id: the producer id.
        forgets_deleted: see `check`; applies to snapshots too.
        snapshots_have_last: see `check`.
    """
    state = log.producers
    found: list[Batch] = []
    for batches in (log.batches, log.below):
        for batch in reversed(batches):
            if batch.producer_id != producer_id:
                continue
            if batch.last_offset < state.known_from or (found and batch.producer_epoch != found[0].producer_epoch):
                return found
            if forgets_deleted and batch.last_offset < min(state.loaded_at, state.loaded_start):
                return found
            if forgets_deleted and found and not found[-1].base_sequence:
                return found  # The producer had been forgotten, and began its sequences anew.
            found.append(batch)
            if len(found) == RETAINED or (snapshots_have_last and batch.last_offset < state.loaded_at):
                return found
    return found


def is_doubtful(log: Log, producer_id: int) -> bool:
    """Whether a producer's state might differ with other snapshots (see `doubt`).

    The answer does not depend on the snapshots that there are, so that it is the same with each value of the rule.
    """
    state = log.producers
    if not state.doubt:
        return False
    if state.highest_start > log.log_start:  # So might be `loaded_start`.
        return True
    count = 0
    for batches in (log.batches, log.below):
        for batch in reversed(batches):
            if batch.producer_id == producer_id:
                if batch.last_offset < state.doubt:
                    return True
                count += 1
                if count == RETAINED:
                    return False
    return False


def check(
    log: Log, sequence: Sequence, count: int, *, forgets_deleted: bool, snapshots_have_last: bool = True
) -> tuple[str, Batch | None]:
    """Check a batch of an idempotent producer before it is appended.

    Duplicates are checked first, then epoch and sequence.
    Kafka: ProducerStateEntry#findDuplicateBatch (1.1-4.4), ProducerAppendInfo#checkProducerEpoch (1.1-4.4),
    ProducerAppendInfo#checkSequence (1.1-4.4).

    Args:
        log: the leader's log.
        sequence: producer id, producer epoch and first sequence of the new batch.
        count: its number of records.
        forgets_deleted: whether a producer whose last batch is below the log start counts as unknown.
        snapshots_have_last: whether a snapshot has only the last batch of each producer; otherwise those that a leader
            remembers.

    Returns:
        The error, `NONE` to append the batch; and the earlier batch that it duplicates, if any. UNKNOWN_PRODUCER_ID is
        an error only with rule ``unknown_producer=refused``.
    """
    producer_id, producer_epoch, base_sequence = sequence
    known = latest_batches(log, producer_id, forgets_deleted=forgets_deleted, snapshots_have_last=snapshots_have_last)
    if not known or (forgets_deleted and known[0].last_offset < log.log_start):
        return UNKNOWN_PRODUCER_ID if base_sequence else NONE, None
    newest = known[0]
    if producer_epoch < newest.producer_epoch:
        return INVALID_PRODUCER_EPOCH, None
    if producer_epoch > newest.producer_epoch:
        return OUT_OF_ORDER_SEQUENCE_NUMBER if base_sequence else NONE, None
    for batch in reversed(known):  # Of two with one sequence, the older one.
        if batch.base_sequence == base_sequence and batch.count == count:
            return NONE, batch
    if base_sequence != newest.base_sequence + newest.count:
        return OUT_OF_ORDER_SEQUENCE_NUMBER, None
    return NONE, None
