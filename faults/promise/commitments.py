"""When each batch was committed, and what that rested upon: a fold over the steps of a run."""

from __future__ import annotations

from sim.history import steps
from sim.history.membership import Membership
from sim.protocol.batch import Batch


class Commitments(steps.Listener):
    """First commits, as far as it was told.

    A leader that was deposed without noticing (it stood still, say) may still raise its HW: by what it was told before,
    and by an ISR that is none any more. What only such a leader commits counts as committed when it was deposed: by the
    time its HW moves, those who told it may have lost the record and be back, as members of an ISR that never promised
    it. A leader is deposed when its session ends, or when another leader, or none, is chosen in its place; it is not
    while it is the chosen one and has a session.

    Args:
        membership: what is told of each step before.

    Attributes:
        at_us: first id -> when the batch counts as committed, in the first of its copies.
        copies: batch -> when this copy of it counts as committed.
        min_isr: batch -> the leader's own effective ``min.insync.replicas``, where it was smaller than the control
            plane's.
        isr: batch -> the ISR that the leader went by, where another one was persisted.
        min_isrs: (time, effective ``min.insync.replicas``), as the control plane has it.
    """

    __slots__ = ("_deposed", "_leader", "_membership", "at_us", "copies", "isr", "min_isr", "min_isrs")

    def __init__(self, membership: Membership) -> None:
        self.at_us: dict[int, int] = {}
        self.copies: dict[Batch, int] = {}
        self.min_isr: dict[Batch, int] = {}
        self.isr: dict[Batch, tuple[int, ...]] = {}
        self.min_isrs: list[tuple[int, int]] = []
        self._membership = membership
        self._leader = 0
        self._deposed: dict[int, int] = {}
        """Broker -> when it was deposed."""

    def on_elected(self, step: steps.Elected) -> None:
        """See `Elected`."""
        leader = step.broker
        if leader != self._leader:
            self._deposed.setdefault(self._leader, step.at_us)
            self._deposed.pop(leader, None)
            self._leader = leader

    def on_session_end(self, step: steps.SessionEnd) -> None:
        """See `SessionEnd`."""
        if step.broker == self._leader:
            self._deposed.setdefault(step.broker, step.at_us)

    def on_registered(self, step: steps.Registered) -> None:
        """See `Registered`: the one who is chosen still may have a session again."""
        if step.opens and step.broker == self._leader and self._membership.runs(step.broker, step.incarnation):
            self._deposed.pop(step.broker, None)

    def on_min_isr(self, step: steps.MinIsr) -> None:
        """See `MinIsr`: it may be what it was."""
        if not self.min_isrs or self.min_isrs[-1][1] != step.size:
            self.min_isrs.append((step.at_us, step.size))

    def on_hw(self, step: steps.HighWatermark) -> None:
        """See `HighWatermark`."""
        if not step.committed:
            return
        at_us = self._deposed.get(step.broker, step.at_us)
        smaller = bool(self.min_isrs) and step.min_isr < self.min_isrs[-1][1]
        another = step.isr != self._membership.isr
        for batch in step.committed:
            if batch not in self.copies:
                self.copies[batch] = at_us
                self.at_us.setdefault(batch.first_id, at_us)
                if smaller:
                    self.min_isr[batch] = step.min_isr
                if another:
                    self.isr[batch] = step.isr
