"""Decision points of leaders and followers, which rule values of plug-ins may take (`sim.protocol.decision_points`).

Each function has the answer of Highwater's own values as its last argument, and returns it unless a plug-in changes it.
Only with plug-ins does it look at the situation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.protocol.decision_points import (
    END_OFFSET_HIDDEN,
    EPOCH_RECORDED,
    FETCHER_RESTART,
    HIGH_WATERMARK,
    ISR_JOIN,
    ISR_LEAVE,
    REPLICA_START,
    TRUNCATION,
    EndOffsetHidden,
    EpochRecorded,
    FetcherRestart,
    Follower,
    HighWatermark,
    IsrJoin,
    IsrLeave,
    ReplicaStart,
    Truncation,
)

if TYPE_CHECKING:
    from sim.protocol.decisions import Decisions
    from sim.protocol.messages import LeaderAndIsr
    from sim.protocol.replica.followers import FollowerState
    from sim.protocol.replica.partition import Partition
    from sim.protocol.replica.replica import Replica


def epoch_recorded(leader: Partition, records: bool) -> bool:
    """Whether a new leader adds its leader epoch to the epoch cache."""
    if not leader.decide.plugged:
        return records
    at = EpochRecorded(leader.leader_epoch, leader.log.leo, leader.hw, tuple(leader.epochs.entries))
    return leader.decide.by_plugins(EPOCH_RECORDED, records, at)


def high_watermark(leader: Partition, candidate: int) -> int:
    """The offset to which a leader raises its HW; it stays if that is not above."""
    if not leader.decide.plugged:
        return candidate
    at = HighWatermark(
        leader.hw,
        leader.log.leo,
        _followers(leader),
        leader.state.isr,
        leader.state.pending,
        leader.min_insync_replicas,
        leader.epoch_start,
    )
    return leader.decide.by_plugins(HIGH_WATERMARK, max(candidate, leader.hw), at)


def isr_join(leader: Partition, follower: FollowerState, joins: bool) -> bool:
    """Whether a leader proposes an ISR with a follower."""
    if not leader.decide.plugged:
        return joins
    at = IsrJoin(
        follower.broker,
        follower.leo,
        leader.membership.is_eligible(follower),
        leader.epoch_start,
        leader.hw,
        leader.log.leo,
        leader.state.isr,
        leader.min_insync_replicas,
    )
    return leader.decide.by_plugins(ISR_JOIN, joins, at)


def isr_leave(leader: Partition, lagging: tuple[int, ...], leaving: tuple[int, ...]) -> tuple[int, ...]:
    """The lagging members of the ISR that a leader removes."""
    if not leader.decide.plugged:
        return leaving
    at = IsrLeave(lagging, _followers(leader), leader.state.isr, leader.min_insync_replicas)
    return leader.decide.by_plugins(ISR_LEAVE, leaving, at)


def replica_start(leader: Partition, log_start: int) -> int:
    """Where a follower begins whose LEO is below the leader's log start."""
    if not leader.decide.plugged:
        return log_start
    return leader.decide.by_plugins(REPLICA_START, log_start, ReplicaStart(log_start, leader.hw, leader.log.leo))


def end_offset_hidden(leader: Partition, hides: bool) -> bool:
    """Whether a client's ListOffsets gets OFFSET_NOT_AVAILABLE."""
    if not leader.decide.plugged:
        return hides
    at = EndOffsetHidden(leader.hw, leader.log.leo, leader.epoch_start, leader.state.isr, leader.min_insync_replicas)
    return leader.decide.by_plugins(END_OFFSET_HIDDEN, hides, at)


def fetcher_restart(decide: Decisions, leader: int, leader_epoch: int, decision: LeaderAndIsr, restarts: bool) -> bool:
    """Whether a follower of a leader, in a leader epoch, truncates and fetches anew by a LeaderAndIsr."""
    if not decide.plugged:
        return restarts
    at = FetcherRestart(leader, leader_epoch, decision.leader, decision.leader_epoch)
    return decide.by_plugins(FETCHER_RESTART, restarts, at)


def truncation(
    replica: Replica, leader_epoch: int, cause: str, epoch: int, end_offset: int, result: tuple[int, bool]
) -> tuple[int, bool]:
    """Where a follower truncates to, and whether that completes truncation; see `Truncation` for the arguments."""
    if not replica.decide.plugged:
        return result
    log = replica.log
    at = Truncation(
        cause, log.leo, replica.hw, log.log_start, leader_epoch, tuple(replica.epochs.entries), epoch, end_offset
    )
    return replica.decide.by_plugins(TRUNCATION, result, at)


def _followers(leader: Partition) -> tuple[Follower, ...]:
    states = leader.followers.states.values()
    return tuple([Follower(state.broker, state.leo, state.in_isr, state.in_maximal_isr) for state in states])
