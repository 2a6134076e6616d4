"""Records: the batches made of them, and which retention deleted."""

from __future__ import annotations

from typing import Final

from sim.history import steps
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log

VALIDATION_IDS: Final = 1 << 40
"""First record id of writes that test a healed cluster; all other ids ascend in the order of sending."""


_NO_COPIES: Final[list[Batch]] = []


class Records(steps.Listener):
    """The records of one run, from the growing list of kept steps; `deleted` are ids of those that a leader's retention
    deleted.

    Attributes:
        deleted: ids of records that a leader's retention deleted.
    """

    def __init__(self, kept: list[steps.Step]) -> None:
        self.deleted: set[int] = set()
        self._kept = kept
        self._looked_at = 0
        """Number of steps of `_kept` that `_copies` includes."""
        self._copies: dict[int, list[Batch]] = {}
        """First id -> its batches: one for each time it was appended; built lazily."""

    def on_retention(self, step: steps.Retention) -> None:
        self.deleted.update(step.ids)

    def survive_in(self, log: Log, batch: Batch) -> bool:
        """Whether a log has a batch's records, perhaps in another copy, or a leader's retention deleted them."""
        return any(log.contains(copy) for copy in self._copies_of(batch.first_id)) or self.deleted.issuperset(
            batch.ids()
        )

    def was_at(self, first_id: int, base_offset: int) -> bool:
        """Whether a batch was ever appended at an offset."""
        return any(copy.base_offset == base_offset for copy in self._copies_of(first_id))

    def _copies_of(self, first_id: int) -> list[Batch]:
        for step in self._kept[self._looked_at :]:
            if isinstance(step, steps.Append):
                copies = self._copies.setdefault(step.batch.first_id, [])
                if step.batch not in copies:
                    copies.append(step.batch)
        self._looked_at = len(self._kept)
        return self._copies.get(first_id, _NO_COPIES)
