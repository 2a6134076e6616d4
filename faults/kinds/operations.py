"""Kinds that an operator brings about: elections, reassignments, other settings, deletions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from faults.bounds import Limits, aim
from faults.kind import (
    CLUSTER,
    DISTURBED,
    KRAFT,
    OTHER_BROKER,
    OTHER_REPLICA,
    PERMILLE,
    REPLICAS,
    THE_LEADER,
    Amount,
    Duration,
    FaultKind,
    Param,
    Targets,
)
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.hosts.control_plane import ELECTIONS
from sim.kernel.streams import Stream, choice, integer, sample

_WORDS: Final = tuple(ELECTIONS)
"""A plan stores their indices."""
_DRAWN: Final = (0, 0, 0, 1, 2, 3)


class RetentionFault(FaultKind):
    """The leader deletes its oldest batches; followers learn of it as they fetch, and keep their segments.

    Whole batches are deleted, as with segments. DeleteRecords can end inside one, and a follower that then truncates to
    the log start is stuck: the batch with this offset begins below its LEO.
    """

    name: ClassVar[str] = "retention"
    meaning: ClassVar[str] = "delete the oldest permille/1000 of the committed records at the leader"
    targets: ClassVar[Targets] = THE_LEADER
    amount: ClassVar[Amount | None] = Amount("permille", PERMILLE, "1/1000", bounds=(1, 1_000), most=1_000)
    remains: ClassVar[str] = "deleted records stay deleted"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Advance the log start by that share of the distance to the HW; False if the target does not lead, or it did
        not move.
        """
        process = cluster.running.get(target)
        if process is None or process.frozen or process.waiting is not None:
            return False
        partition = process.partition
        if partition is None or not partition.is_leader:
            return False
        log_start = partition.log.log_start
        before = log_start + (partition.hw - log_start) * fault.value // 1_000
        holding = partition.log.read(before)
        if not cluster.administrator.delete_records(partition, holding[0].base_offset if holding else before):
            return False
        partition.log.end_segment(partition.log.log_start)
        process.storage.delete_segments(cluster.kernel.now_us)
        return True


class PreferredElection(FaultKind):
    """An operator elects the preferred leader, the first replica."""

    name: ClassVar[str] = "preferred-election"
    meaning: ClassVar[str] = "elect the preferred leader, the first replica"
    targets: ClassVar[Targets] = CLUSTER
    remains: ClassVar[str] = "the leader stays"
    needs: ClassVar[tuple[str, ...]] = (OTHER_REPLICA,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Elect it; False if that changed nothing at once."""
        return cluster.control.elect_preferred()


class AdminElection(FaultKind):
    """An operator of a KRaft cluster elects a leader where there is none, accepting losses.

    Kafka's tool has UNCLEAN; KIP-966 adds elections of a named replica (designated) and of the longest log, Balanced or
    Aggressive. Only the Balanced one, which needs the answers of all last known eligible replicas, keeps the promise.
    Under ZooKeeper (where KIP-460 has UNCLEAN from 2.4 on) it has no effect.
    """

    name: ClassVar[str] = "admin-election"
    meaning: ClassVar[str] = (
        "in KRaft, elect a leader if there is none: longest-log-balanced, longest-log-aggressive, unclean or "
        "designated, which names a broker"
    )
    targets: ClassVar[Targets] = Targets("the cluster", {"broker": Param("broker")}, allows_zero=True)
    amount: ClassVar[Amount | None] = Amount(
        "election", Param("election", required=True), "index of the election", bounds=(0, 3), most=len(_WORDS) - 1
    )
    remains: ClassVar[str] = "the leader stays"
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Elect; False if there is a leader, or no replica could be elected."""
        return cluster.control.elect_leader(ELECTIONS[_WORDS[fault.value]], target)

    def draw(self, stream: Stream, limits: Limits) -> Fault:
        """Draw an election; every second one is balanced. The designated replica is drawn like a target."""
        at_us = integer(stream, *limits.window_us)
        value = choice(stream, _DRAWN)
        return Fault(self.name, at_us, (aim(stream, limits),), value=value)

    def value_of(self, params: Mapping[str, Any]) -> int:
        """The index of the election."""
        return _WORDS.index(params["election"])


class Reassignment(FaultKind):
    """An operator assigns other replicas to the partition."""

    name: ClassVar[str] = "reassignment"
    meaning: ClassVar[str] = "reassign the partition to other replicas"
    targets: ClassVar[Targets] = CLUSTER
    remains: ClassVar[str] = "it continues until it completes"
    needs: ClassVar[tuple[str, ...]] = (OTHER_BROKER,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Submit it; False if it was refused."""
        return cluster.control.reassign(fault.replicas)

    def draw(self, stream: Stream, limits: Limits) -> Fault:
        """Draw as many replicas as before, on any brokers, in any order."""
        at_us = integer(stream, *limits.window_us)
        replicas = sample(stream, limits.all_brokers, len(limits.brokers))
        return Fault(self.name, at_us, (self.targets.implied,), replicas=tuple(replicas))

    def params(self) -> dict[str, Param]:
        """The new replicas."""
        return {"replicas": Param("brokers", required=True)}

    def scripted(self, params: Mapping[str, Any], at_us: int) -> Fault:
        return Fault(self.name, at_us, (self.targets.implied,), replicas=tuple(params["replicas"]))


class ReassignmentCancel(FaultKind):
    """An operator of a KRaft cluster cancels a reassignment (KIP-455).

    Kafka: ReplicationControlManager.cancelPartitionReassignment. Under ZooKeeper (where KIP-455 has it from 2.4 on) it
    has no effect.
    """

    name: ClassVar[str] = "reassignment-cancel"
    meaning: ClassVar[str] = "in KRaft, cancel the reassignment that is under way"
    targets: ClassVar[Targets] = CLUSTER
    remains: ClassVar[str] = "the former replicas stay"
    needs: ClassVar[tuple[str, ...]] = (KRAFT, OTHER_BROKER)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Cancel it; False if none is under way, or the cancellation was refused."""
        return cluster.control.cancel_reassignment()


class MinIsrChange(FaultKind):
    """An operator sets ``min.insync.replicas`` to another value for a while, then back."""

    name: ClassVar[str] = "min-isr-change"
    meaning: ClassVar[str] = "set min.insync.replicas to a value; without for_ms until the end"
    targets: ClassVar[Targets] = CLUSTER
    amount: ClassVar[Amount | None] = Amount(
        "value", Param("count", required=True), "replicas", bounds=REPLICAS, least=1
    )
    duration: ClassVar[Duration | None] = DISTURBED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Set the value; False if it is set already."""
        return cluster.administrator.change_min_isr(fault.value, fault)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Set the value that applies without this change."""
        cluster.administrator.restore_min_isr(fault.value, fault)
