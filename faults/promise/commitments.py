"""When each batch was committed, and by which ISR and min ISR: a fold over the steps of a run."""

from __future__ import annotations

from sim.history import steps
from sim.history.membership import Membership
from sim.protocol.batch import Batch


class Commitments(steps.Listener):
    """First commits of batches. The membership receives each step before this listener.

    A leader that was deposed without noticing (while paused, for example) may still raise its HW, from fetches before
    that and by an outdated ISR. A commit by such a leader alone is dated to when it was deposed: when its HW moves, the
    followers may have lost the record and returned, as members of an ISR that never promised it. A leader is deposed
    when its session ends, or when another leader or none is elected; it is not while it is elected and has a session.

    Attributes:
        at_us: first id -> commit time of the copy of the batch that was committed first. A deposed leader may show that
            later than another copy is committed.
        copies: batch -> commit time of this copy.
        min_isr: batch -> the leader's own effective ``min.insync.replicas``, if smaller than the control plane's.
        isr: batch -> the leader's ISR, if another one was persisted.
        min_isrs: (time, effective ``min.insync.replicas``) of the control plane.
    """

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
        self._latest: tuple[int, list[Batch]] = -1, []
        """The time of the latest commits, and their batches."""

    def on_elected(self, step: steps.Elected) -> None:
        leader = step.broker
        if leader != self._leader:
            self._deposed.setdefault(self._leader, step.at_us)
            self._deposed.pop(leader, None)
            self._leader = leader

    def on_session_end(self, step: steps.SessionEnd) -> None:
        if step.broker == self._leader:
            self._deposed.setdefault(step.broker, step.at_us)

    def on_registered(self, step: steps.Registered) -> None:
        if step.opens and step.broker == self._leader and self._membership.runs(step.broker, step.incarnation):
            self._deposed.pop(step.broker, None)

    def on_min_isr(self, step: steps.MinIsr) -> None:
        if not self.min_isrs or self.min_isrs[-1][1] != step.size:
            at_us, batches = self._latest
            if self.min_isrs and at_us == step.at_us:  # They were committed before it, though at the same time.
                before = self.min_isrs[-1][1]
                for batch in batches:
                    self.min_isr[batch] = min(before, self.min_isr.get(batch, before))
            self.min_isrs.append((step.at_us, step.size))

    def on_hw(self, step: steps.HighWatermark) -> None:
        if not step.committed:
            return
        at_us = self._deposed.get(step.broker, step.at_us)
        smaller = bool(self.min_isrs) and step.min_isr < self.min_isrs[-1][1]
        another = step.isr != self._membership.isr
        if self._latest[0] != step.at_us:
            self._latest = step.at_us, []
        for batch in step.committed:
            if batch not in self.copies:
                self.copies[batch] = at_us
                self._latest[1].append(batch)
                self.at_us[batch.first_id] = min(at_us, self.at_us.get(batch.first_id, at_us))
                if smaller:
                    self.min_isr[batch] = step.min_isr
                if another:
                    self.isr[batch] = step.isr
