"""Probes of replicas: leadership, truncation, fetching, and the ISR."""

from __future__ import annotations

from typing import Final

from sim.protocol.messages import (
    FENCED_LEADER_EPOCH,
    LOG_TRUNCATION,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
)
from sim.protocol.probe import probe


def _leadership(name: str, meaning: str) -> int:
    return probe("leadership", name, meaning)


LEADER_BEGINS: Final = _leadership("leader-begins", "a broker begins to lead")
LEADER_LEADS_ON: Final = _leadership("leader-leads-on", "a leader keeps leading in a newer epoch")
LEADER_BEHIND: Final = _leadership("leader-behind", "a new leader's HW is below its LEO")
LEADER_RESIGNS: Final = _leadership("leader-resigns", "a leader becomes a follower, or stops")
WRITES_DROPPED: Final = _leadership(
    "waiting-writes-refused", "a leader refuses writes that wait for the HW, because it resigns"
)
FOLLOWER_BEGINS: Final = _leadership("follower-begins", "a broker becomes a follower, and truncates first")
FOLLOWER_GOES_ON: Final = _leadership("follower-goes-on", "a follower keeps fetching in a newer epoch")
DECISION_OUTDATED: Final = _leadership("decision-outdated", "a LeaderAndIsr without a newer epoch is ignored")
DECISION_DEAD_LEADER: Final = _leadership("decision-dead-leader", "a LeaderAndIsr with a dead leader is ignored")
STALE_BROKER: Final = _leadership("stale-broker-epoch", "a broker refuses a request for its earlier registration")
STALE_CONTROLLER: Final = _leadership("stale-controller-epoch", "a broker refuses a request of an earlier controller")


def _truncation(name: str, meaning: str) -> int:
    return probe("truncation", name, meaning)


TRUNCATES_TO_HW: Final = _truncation("truncates-to-hw", "a follower truncates to its HW, by its rule")
FALLS_BACK: Final = _truncation("falls-back", "a follower truncates to its HW: its leader knows no end offset")
ONE_ROUND: Final = _truncation("by-epoch-1-round", "a truncation takes 1 OffsetsForLeaderEpoch response")
TWO_ROUNDS: Final = _truncation("by-epoch-2-rounds", "a truncation takes 2 OffsetsForLeaderEpoch responses")
MORE_ROUNDS: Final = _truncation(
    "by-epoch-more-rounds", "a truncation takes more than 2 OffsetsForLeaderEpoch responses"
)
ROUNDS: Final = (ONE_ROUND, TWO_ROUNDS, MORE_ROUNDS)
TRUNCATION_REMOVES: Final = _truncation("removes-records", "a truncation removes batches")
TRUNCATION_SPLITS: Final = _truncation(
    "inside-batch", "a truncation to an offset within a batch removes the whole batch"
)
TRUNCATION_BELOW_HW: Final = _truncation("below-hw", "a truncation goes below the replica's HW")
OUT_OF_RANGE_TRUNCATES: Final = _truncation(
    "out-of-range-truncates", "an out-of-range follower truncates to the leader's LEO"
)
OUT_OF_RANGE_HALTS: Final = _truncation("out-of-range-halts", "an out-of-range follower halts its broker")
OUT_OF_RANGE_ANEW: Final = _truncation(
    "out-of-range-anew", "a follower drops its log and restarts at the leader's log start"
)
EPOCH_END_FENCED: Final = _truncation("epoch-end-fenced", "OffsetsForLeaderEpoch fails with FENCED_LEADER_EPOCH")
EPOCH_END_UNKNOWN: Final = _truncation(
    "epoch-end-unknown-epoch", "OffsetsForLeaderEpoch fails with UNKNOWN_LEADER_EPOCH"
)
EPOCH_END_NOT_LEADER: Final = _truncation(
    "epoch-end-not-leader", "OffsetsForLeaderEpoch fails: the broker does not lead"
)
EPOCH_ENDS: Final = {
    FENCED_LEADER_EPOCH: EPOCH_END_FENCED,
    UNKNOWN_LEADER_EPOCH: EPOCH_END_UNKNOWN,
    NOT_LEADER_OR_FOLLOWER: EPOCH_END_NOT_LEADER,
}


def _fetching(name: str, meaning: str) -> int:
    return probe("fetching", name, meaning)


FETCH_FENCED: Final = _fetching("fetch-fenced", "a follower's fetch fails with FENCED_LEADER_EPOCH")
FETCH_UNKNOWN_EPOCH: Final = _fetching("fetch-unknown-epoch", "a follower's fetch fails with UNKNOWN_LEADER_EPOCH")
FETCH_NOT_LEADER: Final = _fetching("fetch-not-leader", "a follower's fetch fails: the broker does not lead")
FETCH_OUT_OF_RANGE: Final = _fetching("fetch-out-of-range", "a follower's fetch is outside the leader's log")
FETCH_DIVERGES: Final = _fetching("fetch-diverges", "a follower's fetch shows that its log diverges")
FETCHES: Final = {
    FENCED_LEADER_EPOCH: FETCH_FENCED,
    UNKNOWN_LEADER_EPOCH: FETCH_UNKNOWN_EPOCH,
    NOT_LEADER_OR_FOLLOWER: FETCH_NOT_LEADER,
    OFFSET_OUT_OF_RANGE: FETCH_OUT_OF_RANGE,
    LOG_TRUNCATION: FETCH_DIVERGES,
}
FETCH_OTHER_EPOCH: Final = _fetching("fetch-of-other-epoch", "a leader serves a follower of another leader epoch")
REQUEST_FAILS: Final = _fetching("request-fails", "a follower's request fails without a response")
LATE_REPLY: Final = _fetching("late-reply", "a follower gets a response to a request of an earlier epoch")
FETCHER_DIES: Final = _fetching("fetcher-dies", "an error ends a fetcher thread")
PARTITION_FAILS: Final = _fetching("partition-fails", "a partition is marked failed until the next leader change")
HW_GOES_BACK: Final = _fetching("hw-goes-back", "a follower's HW goes back")


def _isr(name: str, meaning: str) -> int:
    return probe("isr", name, meaning)


ISR_SHRINKS: Final = _isr("isr-shrinks", "a smaller ISR is persisted")
ISR_EXPANDS: Final = _isr("isr-expands", "a larger ISR is persisted")
ISR_SINGLE: Final = _isr("isr-single", "an ISR of one member is persisted")
ISR_REFUSED_VERSION: Final = _isr("isr-refused-version", "an ISR is refused: its version is outdated")
ISR_REFUSED_MEMBER: Final = _isr("isr-refused-member", "an ISR is refused: a member registered again")
ISR_LOST: Final = _isr("isr-change-lost", "a leader's process ends while an ISR change is pending")
