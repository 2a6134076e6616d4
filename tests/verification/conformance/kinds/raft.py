"""Drivers of kinds ``quorum_state`` and ``leader_state``: states of a member of the metadata quorum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.protocol.decisions import Decisions
from sim.protocol.raft.batch_accumulator import BatchAccumulator
from sim.protocol.raft.election_state import ElectionState
from sim.protocol.raft.epoch_states import FollowerState, NomineeState, ResignedState, election_at_us
from sim.protocol.raft.kraft_control_record_state_machine import KRaftControlRecordStateMachine
from sim.protocol.raft.leader_state import LeaderState
from sim.protocol.raft.quorum_state import QuorumState
from sim.protocol.raft.raft_log import OffsetAndEpoch, RaftLog
from sim.protocol.raft.request_manager import NEVER
from sim.protocol.raft.voter_set import ReplicaKey, static_voters
from tests.verification.conformance.driving import Kind, Seen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.protocol.rules import Rules
    from tests.verification.conformance.cases import Fields

MS = 1000
LEADERS_FETCH_TIMEOUT_US = 2_000 * MS


class Member:
    """The state of a case: a member, the time, and what is stored."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        self.now_us = 0
        self.jitter_us: int = given.get("jitter_ms", 0) * MS
        stored = given["stored"]
        self.stored = None if stored is None else ElectionState(*stored)
        partition = KRaftControlRecordStateMachine(static_voters(given["voters"]), RaftLog())
        self.quorum = QuorumState(0, partition, Decisions(rules), 5_000 * MS, 10_000 * MS, self.draw, self.store)
        self.quorum.initialize(self.stored, OffsetAndEpoch(0, given["log_epoch"]), 0)

    def draw(self, bound: int) -> int:
        """The next number, once."""
        assert self.jitter_us < bound
        drawn, self.jitter_us = self.jitter_us, 0
        return drawn

    def store(self, election: ElectionState) -> None:
        """Write quorum-state."""
        self.stored = election

    def unattached(self, op: Fields) -> None:
        self.quorum.transition_to_unattached(op["epoch"], op["leader"], self.now_us)

    def add_voted(self, op: Fields) -> None:
        self.quorum.unattached_add_voted_state(op["epoch"], ReplicaKey(op["candidate"]), self.now_us)

    def prospective_add_voted(self, op: Fields) -> None:
        self.quorum.prospective_add_voted_state(op["epoch"], ReplicaKey(op["candidate"]), self.now_us)

    def follower(self, op: Fields) -> None:
        self.quorum.transition_to_follower(op["epoch"], op["leader"], self.now_us)

    def prospective(self, _: Fields) -> None:
        self.quorum.transition_to_prospective(self.now_us)

    def candidate(self, _: Fields) -> None:
        self.quorum.transition_to_candidate(self.now_us)

    def leader(self, op: Fields) -> None:
        accumulator = BatchAccumulator(self.quorum.epoch, op["start_offset"], 0)
        self.quorum.transition_to_leader(op["start_offset"], accumulator, self.now_us)

    def resigned(self, op: Fields) -> None:
        self.quorum.transition_to_resigned([ReplicaKey(voter) for voter in op["successors"]], self.now_us)

    def sleep(self, op: Fields) -> None:
        self.now_us += op["ms"] * MS

    def jitter(self, op: Fields) -> None:
        self.jitter_us = op["ms"] * MS

    def granted(self, op: Fields) -> Seen:
        return Seen(first=self.nominee().record_vote(op["voter"], granted=True))

    def rejected(self, op: Fields) -> Seen:
        return Seen(first=self.nominee().record_vote(op["voter"], granted=False))

    def acknowledge(self, op: Fields) -> None:
        state = self.quorum.state
        assert isinstance(state, ResignedState)
        state.acknowledge_resignation(op["voter"])

    def nominee(self) -> NomineeState:
        state = self.quorum.state
        assert isinstance(state, NomineeState)
        return state

    def high_watermark(self, op: Fields) -> None:
        state = self.quorum.state
        assert isinstance(state, FollowerState)
        state.update_high_watermark(op["offset"])

    def fetched(self, _: Fields) -> None:
        state = self.quorum.state
        assert isinstance(state, FollowerState)
        state.reset_fetch_timeout_for_successful_fetch(self.now_us)

    def show(self, _: Fields) -> None:
        """Only look."""

    def can_grant(self, op: Fields) -> Seen:
        state = self.quorum.state
        grants = state.can_grant_vote(ReplicaKey(op["candidate"]), up_to_date=op["up_to_date"], pre_vote=op["pre_vote"])
        return Seen(grants=grants)

    def remaining_ms(self) -> int | None:
        state = self.quorum.state
        at_us = state.fetch_timeout_at_us if isinstance(state, FollowerState) else election_at_us(state)
        return None if at_us == NEVER else max(0, at_us - self.now_us) // MS

    def observe(self) -> Mapping[str, object]:
        quorum, state = self.quorum, self.quorum.state
        seen: dict[str, object] = {
            "state": type(state).__name__.removesuffix("State"),
            "epoch": quorum.epoch,
            "leader": quorum.leader,
            "voted": quorum.state.election().voted,
            "stored": None if self.stored is None else self.stored[:3],
            "remaining_ms": self.remaining_ms(),
            "hw": state.high_watermark,
            "observer": not quorum.is_voter,
            "remote_leader": quorum.leader not in (-1, 0),
        }
        if isinstance(state, NomineeState):
            votes = state.votes
            seen |= {"granted": votes.is_vote_granted, "rejected": votes.is_vote_rejected}
            seen |= {"granting": votes.granting_voters(), "rejecting": votes.rejecting_voters()}
            seen["unrecorded"] = votes.unrecorded_voters()
        if isinstance(state, ResignedState):
            seen["unacked"] = state.unacked_voters
        return seen


class Leader:
    """The state of a case: a leader, and the time."""

    def __init__(self, given: Fields, _: Rules) -> None:
        self.now_us = 0
        self.voters: list[int] = given["voters"]
        start = given["start_offset"]
        accumulator = BatchAccumulator(5, start, 0)
        self.state = LeaderState(
            0, 5, start, static_voters(self.voters), (0,), accumulator, LEADERS_FETCH_TIMEOUT_US, 0
        )

    def local(self, op: Fields) -> Seen:
        return Seen(raised=self.state.update_local_state(op["offset"], static_voters(self.voters)))

    def fetch(self, op: Fields) -> Seen:
        return Seen(raised=self.state.update_replica_state(op["replica"], op["ms"] * MS, op["offset"]))

    def ack(self, op: Fields) -> None:
        self.state.add_acknowledgement_from(op["voter"])

    def sleep(self, op: Fields) -> None:
        self.now_us += op["ms"] * MS

    def show(self, _: Fields) -> None:
        """Only look."""

    def check(self, op: Fields) -> None:
        self.state.update_check_quorum_for_following_voter(op["replica"], self.now_us)

    def reset_begin(self, _: Fields) -> None:
        self.state.reset_begin_quorum_epoch_timer(self.now_us)

    def observe(self) -> Mapping[str, object]:
        state = self.state
        known = [state.replica_state(voter) for voter in self.voters]
        check_us = state.check_quorum_at_us
        return {
            "hw": state.high_watermark,
            "silent": [replica.replica for replica in known if replica and not replica.has_acknowledged_leader],
            "successors": [key.id for key in state.non_leader_voters_by_descending_fetch_offset()],
            "check_ms": None if check_us == NEVER else max(0, check_us - self.now_us) // MS,
            "begin_ms": max(0, state.begin_quorum_epoch_at_us - self.now_us) // MS,
        }


MEMBER = Kind(
    begin=Member,
    ops={
        "unattached": Member.unattached,
        "add_voted": Member.add_voted,
        "prospective_add_voted": Member.prospective_add_voted,
        "follower": Member.follower,
        "prospective": Member.prospective,
        "candidate": Member.candidate,
        "leader": Member.leader,
        "resigned": Member.resigned,
        "sleep": Member.sleep,
        "jitter": Member.jitter,
        "granted": Member.granted,
        "rejected": Member.rejected,
        "acknowledge": Member.acknowledge,
        "high_watermark": Member.high_watermark,
        "fetched": Member.fetched,
        "show": Member.show,
        "can_grant": Member.can_grant,
    },
    observe=Member.observe,
)
LEADER = Kind(
    begin=Leader,
    ops={
        "local": Leader.local,
        "fetch": Leader.fetch,
        "ack": Leader.ack,
        "sleep": Leader.sleep,
        "show": Leader.show,
        "check": Leader.check,
        "reset_begin": Leader.reset_begin,
    },
    observe=Leader.observe,
)
