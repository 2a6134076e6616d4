"""Records and where they may still be: the batches that were made of them, and what retention deleted."""

from __future__ import annotations

from sim.history import steps
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log


class Records(steps.Listener):
    """The records of one run.

    Args:
        kept: the steps that are kept of it, as they come.

    Attributes:
        deleted: ids of the records that a leader's retention deleted.
    """

    __slots__ = ("_copies", "_kept", "_looked_at", "deleted")

    def __init__(self, kept: list[steps.Step]) -> None:
        self.deleted: set[int] = set()
        self._kept = kept
        self._looked_at = 0
        """How much of `_kept` is in `_copies`."""
        self._copies: dict[int, list[Batch]] = {}
        """First id -> the batches made of it: one, and another each time it was sent again; as far as was asked for."""

    def on_retention(self, step: steps.Retention) -> None:
        """See `Retention`."""
        self.deleted.update(step.ids)

    def survive_in(self, log: Log, batch: Batch) -> bool:
        """Whether a batch's records are in a log, perhaps in a copy of it, or were deleted by a leader's retention."""
        for step in self._kept[self._looked_at :]:
            if isinstance(step, steps.Append):
                copies = self._copies.setdefault(step.batch.first_id, [])
                if step.batch not in copies:
                    copies.append(step.batch)
        self._looked_at = len(self._kept)
        return any(log.holds(copy) for copy in self._copies.get(batch.first_id, ())) or self.deleted.issuperset(
            batch.ids()
        )
