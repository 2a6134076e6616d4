"""Deleted records: a log start does not go back.

Verifies, whenever a broker begins to lead, and at the end: its log does not start below an offset that every member of
the persisted ISR had as its log start, or that a leader answered to a consumer that asked for the start of the log.
Otherwise records return that were deleted, by retention or DeleteRecords, and readers that begin at the start of the
log see them again. Excused if every broker that had that log start has ended lossily or left the ISR since.

Does not verify: a log start that an ISR member did not have yet; logs of followers; a log that begins again at a lower
offset with other records, which is a loss and not a return; a broker that learns of its election only after another one
led in a later epoch; without a leader, anything.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import ALWAYS, NOT_PROMISED, Checker, Finding, RunEnd
from sim.history import steps
from sim.history.history import History
from sim.plurals import counted
from sim.protocol.replica.partition import Partition


class DeletedRecords(Checker):
    """Tracks the log starts of brokers, and compares those of leaders with the highest that was promised."""

    FINDINGS: ClassVar = (Finding("deleted-records-back", ALWAYS),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._starts: dict[int, int] = {}
        """Broker -> its log start, above 0; kept while it is down."""
        self._isr: tuple[int, ...] = ()
        self._promised = 0
        """The highest log start that all ISR members had, or that a leader answered."""
        self._keepers: set[int] = set()
        """Brokers that have had it, and have not ended lossily or left the ISR since."""
        self._epoch = 0
        """The highest leader epoch in which a broker led."""
        self._found = False

    def on_isr(self, step: steps.Isr) -> None:
        self._isr = step.isr
        if self._starts:
            if step.isr:
                self._keepers.intersection_update(step.isr)
            self._compare()

    def on_log_start(self, step: steps.LogStart) -> None:
        self._starts[step.broker] = step.offset
        if step.offset >= self._promised > 0:
            self._keepers.add(step.broker)
        self._compare()

    def on_position(self, step: steps.Position) -> None:
        if step.kind is steps.RESET and step.policy == "earliest":
            self._raise(step.offset)

    def on_recovered(self, step: steps.Recovered) -> None:
        start = step.replica.log.log_start
        if start or self._starts:
            self._starts[step.broker] = start

    def on_deleted(self, step: steps.Deleted) -> None:
        self._starts.pop(step.broker, None)
        self._keepers.discard(step.broker)

    def on_end(self, step: steps.End) -> None:
        if step.lost:
            self._keepers.discard(step.broker)

    def on_lead(self, step: steps.Lead) -> None:
        if step.epoch < self._epoch:
            return
        self._epoch = step.epoch
        self._check(step.partition, step.epoch, step.at_us)

    def final(self, end: RunEnd) -> None:
        if end.leader is not None:
            self._check(end.leader, end.leader.leader_epoch, end.now_us)

    def _compare(self) -> None:
        """Note the lowest log start of the persisted ISR, if it is the highest so far."""
        if self._isr:
            self._raise(min([self._starts.get(broker, 0) for broker in self._isr]))

    def _raise(self, known: int) -> None:
        if known > self._promised:
            self._promised = known
            self._keepers = {broker for broker, start in self._starts.items() if start >= known}

    def _check(self, leader: Partition, epoch: int, now_us: int) -> None:
        if not self._promised:
            return
        self.decided = True
        log, known = leader.log, self._promised
        if log.log_start >= known or self._found:
            return
        deleted = self._history.records.deleted
        back = [record for batch in log.between(log.log_start, known) for record in batch.ids() if record in deleted]
        if back:
            self._found = True
            detail = (
                f"leader {leader.broker} (epoch {epoch}) begins its log at offset {log.log_start}, although the "
                f"records below {known} had been deleted: {counted(len(back), 'record')} came back"
            )
            promised = "" if self._keepers else NOT_PROMISED
            self._violates("deleted-records-back", now_us, detail, back, promised=promised)
