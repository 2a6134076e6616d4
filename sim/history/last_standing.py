"""The last replica standing: a leader that lost committed records is elected again, and replicas that have them
truncate.

This is the scenario that motivates KIP-966. The ISR shrinks to one member; its process ends and its log loses committed
records; it is elected again although another replica has them. It is detected from events, not from kinds of faults:
from persisted ISRs, from what logs held and lost, and from elections.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from sim.history import steps
from sim.history.ends import Ends, IncarnationEnd, Regained
from sim.history.history import History
from sim.history.membership import Membership
from sim.protocol.batch import Batch


def taken(history: History, lost: AbstractSet[int]) -> set[int]:
    """Which of the lost records a leader had lost itself after it was the last member of the ISR.

    They were committed then, and another replica had them at the election.
    """
    membership = Membership()
    ends = Ends(membership)
    last_standing = _LastStanding(membership, ends, lost)
    history.retell([membership, ends, Regained(ends), last_standing])
    return last_standing.taken


class _LastStanding(steps.Listener):
    """Tracks which logs hold the records in question, and checks each election."""

    def __init__(self, membership: Membership, ends: Ends, lost: AbstractSet[int]) -> None:
        self._membership = membership
        self._ends = ends
        self._lost = lost
        self._committed: set[int] = set()
        self._held: dict[int, set[Batch]] = {}
        self.taken: set[int] = set()

    def on_append(self, step: steps.Append) -> None:
        if not self._lost.isdisjoint(step.batch.ids()):
            self._held.setdefault(step.broker, set()).add(step.batch)

    def on_truncate(self, step: steps.Truncate) -> None:
        self._removed(step.broker, step.removed)

    def on_log_start(self, step: steps.LogStart) -> None:
        held = self._held.get(step.broker)
        if held:
            self._held[step.broker] = {batch for batch in held if batch.last_offset >= step.offset}

    def on_end(self, step: steps.End) -> None:
        self._removed(step.broker, step.lost)

    def on_deleted(self, step: steps.Deleted) -> None:
        self._held.pop(step.broker, None)

    def _removed(self, broker: int, batches: list[Batch]) -> None:
        held = self._held.get(broker)
        if held:
            held.difference_update(batches)

    def on_hw(self, step: steps.HighWatermark) -> None:
        if step.committed:
            self._committed.update([batch.first_id for batch in step.committed])

    def on_elected(self, step: steps.Elected) -> None:
        self._chosen(step.broker)

    def on_epoch_raised(self, step: steps.EpochRaised) -> None:
        self._chosen(step.broker)

    def _chosen(self, leader: int) -> None:
        for first_id, ends in self._ends.missing.get(leader, {}).items():
            batch = ends[-1].lost[first_id]
            alone = first_id in self._committed and any(self._was_last(end) for end in ends)
            if alone and self._is_held(batch, leader):
                self.taken.update(batch.ids())

    def _was_last(self, end: IncarnationEnd) -> bool:
        """Whether the broker was the only member of the persisted ISR when it ended, or later."""
        alone = (end.broker,)
        for since, isr in reversed(self._membership.isr_history):
            if isr == alone:
                return True
            if since <= end.at_us:
                break
        return False

    def _is_held(self, batch: Batch, but_for: int) -> bool:
        missing = self._ends.missing
        return any(
            broker != but_for and batch in held and batch.first_id not in missing.get(broker, ())
            for broker, held in self._held.items()
        )
