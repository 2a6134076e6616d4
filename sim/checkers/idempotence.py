"""Idempotence: an idempotent producer's records are in the log once and in the order of sending.

Verifies, at the end of validation, in the leader's log: ``duplicate``, no record is at two offsets; ``reordered``,
records are in the order in which they were sent, which is that of their sequences. Both only within one epoch of one
producer id: a producer that starts a new epoch after a gap (KIP-360) may write records again that the log has.

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

    FINDINGS: ClassVar = (Finding("duplicate", IDEMPOTENT), Finding("reordered", IDEMPOTENT))

    def final(self, end: RunEnd) -> None:
        """Check the final log; at most one violation of each kind, with all records."""
        if end.leader is None:
            return
        places: dict[tuple[int, int], dict[int, int]] = {}
        newest: dict[tuple[int, int], int] = {}
        twice: dict[int, str] = {}
        late: dict[int, str] = {}
        for batch in end.leader.log.batches:
            if batch.producer_id < 0:
                continue
            self.decided = True
            key = (batch.producer_id, batch.producer_epoch)
            known = places.setdefault(key, {})
            if batch.first_id in known:
                detail = f"record {batch.first_id} stands at offsets {known[batch.first_id]} and {batch.base_offset}"
                twice.update(dict.fromkeys(batch.ids(), detail))
            elif batch.base_sequence < newest.get(key, -1):
                detail = f"record {batch.first_id} stands at offset {batch.base_offset}, behind what was sent after it"
                late.update(dict.fromkeys(batch.ids(), detail))
            known.setdefault(batch.first_id, batch.base_offset)
            newest[key] = max(newest.get(key, -1), batch.base_sequence)
        for kind, found in (("duplicate", twice), ("reordered", late)):
            if found:
                self._violates(kind, end.now_us, next(iter(found.values())), frozenset(found))
