"""Idempotence: an idempotent producer's records are in the log once and in the order of sending.

Verifies, at the end of validation, in the leader's log: ``duplicate``, no record is at two offsets; ``reordered``,
records are in the order in which they were sent, which is that of their sequences. Both within one epoch of one
producer id. ``duplicate-across-epochs``: no record of one producer id is at two offsets in different epochs. A producer
raises its epoch after a gap and sends its batches in flight again (KIP-360); if the log had them all the same, they are
in it twice. ``reordered-across-epochs``: no record of one producer id is behind one of another epoch that was sent
later. A leader that took a later batch first (KAFKA-15591) takes the earlier one when the producer has raised its
epoch. Kafka promises one copy, in the order of sending, unless records of that producer were lost.

Does not verify: producers that are not idempotent; whether a producer numbers its batches in the order in which the
application sent them; truncated records; the order of second copies; without a leader, anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sim.checkers.checker import IDEMPOTENT, Checker, Finding, RunEnd
from sim.history.records import VALIDATION_IDS
from sim.native import mypyc_attr
from sim.protocol.batch import Batch


@mypyc_attr(allow_interpreted_subclasses=True)
class Idempotence(Checker):
    """Checks the final state."""

    FINDINGS: ClassVar = (
        Finding("duplicate", IDEMPOTENT),
        Finding("reordered", IDEMPOTENT),
        Finding("duplicate-across-epochs", IDEMPOTENT),
        Finding("reordered-across-epochs", IDEMPOTENT),
    )

    def final(self, end: RunEnd) -> None:
        """Check the final log; at most one violation of each kind, with all records."""
        if end.leader is None:
            return
        batches = [batch for batch in end.leader.log.batches if batch.producer_id >= 0]
        self.decided = bool(batches)
        first_copies: dict[tuple[int, int], Batch] = {}
        in_epoch: dict[tuple[int, int], dict[int, int]] = {}
        newest: dict[tuple[int, int], int] = {}
        twice: dict[int, str] = {}
        across: dict[int, str] = {}
        late: dict[int, str] = {}
        for batch in batches:
            key = (batch.producer_id, batch.producer_epoch)
            known = in_epoch.setdefault(key, {})
            first = first_copies.setdefault((batch.producer_id, batch.first_id), batch)
            if batch.first_id in known:
                detail = f"record {batch.first_id} is at offsets {known[batch.first_id]} and {batch.base_offset}"
                twice.update(dict.fromkeys(batch.ids(), detail))
            elif first.producer_epoch != batch.producer_epoch:
                detail = f"record {batch.first_id} is {_where(first)}, and again {_where(batch)}"
                across.update(dict.fromkeys(batch.ids(), detail))
            elif batch.base_sequence < newest.get(key, -1):
                detail = f"record {batch.first_id} is at offset {batch.base_offset}, behind records sent after it"
                late.update(dict.fromkeys(batch.ids(), detail))
            known.setdefault(batch.first_id, batch.base_offset)
            newest[key] = max(newest.get(key, -1), batch.base_sequence)
        late_across = _late_across_epochs(list(first_copies.values()))
        for kind, found, is_across in (
            ("duplicate", twice, False),
            ("reordered", late, False),
            ("duplicate-across-epochs", across, True),
            ("reordered-across-epochs", late_across, True),
        ):
            if found:
                detail = next(iter(found.values()))
                unless_lost = self._committed_with(batches, found) if is_across else frozenset[int]()
                self._violates(kind, end.now_us, detail, frozenset(found), unless_lost=unless_lost)

    def _committed_with(self, batches: Sequence[Batch], records: dict[int, str]) -> frozenset[int]:
        """Ids of the committed records of the producers of these records."""
        producers = {batch.producer_id for batch in batches if batch.first_id in records}
        committed = self._history.commits.batches
        return frozenset(record for one in committed if one.producer_id in producers for record in one.ids())


def _late_across_epochs(batches: Sequence[Batch]) -> dict[int, str]:
    """Records behind one that the same producer id sent later, in another epoch, with a sentence for each.

    Args:
        batches: the first copies, in the order of the log.
    """
    found: dict[int, str] = {}
    newest: dict[int, dict[int, Batch]] = {}
    for batch in batches:
        if batch.first_id >= VALIDATION_IDS:
            continue
        epochs = newest.setdefault(batch.producer_id, {})
        for epoch, one in epochs.items():
            if epoch != batch.producer_epoch and one.first_id > batch.first_id:
                detail = f"record {batch.first_id} is {_where(batch)}, behind record {one.first_id}, sent later"
                found.update(dict.fromkeys(batch.ids(), f"{detail}, {_where(one)}"))
        if batch.first_id >= epochs.setdefault(batch.producer_epoch, batch).first_id:
            epochs[batch.producer_epoch] = batch
    return found


def _where(batch: Batch) -> str:
    return f"at offset {batch.base_offset} in producer epoch {batch.producer_epoch}"
