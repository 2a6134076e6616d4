"""Early warning ``quorum-not-superset``: a leader's HW does not wait for somebody whom the control plane may elect.

The leader's quorum is itself, the ISR that it has in memory, and whoever it waits for besides because a change is
under way (the maximal ISR of KIP-497). The control plane elects from the persisted ISR. If the leader is not stale
(it leads in the persisted leader epoch) the persisted ISR must be a part of its quorum: otherwise it may commit
what a member that is elected next does not have (Vanlightly: ReplicationQuorumSuperset). The quorum may well be
larger: then the leader only waits longer than it must. WeakIsr and StrongIsr of Gustafson's speak of the records
below a presumed leader's HW, over the ISR in its memory and over the persisted one; this is what leads from the one
to the other, and `sim.checkers.completeness` judges the records.

Verifies: when an ISR is persisted, when a broker begins to lead, and when a leader's HW moves after either ISR has
changed.

Does not verify: stale leaders, whose ISR nobody elects from any more; a leader whose write of the ISR to ZooKeeper
is under way, since nothing of its partition moves until it knows the outcome.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.ledger import Ledger, Violation

if TYPE_CHECKING:
    from sim.protocol.messages import LeaderAndIsr
    from sim.protocol.partition import Partition


class Quorum:
    """Compares what a leader waits for with what is elected from.

    Args:
        ledger: where warnings go.
    """

    __slots__ = ("_epoch", "_found_good", "_isr", "_leading", "_ledger")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._isr: tuple[int, ...] = ()
        self._epoch = -1
        self._leading: Partition | None = None
        self._found_good: tuple[int, ...] | None = None

    def dispose(self) -> None:
        """See `sim.cluster.Cluster.dispose`."""
        self._leading = None

    def elected(self, epoch: int) -> None:
        """A leader was chosen, in a leader epoch that was persisted."""
        self._epoch = max(self._epoch, epoch)

    def persisted(self, isr: tuple[int, ...], epoch: int, now_us: int) -> None:
        """An ISR was persisted."""
        self._isr = isr
        self._epoch = max(self._epoch, epoch)
        self._found_good = None
        if self._leading is not None:
            self.committed(self._leading, now_us)

    def lead(self, partition: Partition, decision: LeaderAndIsr, now_us: int) -> None:
        """A broker is about to adopt a decision that names it."""
        self._leading = partition
        self._found_good = None
        if decision.leader_epoch >= self._epoch:
            self._epoch = decision.leader_epoch
            self._compare(partition, {partition.broker, *decision.isr}, now_us)

    def committed(self, partition: Partition, now_us: int) -> None:
        """The HW of a leader moved."""
        isr = partition.isr
        if isr is self._found_good or partition.leader_epoch < self._epoch:
            return
        if not partition.is_leader or partition.locked:
            return
        if self._compare(partition, self._quorum(partition), now_us) and set(self._isr) <= {partition.broker, *isr}:
            self._found_good = isr

    @staticmethod
    def _quorum(partition: Partition) -> set[int]:
        waited_for = (state.broker for state in partition.followers.values() if state.holds_hw)
        return {partition.broker, *partition.isr, *waited_for}

    def _compare(self, partition: Partition, quorum: set[int], now_us: int) -> bool:
        outside = [member for member in self._isr if member not in quorum]
        if outside:
            detail = (
                f"broker {partition.broker} leads and waits for {sorted(quorum)}, "
                f"while the persisted ISR is {sorted(self._isr)}"
            )
            said = self._ledger.warnings
            if not any(one.kind == "quorum-not-superset" and one.detail == detail for one in said):
                said.append(Violation("quorum-not-superset", now_us, detail))
        return not outside
