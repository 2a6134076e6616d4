"""Early warning ``recovery-quorum``: committed records can be recovered from fewer than min ISR replicas.

With KIP-966 each record below the HW was in min.insync.replicas logs of the ISR when it was committed. While the ISR is
smaller the HW does not advance, and the controller tracks which replicas have these records: "ELR + ISR size will not
be dropped below the min ISR unless the controller discovers an ELR member has an unclean shutdown". So, once the ISR
had min ISR members, the recovery quorum has at least as many: the members of ISR and ELR, and those removed from them
since because they registered after an unclean shutdown. If the controller remembers the latter (rule
``last_known_elr=ejected-members``) they count only while it does, since unclean recovery asks the remembered ones
(Vanlightly: MinIsrRecoveryQuorum, which is checked only when ISR and ELR are empty, and requires exactly min ISR). Then
fewer than min ISR lossy ends leave a member that has everything; `sim.checkers.completeness` checks that possible
leaders have it.

Verifies: at each change of the partition while the ELR is enabled, the quorum among the assigned replicas has min ISR
members (the effective min ISR: at most the number of replicas).

While min ISR changes, the smallest value since the ISR was large enough counts: more replicas need not have the
committed records. A release that clears the ELR with such a change forgets its members, and gets a warning.

Does not verify: anything before the ISR first has min ISR members, or from an unclean election or a disabled ELR until
the ISR has them again: KIP-966 promises nothing then; which replica lost which records; whether a member removed by a
registration really had an unclean shutdown; modes without ELR, where one member is enough.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import Checker, warning
from sim.history import steps
from sim.history.history import History
from sim.protocol.kraft.metadata import PartitionRegistration


class RecoveryQuorum(Checker):
    """Tracks a partition's registration."""

    FINDINGS: ClassVar = (warning("recovery-quorum"),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._before: PartitionRegistration | None = None
        """The previous registration, if its quorum was complete."""
        self._ejected: set[int] = set()
        self._min_isr = 0

    def on_partition_changed(self, step: steps.PartitionChanged) -> None:
        state, min_isr = step.state, step.min_isr
        before, self._before = self._before, None
        if not min_isr:
            return
        if len(state.isr) >= min_isr:
            self._ejected.clear()
            self._before, self._min_isr = state, min_isr
            return
        if before is None:
            return
        needed = self._min_isr = min(min_isr, self._min_isr)
        members = {*before.isr, *before.elr}
        if before.isr and members.issubset(state.isr):  # min.insync.replicas rose, or a replica joined.
            self._before = state
            return
        self.decided = True
        if step.remembers:
            members.update(before.last_known_elr)
        if state.leader and state.leader != before.leader and state.leader not in members:
            return  # An unclean election.
        if step.unclean in members:
            self._ejected.add(step.unclean)
        known = state.last_known_elr if step.remembers else self._ejected
        quorum = {*state.isr, *state.elr, *known}.intersection(state.replicas)
        if len(quorum) >= needed:
            self._before = state
            return
        detail = (
            f"ISR {list(state.isr)}, ELR {list(state.elr)} and those ejected after an unclean shutdown {sorted(known)} "
            f"are {len(quorum)} assigned replicas, min ISR was {needed}, in partition epoch {state.partition_epoch}"
        )
        self._warns("recovery-quorum", step.at_us, detail, weak=tuple(sorted(quorum)))
