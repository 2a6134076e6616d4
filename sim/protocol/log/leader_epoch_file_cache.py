"""The leader-epoch cache: which epoch began at which offset, and the file that keeps it.

The cache became strict when epochs were first recorded at elections (KAFKA-7415).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1
UNDEFINED: Final = (UNDEFINED_EPOCH, UNDEFINED_OFFSET)

Entry = tuple[int, int]


class LeaderEpochCheckpointFile:
    """The file ``leader-epoch-checkpoint``: written and fsynced as a whole, so it survives every crash.

    Kafka: LeaderEpochCheckpointFile (1.1-4.4).

    Attributes:
        entries: (epoch, start offset), ascending.
        before: the entries before the last write.
        damaged: the entries that the file had when it was lost or replaced by its former version; None: it was not.
    """

    __slots__ = ("before", "damaged", "entries")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.before: list[Entry] = []
        self.damaged: list[Entry] | None = None

    def write(self, entries: list[Entry]) -> None:
        """Replace the content. Kafka: LeaderEpochCheckpointFile#write (1.1-4.4)."""
        self.before = self.entries
        self.entries = entries

    def damage(self, entries: list[Entry]) -> None:
        """Give the file another content while no process runs."""
        if self.damaged is None:
            self.damaged = self.entries
        self.entries = entries

    def take_missing(self, known: list[Entry], log_start: int, leo: int) -> list[Entry]:
        """The entries that damage has cost the cache of a new process, which knows the entries `known`: those in
        [log start, LEO] of which it has none of that epoch, or a later one. An entry below the log start stands at the
        log start in the cache.
        """
        damaged, self.damaged = self.damaged, None
        if damaged is None:
            return []
        last = bisect_right([start for _, start in damaged], log_start) - 1
        held = [(epoch, max(start, log_start)) for epoch, start in damaged[max(last, 0) :] if start < leo]
        starts = dict(known)
        return [(epoch, start) for epoch, start in held if starts.get(epoch, start + 1) > start]


class LeaderEpochFileCache:
    """Leader epochs of a log, ascending in epoch and in start offset. Kafka: LeaderEpochFileCache (1.1-4.4).

    Args:
        checkpoint: the file to which every change is written before it takes effect; its content is loaded first.
        strict: rule ``epoch_recorded_at`` is ``election``: a new entry removes contradicting ones instead of being
            ignored.
    """

    __slots__ = ("_checkpoint", "_strict", "epochs", "starts")

    def __init__(self, checkpoint: LeaderEpochCheckpointFile, *, strict: bool = True) -> None:
        self._checkpoint = checkpoint
        self._strict = strict
        self.epochs = [epoch for epoch, _ in checkpoint.entries]
        self.starts = [start for _, start in checkpoint.entries]

    @property
    def entries(self) -> list[Entry]:
        """(epoch, start offset), ascending. Kafka: LeaderEpochFileCache#epochEntries (1.1-4.4)."""
        starts = self.starts
        return [(epoch, starts[place]) for place, epoch in enumerate(self.epochs)]

    @property
    def latest(self) -> int | None:
        """The latest epoch, None when empty. Kafka: LeaderEpochFileCache#latestEpoch (1.1-4.4)."""
        return self.epochs[-1] if self.epochs else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that an epoch begins at an offset, both from 0; known epochs change nothing. Kafka:
        LeaderEpochFileCache#assign (1.1-4.4).
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"negative epoch or offset: ({epoch}, {start_offset})")
        if self._strict:
            if self.epochs and epoch == self.epochs[-1] and start_offset >= self.starts[-1]:
                return
            while self.epochs and (self.epochs[-1] >= epoch or self.starts[-1] >= start_offset):
                self.epochs.pop()
                self.starts.pop()
        elif self.epochs and (epoch <= self.epochs[-1] or start_offset < self.starts[-1]):
            return
        self.epochs.append(epoch)
        self.starts.append(start_offset)
        self._flush()

    def end_offset_for(self, epoch: int, leo: int) -> Entry:
        """Where an epoch ended in this log. Kafka: LeaderEpochFileCache#endOffsetFor (1.1-4.4).

        Args:
            epoch: the requested epoch.
            leo: the log's LEO: the end of the latest epoch.

        Returns:
            (largest known epoch <= the requested one, its end offset), or `UNDEFINED`. Below the first known epoch the
            strict cache returns (epoch, first start offset), the older one `UNDEFINED`.
        """
        if epoch == UNDEFINED_EPOCH or not self.epochs or epoch > self.epochs[-1]:
            return UNDEFINED
        if epoch == self.epochs[-1]:
            return epoch, leo
        higher = bisect_right(self.epochs, epoch)
        if higher == 0:
            return (epoch, self.starts[0]) if self._strict else UNDEFINED
        return self.epochs[higher - 1], self.starts[higher]

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch of an offset, None below the first. Kafka: LeaderEpochFileCache#epochForOffset (3.9-4.4)."""
        index = bisect_right(self.starts, offset)
        return self.epochs[index - 1] if index else None

    def entry(self, epoch: int) -> Entry | None:
        """The entry of exactly this epoch. Kafka: LeaderEpochFileCache#epochEntry (3.9-4.4)."""
        index = bisect_right(self.epochs, epoch) - 1
        return (epoch, self.starts[index]) if index >= 0 and self.epochs[index] == epoch else None

    def previous(self, epoch: int) -> Entry | None:
        """The entry of the largest epoch below this one. Kafka: LeaderEpochFileCache#previousEntry (3.9-4.4)."""
        index = bisect_right(self.epochs, epoch - 1) - 1
        return (self.epochs[index], self.starts[index]) if index >= 0 else None

    def truncate_from_end(self, offset: int) -> None:
        """Remove the entries that start at or after an offset; a no-op for a negative offset.

        Kafka: LeaderEpochFileCache#truncateFromEnd (2.6-4.4), LeaderEpochFileCache#clearAndFlushLatest (1.1-2.0).
        """
        if offset < 0 or not self.starts or self.starts[-1] < offset:
            return
        while self.starts and self.starts[-1] >= offset:
            self.epochs.pop()
            self.starts.pop()
        self._flush()

    def truncate_from_start(self, offset: int) -> None:
        """Remove entries below an offset; the last of them is re-added at the offset unless one is there.

        The non-strict cache may have several entries at one offset, and keeps them.
        Kafka: LeaderEpochFileCache#truncateFromStart (2.6-4.4), LeaderEpochFileCache#clearAndFlushEarliest (1.1-2.0).
        """
        gone = bisect_left(self.starts, offset)
        if gone == 0:
            return
        begun = gone < len(self.starts) and self.starts[gone] == offset
        last = self.epochs[gone - 1]
        self.epochs[:gone] = [] if begun else [last]
        self.starts[:gone] = [] if begun else [offset]
        self._flush()

    def clear(self) -> None:
        """Remove all entries (full truncation). Kafka: LeaderEpochFileCache#clearAndFlush (1.1-4.4)."""
        self.epochs.clear()
        self.starts.clear()
        self._flush()

    def _flush(self) -> None:
        """Kafka: LeaderEpochFileCache#writeToFile (3.9-4.4), LeaderEpochFileCache#flush (1.1-2.6)."""
        self._checkpoint.write(self.entries)
