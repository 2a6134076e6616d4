"""The state of a leader: what the replicas have, the high watermark, and whether a majority still fetches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sim.protocol.raft.batch_accumulator import BatchAccumulator
from sim.protocol.raft.election_state import ElectionState
from sim.protocol.raft.epoch_states import EpochState
from sim.protocol.raft.raft_log import UNKNOWN, IllegalRaftStateError
from sim.protocol.raft.request_manager import NEVER


class ReplicaState:
    """What a leader knows of a replica. Kafka: LeaderState.ReplicaState.

    Attributes:
        replica: its id.
        end_offset: of its log, `UNKNOWN` before it has fetched.
        last_fetch_us: time of its last fetch, `UNKNOWN` before.
        last_caught_up_us: last time at which its log was as long as the leader's, `UNKNOWN` before.
        has_acknowledged_leader: whether it has fetched, or answered BeginQuorumEpoch.
    """

    __slots__ = (
        "_last_fetch_leader_end",
        "end_offset",
        "has_acknowledged_leader",
        "last_caught_up_us",
        "last_fetch_us",
        "replica",
    )

    def __init__(self, replica: int, *, has_acknowledged_leader: bool) -> None:
        self.replica: Final = replica
        self.end_offset = UNKNOWN
        self.last_fetch_us = UNKNOWN
        self.last_caught_up_us = UNKNOWN
        self._last_fetch_leader_end = UNKNOWN
        self.has_acknowledged_leader = has_acknowledged_leader

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


class LeaderState(EpochState):
    """A leader. The voters are those of the configuration (kraft.version 0). Kafka: LeaderState.

    Args:
        local_id: the leader's id.
        epoch: its epoch.
        epoch_start_offset: end offset of its log when it was elected.
        voters: ids of all voters.
        granting_voters: those that elected it.
        accumulator: what it is to append.
        fetch_timeout_us: ``controller.quorum.fetch.timeout.ms``.
        now_us: time of the election.

    Attributes:
        resign_requested: whether its controller has asked it to resign.
        begin_quorum_epoch_at_us: when it next announces itself.
        begin_quorum_epoch_us: how often it announces itself.
        check_quorum_at_us: when it resigns, unless a majority fetches before.
    """

    __slots__ = (
        "_check_quorum_us",
        "_fetched_voters",
        "_observers",
        "_voters",
        "accumulator",
        "begin_quorum_epoch_at_us",
        "begin_quorum_epoch_us",
        "check_quorum_at_us",
        "epoch_start_offset",
        "granting_voters",
        "local_id",
        "resign_requested",
    )

    def __init__(
        self,
        local_id: int,
        epoch: int,
        epoch_start_offset: int,
        voters: Sequence[int],
        granting_voters: Sequence[int],
        accumulator: BatchAccumulator,
        fetch_timeout_us: int,
        now_us: int,
    ) -> None:
        super().__init__(epoch, None)
        if local_id not in voters:
            raise IllegalRaftStateError(f"{local_id} is not one of the voters {voters}")
        self.local_id: Final = local_id
        self.epoch_start_offset: Final = epoch_start_offset
        self.granting_voters: Final = tuple(granting_voters)
        self.accumulator: Final = accumulator
        self.resign_requested = False
        self._voters = {voter: ReplicaState(voter, has_acknowledged_leader=voter == local_id) for voter in voters}
        self._observers: dict[int, ReplicaState] = {}
        self._fetched_voters: list[int] = []
        self._check_quorum_us = fetch_timeout_us * 3 // 2
        self.check_quorum_at_us = NEVER if len(voters) == 1 else now_us + self._check_quorum_us
        self.begin_quorum_epoch_us = fetch_timeout_us // 2
        self.begin_quorum_epoch_at_us = now_us

    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.local_id)

    def can_grant_vote(self, candidate: int, *, up_to_date: bool, pre_vote: bool) -> bool:  # noqa: ARG002
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

    def update_local_state(self, end_offset: int) -> bool:
        """The leader's own log has grown; returns whether the high watermark has. Kafka: LeaderState#updateLocalState.

        Raises:
            IllegalRaftStateError: the log has become shorter.
        """
        own = self._voters[self.local_id]
        if own.end_offset > end_offset:
            raise IllegalRaftStateError(f"the leader's end offset goes back: {own.end_offset} -> {end_offset}")
        own.end_offset = end_offset
        return self._maybe_update_high_watermark()

    def update_replica_state(self, replica: int, now_us: int, offset: int) -> bool:
        """A replica fetches from an offset; returns whether the high watermark has grown.

        Raises:
            IllegalRaftStateError: the leader fetches from itself.

        Kafka: LeaderState#updateReplicaState.
        """
        if replica < 0:
            return False
        if replica == self.local_id:
            raise IllegalRaftStateError("the leader fetches from itself")
        state = self._state(replica)
        state.update_follower_state(now_us, offset, self._voters[self.local_id].end_offset)
        self.update_check_quorum_for_following_voter(replica, now_us)
        if replica not in self._voters or (self.high_watermark is not None and offset <= self.high_watermark):
            return False
        return self._maybe_update_high_watermark()

    def update_check_quorum_for_following_voter(self, voter: int, now_us: int) -> None:
        """A replica has fetched. Kafka: LeaderState#updateCheckQuorumForFollowingVoter."""
        if voter in self._voters and voter not in self._fetched_voters:
            self._fetched_voters.append(voter)
        if len(self._fetched_voters) >= len(self._voters) // 2:
            self._fetched_voters.clear()
            if self.check_quorum_at_us != NEVER:
                self.check_quorum_at_us = now_us + self._check_quorum_us

    def add_acknowledgement_from(self, voter: int) -> None:
        """A voter has answered BeginQuorumEpoch. Kafka: LeaderState#addAcknowledgementFrom."""
        if voter not in self._voters:
            raise IllegalRaftStateError(f"{voter} is not a voter")
        self._voters[voter].has_acknowledged_leader = True

    def lead_silently(self, end_offset: int, check_quorum_at_us: int) -> None:
        """See `KafkaRaftClient.lead_silently`."""
        self._voters[self.local_id].end_offset = self.high_watermark = end_offset
        if self.check_quorum_at_us != NEVER:
            self.check_quorum_at_us = check_quorum_at_us

    def fetched_silently(self, replica: int, at_us: int) -> None:
        """A replica has last fetched at that time, from the end of the leader's log."""
        state = self.replica_state(replica)
        assert state is not None
        end_offset = self._voters[self.local_id].end_offset
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

    def replica_state(self, replica: int) -> ReplicaState | None:
        """What it knows of a replica. Kafka: LeaderState#getReplicaState."""
        return self._voters.get(replica) or self._observers.get(replica)

    def non_leader_voters_by_descending_fetch_offset(self) -> list[int]:
        """Voters, those with the longest logs first. Kafka: LeaderState#nonLeaderVotersByDescendingFetchOffset."""
        return [state.replica for state in self._by_descending_offset() if state.replica != self.local_id]

    def _state(self, replica: int) -> ReplicaState:
        state = self.replica_state(replica)
        if state is None:
            state = ReplicaState(replica, has_acknowledged_leader=False)
            self._observers[replica] = state
        return state

    def _by_descending_offset(self) -> list[ReplicaState]:
        """Kafka: LeaderState.ReplicaState#compareTo."""
        return sorted(self._voters.values(), key=lambda state: (-state.end_offset, state.replica))

    def _maybe_update_high_watermark(self) -> bool:
        """Raise the high watermark to what a majority has, once that includes a record of the leader's own epoch.

        Kafka: LeaderState#maybeUpdateHighWatermark.
        """
        offset = sorted([state.end_offset for state in self._voters.values()])[-1 - len(self._voters) // 2]
        if offset <= self.epoch_start_offset or (self.high_watermark is not None and offset <= self.high_watermark):
            return False
        self.high_watermark = offset
        return True
