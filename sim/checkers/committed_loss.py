"""Committed loss: a record acknowledged with acks=all is lost at the end of the run.

Verifies, at the end of validation: every record acknowledged with acks=all is in the leader's log at or above the log
start, unless the log start passed it by deletion, of this log or of one that no longer exists (a disk that is replaced
forgets its log start). Without a leader the record must be in some replica's log, in memory or on disk. A record found
only at another offset was relocated, which is counted but is no loss; but if no log ever had it at the offset that its
producer was told (KafkaProducer: RecordMetadata#offset), with any acks, that is a ``wrong-offset``.

Does not verify: records acknowledged with acks=1 or 0, which are only counted; temporary absence.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import ALWAYS, ANY_RECORD, Checker, Finding, RunEnd
from sim.history import steps
from sim.history.findings import LossCount
from sim.native import mypyc_attr
from sim.plurals import named
from sim.protocol.log.log import Log


@mypyc_attr(allow_interpreted_subclasses=True)
class CommittedLoss(Checker):
    """Checks the final state."""

    FINDINGS: ClassVar = (Finding("committed-loss", ANY_RECORD), Finding("wrong-offset", ALWAYS))

    def final(self, end: RunEnd) -> None:
        """Look for all acknowledged records in the leader's log, or without a leader in all existing logs."""
        history = self._history
        self.decided = len(history.clients.acks) > 0
        logs = end.logs if end.leader is None else [end.leader.log]
        # Below it, deletion explains absence.
        log_start = max(log.log_start for log in logs)
        count = self._findings.losses = LossCount()
        if end.leader is not None and _has_in_order(end.leader.log, history.clients.acks):
            return
        batches = [batch for log in logs for batch in log.batches if batch.last_offset >= log.log_start]
        in_place = {(batch.first_id, batch.base_offset) for batch in batches}
        elsewhere = [
            ack
            for ack in history.clients.acks
            if (ack.first_id, ack.base_offset) not in in_place and ack.base_offset + ack.count > log_start
        ]
        if not elsewhere:
            return
        present = {record for batch in batches for record in batch.ids()}
        deleted = history.records.deleted
        gone: list[tuple[steps.Ack, frozenset[int]]] = []
        for ack in elsewhere:
            below = max(log_start - ack.base_offset, 0)
            expected = frozenset(range(ack.first_id + below, ack.first_id + ack.count))
            missing = expected - present - deleted
            if not missing:
                found = expected & present
                count.relocated += len(found)
                if found:
                    self._judge_offset(ack)
            elif ack.acks == -1:
                count.lost += len(missing)
                gone.append((ack, missing))
            else:
                count.acks1_lost += len(missing)
        if gone:
            ids = frozenset().union(*(missing for _, missing in gone))
            ack = next(ack for ack, missing in gone if min(ids) in missing)
            offset = ack.base_offset + min(ids) - ack.first_id
            detail = f"lost: {named(ids, offset)}, acknowledged at {ack.at_us / 1e6:.3f} s"
            self._violates("committed-loss", end.now_us, detail, ids)

    def _judge_offset(self, ack: steps.Ack) -> None:
        if self._history.records.was_at(ack.first_id, ack.base_offset):
            return
        detail = f"the producer was told offset {ack.base_offset} for record {ack.first_id}, which no log had there"
        self._violates("wrong-offset", ack.at_us, detail, range(ack.first_id, ack.first_id + ack.count))


def _has_in_order(log: Log, acks: list[steps.Ack]) -> bool:
    """Whether a log has the batches of all acknowledgements in place; False if these do not ascend, though it may."""
    batches = log.batches
    place = 0
    for ack in acks:
        base_offset = ack.base_offset
        while place < len(batches) and batches[place].base_offset < base_offset:
            place += 1
        if place == len(batches):
            return False
        batch = batches[place]
        if batch.base_offset != base_offset or batch.first_id != ack.first_id or batch.last_offset < log.log_start:
            return False
    return True
