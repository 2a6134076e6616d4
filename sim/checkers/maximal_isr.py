"""Early warning ``quorum-not-superset``: a leader's HW does not wait for a replica that may be elected.

Early warning ``hw-without-isr-member``: a leader raised its HW without waiting for a member of the persisted ISR.

The leader's quorum is itself, the ISR it has in memory, and replicas it also waits for because a change is pending (the
maximal ISR of KIP-497). The control plane elects from the persisted ISR and, if supported, from the eligible leader
replicas (ELR), which leaders do not know. If the leader is not stale (it leads in the persisted leader epoch) the
persisted ISR must be a subset of its quorum, and so must the ELR whenever its HW may move: with KIP-966 that requires
min.insync.replicas members in the ISR in memory. Otherwise it may commit records that the next elected leader lacks
(Vanlightly: ReplicationQuorumSuperset). The quorum may be larger: then the leader only waits longer than necessary.
WeakIsr and StrongIsr of Gustafson's TLA+ specification are about records below a presumed leader's HW, over the ISR in
its memory and over the persisted one; this property links the two ISRs, and `sim.checkers.completeness` judges the
records.

A leader waits for followers in its assignment only. ``quorum-not-superset`` counts a member of the leader's ISR that a
reassignment has removed as part of the quorum, because the controller elects from the assignment.
``hw-without-isr-member`` does not, because another controller may still find it in ISR and assignment.

Verifies: when ISR or ELR is persisted, when a broker begins to lead, and when a leader's HW moves after the persisted
ISR, the ELR, the leader or its ISR has changed.

Does not verify: stale leaders, whose ISR is no longer used for elections; a leader whose ISR write to ZooKeeper is
pending, since its partition is locked until the result arrives.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import Checker, warning
from sim.history import steps
from sim.history.history import History
from sim.protocol.replica.partition import Partition


class MaximalIsr(Checker):
    """Compares a leader's quorum with the replicas that may be elected."""

    FINDINGS: ClassVar = (warning("quorum-not-superset"), warning("hw-without-isr-member"))

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._isr: tuple[int, ...] = ()
        self._elr: tuple[int, ...] = ()
        self._epoch = -1
        self._leading: Partition | None = None
        self._partitions: dict[int, Partition] = {}
        """Partitions of brokers that have led."""
        self._found_good: tuple[int, ...] | None = None
        """The leader's ISR for which nothing was found; None: the next move of its HW has to be compared."""
        self._said: set[str] = set()

    def on_elected(self, step: steps.Elected) -> None:
        self._epoch = max(self._epoch, step.epoch)

    def on_isr(self, step: steps.Isr) -> None:
        self.persisted(step.isr, step.elr, step.epoch, step.at_us)

    def on_elr(self, step: steps.Elr) -> None:
        if step.elr != self._elr:
            self.persisted(self._isr, step.elr, step.epoch, step.at_us)

    def on_lead(self, step: steps.Lead) -> None:
        # The broker is about to become leader, so `partition` has neither the new ISR nor the new assignment yet.
        partition, decision = step.partition, step.decision
        self._leading = self._partitions[partition.broker] = partition
        self._found_good = None
        if decision.leader_epoch >= self._epoch:
            self._epoch = decision.leader_epoch
            moves = len(decision.isr) >= partition.min_isr_by(decision)
            self._compare(partition, {partition.broker, *decision.isr}, step.at_us, moves=moves)

    def on_hw(self, step: steps.HighWatermark) -> None:
        if step.committed is not None and step.isr is not self._found_good:
            self._look(self._partitions[step.broker], step.at_us, moves=True)

    def dispose(self) -> None:
        self._leading = None
        self._partitions.clear()

    def persisted(self, isr: tuple[int, ...], elr: tuple[int, ...], epoch: int, now_us: int) -> None:
        """ISR or ELR were persisted."""
        self._isr = isr
        self._elr = elr
        self._epoch = max(self._epoch, epoch)
        self._found_good = None
        if self._leading is not None:
            self._look(self._leading, now_us, moves=False)

    def _look(self, partition: Partition, now_us: int, *, moves: bool) -> None:
        """Compare, unless the leader is stale or locked. `moves`: its HW has just moved."""
        isr = partition.state.isr
        if partition.leader_epoch < self._epoch or not partition.is_leader or partition.state.locked:
            return
        if self._waits_for_all(partition, isr):
            self.decided = True
            self._found_good = isr
            return
        counted = self._counted(partition)
        good = self._compare(
            partition, {*counted, *isr}, now_us, moves=moves or len(isr) >= partition.min_insync_replicas
        )
        ignored = set(self._isr) - counted
        if ignored:
            if moves:
                self._hw_moved(partition, ignored, now_us)
        elif good and set(self._isr) | set(self._elr) <= {partition.broker, *isr}:
            self._found_good = isr

    def _waits_for_all(self, partition: Partition, isr: tuple[int, ...]) -> bool:
        """Whether the leader's HW waits for the persisted ISR, which is in its ISR, as is the ELR: all is well."""
        leader, states = partition.broker, partition.followers.states
        for member in self._isr:
            if member != leader:
                state = states.get(member)
                if state is None or not state.in_maximal_isr or member not in isr:
                    return False
        return not self._elr or {leader, *isr}.issuperset(self._elr)

    def _hw_moved(self, partition: Partition, ignored: set[int], now_us: int) -> None:
        """The leader has raised its HW without these members of the persisted ISR."""
        detail = (
            f"broker {partition.broker} raised its HW to {partition.hw} in leader epoch {partition.leader_epoch} "
            f"without {sorted(ignored)} of the persisted ISR {sorted(self._isr)}"
        )
        said = f"{partition.broker} {partition.leader_epoch} {sorted(ignored)}"
        if said not in self._said:
            self._said.add(said)
            self._warns("hw-without-isr-member", now_us, detail, weak=tuple(sorted(ignored)))

    @staticmethod
    def _counted(partition: Partition) -> set[int]:
        """The leader and the followers that its HW waits for."""
        waited_for = (state.broker for state in partition.followers.states.values() if state.in_maximal_isr)
        return {partition.broker, *waited_for}

    def _compare(self, partition: Partition, quorum: set[int], now_us: int, *, moves: bool) -> bool:
        """Whether a quorum is large enough. `moves`: the leader's HW may move, so the ELR must be in it, too."""
        self.decided = True
        elr = self._elr if moves else ()
        if {*self._isr, *elr}.issubset(quorum):
            return True
        eligible = f", the ELR {sorted(elr)}" if elr else ""
        detail = (
            f"broker {partition.broker} leads and waits for {sorted(quorum)}, "
            f"while the persisted ISR is {sorted(self._isr)}{eligible}"
        )
        if detail not in self._said:
            self._said.add(detail)
            ignored = {*self._isr, *elr} - quorum
            self._warns("quorum-not-superset", now_us, detail, weak=tuple(sorted(ignored)))
        return False
