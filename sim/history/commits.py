"""Committed batches: those that the high watermark of a broker which believes it leads has passed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from sim.history import steps
from sim.protocol.batch import Batch


class Commits(steps.Listener):
    """The commits of one run, in the order in which leaders' HWs passed batches.

    Attributes:
        batches: the committed batches.
        first_us: first id -> when a leader's HW first passed the batch.
    """

    def __init__(self) -> None:
        self.first_us: dict[int, int] = {}
        self.batches: list[Batch] = []
        self._known: set[Batch] = set()
        self._ascents: list[int] = []
        """Indices in `batches` where offsets stop ascending."""
        self._ascending = 0
        """Number of `batches` scanned for that."""
        self._found: tuple[tuple[int, int, int], frozenset[int]] = (0, 0, 0), frozenset()
        """Cache of `ids_between`: the last arguments and number of batches, with the result."""

    def on_hw(self, step: steps.HighWatermark) -> None:
        if step.committed:
            first_us = self.first_us
            for batch in step.committed:
                if batch.first_id not in first_us:
                    first_us[batch.first_id] = step.at_us
                if batch not in self._known:
                    self._known.add(batch)
                    self.batches.append(batch)

    def between(self, offset: int, end: int) -> Iterator[Batch]:
        """Committed batches with records at or above `offset` and below `end`."""
        batches = self.batches
        for place in range(self._ascending, len(batches)):
            if not place or batches[place].base_offset <= batches[place - 1].last_offset:
                self._ascents.append(place)
        self._ascending = len(batches)
        for begin, stop in pairwise([*self._ascents, len(batches)]):
            place = bisect_left(batches, offset, begin, stop, key=_last_offset)
            while place < stop and batches[place].base_offset < end:
                yield batches[place]
                place += 1

    def ids_between(self, offset: int, end: int) -> frozenset[int]:
        """Ids of the records committed at or above `offset` and below `end`; the same set object for the same arguments
        until more is committed.
        """
        asked = offset, end, len(self.batches)
        if self._found[0] != asked:
            ids = [
                batch.first_id + position - batch.base_offset
                for batch in self.between(offset, end)
                for position in range(max(batch.base_offset, offset), min(batch.last_offset + 1, end))
            ]
            self._found = asked, frozenset(ids)
        return self._found[1]


def _last_offset(batch: Batch) -> int:
    return batch.last_offset
