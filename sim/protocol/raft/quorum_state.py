"""The transitions between the states of a member of the quorum, and what is stored of them before they take effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sim.protocol.decisions import Decisions
from sim.protocol.raft.batch_accumulator import BatchAccumulator
from sim.protocol.raft.election_state import ElectionState
from sim.protocol.raft.epoch_states import (
    CandidateState,
    EpochState,
    FollowerState,
    ProspectiveState,
    ResignedState,
    UnattachedState,
    election_at_us,
)
from sim.protocol.raft.kraft_control_record_state_machine import KRaftControlRecordStateMachine
from sim.protocol.raft.leader_state import LeaderState
from sim.protocol.raft.raft_log import IllegalRaftStateError, OffsetAndEpoch
from sim.protocol.raft.raft_messages import NO_NODE
from sim.protocol.raft.request_manager import NEVER
from sim.protocol.raft.voter_set import NO_DIRECTORY, ReplicaKey, VoterSet


class QuorumState:
    """The state of one member, which is a voter or an observer. Kafka: QuorumState.

    A member knows the addresses of its voters, and with bootstrap servers those of all members: messages name them.

    Args:
        local_id: the member's id.
        partition: the voters, and the kraft.version.
        decide: the member's rules.
        election_timeout_us: ``controller.quorum.election.timeout.ms``; the timeout is this to twice as long.
        fetch_timeout_us: ``controller.quorum.fetch.timeout.ms``.
        random_below: draws a number from 0 to below its argument.
        store: writes the file quorum-state, and returns once it is on disk.
        directory: the member's directory id.
        knows_all_members: whether it reaches members that are no voters.

    Attributes:
        key: its id and directory id.
        state: what it is in now.
    """

    def __init__(
        self,
        local_id: int,
        partition: KRaftControlRecordStateMachine,
        decide: Decisions,
        election_timeout_us: int,
        fetch_timeout_us: int,
        random_below: Callable[[int], int],
        store: Callable[[ElectionState], None],
        *,
        directory: int = NO_DIRECTORY,
        knows_all_members: bool = False,
    ) -> None:
        self.local_id: Final = local_id
        self.key: Final = ReplicaKey(local_id, directory)
        self._partition = partition
        self._knows_all_members = knows_all_members
        self._voters = partition.voters
        self._is_voter = partition.voters.is_voter(self.key)
        self._decide = decide
        self._election_timeout_us = election_timeout_us
        self._fetch_timeout_us = fetch_timeout_us
        self._random_below = random_below
        self._store = store
        self.state: EpochState = UnattachedState(0, NO_NODE, NO_NODE, None, NEVER)
        self._named_by: EpochState = self.state
        self._leader = NO_NODE
        """The leader that this state names."""

    def initialize(self, stored: ElectionState | None, log_end: OffsetAndEpoch, now_us: int) -> None:
        """Begin as the files say. Kafka: QuorumState#initialize.

        Args:
            stored: content of quorum-state, None without the file.
            log_end: where the log ends.
            now_us: time.
        """
        election = stored or ElectionState(0)
        epoch = election.epoch
        leader = election.leader
        if leader != NO_NODE and election.voted != NO_NODE and not self._decide.asks_for_pre_votes.yes():
            leader = NO_NODE  # 3.9 writes no vote beside a leader, and reads a vote first.
        initial: EpochState
        if epoch < log_end.epoch:
            initial = UnattachedState(log_end.epoch, NO_NODE, NO_NODE, None, self._election_timeout_at_us(now_us))
        elif leader == self.local_id:
            # It votes for no other leader of this epoch, and appends no record that has offset and epoch of a lost one.
            initial = ResignedState(self.local_id, epoch, self.voters, (), self._election_timeout_at_us(now_us))
        elif election.is_voted_candidate(self.key):
            at_us = self._election_timeout_at_us(now_us)
            initial = CandidateState(self.local_id, epoch, self.voter_set, None, at_us, 1, self.key.directory)
        elif leader in self.voters:
            at_us = now_us + self._fetch_timeout_us
            initial = FollowerState(epoch, leader, election.voted, None, at_us, election.voted_directory)
        else:
            at_us = self._election_timeout_at_us(now_us)
            initial = UnattachedState(epoch, leader, election.voted, None, at_us, election.voted_directory)
        self._durable_transition_to(initial)

    # Queries.

    @property
    def epoch(self) -> int:
        """The member's epoch. Kafka: QuorumState#epoch."""
        return self.state.epoch

    @property
    def leader(self) -> int:
        """The epoch's leader, or `NO_NODE`. Kafka: QuorumState#leaderIdOrSentinel."""
        state = self.state
        if state is not self._named_by:
            self._named_by, self._leader = state, state.election().leader
        return self._leader

    @property
    def voter_set(self) -> VoterSet:
        """The latest voters."""
        return self._partition.voters

    @property
    def voters(self) -> tuple[int, ...]:
        """Ids of the latest voters."""
        return self._partition.voters.ids

    def knows_address(self, member: int) -> bool:
        """Whether it can reach a member that a message names."""
        return self._knows_all_members or member in self.voters

    @property
    def reaches_leader(self) -> bool:
        """Whether it knows the leader's address. Kafka: QuorumState#leaderEndpoints."""
        state = self.state
        if isinstance(state, ProspectiveState):
            return state.reaches_leader
        return isinstance(state, FollowerState | LeaderState | ResignedState)

    @property
    def is_voter(self) -> bool:
        """Whether the member is a voter; else it is an observer. Kafka: QuorumState#isVoter."""
        voters = self._partition.voters
        if voters is not self._voters:
            self._voters, self._is_voter = voters, voters.is_voter(self.key)
        return self._is_voter

    @property
    def is_only_voter(self) -> bool:
        """Kafka: QuorumState#isOnlyVoter."""
        return self._partition.voters.is_only_voter(self.key)

    @property
    def is_unattached_not_voted(self) -> bool:
        """Kafka: QuorumState#isUnattachedNotVoted."""
        state = self.state
        return isinstance(state, UnattachedState) and state.voted == NO_NODE

    @property
    def is_prospective_not_voted(self) -> bool:
        """Kafka: QuorumState#isProspectiveNotVoted (4.1-4.4)."""
        state = self.state
        return isinstance(state, ProspectiveState) and state.voted == NO_NODE

    # Transitions.

    def transition_to_resigned(self, preferred_successors: Sequence[ReplicaKey], now_us: int) -> None:
        """A leader stops to lead; nothing is stored. Kafka: QuorumState#transitionToResigned.

        Raises:
            IllegalRaftStateError: it does not lead.
        """
        state = self.state
        if not isinstance(state, LeaderState):
            raise self._illegal("Resigned")
        at_us = self._election_timeout_at_us(now_us)
        state.close()
        self.state = ResignedState(self.local_id, self.epoch, self.voters, preferred_successors, at_us)

    def transition_to_unattached(self, epoch: int, leader: int, now_us: int) -> None:
        """Begin an epoch whose leader is unknown, or end a pre-election. Kafka: QuorumState#transitionToUnattached.

        Raises:
            IllegalRaftStateError: the epoch is no later one, and the member is not prospective.
        """
        state = self.state
        if epoch < state.epoch or (epoch == state.epoch and not isinstance(state, ProspectiveState)):
            raise self._illegal(f"Unattached in epoch {epoch}")
        if not self.is_voter:
            at_us = NEVER
        elif (
            isinstance(state, UnattachedState | CandidateState)
            or (isinstance(state, ProspectiveState) and not state.votes.is_vote_rejected)
            or (isinstance(state, ResignedState) and self._decide.asks_for_pre_votes.yes())
        ):
            at_us = max(now_us, election_at_us(state))
        else:
            at_us = self._election_timeout_at_us(now_us)
        voted = self._voted_in(epoch)
        self._durable_transition_to(
            UnattachedState(epoch, leader, voted.id, state.high_watermark, at_us, voted.directory)
        )

    def _voted_in(self, epoch: int) -> ReplicaKey:
        """The candidate that has the member's vote in an epoch, or `NO_NODE`."""
        if epoch != self.state.epoch:
            return ReplicaKey(NO_NODE)
        election = self.state.election()
        return ReplicaKey(election.voted, election.voted_directory)

    def unattached_add_voted_state(self, epoch: int, candidate: ReplicaKey, now_us: int) -> None:
        """Vote.

        Kafka: QuorumState#unattachedAddVotedState (4.1-4.4), QuorumState#transitionToUnattachedVotedState (3.9).

        Raises:
            IllegalRaftStateError: the member has voted, is in another state, or is the candidate itself.
        """
        if candidate.id == self.local_id or epoch != self.epoch or not self.is_unattached_not_voted:
            raise self._illegal(f"a vote for {candidate.id} in epoch {epoch}")
        at_us = self._election_timeout_at_us(now_us)
        known = self.state.high_watermark
        self._durable_transition_to(
            UnattachedState(epoch, self.leader, candidate.id, known, at_us, candidate.directory)
        )

    def prospective_add_voted_state(self, epoch: int, candidate: ReplicaKey, now_us: int) -> None:
        """Vote while it asks for pre-votes. Kafka: QuorumState#prospectiveAddVotedState (4.1-4.4).

        Raises:
            IllegalRaftStateError: the member has voted, is in another state, or is the candidate itself.
        """
        state = self.state
        if not isinstance(state, ProspectiveState) or state.voted != NO_NODE:
            raise self._illegal(f"a vote for {candidate.id} in epoch {epoch}")
        if candidate.id == self.local_id or epoch != state.epoch:
            raise self._illegal(f"a vote for {candidate.id} in epoch {epoch}")
        self._durable_transition_to(self._prospective(candidate, now_us))

    def transition_to_follower(self, epoch: int, leader: int, now_us: int) -> None:
        """Follow a leader. Rule ``pre_vote`` decides whether the vote is kept. Kafka: QuorumState#transitionToFollower.

        Raises:
            IllegalRaftStateError: it would lead or follow another leader in this epoch, follow itself, or go back.
        """
        state = self.state
        if leader == self.local_id or epoch < state.epoch or not self.knows_address(leader):
            raise self._illegal(f"Follower of {leader} in epoch {epoch}")
        if epoch == state.epoch and isinstance(state, FollowerState | LeaderState):
            raise self._illegal(f"Follower of {leader} in epoch {epoch}")
        voted = self._voted_in(epoch)
        if voted.id != NO_NODE and not self._decide.asks_for_pre_votes.yes():
            voted = ReplicaKey(NO_NODE)
        at_us = now_us + self._fetch_timeout_us
        self._durable_transition_to(
            FollowerState(epoch, leader, voted.id, state.high_watermark, at_us, voted.directory)
        )

    def transition_to_prospective(self, now_us: int) -> None:
        """Ask for pre-votes; nothing is stored. Kafka: QuorumState#transitionToProspective (4.1-4.4).

        Raises:
            IllegalRaftStateError: it is no voter, leads, or asks already.
        """
        if not self.is_voter or isinstance(self.state, LeaderState | ProspectiveState):
            raise self._illegal("Prospective")
        self.state = self._prospective(self._voted_in(self.epoch), now_us)

    def transition_to_candidate(self, now_us: int) -> None:
        """Stand for election in a new epoch. Kafka: QuorumState#transitionToCandidate.

        Raises:
            IllegalRaftStateError: it is no voter, leads, or has not asked for pre-votes first (from 4.0 on).
        """
        state = self.state
        allowed = isinstance(state, ProspectiveState)
        if not allowed and not isinstance(state, LeaderState):
            allowed = not self._decide.asks_for_pre_votes.yes()
        if not self.is_voter or not allowed:
            raise self._illegal("Candidate")
        retries = state.retries + 1 if isinstance(state, CandidateState) else 1
        at_us = self._election_timeout_at_us(now_us)
        self._durable_transition_to(
            CandidateState(
                self.local_id,
                state.epoch + 1,
                self.voter_set,
                state.high_watermark,
                at_us,
                retries,
                self.key.directory,
            )
        )

    def transition_to_leader(self, epoch_start_offset: int, accumulator: BatchAccumulator, now_us: int) -> LeaderState:
        """Lead. The high watermark is unknown at first, so that the leaders' never goes back.

        Raises:
            IllegalRaftStateError: it is no voter, or no majority has voted for it.

        Kafka: QuorumState#transitionToLeader.
        """
        state = self.state
        if not self.is_voter or not isinstance(state, CandidateState) or not state.votes.is_vote_granted:
            raise self._illegal("Leader")
        leader = LeaderState(
            self.local_id,
            state.epoch,
            epoch_start_offset,
            self.voter_set,
            state.votes.granting_voters(),
            accumulator,
            self._fetch_timeout_us,
            now_us,
            self.key.directory,
        )
        self._durable_transition_to(leader)
        return leader

    def _prospective(self, voted: ReplicaKey, now_us: int) -> ProspectiveState:
        return ProspectiveState(
            self.local_id,
            self.epoch,
            self.leader,
            voted.id,
            self.voter_set,
            self.state.high_watermark,
            self._election_timeout_at_us(now_us),
            reaches_leader=self.reaches_leader,
            voted_directory=voted.directory,
            directory=self.key.directory,
        )

    def _durable_transition_to(self, state: EpochState) -> None:
        """Store, then change. The file has directory ids under kraft.version 1 only.

        Kafka: QuorumState#durableTransitionTo.
        """
        before, election = self.state, state.election()
        if election.voted_directory != NO_DIRECTORY and not self._partition.kraft_version:
            election = ElectionState(election.epoch, election.leader, election.voted)
        self._store(election)
        if isinstance(before, LeaderState):
            before.close()
        self.state = state

    def _election_timeout_at_us(self, now_us: int) -> int:
        """Kafka: QuorumState#randomElectionTimeoutMs."""
        return now_us + self._election_timeout_us + self._random_below(self._election_timeout_us)

    def _illegal(self, target: str) -> IllegalRaftStateError:
        state = self.state
        what = type(state).__name__.removesuffix("State")
        return IllegalRaftStateError(
            f"member {self.local_id}: no transition from {what} in epoch {state.epoch} to {target}"
        )
