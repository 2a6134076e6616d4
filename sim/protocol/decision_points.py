"""Decision points: decisions of the protocol that a rule value of a plug-in may take, each by a function.

A function gets the answer of Highwater's own values and the situation, and returns its own answer, of the same type. It
must be pure: the answer depends on its arguments only. At each point the protocol calls a function that looks at the
situation only if `Decisions.plugged` is set, so that a run without plug-ins pays for one call::

    candidate = plugin_points.high_watermark(self, candidate)
"""

from __future__ import annotations

from typing import Final, NamedTuple

TRUNCATION: Final = "truncation"
FETCHER_RESTART: Final = "fetcher_restart"
EPOCH_RECORDED: Final = "epoch_recorded"
ISR_JOIN: Final = "isr_join"
ISR_LEAVE: Final = "isr_leave"
ISR_ACCEPTED: Final = "isr_accepted"
HIGH_WATERMARK: Final = "high_watermark"
END_OFFSET_HIDDEN: Final = "end_offset_hidden"
REPLICA_START: Final = "replica_start"
LEADER: Final = "leader"
ELIGIBLE_REPLICAS: Final = "elr"
LAST_KNOWN_REPLICAS: Final = "last_known_elr"
REASSIGNMENT_COMPLETES: Final = "reassignment_completes"

BY_HW: Final = "high-watermark"
BY_EPOCH: Final = "epoch-end"
BY_FETCH: Final = "diverging-epoch"
FALLS_BACK: Final = "fallback"
OUT_OF_RANGE: Final = "out-of-range"


class Truncation(NamedTuple):
    """A follower truncates its log. The answer is (offset, whether that completes truncation).

    After an incomplete truncation the follower asks, or fetches, again.

    Attributes:
        cause: ``high-watermark``: by rule ``follower_truncation``; ``epoch-end``: by an OffsetsForLeaderEpoch response;
            ``diverging-epoch``: by a fetch response; ``fallback``: the leader gave no end offset; ``out-of-range``: the
            leader's log ends before the follower's.
        leo: the follower's LEO.
        hw: its HW.
        log_start: its log start; no answer may be below.
        leader_epoch: the leader epoch that it follows.
        epochs: its epoch cache: (epoch, start offset), ascending.
        epoch: the epoch in the response, -1 without one.
        end_offset: the end offset in the response, -1 without one.
    """

    cause: str
    leo: int
    hw: int
    log_start: int
    leader_epoch: int
    epochs: tuple[tuple[int, int], ...]
    epoch: int
    end_offset: int


class FetcherRestart(NamedTuple):
    """A LeaderAndIsr, or partition record, reaches a follower. The answer is whether it truncates and fetches anew.

    Attributes:
        leader: the leader that it followed, 0 for none.
        leader_epoch: the leader epoch in which it did.
        new_leader: the leader now.
        new_leader_epoch: the leader epoch now.
    """

    leader: int
    leader_epoch: int
    new_leader: int
    new_leader_epoch: int


class EpochRecorded(NamedTuple):
    """A broker becomes leader. The answer is whether it adds its leader epoch to the epoch cache now.

    Attributes:
        leader_epoch: its leader epoch.
        leo: its LEO, where the epoch would start.
        hw: its HW.
        epochs: its epoch cache: (epoch, start offset), ascending.
    """

    leader_epoch: int
    leo: int
    hw: int
    epochs: tuple[tuple[int, int], ...]


class Follower(NamedTuple):
    """A follower, as its leader sees it.

    Attributes:
        broker: its id.
        leo: its LEO by its last fetch in this leader epoch, -1 before the first.
        in_isr: whether it is in the ISR.
        in_maximal_isr: whether it is in the ISR, or in a larger one that is proposed.
    """

    broker: int
    leo: int
    in_isr: bool
    in_maximal_isr: bool


class IsrJoin(NamedTuple):
    """A follower outside the ISR has fetched, and no ISR change is pending. The answer is whether the leader proposes
    an ISR with it.

    Attributes:
        broker: the follower.
        follower_leo: its LEO.
        eligible: whether rule ``isr_eligibility`` admits it.
        epoch_start: the leader's LEO when its leader epoch began.
        hw: the leader's HW.
        leo: the leader's LEO.
        isr: the ISR.
        min_isr: effective ``min.insync.replicas``.
    """

    broker: int
    follower_leo: int
    eligible: bool
    epoch_start: int
    hw: int
    leo: int
    isr: tuple[int, ...]
    min_isr: int


class IsrLeave(NamedTuple):
    """Members of the ISR lag. The answer is the members that the leader removes, () for none.

    Attributes:
        lagging: members that lag for longer than ``replica.lag.time.max.ms``.
        followers: all followers.
        isr: the ISR.
        min_isr: effective ``min.insync.replicas``.
    """

    lagging: tuple[int, ...]
    followers: tuple[Follower, ...]
    isr: tuple[int, ...]
    min_isr: int


class IsrAccepted(NamedTuple):
    """A KRaft controller validates a member of a proposed ISR. The answer is whether it accepts the member.

    Attributes:
        broker: the member.
        active: whether it is registered, not fenced and not shutting down.
        broker_epoch: its broker epoch, -1 if it is not registered.
        named_epoch: the broker epoch in the proposal, -1 for any.
        isr: the present ISR.
        proposed: the proposed ISR.
        leader: the leader.
    """

    broker: int
    active: bool
    broker_epoch: int
    named_epoch: int
    isr: tuple[int, ...]
    proposed: tuple[int, ...]
    leader: int


class HighWatermark(NamedTuple):
    """A leader may raise its HW. The answer is the offset to raise it to; one that is not above the HW leaves it.

    Attributes:
        hw: the HW.
        leo: the leader's LEO; no answer may be above.
        followers: its followers.
        isr: the ISR.
        pending: the proposed ISR, () for none.
        min_isr: effective ``min.insync.replicas``.
        epoch_start: its LEO when its leader epoch began.
    """

    hw: int
    leo: int
    followers: tuple[Follower, ...]
    isr: tuple[int, ...]
    pending: tuple[int, ...]
    min_isr: int
    epoch_start: int


class EndOffsetHidden(NamedTuple):
    """A client asks a leader for an offset by time (ListOffsets). The answer is whether the leader responds with
    OFFSET_NOT_AVAILABLE.

    Attributes:
        hw: its HW.
        leo: its LEO.
        epoch_start: its LEO when its leader epoch began.
        isr: the ISR.
        min_isr: effective ``min.insync.replicas``.
    """

    hw: int
    leo: int
    epoch_start: int
    isr: tuple[int, ...]
    min_isr: int


class ReplicaStart(NamedTuple):
    """A follower whose LEO is below the leader's log start asks where to begin. The answer is the offset at which it
    begins, without any records: the log start or above, and not above the HW.

    Attributes:
        log_start: the leader's log start.
        hw: its HW.
        leo: its LEO.
    """

    log_start: int
    hw: int
    leo: int


class Election(NamedTuple):
    """A controller elects a leader. The answer is the leader, 0 for none; a member of `candidates`.

    A leader outside ISR and ELR is elected uncleanly: it becomes the only member of the ISR. ZooKeeper's controller
    asks if the partition is offline; KRaft's with every change of a partition.

    Attributes:
        leader: the present leader, 0 for none.
        replicas: the assignment.
        candidates: replicas that may lead: live, not fenced, not shutting down.
        isr: the ISR after the change.
        elr: eligible leader replicas after the change; () under ZooKeeper.
        last_known_elr: the last known ELR; () under ZooKeeper.
        unclean: whether an unclean election is allowed.
        min_isr: effective ``min.insync.replicas``; 0 under ZooKeeper, whose controller does not know it.
    """

    leader: int
    replicas: tuple[int, ...]
    candidates: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    unclean: bool
    min_isr: int


class EligibleReplicas(NamedTuple):
    """A KRaft controller changes a partition in whose mode ELR is on. The answer is the ELR, or the last known ELR.

    Attributes:
        isr_before: the ISR before the change.
        elr_before: the ELR before the change.
        isr: the ISR after it.
        replicas: the assignment after it.
        unclean: brokers that registered after an unclean shutdown.
        leader_before: the leader before the change.
        min_isr: effective ``min.insync.replicas``.
    """

    isr_before: tuple[int, ...]
    elr_before: tuple[int, ...]
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    unclean: tuple[int, ...]
    leader_before: int
    min_isr: int


class Reassignment(NamedTuple):
    """A KRaft controller changes a partition with a reassignment. The answer is whether it completes now.

    Attributes:
        replicas: the target replicas.
        adding: replicas that it adds.
        removing: replicas that it removes.
        isr: the ISR without the replicas that it removes.
        min_isr: effective ``min.insync.replicas``.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    isr: tuple[int, ...]
    min_isr: int


class DecisionPoint(NamedTuple):
    """A decision point.

    Attributes:
        name: its name.
        rules: rules of Highwater whose new values may take the decision; those of plug-ins may take any.
        answer: the type of its answer.
        situation: the class of its situation.
    """

    name: str
    rules: tuple[str, ...]
    answer: str
    situation: type


POINTS: Final = {
    point.name: point
    for point in (
        DecisionPoint(
            TRUNCATION, ("follower_truncation", "epoch_request_error", "out_of_range"), "tuple[int, bool]", Truncation
        ),
        DecisionPoint(FETCHER_RESTART, ("fetcher_restart",), "bool", FetcherRestart),
        DecisionPoint(EPOCH_RECORDED, ("epoch_recorded_at",), "bool", EpochRecorded),
        DecisionPoint(ISR_JOIN, ("isr_join", "isr_eligibility"), "bool", IsrJoin),
        DecisionPoint(ISR_LEAVE, ("isr_lag", "isr_floor"), "tuple[int, ...]", IsrLeave),
        DecisionPoint(ISR_ACCEPTED, ("isr_eligibility", "isr_floor"), "bool", IsrAccepted),
        DecisionPoint(HIGH_WATERMARK, ("hw_needs_min_isr",), "int", HighWatermark),
        DecisionPoint(END_OFFSET_HIDDEN, ("list_offsets_guard",), "bool", EndOffsetHidden),
        DecisionPoint(REPLICA_START, ("out_of_range",), "int", ReplicaStart),
        DecisionPoint(
            LEADER, ("unclean_recovery", "last_known_leader", "missed_bounce", "preferred_election"), "int", Election
        ),
        DecisionPoint(ELIGIBLE_REPLICAS, ("elr", "elr_outside_assignment"), "tuple[int, ...]", EligibleReplicas),
        DecisionPoint(LAST_KNOWN_REPLICAS, ("last_known_elr",), "tuple[int, ...]", EligibleReplicas),
        DecisionPoint(REASSIGNMENT_COMPLETES, ("reassignment_completes",), "bool", Reassignment),
    )
}
"""Name -> decision point."""
