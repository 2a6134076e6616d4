"""The ISR: persisted and pending state, and which followers may join or have to leave."""

from __future__ import annotations

from typing import Final

from sim.protocol.decisions import Decisions
from sim.protocol.messages import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    NO_BROKER_EPOCH,
    OPERATION_NOT_ATTEMPTED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from sim.protocol.replica.followers import UNKNOWN_LEO, Followers, FollowerState
from sim.protocol.replica.partition_host import MetadataCache

UNREGISTERED: Final = -1
ROLLED_BACK: Final = frozenset({OPERATION_NOT_ATTEMPTED, INELIGIBLE_REPLICA})
AWAIT_METADATA: Final = frozenset(
    {
        UNKNOWN_TOPIC_OR_PARTITION,
        UNKNOWN_TOPIC_ID,
        FENCED_LEADER_EPOCH,
        INVALID_UPDATE_VERSION,
        INVALID_REQUEST,
        NEW_LEADER_ELECTED,
    }
)
"""After these errors wait for metadata; retry after others. Kafka: Partition#handleAlterPartitionError (3.9-4.4)."""


class PartitionState:
    """The ISR and its pending change.

    Kafka: CommittedPartitionState (3.9-4.4), PendingPartitionChange (3.9-4.4), cluster.PartitionState (3.9-4.1),
    partition.PartitionState (4.2-4.4).

    Attributes:
        isr: the last persisted ISR that this broker knows.
        pending: the proposed ISR that is neither persisted nor rejected, () without one.
        locked: whether an ISR write to ZooKeeper is pending, while nothing of the partition may change (the
            leaderIsrUpdateLock).
        advances_hw: whether to try to advance the HW after that write, whatever its result.
        broker_epochs: of the followers in `pending`, from their last fetches before it was proposed.
    """

    __slots__ = ("advances_hw", "broker_epochs", "isr", "locked", "pending")

    def __init__(self) -> None:
        self.isr: tuple[int, ...] = ()
        self.pending: tuple[int, ...] = ()
        self.locked = False
        self.advances_hw = False
        self.broker_epochs: dict[int, int] = {}

    def commit(self, isr: tuple[int, ...]) -> None:
        """Set the persisted ISR and clear the pending change."""
        self.isr = isr
        self.pending = ()
        self.locked = False

    def propose(self, isr: tuple[int, ...], broker_epochs: dict[int, int], *, locks: bool, advances_hw: bool) -> None:
        """Set the pending ISR."""
        self.pending = isr
        self.broker_epochs = broker_epochs
        self.locked = locks
        self.advances_hw = advances_hw


class IsrMembership:
    """Decides which followers may join the ISR or have to leave it, by rules ``isr_join``, ``isr_eligibility``,
    ``isr_update`` and ``isr_floor``.
    """

    __slots__ = ("_decide", "_host")

    def __init__(self, decide: Decisions, host: MetadataCache) -> None:
        self._decide = decide
        self._host = host

    def is_eligible(self, follower: FollowerState) -> bool:
        """Whether a broker may be in an ISR (KIP-841, KIP-903). Kafka: Partition#isReplicaIsrEligible (3.9-4.4).

        A leader's write to ZooKeeper is checked there; the leader's own metadata may stay stale until something else
        changes, since the last UpdateMetadata it receives may be a late copy of an older one.
        """
        decide = self._decide
        alive = self._host.is_alive(follower.broker)
        if alive and self._is_registered(follower):
            return True
        if not decide.asks_controller.yes():
            return alive or not decide.admits_live_members.yes()
        return decide.admits_any_member.yes() or (alive and decide.admits_live_members.yes())

    def _is_registered(self, follower: FollowerState) -> bool:
        """Whether its registration is current (KIP-903). Kafka: Partition#isBrokerEpochIsrEligible (3.9-4.4)."""
        if follower.leo == UNKNOWN_LEO:
            return False
        return follower.broker_epoch in (NO_BROKER_EPOCH, self._host.registered_epoch(follower.broker))

    def may_join(self, follower: FollowerState, hw: int, epoch_start: int) -> bool:
        """Whether a follower may join: it has reached the HW, and is eligible.

        With rule ``isr_join=leader-epoch-start`` it must reach the start offset of the leader epoch (KAFKA-7128): a new
        leader's HW may be below that, with committed records between the two.
        Kafka: Partition#canAddReplicaToIsr (3.9-4.4), Partition#isFollowerInSync (2.6-4.4).
        """
        broker, leo, mutants = follower.broker, follower.leo, self._decide.mutants
        below_hw = mutants.join_below_hw.keeps(leo < hw, broker, hw)
        below_start = not below_hw and leo < epoch_start and self._decide.joins_at_epoch_start.yes()
        below_start = mutants.join_below_epoch_start.keeps(below_start, broker, epoch_start)
        return not (below_hw or below_start) and self.is_eligible(follower)

    def joining_without_fetch(self, followers: Followers, hw: int) -> list[int]:
        """Live followers that have not fetched in this leader epoch, if a mutant lets them join with another one."""
        mutant = self._decide.mutants.join_without_fetch
        mutant.took = True
        return [
            state.broker
            for state in followers.states.values()
            if state.leo == UNKNOWN_LEO and self._host.is_alive(state.broker) and mutant.differs(state.broker, hw)
        ]

    def members_to_remove(self, lagging: tuple[int, ...], followers: Followers, spare: int) -> tuple[int, ...]:
        """The lagging members that have to leave: all of them.

        With rule ``isr_floor=min-isr`` (KIP-966, rejected alternatives) only as many as min ISR can spare, those that
        lag longest first.
        """
        if spare >= len(lagging) or not self._decide.holds_small_isr.yes():
            return lagging
        return tuple(sorted(lagging, key=lambda broker: followers.states[broker].caught_up_us)[: max(spare, 0)])
