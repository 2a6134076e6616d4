"""The states of a member that does not lead; `LeaderState` is the other one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sim.native import mypyc_attr
from sim.protocol.raft.election_state import ElectionState
from sim.protocol.raft.epoch_election import EpochElection
from sim.protocol.raft.raft_log import IllegalRaftStateError, OffsetAndEpoch
from sim.protocol.raft.raft_messages import NO_NODE
from sim.protocol.raft.request_manager import NEVER
from sim.protocol.raft.voter_set import NO_DIRECTORY, ReplicaKey, VoterSet


@mypyc_attr(allow_interpreted_subclasses=True)
class EpochState:
    """A member's state in an epoch. Kafka: EpochState.

    Attributes:
        epoch: the epoch.
        high_watermark: end offset of what is committed as far as the member knows, or None.
    """

    __slots__ = ("epoch", "high_watermark")

    def __init__(self, epoch: int, high_watermark: int | None) -> None:
        self.epoch: Final = epoch
        self.high_watermark = high_watermark

    def election(self) -> ElectionState:
        """What is stored of it. Kafka: EpochState#election."""
        raise NotImplementedError

    def can_grant_vote(self, candidate: ReplicaKey, *, up_to_date: bool, pre_vote: bool) -> bool:
        """Whether a candidate gets the vote, or would get it. Kafka: EpochState#canGrantVote.

        Args:
            candidate: its id and directory id.
            up_to_date: whether its log is as good as the member's own.
            pre_vote: whether it only asks if it would get the vote.
        """
        raise NotImplementedError


def _grants(election: ElectionState, candidate: ReplicaKey, *, up_to_date: bool, pre_vote: bool) -> bool:
    """Kafka: QuorumState#unattachedOrProspectiveCanGrantVote (4.1-4.4), UnattachedState#canGrantVote."""
    if pre_vote:
        return up_to_date
    if election.voted != NO_NODE:
        return election.is_voted_candidate(candidate)
    return election.leader == NO_NODE and up_to_date


class UnattachedState(EpochState):
    """No leader to follow: the member has voted, or knows nothing of the epoch. Kafka: UnattachedState.

    Attributes:
        leader: the epoch's, if its address is unknown, or `NO_NODE`.
        voted: candidate that got the vote, or `NO_NODE`.
        voted_directory: its directory id.
        election_at_us: when the member stands for election; `NEVER` for an observer.
    """

    __slots__ = ("election_at_us", "leader", "voted", "voted_directory")

    def __init__(
        self,
        epoch: int,
        leader: int,
        voted: int,
        high_watermark: int | None,
        election_at_us: int,
        voted_directory: int = NO_DIRECTORY,
    ) -> None:
        super().__init__(epoch, high_watermark)
        self.leader: Final = leader
        self.voted: Final = voted
        self.voted_directory: Final = voted_directory
        self.election_at_us = election_at_us

    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.leader, self.voted, self.voted_directory)

    def can_grant_vote(self, candidate: ReplicaKey, *, up_to_date: bool, pre_vote: bool) -> bool:
        return _grants(self.election(), candidate, up_to_date=up_to_date, pre_vote=pre_vote)


@mypyc_attr(allow_interpreted_subclasses=True)
class NomineeState(EpochState):
    """A member that collects votes. Kafka: NomineeState (4.1-4.4).

    Attributes:
        voters: the voters.
        votes: what it has received; its own is granted.
        election_at_us: when its election ends without a result.
    """

    __slots__ = ("election_at_us", "voters", "votes")

    def __init__(
        self,
        local_id: int,
        directory: int,
        epoch: int,
        voters: VoterSet,
        high_watermark: int | None,
        election_at_us: int,
    ) -> None:
        super().__init__(epoch, high_watermark)
        if not voters.is_voter(ReplicaKey(local_id, directory)):
            raise IllegalRaftStateError(f"{local_id} stands for election and is not one of the voters {voters}")
        self.voters: Final = voters
        self.votes: Final = EpochElection(voters.ids)
        self.votes.record_vote(local_id, granted=True)
        self.election_at_us = election_at_us

    def record_vote(self, voter: int, *, granted: bool) -> bool:
        """Note a voter's response; returns whether it is its first one.

        Raises:
            ValueError: it contradicts an earlier one.

        Kafka: NomineeState#recordGrantedVote (4.1-4.4), NomineeState#recordRejectedVote (4.1-4.4).
        """
        raise NotImplementedError


class ProspectiveState(NomineeState):
    """A member that asks the others whether they would vote for it in the next epoch (KIP-996).

    Kafka: ProspectiveState (4.1-4.4).

    Attributes:
        leader: the epoch's as far as the member knows, or `NO_NODE`.
        reaches_leader: whether it knows the leader's address.
        voted: candidate that got its vote, or `NO_NODE`.
        voted_directory: the candidate's directory id.
    """

    __slots__ = ("_local_id", "leader", "reaches_leader", "voted", "voted_directory")

    def __init__(
        self,
        local_id: int,
        epoch: int,
        leader: int,
        voted: int,
        voters: VoterSet,
        high_watermark: int | None,
        election_at_us: int,
        *,
        reaches_leader: bool,
        voted_directory: int = NO_DIRECTORY,
        directory: int = NO_DIRECTORY,
    ) -> None:
        super().__init__(local_id, directory, epoch, voters, high_watermark, election_at_us)
        self._local_id = local_id
        self.leader: Final = leader
        self.reaches_leader: Final = reaches_leader
        self.voted: Final = voted
        self.voted_directory: Final = voted_directory

    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.leader, self.voted, self.voted_directory)

    def can_grant_vote(self, candidate: ReplicaKey, *, up_to_date: bool, pre_vote: bool) -> bool:
        return _grants(self.election(), candidate, up_to_date=up_to_date, pre_vote=pre_vote)

    def record_vote(self, voter: int, *, granted: bool) -> bool:
        if voter == self._local_id and not granted:
            raise ValueError("a member does not refuse its own vote")
        return self.votes.record_vote(voter, granted=granted)


class CandidateState(NomineeState):
    """A member that collects votes in a new epoch. Kafka: CandidateState.

    Attributes:
        local_id: the member's id.
        directory: its directory id.
        retries: number of its elections in a row, from 1 on (up to 3.9).
        back_off_until_us: after an election without a majority, when the next begins (up to 3.9); None before.
    """

    __slots__ = ("back_off_until_us", "directory", "local_id", "retries")

    def __init__(
        self,
        local_id: int,
        epoch: int,
        voters: VoterSet,
        high_watermark: int | None,
        election_at_us: int,
        retries: int,
        directory: int = NO_DIRECTORY,
    ) -> None:
        super().__init__(local_id, directory, epoch, voters, high_watermark, election_at_us)
        self.local_id: Final = local_id
        self.directory: Final = directory
        self.retries: Final = retries
        self.back_off_until_us: int | None = None

    def election(self) -> ElectionState:
        return ElectionState(self.epoch, NO_NODE, self.local_id, self.directory)

    def can_grant_vote(self, candidate: ReplicaKey, *, up_to_date: bool, pre_vote: bool) -> bool:  # noqa: ARG002
        return pre_vote and up_to_date

    def record_vote(self, voter: int, *, granted: bool) -> bool:
        contradicts = self.votes.is_rejected(voter) if granted else self.votes.is_granted(voter)
        if contradicts:
            raise ValueError(f"voter {voter} answered otherwise before")
        return self.votes.record_vote(voter, granted=granted)


class FollowerState(EpochState):
    """A member that fetches from the epoch's leader. Kafka: FollowerState.

    Attributes:
        leader: the leader.
        voted: candidate that got the member's vote in the epoch, or `NO_NODE`.
        voted_directory: the candidate's directory id.
        fetch_timeout_at_us: when the member stands for election if the leader does not answer before.
        update_voters_at_us: when it next sends a request to change the voters, if that is needed.
        fetching_snapshot: the snapshot that it fetches, or None.
        has_fetched_from_leader: whether the leader has answered a fetch.
    """

    __slots__ = (
        "fetch_timeout_at_us",
        "fetching_snapshot",
        "has_fetched_from_leader",
        "leader",
        "update_voters_at_us",
        "voted",
        "voted_directory",
    )

    def __init__(
        self,
        epoch: int,
        leader: int,
        voted: int,
        high_watermark: int | None,
        fetch_timeout_at_us: int,
        voted_directory: int = NO_DIRECTORY,
    ) -> None:
        super().__init__(epoch, high_watermark)
        self.leader: Final = leader
        self.voted: Final = voted
        self.voted_directory: Final = voted_directory
        self.fetch_timeout_at_us = fetch_timeout_at_us
        self.update_voters_at_us = NEVER
        self.fetching_snapshot: OffsetAndEpoch | None = None
        self.has_fetched_from_leader = False

    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.leader, self.voted, self.voted_directory)

    def can_grant_vote(self, candidate: ReplicaKey, *, up_to_date: bool, pre_vote: bool) -> bool:  # noqa: ARG002
        return pre_vote and up_to_date and not self.has_fetched_from_leader

    def reset_fetch_timeout_for_successful_fetch(self, fetch_timeout_at_us: int) -> None:
        """The leader has answered a fetch. Kafka: FollowerState#resetFetchTimeoutForSuccessfulFetch (4.1-4.4)."""
        self.fetch_timeout_at_us = fetch_timeout_at_us
        self.has_fetched_from_leader = True

    def update_high_watermark(self, offset: int) -> bool:
        """Learn the high watermark; returns whether it is new. Kafka: FollowerState#updateHighWatermark.

        Raises:
            IllegalRaftStateError: it goes back.
        """
        known = self.high_watermark
        if offset < 0 or (known is not None and offset < known):
            raise IllegalRaftStateError(f"high watermark {known} -> {offset}")
        self.high_watermark = offset
        return known != offset


class ResignedState(EpochState):
    """A former leader that leads no more in its epoch and tells the voters so. Kafka: ResignedState.

    Attributes:
        local_id: the member's id.
        unacked_voters: those that have not acknowledged its resignation.
        preferred_successors: the other voters, those with the longest logs first; empty after a restart.
        election_at_us: when it may stand for election again.
    """

    __slots__ = ("_voters", "election_at_us", "local_id", "preferred_successors", "unacked_voters")

    def __init__(
        self,
        local_id: int,
        epoch: int,
        voters: Sequence[int],
        preferred_successors: Sequence[ReplicaKey],
        election_at_us: int,
    ) -> None:
        super().__init__(epoch, None)
        self.local_id: Final = local_id
        self._voters = voters
        self.unacked_voters = [voter for voter in voters if voter != local_id]
        self.preferred_successors: Final = tuple(preferred_successors)
        self.election_at_us = election_at_us

    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.local_id)

    def can_grant_vote(self, candidate: ReplicaKey, *, up_to_date: bool, pre_vote: bool) -> bool:  # noqa: ARG002
        return pre_vote and up_to_date

    def acknowledge_resignation(self, voter: int) -> None:
        """A voter knows of the resignation. Kafka: ResignedState#acknowledgeResignation.

        Raises:
            ValueError: it is no voter.
        """
        if voter not in self._voters:
            raise ValueError(f"{voter} is not a voter")
        if voter in self.unacked_voters:
            self.unacked_voters.remove(voter)


def election_at_us(state: EpochState) -> int:
    """When the election timeout of a state is over; `NEVER` for a state without one."""
    if isinstance(state, UnattachedState):
        return state.election_at_us
    if isinstance(state, NomineeState):
        return state.election_at_us
    return state.election_at_us if isinstance(state, ResignedState) else NEVER
