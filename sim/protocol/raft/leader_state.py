"""The state of a leader: what the replicas have, the high watermark, and whether a majority still fetches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sim.protocol.raft.batch_accumulator import BatchAccumulator
from sim.protocol.raft.election_state import ElectionState
from sim.protocol.raft.epoch_states import EpochState
from sim.protocol.raft.raft_log import UNKNOWN, IllegalRaftStateError
from sim.protocol.raft.raft_messages import NO_ERROR, NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT
from sim.protocol.raft.request_manager import NEVER
from sim.protocol.raft.voter_set import NO_DIRECTORY, ReplicaKey, VoterNode, VoterSet

CAUGHT_UP_US: Final = 3_600_000_000
"""A replica that is to become a voter has to have fetched within this time. Kafka: LeaderState#isReplicaCaughtUp."""
_DIRECTORIES: Final = 1 << 40
"""Above all ids of nodes."""


class ReplicaState:
    """What a leader knows of a replica. Kafka: LeaderState.ReplicaState.

    Attributes:
        replica: its id.
        directory: its directory id, `NO_DIRECTORY` if its id alone counts.
        end_offset: of its log, `UNKNOWN` before it has fetched.
        last_fetch_us: time of its last fetch, `UNKNOWN` before.
        last_caught_up_us: last time at which its log was as long as the leader's, `UNKNOWN` before.
        has_acknowledged_leader: whether it has fetched, or answered BeginQuorumEpoch.
    """

    __slots__ = (
        "_last_fetch_leader_end",
        "directory",
        "end_offset",
        "has_acknowledged_leader",
        "last_caught_up_us",
        "last_fetch_us",
        "replica",
    )

    def __init__(self, replica: int, directory: int, *, has_acknowledged_leader: bool) -> None:
        self.replica: Final = replica
        self.directory = directory
        self.end_offset = UNKNOWN
        self.last_fetch_us = UNKNOWN
        self.last_caught_up_us = UNKNOWN
        self._last_fetch_leader_end = UNKNOWN
        self.has_acknowledged_leader = has_acknowledged_leader

    @property
    def key(self) -> ReplicaKey:
        """Its id and directory id."""
        return ReplicaKey(self.replica, self.directory)

    def set_directory(self, directory: int) -> None:
        """Note the directory id of a voter. Kafka: LeaderState.ReplicaState#setReplicaKey.

        Raises:
            IllegalRaftStateError: it has another one.
        """
        if self.directory not in (NO_DIRECTORY, directory):
            raise IllegalRaftStateError(f"replica {self.replica} has directory {self.directory}, not {directory}")
        self.directory = directory

    def update_follower_state(self, now_us: int, offset: int, leader_end_offset: int) -> None:
        """The replica fetches from an offset. Kafka: LeaderState.ReplicaState#updateFollowerState."""
        if leader_end_offset != UNKNOWN:
            if offset >= leader_end_offset:
                self.last_caught_up_us = max(self.last_caught_up_us, now_us)
            elif 0 < self._last_fetch_leader_end <= offset:
                self.last_caught_up_us = max(self.last_caught_up_us, self.last_fetch_us)
            self._last_fetch_leader_end = leader_end_offset
        self.last_fetch_us = max(self.last_fetch_us, now_us)
        self.end_offset = offset
        self.has_acknowledged_leader = True


class VoterChange:
    """A change of the voters that the leader has begun. Kafka: AddVoterHandlerState, RemoveVoterHandlerState.

    Attributes:
        answer: called once, with the error, when the change is committed, refused or given up.
        expires_us: when the leader gives it up.
        voter: the replica that is to be added, None in a removal.
        ack_when_committed: whether the answer waits for the commit of the new voters.
        last_offset: the offset of their record, `UNKNOWN` before it is appended.
    """

    __slots__ = ("ack_when_committed", "answer", "expires_us", "last_offset", "voter")

    def __init__(
        self,
        answer: Callable[[str], None],
        expires_us: int,
        voter: VoterNode | None = None,
        *,
        ack_when_committed: bool = True,
        last_offset: int = UNKNOWN,
    ) -> None:
        self.answer: Callable[[str], None] | None = answer
        self.expires_us: Final = expires_us
        self.voter: Final = voter
        self.ack_when_committed: Final = ack_when_committed
        self.last_offset = last_offset

    def complete(self, error: str) -> None:
        """Answer, unless it has been answered."""
        answer, self.answer = self.answer, None
        if answer is not None:
            answer(error)


class LeaderState(EpochState):
    """A leader. Kafka: LeaderState.

    Args:
        local_id: the leader's id.
        epoch: its epoch.
        epoch_start_offset: end offset of its log when it was elected.
        voters: the voters at that time.
        granting_voters: those that elected it.
        accumulator: what it is to append.
        fetch_timeout_us: ``controller.quorum.fetch.timeout.ms``.
        now_us: time of the election.
        directory: the leader's directory id.

    Attributes:
        adding: the replica that it adds to the voters, or None.
        removing: the removal of a voter that is not committed, or None.
        resign_requested: whether its controller has asked it to resign, or it is no voter any more.
        begin_quorum_epoch_at_us: when it next announces itself.
        begin_quorum_epoch_us: how often it announces itself.
    """

    __slots__ = (
        "_check_quorum_timer_us",
        "_check_quorum_us",
        "_fetched_voters",
        "_observers",
        "_own",
        "_voter_set",
        "_voters",
        "accumulator",
        "adding",
        "begin_quorum_epoch_at_us",
        "begin_quorum_epoch_us",
        "directory",
        "epoch_start_offset",
        "granting_voters",
        "local_id",
        "removing",
        "resign_requested",
    )

    def __init__(
        self,
        local_id: int,
        epoch: int,
        epoch_start_offset: int,
        voters: VoterSet,
        granting_voters: Sequence[int],
        accumulator: BatchAccumulator,
        fetch_timeout_us: int,
        now_us: int,
        directory: int = NO_DIRECTORY,
    ) -> None:
        super().__init__(epoch, None)
        if not voters.is_voter(ReplicaKey(local_id, directory)):
            raise IllegalRaftStateError(f"{local_id} is not one of the voters {voters}")
        self.local_id: Final = local_id
        self.directory: Final = directory
        self.adding: VoterChange | None = None
        self.removing: VoterChange | None = None
        self.epoch_start_offset: Final = epoch_start_offset
        self.granting_voters: Final = tuple(granting_voters)
        self.accumulator: Final = accumulator
        self.resign_requested = False
        self._voter_set = voters
        self._voters = {
            node.key.id: ReplicaState(*node.key, has_acknowledged_leader=node.key.id == local_id)
            for node in voters.nodes
        }
        self._own = self._voters[local_id]
        self._observers: dict[int, ReplicaState] = {}
        self._fetched_voters: list[int] = []
        self._check_quorum_us = fetch_timeout_us * 3 // 2
        self._check_quorum_timer_us = now_us + self._check_quorum_us
        self.begin_quorum_epoch_us = fetch_timeout_us // 2
        self.begin_quorum_epoch_at_us = now_us

    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.local_id)

    def can_grant_vote(self, candidate: ReplicaKey, *, up_to_date: bool, pre_vote: bool) -> bool:  # noqa: ARG002
        return False

    def reset_begin_quorum_epoch_timer(self, now_us: int) -> None:
        """It has announced itself. Kafka: LeaderState#resetBeginQuorumEpochTimer."""
        self.begin_quorum_epoch_at_us = now_us + self.begin_quorum_epoch_us

    def other_voters(self) -> list[int]:
        """All voters but the leader."""
        return [voter for voter in self._voters if voter != self.local_id]

    def need_to_send_begin_quorum_requests(self, now_us: int) -> list[int]:
        """Voters that have not fetched for a while. Kafka: LeaderState#needToSendBeginQuorumRequests (4.2-4.4)."""
        return [
            state.replica
            for state in self._voters.values()
            if state.replica != self.local_id
            and (state.last_fetch_us == UNKNOWN or now_us - state.last_fetch_us >= self.begin_quorum_epoch_us)
        ]

    @property
    def check_quorum_at_us(self) -> int:
        """When it resigns, unless a majority fetches before. Kafka: LeaderState#timeUntilCheckQuorumExpires."""
        return NEVER if len(self._voters) == 1 else self._check_quorum_timer_us

    def update_local_state(self, end_offset: int, voters: VoterSet) -> bool:
        """The leader's own log has grown; returns whether the high watermark has. Kafka: LeaderState#updateLocalState.

        Raises:
            IllegalRaftStateError: the log has become shorter.
        """
        own = self._own
        if own.end_offset > end_offset:
            raise IllegalRaftStateError(f"the leader's end offset goes back: {own.end_offset} -> {end_offset}")
        own.end_offset = end_offset
        if voters is not self._voter_set:
            self._update_voter_and_observer_states(voters)
        return self._maybe_update_high_watermark()

    def _update_voter_and_observer_states(self, voters: VoterSet) -> None:
        """Kafka: LeaderState#updateVoterAndObserverStates."""
        before, observers = dict(self._voters), self._observers
        self._voter_set = voters
        self._voters = {}
        for node in voters.nodes:
            replica, directory = node.key
            known = before.get(replica)
            if known is None or known.directory not in (NO_DIRECTORY, directory):
                known = observers.get(observer_key(replica, directory))
            if known is None:
                known = ReplicaState(replica, directory, has_acknowledged_leader=False)
            before.pop(replica, None)
            observers.pop(observer_key(replica, directory), None)
            known.set_directory(directory)
            self._voters[replica] = known
        for left in before.values():
            observers.setdefault(observer_key(left.replica, left.directory), left)

    def update_replica_state(self, replica: int, now_us: int, offset: int, directory: int = NO_DIRECTORY) -> bool:
        """A replica fetches from an offset; returns whether the high watermark has grown.

        Raises:
            IllegalRaftStateError: the leader fetches from itself.

        Kafka: LeaderState#updateReplicaState.
        """
        if replica < 0:
            return False
        if replica == self.local_id:
            raise IllegalRaftStateError("the leader fetches from itself")
        state = self._state(replica, directory)
        state.update_follower_state(now_us, offset, self._own.end_offset)
        self.update_check_quorum_for_following_voter(replica, now_us, directory)
        if self._voters.get(replica) is not state or (
            self.high_watermark is not None and offset <= self.high_watermark
        ):
            return False
        return self._maybe_update_high_watermark()

    def update_check_quorum_for_following_voter(self, voter: int, now_us: int, directory: int = NO_DIRECTORY) -> None:
        """A replica has fetched. A leader that is no voter any more does not count itself.

        Kafka: LeaderState#updateCheckQuorumForFollowingVoter.
        """
        voters = self._voters
        state = voters.get(voter)
        if state is not None and state.directory in (NO_DIRECTORY, directory) and voter not in self._fetched_voters:
            self._fetched_voters.append(voter)
        majority = len(voters) // 2 + (self.local_id not in voters)
        if len(self._fetched_voters) >= majority:
            self._fetched_voters.clear()
            self._check_quorum_timer_us = now_us + self._check_quorum_us

    def is_voter(self, node: int) -> bool:
        """Whether a controller is one of the present voters."""
        return node in self._voters

    def add_acknowledgement_from(self, voter: int) -> None:
        """A voter has answered BeginQuorumEpoch (rule ``removed_voter``). Kafka: LeaderState#addAcknowledgementFrom.

        Raises:
            IllegalRaftStateError: it is no voter, or no longer one.
        """
        if voter not in self._voters:
            raise IllegalRaftStateError(f"{voter} is not a voter")
        self._voters[voter].has_acknowledged_leader = True

    def lead_silently(self, end_offset: int, check_quorum_at_us: int) -> None:
        """See `KafkaRaftClient.lead_silently`."""
        self._own.end_offset = self.high_watermark = end_offset
        self._check_quorum_timer_us = check_quorum_at_us

    def fetched_silently(self, replica: int, at_us: int, directory: int) -> None:
        """A replica has last fetched at that time, from the end of the leader's log."""
        state = self.replica_state(replica, directory)
        assert state is not None
        end_offset = self._own.end_offset
        state.update_follower_state(at_us, end_offset, end_offset)

    @property
    def fetched_voters(self) -> tuple[int, ...]:
        """The voters that have fetched since a majority last had."""
        return tuple(self._fetched_voters)

    def skip_announcements(self, until_us: int) -> int:
        """Leave out those before a time; returns how many."""
        count = max(0, -((self.begin_quorum_epoch_at_us - until_us) // self.begin_quorum_epoch_us))
        self.begin_quorum_epoch_at_us += count * self.begin_quorum_epoch_us
        return count

    def replica_state(self, replica: int, directory: int = NO_DIRECTORY) -> ReplicaState | None:
        """What it knows of a replica. Kafka: LeaderState#getReplicaState."""
        state = self._voters.get(replica)
        if state is None or state.directory not in (NO_DIRECTORY, directory):
            return self._observers.get(observer_key(replica, directory))
        return state

    def non_leader_voters_by_descending_fetch_offset(self) -> list[ReplicaKey]:
        """Voters, those with the longest logs first. Kafka: LeaderState#nonLeaderVotersByDescendingFetchOffset."""
        return [state.key for state in self._by_descending_offset() if state is not self._own]

    def _state(self, replica: int, directory: int) -> ReplicaState:
        state = self.replica_state(replica, directory)
        if state is None:
            state = ReplicaState(replica, directory, has_acknowledged_leader=False)
            self._observers[observer_key(replica, directory)] = state
        return state

    # Changes of the voters (KIP-853).

    def is_replica_caught_up(self, replica: ReplicaKey, now_us: int) -> bool:
        """Whether an observer has reached the end of the log once, and has fetched within the last hour.

        Kafka: LeaderState#isReplicaCaughtUp.
        """
        state = self._observers.get(observer_key(replica.id, replica.directory))
        return state is not None and state.last_caught_up_us > 0 and state.last_fetch_us > max(0, now_us - CAUGHT_UP_US)

    def voter_change_expires_us(self) -> int:
        """When it gives up a change of the voters."""
        at_us = NEVER if self.adding is None else self.adding.expires_us
        return at_us if self.removing is None else min(at_us, self.removing.expires_us)

    def maybe_expire_pending_operation(self, now_us: int) -> None:
        """Give up what takes too long; the record stays in the log. Kafka: LeaderState#maybeExpirePendingOperation."""
        if self.adding is not None and self.adding.expires_us <= now_us:
            self.reset_adding(REQUEST_TIMED_OUT)
        if self.removing is not None and self.removing.expires_us <= now_us:
            self.reset_removing(REQUEST_TIMED_OUT)

    @property
    def is_changing_voters(self) -> bool:
        """Whether a change of the voters has begun and is not committed."""
        return self.adding is not None or self.removing is not None

    def is_operation_pending(self, now_us: int) -> bool:
        """Whether it changes the voters. Kafka: LeaderState#isOperationPending."""
        self.maybe_expire_pending_operation(now_us)
        return self.adding is not None or self.removing is not None

    def reset_adding(self, error: str) -> None:
        """End the addition of a voter. Kafka: LeaderState#resetAddVoterHandlerState."""
        change, self.adding = self.adding, None
        if change is not None:
            change.complete(error)

    def reset_removing(self, error: str) -> None:
        """End the removal of a voter. Kafka: LeaderState#resetRemoveVoterHandlerState."""
        change, self.removing = self.removing, None
        if change is not None:
            change.complete(error)

    def complete_voter_changes(self, voters: VoterSet) -> None:
        """The high watermark has grown. A leader that is not among the voters that were committed resigns.

        Kafka: AddVoterHandler#highWatermarkUpdated, RemoveVoterHandler#highWatermarkUpdated.
        """
        known, adding, removing = self.high_watermark, self.adding, self.removing
        assert known is not None
        if adding is not None and UNKNOWN < adding.last_offset < known:
            self.reset_adding(NO_ERROR)
        if removing is not None and removing.last_offset < known:
            self.reset_removing(NO_ERROR)
            if not voters.is_voter(ReplicaKey(self.local_id, self.directory)):
                self.resign_requested = True

    def close(self) -> None:
        """It leads no more. Kafka: LeaderState#close."""
        self.reset_adding(NOT_LEADER_OR_FOLLOWER)
        self.reset_removing(NOT_LEADER_OR_FOLLOWER)

    def _by_descending_offset(self) -> list[ReplicaState]:
        """Kafka: LeaderState.ReplicaState#compareTo."""
        return sorted(self._voters.values(), key=lambda state: (-state.end_offset, state.replica, state.directory))

    def _maybe_update_high_watermark(self) -> bool:
        """Raise the high watermark to what a majority has, once that includes a record of the leader's own epoch.

        Kafka: LeaderState#maybeUpdateHighWatermark.
        """
        offset = sorted([state.end_offset for state in self._voters.values()])[-1 - len(self._voters) // 2]
        if offset <= self.epoch_start_offset or (self.high_watermark is not None and offset <= self.high_watermark):
            return False
        self.high_watermark = offset
        return True


def observer_key(replica: int, directory: int) -> int:
    """A key for a replica with a directory id."""
    return directory * _DIRECTORIES + replica
