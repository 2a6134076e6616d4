"""Early warning ``epoch-cache-mismatch``: a leader-epoch cache disagrees with the batches of its log.

Followers truncate by these caches (KIP-101): an entry that is missing, too many or at another offset makes a follower
keep or remove the wrong records.

Verifies, after each truncation, after each move of the log start, and when a process has loaded its log: no entry
begins above the log end offset (LEO); the first and the last batch between an entry's start offset and the next one
have the entry's epoch; the first of them begins there, unless the log start lies within it; no batch lies before the
first entry. Entries that were found right, and still are in the cache, are not compared again.

Does not verify: batches between the first and the last one of an entry; releases before leader epochs (rule
``follower_truncation`` is ``high-watermark``); the cache between two of these.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import Checker, warning
from sim.history import steps
from sim.history.history import History
from sim.protocol.log.log import place_of
from sim.protocol.replica.replica import Replica


class EpochCache(Checker):
    """Compares leader-epoch caches with logs."""

    FINDINGS: ClassVar = (warning("epoch-cache-mismatch"),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._replicas: dict[int, Replica] = {}
        self._right: dict[int, tuple[int, int, int]] = {}
        """Broker -> place, epoch and start offset of the last entry that was found right."""
        self._reported: set[tuple[int, int]] = set()

    def on_truncate(self, step: steps.Truncate) -> None:
        replica = self._replicas.get(step.broker)
        if replica is not None:
            self._compare(step.broker, replica, step.at_us, "truncated")

    def on_log_start(self, step: steps.LogStart) -> None:
        replica = self._replicas.get(step.broker)
        self._right.pop(step.broker, None)
        if replica is not None:
            self._compare(step.broker, replica, step.at_us, "moved its log start")

    def on_recovered(self, step: steps.Recovered) -> None:
        replica = self._replicas[step.broker] = step.replica
        self._right.pop(step.broker, None)
        self._compare(step.broker, replica, step.at_us, "loaded its log")

    def on_deleted(self, step: steps.Deleted) -> None:
        self._replicas[step.broker] = step.replica
        self._right.pop(step.broker, None)

    def dispose(self) -> None:
        self._replicas.clear()

    def _compare(self, broker: int, replica: Replica, now_us: int, what: str) -> None:
        if replica.decide.truncates_to_hw.answer:
            return
        self.decided = True
        epochs, starts = replica.epochs.epochs, replica.epochs.starts
        first, epoch, start = self._right.get(broker, (0, -1, -1))
        if first >= len(epochs) or epochs[first] != epoch or starts[first] != start:
            first = 0
        wrong = self._wrong_offset(replica, first)
        if wrong < 0:
            if epochs:
                self._right[broker] = len(epochs) - 1, epochs[-1], starts[-1]
            return
        if (broker, wrong) in self._reported:
            return
        self._reported.add((broker, wrong))
        found = replica.log.batch_at(wrong)
        has = "no record" if found is None else f"a record of epoch {found.leader_epoch}"
        detail = (
            f"broker {broker} {what}; at offset {wrong} its log has {has}, "
            f"and its epoch cache has epoch {replica.epochs.epoch_for_offset(wrong)}"
        )
        self._warns("epoch-cache-mismatch", now_us, detail, weak=(broker,))

    @staticmethod
    def _wrong_offset(replica: Replica, first: int) -> int:
        """An offset at which cache and log disagree, by the entries from a place on; -1 without one."""
        log = replica.log
        batches, lasts = log.batches, log.lasts
        epochs, starts = replica.epochs.epochs, replica.epochs.starts
        if not epochs:
            return batches[0].last_offset if batches else -1
        if starts[-1] > log.leo:
            return starts[-1]
        place = place_of(lasts, starts[first])
        if not first and place:
            return lasts[0]
        for number in range(first, len(epochs)):
            start = starts[number]
            end = place_of(lasts, starts[number + 1]) if number + 1 < len(epochs) else len(lasts)
            if place < end:
                begin, last = batches[place], batches[end - 1]
                if begin.leader_epoch != epochs[number] or (begin.base_offset < start and start != log.log_start):
                    return begin.last_offset
                if last.leader_epoch != epochs[number]:
                    return last.last_offset
            place = end
        return -1
