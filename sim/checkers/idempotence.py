"""Idempotence: an idempotent producer's records are in the log once and in the order of sending.

Verifies, at the end of validation, in the leader's log: ``duplicate``, no record is at two offsets; ``reordered``,
records are in the order in which they were sent, which is that of their sequences. Both within one epoch of one
producer id. ``duplicate-across-epochs``: no record of one producer id is at two offsets in different epochs. A producer
raises its epoch after a gap and sends its batches in flight again (KIP-360); if the log had them all the same, they are
in it twice. Kafka promises one copy unless records of that producer were lost.

Does not verify: producers that are not idempotent; whether a producer numbers its batches in the order in which the
application sent them; truncated records; without a leader, anything.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import IDEMPOTENT, Checker, Finding, RunEnd
from sim.native import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Idempotence(Checker):
    """Checks the final state."""

    FINDINGS: ClassVar = (
        Finding("duplicate", IDEMPOTENT),
        Finding("reordered", IDEMPOTENT),
        Finding("duplicate-across-epochs", IDEMPOTENT),
    )

    def final(self, end: RunEnd) -> None:
        """Check the final log; at most one violation of each kind, with all records."""
        if end.leader is None:
            return
        places: dict[tuple[int, int], dict[int, int]] = {}
        first_epochs: dict[tuple[int, int], int] = {}
        newest: dict[tuple[int, int], int] = {}
        twice: dict[int, str] = {}
        across: dict[int, str] = {}
        across_of: set[int] = set()
        late: dict[int, str] = {}
        for batch in end.leader.log.batches:
            if batch.producer_id < 0:
                continue
            self.decided = True
            key = (batch.producer_id, batch.producer_epoch)
            known = places.setdefault(key, {})
            first_epoch = first_epochs.setdefault((batch.producer_id, batch.first_id), batch.producer_epoch)
            if batch.first_id in known:
                detail = f"record {batch.first_id} stands at offsets {known[batch.first_id]} and {batch.base_offset}"
                twice.update(dict.fromkeys(batch.ids(), detail))
            elif first_epoch != batch.producer_epoch:
                before = places[batch.producer_id, first_epoch][batch.first_id]
                detail = (
                    f"record {batch.first_id} stands at offset {before} in producer epoch {first_epoch}, and at offset "
                    f"{batch.base_offset} in producer epoch {batch.producer_epoch}"
                )
                across.update(dict.fromkeys(batch.ids(), detail))
                across_of.add(batch.producer_id)
            elif batch.base_sequence < newest.get(key, -1):
                detail = f"record {batch.first_id} stands at offset {batch.base_offset}, behind what was sent after it"
                late.update(dict.fromkeys(batch.ids(), detail))
            known.setdefault(batch.first_id, batch.base_offset)
            newest[key] = max(newest.get(key, -1), batch.base_sequence)
        for kind, found, unless_lost in (
            ("duplicate", twice, frozenset[int]()),
            ("reordered", late, frozenset[int]()),
            ("duplicate-across-epochs", across, self._committed_of(across_of)),
        ):
            if found:
                detail = next(iter(found.values()))
                self._violates(kind, end.now_us, detail, frozenset(found), unless_lost=unless_lost)

    def _committed_of(self, producers: set[int]) -> frozenset[int]:
        """Ids of the committed records of these producers."""
        committed = self._history.commits.batches if producers else ()
        return frozenset(record for one in committed if one.producer_id in producers for record in one.ids())
