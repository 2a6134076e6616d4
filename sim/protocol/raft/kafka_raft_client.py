"""A member of the metadata quorum: what it sends, how it answers, and which records it reports as committed.

A member is one thread (`KafkaRaftClient.poll`). It acts on the timers of its state, handles one message, and tells its
listener what is new. An exception on this thread ends the process. All of it is synchronous: a file is on disk when the
call that writes it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from sim.native import mypyc_attr
from sim.protocol.decisions import Decisions
from sim.protocol.raft.batch_accumulator import BatchAccumulator, NotLeaderError
from sim.protocol.raft.election_state import ElectionState
from sim.protocol.raft.epoch_states import (
    CandidateState,
    EpochState,
    FollowerState,
    NomineeState,
    ProspectiveState,
    ResignedState,
    UnattachedState,
)
from sim.protocol.raft.fetch_purgatory import FetchPurgatory, ParkedFetch
from sim.protocol.raft.kraft_control_record_state_machine import BOOTSTRAP_OFFSET, KRaftControlRecordStateMachine
from sim.protocol.raft.leader_state import LeaderState, VoterChange
from sim.protocol.raft.quorum_state import QuorumState
from sim.protocol.raft.raft_log import (
    BOOTSTRAP_SNAPSHOT_ID,
    UNKNOWN,
    IllegalRaftStateError,
    OffsetAndEpoch,
    RaftBatch,
    RaftLog,
    RaftSnapshot,
)
from sim.protocol.raft.raft_messages import (
    BROKER_NOT_AVAILABLE,
    DUPLICATE_VOTER,
    FENCED_LEADER_EPOCH,
    INVALID_REQUEST,
    INVALID_VOTER_KEY,
    NO_ERROR,
    NO_NODE,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    SNAPSHOT_NOT_FOUND,
    UNKNOWN_LEADER_EPOCH,
    UNSUPPORTED_VERSION,
    VOTER_NOT_FOUND,
    AddVoterRequest,
    AddVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RaftFetchRequest,
    RaftFetchResponse,
    RaftRequest,
    RaftResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    UpdateVoterRequest,
    UpdateVoterResponse,
    VoteRequest,
    VoteResponse,
)
from sim.protocol.raft.request_manager import NEVER, RequestManager
from sim.protocol.raft.voter_set import NO_DIRECTORY, ReplicaKey, VoterNode, static_voters

RETRY_BACKOFF_BASE_US: Final = 100_000
"""Unit of the back-off between elections up to 3.9. Kafka: KafkaRaftClient#binaryExponentialElectionBackoffMs (3.9)."""
_MOST_DOUBLINGS: Final = 20
FIRST_BOOTSTRAP_SERVER: Final = -2
"""In place of the id of the first bootstrap server, the next ones are below: a connection to one is another than that
to the same member as a voter. Kafka: KafkaRaftClient.
"""
CLEAN_INTERVAL_US: Final = 60_000_000
"""How often a member removes old snapshots. Kafka: KafkaRaftClient."""


class QuorumConfig(NamedTuple):
    """Settings ``controller.quorum.*`` in microseconds. Kafka: QuorumConfig."""

    election_timeout_us: int = 1_000_000
    fetch_timeout_us: int = 2_000_000
    election_backoff_max_us: int = 1_000_000
    request_timeout_us: int = 2_000_000
    retry_backoff_us: int = 20_000
    append_linger_us: int = 25_000
    fetch_max_wait_us: int = 500_000
    """Fixed in Kafka. Kafka: KafkaRaftClient#MAX_FETCH_WAIT_MS."""
    snapshot_retention_us: int = 604_800_000_000
    """``metadata.max.retention.ms``; below 0: no snapshot is removed for its age."""
    has_bootstrap_servers: bool = False
    """Whether ``controller.quorum.bootstrap.servers`` is set in place of ``controller.quorum.voters``."""
    auto_join: bool = False
    """``controller.quorum.auto.join.enable``: whether a controller that is no voter makes itself one (KIP-1186)."""


class LeaderAndEpoch(NamedTuple):
    """A leader, or `NO_NODE`, and its epoch. Kafka: raft.LeaderAndEpoch."""

    leader: int
    epoch: int


@mypyc_attr(allow_interpreted_subclasses=True)
class RaftHost:
    """Callbacks to the process."""

    __slots__ = ()

    def send(self, node: int, message: RaftRequest | RaftResponse) -> None:
        """Send a request or response to a member, or a request by a connection to a bootstrap server.

        See `KafkaRaftClient.member_of`.
        """
        raise NotImplementedError

    def random_below(self, bound: int) -> int:
        """Draw a number from 0 to below a bound."""
        raise NotImplementedError

    def store(self, election: ElectionState) -> None:
        """Write the file quorum-state to disk. Kafka: QuorumStateStore#writeElectionState."""
        raise NotImplementedError

    def flush(self) -> None:
        """Write the log to disk. Kafka: RaftLog#flush (4.3-4.4)."""
        raise NotImplementedError

    def handle_commit(self, batches: Sequence[RaftBatch]) -> None:
        """Records were committed. Kafka: RaftClient.Listener#handleCommit."""
        raise NotImplementedError

    def handle_load_snapshot(self, snapshot: RaftSnapshot) -> None:
        """A snapshot takes the place of all that was committed before its end.

        Kafka: RaftClient.Listener#handleLoadSnapshot.
        """
        raise NotImplementedError

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        """Another leader or epoch. The leader's own listener consumes first what was committed before its epoch.

        Kafka: RaftClient.Listener#handleLeaderChange.
        """
        raise NotImplementedError


class KafkaRaftClient:
    """One member, a voter or an observer. Kafka: KafkaRaftClient.

    Args:
        local_id: the member's id.
        voters: ids of the voters of the configuration (``controller.quorum.voters``), which are also the bootstrap
            servers; none if formatting has written the first voters to the disks (kraft.version 1).
        log: its copy of the metadata log, as its process found it.
        stored: content of quorum-state, None without the file.
        decide: its rules.
        config: its settings.
        host: its process.
        now_us: time.
        always_flushes: whether it flushes though it is no voter, as a process with the controller's role does, which
            may become one.
        directory: the id of the directory of its log.
        bootstrap_servers: ids of the members that are asked for a leader if there are no voters in the configuration
            (``controller.quorum.bootstrap.servers``).
        listeners: a number for its addresses.

    Attributes:
        partition: the voters and the kraft.version.
        quorum: its state.
        log: its copy of the metadata log.
    """

    def __init__(
        self,
        local_id: int,
        voters: Sequence[int],
        log: RaftLog,
        stored: ElectionState | None,
        decide: Decisions,
        config: QuorumConfig,
        host: RaftHost,
        now_us: int,
        *,
        always_flushes: bool = False,
        directory: int = NO_DIRECTORY,
        bootstrap_servers: Sequence[int] = (),
        listeners: int = 0,
    ) -> None:
        self.log: Final = log
        self._decide = decide
        self._config = config
        self._host = host
        self._can_become_voter = always_flushes
        self._is_4_1 = decide.asks_for_pre_votes.answer
        """Whether it does of KIP-853 what 4.1 does, and not 3.9: no mode has pre-votes without it."""
        self._update_voters_us = config.fetch_timeout_us * (1 if self._is_4_1 else 3)
        self.partition: Final = KRaftControlRecordStateMachine(
            static_voters(voters), log, refuses_jumps=not self._is_4_1
        )
        self.quorum: Final = QuorumState(
            local_id,
            self.partition,
            decide,
            config.election_timeout_us,
            config.fetch_timeout_us,
            host.random_below,
            host.store,
            directory=directory,
            knows_all_members=len(bootstrap_servers) > 0,
        )
        self._local_node = VoterNode(self.quorum.key, listeners)
        self._bootstrap_servers = tuple(bootstrap_servers)
        servers = [FIRST_BOOTSTRAP_SERVER - place for place in range(len(bootstrap_servers))]
        self.requests: Final = RequestManager(
            tuple(servers or voters), config.retry_backoff_us, config.request_timeout_us, host.random_below
        )
        self._fetches = FetchPurgatory()
        self._next_offset = 0
        """Offset of the next record for the listener."""
        self._is_new = True
        """Whether the listener has been told nothing."""
        self._clean_at_us = now_us + CLEAN_INTERVAL_US
        """When it next looks for old snapshots."""
        self._fired = LeaderAndEpoch(NO_NODE, 0)
        """Leader and epoch of which the listener knows."""
        self._told: EpochState | None = None
        """A state of which it knows these."""
        self._shutdown_us: int | None = None
        self._is_registered = False
        """Whether the listener is told of leaders, as it is once the thread runs."""
        self._initialize(stored, now_us)
        self._is_registered = True

    def _initialize(self, stored: ElectionState | None, now_us: int) -> None:
        """Kafka: KafkaRaftClient#initialize."""
        quorum = self.quorum
        quorum.initialize(stored, self.log.end, now_us)
        state = quorum.state
        if isinstance(state, CandidateState):
            self._on_become_candidate(now_us)
        elif isinstance(state, FollowerState):
            self._on_become_follower(now_us)
        # In 3.9, a sole voter whose file has its own vote leads by then, and ends.
        leads = isinstance(quorum.state, LeaderState) and self._is_4_1
        if quorum.is_only_voter and not leads and not isinstance(quorum.state, CandidateState):
            self._stand_for_election(now_us)

    # The thread.

    def poll(self, now_us: int) -> int:
        """Act on timers, and inform the listener; returns when to call again if no message arrives before.

        Kafka: KafkaRaftClient#poll, KafkaRaftClient#pollCurrentState.
        """
        for parked in self._fetches.take_expired(now_us):
            self._host.send(parked.request.source, parked.response)
        if self._shutdown_us is not None and self._completes_shutdown(now_us):
            return NEVER
        at_us = now_us
        while at_us <= now_us:
            state = self.quorum.state
            at_us = self._poll_state(now_us)
            if at_us <= now_us and self.quorum.state is state:
                break  # It waits for a message or for its next call.
        self._maybe_clean(now_us)
        self._poll_listeners()
        return min(max(min(at_us, self.clean_us()), now_us + 1), self._fetches.expires_us())

    def _maybe_clean(self, now_us: int) -> None:
        """Remove snapshots that are too old, never the last one, and let the log begin after them.

        Retention by size is not modelled. Kafka: KafkaRaftClient.RaftMetadataLogCleanerManager,
        KafkaRaftLog#cleanSnapshotsRetentionMs (4.3-4.4).
        """
        if now_us < self._clean_at_us:
            return
        log, retention_us = self.log, self._config.snapshot_retention_us
        while len(log.snapshots) > 1 and 0 <= retention_us < now_us - log.snapshots[0].made_us:
            if not log.delete_before_snapshot(log.snapshots[1].id):
                break
        self._clean_at_us += (1 + (now_us - self._clean_at_us) // CLEAN_INTERVAL_US) * CLEAN_INTERVAL_US

    def clean_us(self) -> int:
        """When it next removes a snapshot, if no other one is made before."""
        snapshots, retention_us = self.log.snapshots, self._config.snapshot_retention_us
        if len(snapshots) < 2 or retention_us < 0:
            return NEVER
        left_us = snapshots[0].made_us + retention_us + 1 - self._clean_at_us
        return self._clean_at_us + max(0, -(-left_us // CLEAN_INTERVAL_US)) * CLEAN_INTERVAL_US

    def _poll_state(self, now_us: int) -> int:
        state = self.quorum.state
        if isinstance(state, LeaderState):
            return self._poll_leader(state, now_us)
        if isinstance(state, FollowerState):
            return self._poll_follower(state, now_us)
        if isinstance(state, CandidateState):
            return self._poll_candidate(state, now_us)
        if isinstance(state, ProspectiveState):
            return self._poll_prospective(state, now_us)
        if isinstance(state, UnattachedState):
            return self._poll_unattached(state, now_us)
        assert isinstance(state, ResignedState)
        return self._poll_resigned(state, now_us)

    def handle(self, message: RaftRequest | RaftResponse, now_us: int) -> None:
        """Handle one message, and inform the listener; `poll` has to follow.

        Raises:
            IllegalRaftStateError: Kafka's process ends.

        Kafka: KafkaRaftClient#handleInboundMessage.
        """
        if isinstance(message, RaftRequest):
            self._handle_request(message, now_us)
        else:
            node = self.connection(message.source, message.request)
            if self.requests.is_response_expected(node, message.request):
                self._handle_response(node, message, now_us)
        self._poll_listeners()

    def connection(self, member: int, request: RaftRequest) -> int:
        """The connection to a member by which a request was sent: the member's id, or that of a bootstrap server."""
        servers = self._bootstrap_servers
        if member not in servers or self.requests.is_response_expected(member, request):
            return member
        return FIRST_BOOTSTRAP_SERVER - servers.index(member)

    def member_of(self, connection: int) -> int:
        """The member that a connection leads to."""
        return connection if connection >= 0 else self._bootstrap_servers[FIRST_BOOTSTRAP_SERVER - connection]

    def request_failed(self, node: int, request: RaftRequest, now_us: int) -> None:
        """The connection for a request broke. Kafka: KafkaNetworkChannel, RaftUtil#errorResponse."""
        node = self.connection(node, request)
        if isinstance(request, ApiVersionsRequest) and self.requests.is_response_expected(node, request):
            self._end_adding(node, REQUEST_TIMED_OUT)
        self.requests.on_response_result(node, request, now_us, success=False)

    # What the controller calls.

    def prepare_append(self, epoch: int, records: Sequence[object], now_us: int) -> int:
        """Take records to append; returns the offset that the last will have. `poll` has to follow.

        Raises:
            NotLeaderError: the member does not lead in that epoch.

        Kafka: KafkaRaftClient#prepareAppend, KafkaRaftClient#schedulePreparedAppend.
        """
        state = self.quorum.state
        if not isinstance(state, LeaderState):
            raise NotLeaderError("append by a member that does not lead")
        return state.accumulator.append(epoch, records, now_us)

    @property
    def next_append_offset(self) -> int:
        """The offset that a leader's next record will have, -1 for a member that does not lead."""
        state = self.quorum.state
        return state.accumulator.next_offset if isinstance(state, LeaderState) else UNKNOWN

    def resign(self, epoch: int) -> None:
        """Stop to lead in an epoch, with the next `poll`. Kafka: KafkaRaftClient#resign.

        Raises:
            IllegalRaftStateError: the epoch is yet to come, or another member leads in it.
        """
        if epoch > self.quorum.epoch:
            raise IllegalRaftStateError(f"resignation from epoch {epoch}, which is to come")
        if epoch < self.quorum.epoch:
            return
        if self.quorum.leader != self.quorum.local_id:
            raise IllegalRaftStateError(f"resignation from epoch {epoch}, in which another member leads")
        state = self.quorum.state
        if isinstance(state, LeaderState):
            state.resign_requested = True

    def shutdown(self, timeout_us: int, now_us: int) -> None:
        """End; a leader resigns first. `is_running` shows when it has ended. Kafka: KafkaRaftClient#shutdown."""
        self._shutdown_us = now_us + timeout_us

    def is_running(self, now_us: int) -> bool:
        """Whether it has not ended. Kafka: KafkaRaftClient#isRunning."""
        return not self._completes_shutdown(now_us)

    @property
    def flushes(self) -> bool:
        """Whether it flushes what it fetches: a voter's fetch tells that it has flushed what it has."""
        return self._can_become_voter or self.quorum.is_voter

    @property
    def is_leader(self) -> bool:
        """Whether the member leads."""
        return isinstance(self.quorum.state, LeaderState)

    @property
    def is_follower(self) -> bool:
        """Whether the member follows a leader."""
        return isinstance(self.quorum.state, FollowerState)

    @property
    def high_watermark(self) -> int | None:
        """End offset of what is committed as far as the member knows. Kafka: KafkaRaftClient#highWatermark."""
        return self.quorum.state.high_watermark

    def _completes_shutdown(self, now_us: int) -> bool:
        """Kafka: KafkaRaftClient#maybeCompleteShutdown."""
        if self._shutdown_us is None:
            return False
        quorum = self.quorum
        has_remote_leader = quorum.leader not in (NO_NODE, quorum.local_id)
        return now_us >= self._shutdown_us or not quorum.is_voter or quorum.is_only_voter or has_remote_leader

    def leads_until(self, until_us: int, now_us: int) -> bool:
        """Whether this member leads, and `poll` would do nothing before a later time."""
        state = self.quorum.state
        return (
            isinstance(state, LeaderState)
            and now_us
            < until_us
            <= min(state.begin_quorum_epoch_at_us, state.check_quorum_at_us, state.accumulator.drain_at_us())
            and until_us <= min(self._fetches.expires_us(), state.voter_change_expires_us())
            and not state.resign_requested
            and self._shutdown_us is None
        )

    # Timers.

    def _poll_leader(self, state: LeaderState, now_us: int) -> int:
        """Kafka: KafkaRaftClient#pollLeader."""
        self._maybe_fire_leader_change()
        if self._shutdown_us is not None or state.resign_requested or now_us >= state.check_quorum_at_us:
            self._transition_to_resigned(state.non_leader_voters_by_descending_fetch_offset(), now_us)
            return now_us
        state.maybe_expire_pending_operation(now_us)
        if state.accumulator.drain_at_us() <= now_us:
            self._append_batches(state, now_us)
        begin_at_us = self._maybe_send_begin_quorum_epoch_requests(state, now_us)
        at_us = min(begin_at_us, state.check_quorum_at_us, state.voter_change_expires_us())
        return min(state.accumulator.drain_at_us(), at_us)

    def _append_batches(self, state: LeaderState, now_us: int) -> None:
        """Append what has waited long enough. The high watermark is raised before the log is flushed.

        With several voters nothing commits by that, since the others have yet to fetch. A sole voter commits, and its
        controller answers, before the records are on disk.

        Kafka: KafkaRaftClient#maybeAppendBatches, KafkaRaftClient#flushLeaderLog.
        """
        for batch in state.accumulator.drain():
            self.log.append(batch)
            self.partition.appended(batch)
        if state.update_local_state(self.log.end_offset, self.partition.voters):
            self._on_update_leader_high_watermark(state, now_us)
        for parked in self._fetches.take_below(self.log.end_offset):
            self._complete_fetch(parked, now_us)
        self._host.flush()

    def _maybe_send_begin_quorum_epoch_requests(self, state: LeaderState, now_us: int) -> int:
        """Kafka: KafkaRaftClient#maybeSendBeginQuorumEpochRequests."""
        if now_us < state.begin_quorum_epoch_at_us:
            return state.begin_quorum_epoch_at_us
        voters = state.other_voters()
        silent = state.need_to_send_begin_quorum_requests(now_us)
        if len(silent) < len(voters) and self._decide.begins_with_silent_voters.yes():
            voters = silent
        for voter in voters:
            directory = self.partition.voters.directory(voter)
            self._maybe_send(voter, BeginQuorumEpochRequest(self.quorum.local_id, state.epoch, directory), now_us)
        state.reset_begin_quorum_epoch_timer(now_us)
        return state.begin_quorum_epoch_at_us

    def _poll_candidate(self, state: CandidateState, now_us: int) -> int:
        """Kafka: KafkaRaftClient#pollCandidate."""
        if self._shutdown_us is not None:
            return min(self._shutdown_us, self._maybe_send_vote_requests(state, now_us, pre_vote=False))
        if state.back_off_until_us is not None:
            if now_us < state.back_off_until_us:
                return state.back_off_until_us
            self._transition_to_candidate(now_us)
            return now_us
        if now_us >= state.election_at_us:
            if self._decide.asks_for_pre_votes.yes():
                self._transition_to_prospective(now_us)
                return now_us
            state.back_off_until_us = now_us + self._binary_exponential_election_backoff_us(state.retries)
            return state.back_off_until_us
        return min(self._maybe_send_vote_requests(state, now_us, pre_vote=False), state.election_at_us)

    def _binary_exponential_election_backoff_us(self, retries: int) -> int:
        """Kafka: KafkaRaftClient#binaryExponentialElectionBackoffMs (3.9)."""
        factor = self._host.random_below(2 << min(_MOST_DOUBLINGS, retries - 1))
        return min(RETRY_BACKOFF_BASE_US * factor, self._config.election_backoff_max_us)

    def _poll_prospective(self, state: ProspectiveState, now_us: int) -> int:
        """Kafka: KafkaRaftClient#pollProspective (4.1-4.4)."""
        if self._shutdown_us is not None:
            return min(self._shutdown_us, self._maybe_send_vote_requests(state, now_us, pre_vote=True))
        if now_us >= state.election_at_us:
            self._prospective_transition_after_election_loss(state, now_us)
            return now_us
        return min(self._maybe_send_vote_requests(state, now_us, pre_vote=True), state.election_at_us)

    def _maybe_send_vote_requests(self, state: NomineeState, now_us: int, *, pre_vote: bool) -> int:
        """Kafka: KafkaRaftClient#maybeSendVoteRequests."""
        at_us = NEVER
        if not state.votes.is_vote_rejected:
            end = self.log.end
            for voter in state.votes.unrecorded_voters():
                local_id, directory = self.quorum.key
                request = VoteRequest(
                    local_id,
                    self.quorum.epoch,
                    end.epoch,
                    end.offset,
                    pre_vote=pre_vote,
                    directory=directory,
                    voter_directory=state.voters.directory(voter),
                )
                at_us = min(at_us, self._maybe_send(voter, request, now_us))
        return at_us

    def _poll_follower(self, state: FollowerState, now_us: int) -> int:
        """Kafka: KafkaRaftClient#pollFollower."""
        if not self.quorum.is_voter:
            at_us = self._poll_follower_as_observer(state, now_us)
            return min(at_us, state.update_voters_at_us) if self._config.auto_join else at_us
        if self._shutdown_us is not None:
            return now_us
        if now_us >= state.fetch_timeout_at_us:
            self._stand_for_election(now_us)
            return now_us
        if state.update_voters_at_us <= now_us and self.partition.kraft_version:
            if self.partition.voters.needs_update(self._local_node):
                return self._maybe_send_update_voter(state, now_us)
            state.update_voters_at_us = now_us + self._update_voters_us
        leader = state.leader
        misses_leader = self.requests.has_request_timed_out(leader, now_us)
        if (misses_leader or self.requests.is_backing_off(leader, now_us)) and self._decide.voters_search_leader.yes():
            if misses_leader:
                self.requests.reset(leader)
            at_us = self._maybe_send_fetch_to_any_bootstrap(now_us)
        elif self._decide.voters_search_leader.answer and self.requests.has_any_inflight_request(now_us):
            at_us = self.requests.bootstrap_server_at_us(now_us)
        else:
            at_us = self._maybe_send_fetch_or_fetch_snapshot(state, now_us)
        return min(at_us, state.fetch_timeout_at_us)

    def _maybe_send_update_voter(self, state: FollowerState, now_us: int) -> int:
        """Tell the leader the addresses that the log does not have. In 3.9, a period passes even if nothing is sent.

        Kafka: KafkaRaftClient#maybeSendUpdateVoterRequest.
        """
        request = UpdateVoterRequest(self.quorum.local_id, state.epoch, self._local_node)
        if self.requests.is_ready(state.leader, now_us) or not self._is_4_1:
            state.update_voters_at_us = now_us + self._update_voters_us
        at_us = self._maybe_send(state.leader, request, now_us)
        return min(at_us, state.fetch_timeout_at_us)

    def _maybe_join(self, state: FollowerState, now_us: int) -> int:
        """Become a voter: first remove the voter with the same id and another directory, then add this member.

        Kafka: KafkaRaftClient#pollFollowerAsObserver (4.1-4.4).
        """
        quorum = self.quorum
        request: RaftRequest
        old = self.partition.voters.node(quorum.local_id)
        if old is not None:
            request = RemoveVoterRequest(quorum.local_id, state.epoch, old.key)
        else:
            request = AddVoterRequest(quorum.local_id, state.epoch, self._local_node, ack_when_committed=False)
        if self.requests.is_ready(state.leader, now_us):
            state.update_voters_at_us = now_us + self._config.fetch_timeout_us
        return self._maybe_send(state.leader, request, now_us)

    def _poll_follower_as_observer(self, state: FollowerState, now_us: int) -> int:
        """Kafka: KafkaRaftClient#pollFollowerAsObserver, KafkaRaftClient#maybeSendFetchToBestNode (4.1-4.4)."""
        if self._shutdown_us is not None:
            return now_us
        if (
            self._config.auto_join
            and self._can_become_voter
            and self.partition.kraft_version
            and state.update_voters_at_us <= now_us
        ):
            return self._maybe_join(state, now_us)
        if now_us >= state.fetch_timeout_at_us and self._decide.observer_keeps_bootstrap.yes():
            return self._maybe_send_fetch_to_any_bootstrap(now_us)
        if self.requests.has_request_timed_out(state.leader, now_us):
            self.requests.reset(state.leader)
            return self._maybe_send_fetch_to_any_bootstrap(now_us)
        if self.requests.is_backing_off(state.leader, now_us):
            return self._maybe_send_fetch_to_any_bootstrap(now_us)
        if self.requests.has_any_inflight_request(now_us):
            return self.requests.bootstrap_server_at_us(now_us)
        return self._maybe_send_fetch_or_fetch_snapshot(state, now_us)

    def _maybe_send_fetch_or_fetch_snapshot(self, state: FollowerState, now_us: int) -> int:
        """Kafka: KafkaRaftClient#maybeSendFetchOrFetchSnapshot."""
        snapshot_id = state.fetching_snapshot
        if snapshot_id is None:
            return self._maybe_send(state.leader, self._build_fetch_request(), now_us)
        return self._maybe_send(
            state.leader,
            FetchSnapshotRequest(self.quorum.local_id, state.epoch, snapshot_id, self.quorum.key.directory),
            now_us,
        )

    def _maybe_send_fetch_to_any_bootstrap(self, now_us: int) -> int:
        """Search for the leader.

        Kafka: KafkaRaftClient#maybeSendFetchToAnyBootstrap (4.1-4.4), KafkaRaftClient#maybeSendAnyVoterFetch (3.9).
        """
        node = self.requests.find_ready_bootstrap_server(now_us)
        if node is None:
            return self.requests.bootstrap_server_at_us(now_us)
        return self._maybe_send(node, self._build_fetch_request(), now_us)

    def _poll_unattached(self, state: UnattachedState, now_us: int) -> int:
        """Kafka: KafkaRaftClient#pollUnattached."""
        if not self.quorum.is_voter:
            return self._maybe_send_fetch_to_any_bootstrap(now_us)
        if self._shutdown_us is not None:
            return self._shutdown_us
        if now_us >= state.election_at_us:
            self._stand_for_election(now_us)
            return now_us
        if not self._decide.voters_search_leader.yes():
            return state.election_at_us
        return min(self._maybe_send_fetch_to_any_bootstrap(now_us), state.election_at_us)

    def _poll_resigned(self, state: ResignedState, now_us: int) -> int:
        """Kafka: KafkaRaftClient#pollResigned."""
        at_us = NEVER
        for voter in state.unacked_voters:
            request = EndQuorumEpochRequest(self.quorum.local_id, state.epoch, state.preferred_successors)
            at_us = min(at_us, self._maybe_send(voter, request, now_us))
        if self._shutdown_us is not None:
            return min(self._shutdown_us, at_us)
        if now_us < state.election_at_us:
            return min(at_us, state.election_at_us)
        if self.quorum.is_voter and not self._decide.asks_for_pre_votes.yes():
            self._transition_to_candidate(now_us)
        else:
            self._transition_to_unattached(state.epoch + 1, NO_NODE, now_us)
        return now_us

    # Transitions.

    def _stand_for_election(self, now_us: int) -> None:
        if self._decide.asks_for_pre_votes.yes():
            self._transition_to_prospective(now_us)
        else:
            self._transition_to_candidate(now_us)

    def _transition_to_prospective(self, now_us: int) -> None:
        """Kafka: KafkaRaftClient#transitionToProspective (4.1-4.4), KafkaRaftClient#onBecomeProspective (4.1-4.4)."""
        self.quorum.transition_to_prospective(now_us)
        state = self.quorum.state
        assert isinstance(state, ProspectiveState)
        if state.votes.is_vote_granted:
            self._transition_to_candidate(now_us)
        else:
            self.requests.reset_all()

    def _transition_to_candidate(self, now_us: int) -> None:
        """Kafka: KafkaRaftClient#transitionToCandidate."""
        self.quorum.transition_to_candidate(now_us)
        self._maybe_fire_leader_change()
        self._on_become_candidate(now_us)

    def _on_become_candidate(self, now_us: int) -> None:
        """Kafka: KafkaRaftClient#onBecomeCandidate."""
        state = self.quorum.state
        assert isinstance(state, CandidateState)
        if state.votes.is_vote_granted:
            self._on_become_leader(now_us)
        else:
            self.requests.reset_all()

    def _on_become_leader(self, now_us: int) -> None:
        """Kafka: KafkaRaftClient#onBecomeLeader."""
        end_offset = self.log.end_offset
        accumulator = BatchAccumulator(self.quorum.epoch, end_offset, self._config.append_linger_us)
        self.quorum.transition_to_leader(end_offset, accumulator, now_us)
        partition = self.partition
        voters, version = partition.voters, partition.kraft_version
        if version and (partition.voters_offset == BOOTSTRAP_OFFSET or voters.needs_update(self._local_node)):
            latest = voters.update_voter(self._local_node)
            assert latest is not None
            accumulator.append_voters(latest, kraft_version=version, leader_change=True)
        else:
            accumulator.append_control_message()
        self.requests.reset_all()

    def _transition_to_unattached(self, epoch: int, leader: int, now_us: int) -> None:
        """Begin an epoch without a leader. Fetches that wait keep waiting.

        Kafka: KafkaRaftClient#transitionToUnattached.
        """
        self.quorum.transition_to_unattached(epoch, leader, now_us)
        self._maybe_fire_leader_change()
        self.requests.reset_all()

    def _transition_to_resigned(self, preferred_successors: Sequence[ReplicaKey], now_us: int) -> None:
        """Stop to lead; the listener learns it with the next epoch. Kafka: KafkaRaftClient#transitionToResigned."""
        self._fail_fetches()
        self.quorum.transition_to_resigned(preferred_successors, now_us)
        self.requests.reset_all()

    def _transition_to_follower(self, epoch: int, leader: int, now_us: int) -> None:
        """Kafka: KafkaRaftClient#transitionToFollower."""
        self.quorum.transition_to_follower(epoch, leader, now_us)
        self._maybe_fire_leader_change()
        self._on_become_follower(now_us)

    def _on_become_follower(self, now_us: int) -> None:
        """Kafka: KafkaRaftClient#onBecomeFollower."""
        state = self.quorum.state
        assert isinstance(state, FollowerState)
        state.update_voters_at_us = now_us + self._update_voters_us
        self.requests.reset_all()
        self._fail_fetches()

    def _fail_fetches(self) -> None:
        for parked in self._fetches.take_all():
            self._respond_to_fetch(parked.request, NOT_LEADER_OR_FOLLOWER)

    def _prospective_transition_after_election_loss(self, state: ProspectiveState, now_us: int) -> None:
        """Kafka: KafkaRaftClient#prospectiveTransitionAfterElectionLoss (4.1-4.4)."""
        if state.leader != NO_NODE and state.reaches_leader:
            self._transition_to_follower(state.epoch, state.leader, now_us)
        else:
            self._transition_to_unattached(state.epoch, state.leader, now_us)

    # Requests.

    def _handle_request(self, request: RaftRequest, now_us: int) -> None:
        """Kafka: KafkaRaftClient#handleRequest."""
        if isinstance(request, RaftFetchRequest):
            self._handle_fetch_request(request, now_us)
        elif isinstance(request, VoteRequest):
            self._handle_vote_request(request, now_us)
        elif isinstance(request, FetchSnapshotRequest):
            self._handle_fetch_snapshot_request(request, now_us)
        elif isinstance(request, BeginQuorumEpochRequest):
            error = self._handle_begin_quorum_epoch_request(request, now_us)
            response = BeginQuorumEpochResponse(
                request, self.quorum.local_id, error, self.quorum.epoch, self.quorum.leader
            )
            self._host.send(request.source, response)
        elif isinstance(request, AddVoterRequest | RemoveVoterRequest | UpdateVoterRequest | ApiVersionsRequest):
            self._handle_voters_request(request, now_us)
        else:
            assert isinstance(request, EndQuorumEpochRequest)
            error = self._handle_end_quorum_epoch_request(request, now_us)
            ended = EndQuorumEpochResponse(request, self.quorum.local_id, error, self.quorum.epoch, self.quorum.leader)
            self._host.send(request.source, ended)

    def _handle_vote_request(self, request: VoteRequest, now_us: int) -> None:
        """Kafka: KafkaRaftClient#handleVoteRequest."""
        error, granted = self._vote(request, now_us)
        quorum = self.quorum
        response = VoteResponse(request, quorum.local_id, error, quorum.epoch, quorum.leader, granted=granted)
        self._host.send(request.source, response)

    def _vote(self, request: VoteRequest, now_us: int) -> tuple[str, bool]:
        quorum = self.quorum
        newest = request.epoch if request.pre_vote else request.epoch - 1
        if request.last_offset < 0 or request.last_epoch < 0 or request.last_epoch > newest:
            return INVALID_REQUEST, False
        error = self._validate_voter_only_request(request)
        if error != NO_ERROR:
            return error, False
        if request.epoch > quorum.epoch:
            self._transition_to_unattached(request.epoch, NO_NODE, now_us)
        if not self._is_valid_voter_key(request.voter_directory):
            return INVALID_VOTER_KEY, False
        up_to_date = OffsetAndEpoch(request.last_offset, request.last_epoch).is_up_to_date(self.log.end)
        candidate = ReplicaKey(request.source, request.directory)
        granted = quorum.state.can_grant_vote(candidate, up_to_date=up_to_date, pre_vote=request.pre_vote)
        if granted and not request.pre_vote:
            if quorum.is_unattached_not_voted:
                quorum.unattached_add_voted_state(request.epoch, candidate, now_us)
            elif quorum.is_prospective_not_voted:
                quorum.prospective_add_voted_state(request.epoch, candidate, now_us)
        return NO_ERROR, granted

    def _is_valid_voter_key(self, directory: int) -> bool:
        """Whether a request means the voter with this directory. Kafka: KafkaRaftClient#isValidVoterKey."""
        return directory in (NO_DIRECTORY, self.quorum.key.directory)

    def _handle_begin_quorum_epoch_request(self, request: BeginQuorumEpochRequest, now_us: int) -> str:
        """Kafka: KafkaRaftClient#handleBeginQuorumEpochRequest."""
        error = self._validate_voter_only_request(request)
        if error == NO_ERROR:
            self._maybe_transition(request.source, request.epoch, now_us)
            if not self._is_valid_voter_key(request.voter_directory):
                return INVALID_VOTER_KEY
        return error

    def _handle_end_quorum_epoch_request(self, request: EndQuorumEpochRequest, now_us: int) -> str:
        """Kafka: KafkaRaftClient#handleEndQuorumEpochRequest."""
        error = self._validate_voter_only_request(request)
        if error != NO_ERROR:
            return error
        self._maybe_transition(request.source, request.epoch, now_us, has_address=False)
        state = self.quorum.state
        if isinstance(state, FollowerState) and state.leader == request.source:
            state.fetch_timeout_at_us = now_us + self._end_epoch_election_backoff_us(request.preferred_successors)
        return NO_ERROR

    def _end_epoch_election_backoff_us(self, preferred: Sequence[ReplicaKey]) -> int:
        """How long to wait for voters with longer logs to stand for election.

        Kafka: KafkaRaftClient#endEpochElectionBackoff, KafkaRaftClient#strictExponentialElectionBackoffMs.
        """
        most_us = self._config.election_backoff_max_us
        local_id, directory = self.quorum.key
        position = 0
        for successor in preferred:
            if successor.id == local_id and successor.directory in (NO_DIRECTORY, directory):
                break
            position += 1
        if position == 0:  # A leader that has just started names nobody, and no voter waits.
            return 0
        if position == len(preferred):
            return most_us
        most_ms = most_us // 1000  # Kafka shifts milliseconds.
        return min(most_ms, (most_ms >> (len(preferred) - 1)) << (position - 1)) * 1000

    def _handle_fetch_request(self, request: RaftFetchRequest, now_us: int) -> None:
        """Answer a fetch, or let it wait for records. Kafka: KafkaRaftClient#handleFetchRequest."""
        if request.max_wait_us < 0 or request.fetch_offset < 0 or not 0 <= request.last_fetched_epoch <= request.epoch:
            self._respond_to_fetch(request, INVALID_REQUEST)
            return
        response = self._try_complete_fetch(request, now_us)
        if (
            response.error != NO_ERROR
            or response.batches
            or response.diverging is not None
            or response.snapshot_id is not None
            or request.max_wait_us == 0
            or (request.high_watermark < response.high_watermark and self._decide.hw_answers_fetches.yes())
        ):
            self._host.send(request.source, response)
        else:
            self._fetches.wait(request, response, now_us + request.max_wait_us)

    def _try_complete_fetch(self, request: RaftFetchRequest, now_us: int) -> RaftFetchResponse:
        """The answer to a fetch; the leader notes what the replica has.

        Kafka: KafkaRaftClient#tryCompleteFetchRequest.
        """
        error = self._validate_leader_only_request(request)
        if error != NO_ERROR:
            return self._fetch_error(request, error)
        state = self.quorum.state
        assert isinstance(state, LeaderState)
        log, diverging = self.log, None
        snapshot_id = log.snapshot_instead(request.fetch_offset, request.last_fetched_epoch)
        if snapshot_id is None:
            diverging = log.diverging(request.fetch_offset, request.last_fetched_epoch)
        batches: Sequence[RaftBatch] = ()
        if diverging is None and snapshot_id is None:
            batches = log.read(request.fetch_offset, log.end_offset)
            # From 4.0 on, a fetch within a batch counts as one of the whole batch; epochs end with batches, so none is.
            offset = batches[0].base_offset if batches else request.fetch_offset
            if state.update_replica_state(request.source, now_us, offset, request.directory):
                self._on_update_leader_high_watermark(state, now_us)
        known = UNKNOWN if state.high_watermark is None else state.high_watermark
        local_id = self.quorum.local_id
        return RaftFetchResponse(
            request, local_id, NO_ERROR, state.epoch, local_id, batches, known, diverging, snapshot_id
        )

    def _complete_fetch(self, parked: ParkedFetch, now_us: int) -> None:
        self._host.send(parked.request.source, self._try_complete_fetch(parked.request, now_us))

    def _fetch_error(self, request: RaftFetchRequest, error: str) -> RaftFetchResponse:
        """Kafka: KafkaRaftClient#buildEmptyFetchResponse."""
        quorum = self.quorum
        return RaftFetchResponse(request, quorum.local_id, error, quorum.epoch, quorum.leader, (), UNKNOWN, None)

    def _respond_to_fetch(self, request: RaftFetchRequest, error: str) -> None:
        self._host.send(request.source, self._fetch_error(request, error))

    def _handle_fetch_snapshot_request(self, request: FetchSnapshotRequest, now_us: int) -> None:
        """Answer the fetch of a snapshot. Kafka: KafkaRaftClient#handleFetchSnapshotRequest."""
        quorum, snapshot = self.quorum, self.log.snapshot(request.snapshot_id)
        error = self._validate_leader_only_request(request)
        if error == NO_ERROR:
            state = quorum.state
            assert isinstance(state, LeaderState)
            if snapshot is None or snapshot.id == BOOTSTRAP_SNAPSHOT_ID:
                error = SNAPSHOT_NOT_FOUND
            else:
                state.update_check_quorum_for_following_voter(request.source, now_us, request.directory)
        found = snapshot if error == NO_ERROR else None
        self._host.send(
            request.source,
            FetchSnapshotResponse(request, quorum.local_id, error, quorum.epoch, quorum.leader, found),
        )

    def _validate_voter_only_request(self, request: RaftRequest) -> str:
        """Kafka: KafkaRaftClient#validateVoterOnlyRequest."""
        if request.epoch < self.quorum.epoch:
            return FENCED_LEADER_EPOCH
        return INVALID_REQUEST if request.source < 0 else NO_ERROR

    def _validate_leader_only_request(self, request: RaftRequest) -> str:
        """Kafka: KafkaRaftClient#validateLeaderOnlyRequest."""
        state = self.quorum.state
        if request.epoch < state.epoch:
            return FENCED_LEADER_EPOCH
        if request.epoch > state.epoch:
            return UNKNOWN_LEADER_EPOCH
        if not isinstance(state, LeaderState):
            return NOT_LEADER_OR_FOLLOWER
        return NO_ERROR if self._shutdown_us is None else BROKER_NOT_AVAILABLE

    # Changes of the voters (KIP-853).

    def add_voter(
        self, voter: VoterNode, answer: Callable[[str], None], now_us: int, *, ack_when_committed: bool = True
    ) -> None:
        """Make a replica a voter. It has to be the only change, and the latest voters have to be committed in this
        leader's epoch; the leader asks the replica for its versions first.

        Args:
            voter: the replica.
            answer: called with the error, when the new voters are committed.
            now_us: time.
            ack_when_committed: whether it is not called when they are appended (KIP-1186).

        Kafka: KafkaRaftClient#handleAddVoterRequest, AddVoterHandler#handleAddVoterRequest.
        """
        error = self._refusal_of_voter_change(voter.key, now_us)
        if error == NO_ERROR and voter.key.id in self.partition.voters.ids:
            error = DUPLICATE_VOTER
        if error == NO_ERROR and not self.requests.is_ready(voter.key.id, now_us):
            error = REQUEST_TIMED_OUT
        if error != NO_ERROR:
            answer(error)
            return
        state = self.quorum.state
        assert isinstance(state, LeaderState)
        self._maybe_send(voter.key.id, ApiVersionsRequest(self.quorum.local_id, state.epoch), now_us)
        expires_us = now_us + self._config.request_timeout_us
        state.adding = VoterChange(answer, expires_us, voter, ack_when_committed=ack_when_committed)

    def remove_voter(self, voter: ReplicaKey, answer: Callable[[str], None], now_us: int) -> None:
        """Make a voter an observer. `poll` has to follow.

        Args:
            voter: the voter.
            answer: called with the error, when the new voters are committed.
            now_us: time.

        Kafka: KafkaRaftClient#handleRemoveVoterRequest, RemoveVoterHandler#handleRemoveVoterRequest.
        """
        error = self._refusal_of_voter_change(voter, now_us)
        voters = self.partition.voters.remove_voter(voter) if error == NO_ERROR else None
        if voters is None:
            answer(error if error != NO_ERROR else VOTER_NOT_FOUND)
            return
        state = self.quorum.state
        assert isinstance(state, LeaderState)
        offset = state.accumulator.append_voters(voters)
        state.removing = VoterChange(answer, now_us + self._config.request_timeout_us, last_offset=offset)

    def _refusal_of_voter_change(self, voter: ReplicaKey, now_us: int) -> str:
        """Why the voters cannot be changed now, or `NO_ERROR`."""
        state = self.quorum.state
        if not isinstance(state, LeaderState):
            return NOT_LEADER_OR_FOLLOWER
        if self._shutdown_us is not None:
            return BROKER_NOT_AVAILABLE
        if voter.directory == NO_DIRECTORY:
            return INVALID_REQUEST
        if state.is_operation_pending(now_us) or state.high_watermark is None:
            return REQUEST_TIMED_OUT
        if not self.partition.kraft_version:
            return UNSUPPORTED_VERSION
        return NO_ERROR if self._are_voters_committed(state) else REQUEST_TIMED_OUT

    def _are_voters_committed(self, state: LeaderState) -> bool:
        offset, known = self.partition.voters_offset, state.high_watermark
        return offset is not None and known is not None and offset < known

    def _update_voter(self, voter: VoterNode, now_us: int) -> str:
        """Note a voter's latest addresses; no answer waits for the commit. Kafka: UpdateVoterHandler.

        Under kraft.version 0, from 4.1 on, a leader keeps them for an upgrade, which is not modelled.
        """
        state = self.quorum.state
        assert isinstance(state, LeaderState)
        if state.is_operation_pending(now_us) or state.high_watermark is None:
            return REQUEST_TIMED_OUT
        version = self.partition.kraft_version
        if not version:
            return UNSUPPORTED_VERSION
        if not self._are_voters_committed(state):
            return REQUEST_TIMED_OUT
        if voter.max_version < version:
            return INVALID_REQUEST
        voters = self.partition.voters.update_voter(voter)
        if voters is None:
            return VOTER_NOT_FOUND
        state.accumulator.append_voters(voters)
        if self._is_4_1:
            state.update_check_quorum_for_following_voter(voter.key.id, now_us, voter.key.directory)
        return NO_ERROR

    def _handle_voters_request(
        self, request: AddVoterRequest | RemoveVoterRequest | UpdateVoterRequest | ApiVersionsRequest, now_us: int
    ) -> None:
        quorum, host = self.quorum, self._host

        if isinstance(request, AddVoterRequest):
            asked = request

            def added(error: str) -> None:
                host.send(asked.source, AddVoterResponse(asked, quorum.local_id, error, quorum.epoch, quorum.leader))

            self.add_voter(asked.voter, added, now_us, ack_when_committed=asked.ack_when_committed)
        elif isinstance(request, RemoveVoterRequest):
            told = request

            def removed(error: str) -> None:
                host.send(told.source, RemoveVoterResponse(told, quorum.local_id, error, quorum.epoch, quorum.leader))

            self.remove_voter(told.voter, removed, now_us)
        elif isinstance(request, UpdateVoterRequest):
            error = self._validate_leader_only_request(request)
            if error == NO_ERROR and request.voter.key.directory == NO_DIRECTORY:
                error = INVALID_REQUEST
            if error == NO_ERROR:
                error = self._update_voter(request.voter, now_us)
            host.send(request.source, UpdateVoterResponse(request, quorum.local_id, error, quorum.epoch, quorum.leader))
        else:
            version = self._local_node.max_version
            host.send(
                request.source,
                ApiVersionsResponse(request, quorum.local_id, NO_ERROR, quorum.epoch, quorum.leader, version),
            )

    def _handle_voters_response(self, node: int, response: RaftResponse, now_us: int) -> bool:
        """Go on with a change; returns whether the response is a success.

        Kafka: KafkaRaftClient#handleAddVoterResponse (4.3-4.4), KafkaRaftClient#handleRemoveVoterResponse (4.3-4.4),
        KafkaRaftClient#handleApiVersionsResponse.
        """
        state, error = self.quorum.state, response.error
        if isinstance(response, ApiVersionsResponse):
            return not isinstance(state, LeaderState) or self._handle_api_versions_response(node, response, now_us)
        known = DUPLICATE_VOTER if isinstance(response, AddVoterResponse) else VOTER_NOT_FOUND
        if error not in (NO_ERROR, REQUEST_TIMED_OUT, known):
            return False
        if not isinstance(state, FollowerState):
            raise IllegalRaftStateError("a response to a change of the voters for a member that does not follow")
        state.update_voters_at_us = now_us + self._config.fetch_timeout_us
        return True

    def _handle_api_versions_response(self, node: int, response: ApiVersionsResponse, now_us: int) -> bool:
        """Append the new voters if the replica supports the kraft.version and is caught up.

        Kafka: AddVoterHandler#handleApiVersionsResponse.
        """
        state = self.quorum.state
        assert isinstance(state, LeaderState)
        change = state.adding
        if change is None or change.last_offset != UNKNOWN or change.voter is None or change.voter.key.id != node:
            return True
        if response.error != NO_ERROR:
            state.reset_adding(REQUEST_TIMED_OUT)
            return False
        if response.max_version < self.partition.kraft_version:
            state.reset_adding(INVALID_REQUEST)
        elif not state.is_replica_caught_up(change.voter.key, now_us):
            state.reset_adding(REQUEST_TIMED_OUT)
        else:
            voters = self.partition.voters.add_voter(
                VoterNode(change.voter.key, change.voter.listeners, response.max_version)
            )
            if voters is None:
                raise IllegalRaftStateError(f"voter {node} is one of {self.partition.voters} already")
            change.last_offset = state.accumulator.append_voters(voters)
            if not change.ack_when_committed:
                change.complete(NO_ERROR)
        return True

    def _end_adding(self, node: int, error: str) -> None:
        """The question for the versions of a replica has failed."""
        state = self.quorum.state
        if isinstance(state, LeaderState):
            change = state.adding
            voter = None if change is None or change.last_offset != UNKNOWN else change.voter
            if voter is not None and voter.key.id == node:
                state.reset_adding(error)

    # Responses.

    def _handle_response(self, node: int, response: RaftResponse, now_us: int) -> None:
        """Kafka: KafkaRaftClient#handleResponse."""
        if isinstance(response, ApiVersionsResponse | AddVoterResponse | RemoveVoterResponse):
            succeeded = self._handle_voters_response(node, response, now_us)
            self.requests.on_response_result(node, response.request, now_us, success=succeeded)
            return
        handled = self._maybe_handle_common_response(response, now_us)
        if handled is None:
            if response.error == UNSUPPORTED_VERSION and isinstance(response, UpdateVoterResponse):
                self._handle_success(node, response, now_us)
                handled = True
            elif response.error != NO_ERROR and response.error != SNAPSHOT_NOT_FOUND:
                if isinstance(response, RaftFetchResponse | FetchSnapshotResponse) and not self.is_follower:
                    raise IllegalRaftStateError("a response to a fetch for a member that does not follow")
                handled = False
            else:
                self._handle_success(node, response, now_us)
                handled = True
        self.requests.on_response_result(node, response.request, now_us, success=handled)

    def _handle_success(self, node: int, response: RaftResponse, now_us: int) -> None:
        state = self.quorum.state
        if isinstance(response, RaftFetchResponse):
            self._handle_fetch_response(response, now_us)
        elif isinstance(response, FetchSnapshotResponse):
            self._handle_fetch_snapshot_response(response, now_us)
        elif isinstance(response, VoteResponse):
            if isinstance(state, NomineeState):
                self._handle_vote_response(state, node, response, now_us)
        elif isinstance(response, UpdateVoterResponse):
            if not isinstance(state, FollowerState):
                raise IllegalRaftStateError("a response to a voter's addresses for a member that does not follow")
            state.reset_fetch_timeout_for_successful_fetch(now_us + self._config.fetch_timeout_us)
        elif isinstance(response, BeginQuorumEpochResponse):
            if isinstance(state, LeaderState) and (
                state.is_voter(node) or not self._decide.ignores_removed_voters.yes()
            ):
                state.add_acknowledgement_from(node)
        else:
            assert isinstance(state, ResignedState)
            state.acknowledge_resignation(node)

    def _handle_vote_response(self, state: NomineeState, node: int, response: VoteResponse, now_us: int) -> None:
        """Kafka: KafkaRaftClient#handleVoteResponse, KafkaRaftClient#maybeHandleElectionLoss (4.1-4.4)."""
        state.record_vote(node, granted=response.granted)
        if state.votes.is_vote_granted:
            if isinstance(state, ProspectiveState):
                self._transition_to_candidate(now_us)
            else:
                self._on_become_leader(now_us)
        elif state.votes.is_vote_rejected:
            if isinstance(state, ProspectiveState):
                self._prospective_transition_after_election_loss(state, now_us)
            elif (
                isinstance(state, CandidateState)
                and state.back_off_until_us is None
                and not self._decide.asks_for_pre_votes.yes()
            ):
                # From 4.0 on, a candidate waits for the end of its election timeout.
                state.back_off_until_us = now_us + self._binary_exponential_election_backoff_us(state.retries)

    def _handle_fetch_response(self, response: RaftFetchResponse, now_us: int) -> None:
        """Truncate where the logs part, or append and flush. Kafka: KafkaRaftClient#handleFetchResponse.

        Raises:
            IllegalRaftStateError: committed records would be truncated, or the high watermark would go back.
        """
        state = self.quorum.state
        if not isinstance(state, FollowerState):
            raise IllegalRaftStateError("a response to a fetch for a member that does not follow")
        if response.diverging is not None:
            known = state.high_watermark
            if known is not None and response.diverging.offset < known:
                raise IllegalRaftStateError(f"truncation to {response.diverging} below the high watermark {known}")
            before = self.log.end_offset
            self.partition.truncate_new_entries(before, self.log.truncate_to_end_offset(response.diverging))
        elif response.snapshot_id is not None:
            known_here = self.log.snapshot(response.snapshot_id) is not None
            state.fetching_snapshot = None if known_here else response.snapshot_id
        else:
            if response.batches:
                for batch in response.batches:
                    self.log.append(batch)
                if self.flushes:
                    self._host.flush()
                for batch in response.batches:
                    self.partition.appended(batch)
            if response.high_watermark >= 0:
                self._update_follower_high_watermark(state, response.high_watermark)
        state.reset_fetch_timeout_for_successful_fetch(now_us + self._config.fetch_timeout_us)

    def _handle_fetch_snapshot_response(self, response: FetchSnapshotResponse, now_us: int) -> None:
        """Keep a snapshot, and let it take the place of the log. Kafka: KafkaRaftClient#handleFetchSnapshotResponse.

        Raises:
            IllegalRaftStateError: it was not asked for, or the log is longer.
        """
        state, snapshot, log = self.quorum.state, response.snapshot, self.log
        if not isinstance(state, FollowerState):
            raise IllegalRaftStateError("a snapshot for a member that does not follow")
        wanted, state.fetching_snapshot = state.fetching_snapshot, None
        if snapshot is not None:
            if wanted != snapshot.id:
                raise IllegalRaftStateError(f"{snapshot} in place of {wanted}")
            before = log.end_offset
            log.add_snapshot(snapshot)
            if not log.truncate_to_latest_snapshot():
                raise IllegalRaftStateError(f"{snapshot} does not take the place of a log that ends at {log.end}")
            self.partition.took_snapshot(before)
            self._update_follower_high_watermark(state, log.high_watermark)
        state.reset_fetch_timeout_for_successful_fetch(now_us + self._config.fetch_timeout_us)

    def _maybe_handle_common_response(self, response: RaftResponse, now_us: int) -> bool | None:
        """Act on epoch, leader and error of a response; None if its contents remain to be handled.

        Kafka: KafkaRaftClient#maybeHandleCommonResponse.
        """
        quorum = self.quorum
        if response.epoch < quorum.epoch or response.error == UNKNOWN_LEADER_EPOCH:
            return True
        if response.epoch > quorum.epoch or response.error in (FENCED_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER):
            self._maybe_transition(response.leader, response.epoch, now_us)
            return True
        if response.leader != NO_NODE and quorum.leader == NO_NODE:
            self._transition_to_follower(response.epoch, response.leader, now_us)
            return None if response.error == NO_ERROR else True
        if response.error == BROKER_NOT_AVAILABLE:
            return False
        if response.error == INVALID_VOTER_KEY:
            return True
        if response.error == INVALID_REQUEST:
            raise IllegalRaftStateError("an invalid request was answered so")
        return None

    def _maybe_transition(self, leader: int, epoch: int, now_us: int, *, has_address: bool = True) -> None:
        """Follow a leader, or begin an epoch, of which a request or response tells.

        Args:
            leader: the leader, or `NO_NODE`.
            epoch: the epoch.
            now_us: time.
            has_address: whether the message has the leader's address, as all but EndQuorumEpoch do.

        Raises:
            IllegalRaftStateError: an epoch has two leaders, or this node leads it and does not know that, or it does
                not know the leader's address.

        Kafka: KafkaRaftClient#maybeTransition.
        """
        quorum = self.quorum
        if not self._has_consistent_leader(leader, epoch):
            if leader == quorum.local_id:
                raise IllegalRaftStateError(f"a message names itself as the leader of epoch {epoch}, which it is not")
            raise IllegalRaftStateError(f"epoch {epoch} has leaders {quorum.leader} and {leader}")
        knows_address = leader in quorum.voters if not has_address else quorum.knows_address(leader)
        if epoch > quorum.epoch and leader == NO_NODE:
            self._transition_to_unattached(epoch, NO_NODE, now_us)
        elif epoch > quorum.epoch or (
            leader != NO_NODE and (quorum.leader == NO_NODE or (knows_address and not quorum.reaches_leader))
        ):
            if not knows_address:
                raise IllegalRaftStateError(f"the address of leader {leader} of epoch {epoch} is unknown")
            self._transition_to_follower(epoch, leader, now_us)

    def _has_consistent_leader(self, leader: int, epoch: int) -> bool:
        """Kafka: KafkaRaftClient#hasConsistentLeader."""
        quorum = self.quorum
        if leader == quorum.local_id:
            return self.is_leader
        return epoch != quorum.epoch or leader == NO_NODE or quorum.leader in (NO_NODE, leader)

    # Sending.

    def _build_fetch_request(self) -> RaftFetchRequest:
        """Kafka: KafkaRaftClient#buildFetchRequest."""
        log, state = self.log, self.quorum.state
        known = state.high_watermark
        return RaftFetchRequest(
            self.quorum.local_id,
            state.epoch,
            log.end_offset,
            log.last_fetched_epoch,
            UNKNOWN if known is None else known,
            self._config.fetch_max_wait_us,
            self.quorum.key.directory,
        )

    def _maybe_send(self, node: int, request: RaftRequest, now_us: int) -> int:
        """Send a request unless another one to the member is in flight; returns when it may be sent again.

        Kafka: KafkaRaftClient#maybeSendRequest.
        """
        if self.requests.is_ready(node, now_us):
            self.requests.on_request_sent(node, request, now_us)
            self._host.send(node, request)
        return self.requests.ready_at_us(node, now_us)

    # Elision of idle time: see `sim.hosts.idle_quorum`.

    def idle_fetches(self, until_us: int) -> list[RaftFetchRequest]:
        """The fetches that wait at this leader, if it only has to keep them waiting until then; otherwise none."""
        state, end = self.quorum.state, self.log.end_offset
        if (
            not isinstance(state, LeaderState)
            or state.resign_requested
            or not self.quorum.is_voter
            or state.is_changing_voters
            or self._shutdown_us is not None
            or state.high_watermark != end
            or self.log.flushed_offset != end
            or not state.accumulator.is_empty
            or not self.requests.is_empty
        ):
            return []
        parked = self._fetches.parked
        requests = [one.request for one in parked if one.request.fetch_offset == end and one.expires_us > until_us]
        waiting = {request.source for request in requests}
        if len(waiting) < len(parked) or not waiting.issuperset(state.other_voters()):
            return []
        return requests

    def awaits_records(self, leader: int, request: RaftFetchRequest) -> bool:
        """Whether this follower only waits for the answer to a fetch."""
        state, log = self.quorum.state, self.log
        return (
            isinstance(state, FollowerState)
            and state.leader == leader
            and self._shutdown_us is None
            and log.end_offset == request.fetch_offset
            and (log.flushed_offset == log.end_offset or not self.flushes)
            and self.requests.is_only(leader, request)
            and state.high_watermark == self._next_offset
        )

    @property
    def uncommitted(self) -> list[RaftBatch]:
        """Batches that this follower does not know to be committed."""
        return self.log.read(self._next_offset, self.log.end_offset)

    def follow_silently(
        self, batches: Sequence[RaftBatch], lag: int, sent_us: int, timeout_at_us: int
    ) -> RaftFetchRequest:
        """Note that this follower has fetched these batches, all but the last `lag` records of which are committed now.
        Returns the fetch that waits, which was sent at that time.
        """
        state = self.quorum.state
        assert isinstance(state, FollowerState)
        for batch in batches:
            self.log.append(batch)
        if self.flushes:
            self.log.flush()
        state.fetch_timeout_at_us = timeout_at_us
        self._update_follower_high_watermark(state, self.log.end_offset - lag)
        request = self._build_fetch_request()
        self.requests.replace(state.leader, request, sent_us)
        return request

    def fetch_times(self, leader: int) -> tuple[int, int]:
        """When this follower has sent the fetch that waits, and when it stands for election without an answer."""
        state = self.quorum.state
        assert isinstance(state, FollowerState)
        return self.requests.since_us(leader), state.fetch_timeout_at_us

    def next_poll_us(self, leader: int) -> int:
        """What `poll` returns for this follower, which waits for the answer to a fetch."""
        sent_us, timeout_at_us = self.fetch_times(leader)
        at_us = min(sent_us + self._config.request_timeout_us, self.clean_us())
        return min(at_us, timeout_at_us) if self.quorum.is_voter else at_us

    def last_fetch_us(self, replica: ReplicaKey) -> int:
        """When a replica last fetched from this leader."""
        state = self.quorum.state
        assert isinstance(state, LeaderState)
        known = state.replica_state(replica.id, replica.directory)
        assert known is not None
        return known.last_fetch_us

    def check_quorum_at_us(self) -> int:
        """See `LeaderState.check_quorum_at_us`."""
        state = self.quorum.state
        assert isinstance(state, LeaderState)
        return state.check_quorum_at_us

    @property
    def fetched_voters(self) -> tuple[int, ...]:
        """The voters that have fetched since a majority last had."""
        state = self.quorum.state
        assert isinstance(state, LeaderState)
        return state.fetched_voters

    def lead_silently(
        self,
        batches: Sequence[RaftBatch],
        requests: Sequence[RaftFetchRequest],
        arrived_us: Sequence[int],
        check_quorum_at_us: int,
        until_us: int,
    ) -> int:
        """Note that this leader has appended these batches, and that these fetches wait, which arrived at those times.
        Returns how often it has announced itself before `until_us`.
        """
        state, log, quorum = self.quorum.state, self.log, self.quorum
        assert isinstance(state, LeaderState)
        for batch in batches:
            log.append(batch)
            state.accumulator.skip(batch.size)
        log.flush()
        end = log.end_offset
        log.update_high_watermark(end)
        state.lead_silently(end, check_quorum_at_us)
        self._fetches.take_all()
        for request, at_us in zip(requests, arrived_us, strict=True):
            state.fetched_silently(request.source, at_us, request.directory)
            response = RaftFetchResponse(request, quorum.local_id, NO_ERROR, quorum.epoch, quorum.leader, (), end, None)
            self._fetches.wait(request, response, at_us + request.max_wait_us)
        self._update_listeners_progress(end)
        return state.skip_announcements(until_us)

    @property
    def announces_to_silent_voters(self) -> bool:
        """Whether a leader announces itself only to voters that have not fetched for a while."""
        return self._decide.begins_with_silent_voters.answer

    def announcements(self) -> tuple[int, int]:
        """When this leader announces itself next, and how often it does."""
        state = self.quorum.state
        assert isinstance(state, LeaderState)
        return state.begin_quorum_epoch_at_us, state.begin_quorum_epoch_us

    # The listener.

    def _on_update_leader_high_watermark(self, state: LeaderState, now_us: int) -> None:
        """Kafka: KafkaRaftClient#onUpdateLeaderHighWatermark."""
        assert state.high_watermark is not None
        self.log.update_high_watermark(state.high_watermark)
        if state.is_changing_voters:
            state.complete_voter_changes(self.partition.voters)
        if not self._fetches.is_empty and self._decide.hw_answers_fetches.yes():
            for parked in self._fetches.take_all():
                self._complete_fetch(parked, now_us)
        self._update_listeners_progress(state.high_watermark)

    def _update_follower_high_watermark(self, state: FollowerState, leaders: int) -> None:
        """Kafka: KafkaRaftClient#updateFollowerHighWatermark."""
        offset = min(leaders, self.log.end_offset)
        if state.update_high_watermark(offset):
            self.log.update_high_watermark(offset)
            self._update_listeners_progress(offset)

    def _update_listeners_progress(self, high_watermark: int) -> None:
        """Report what is committed, all of it at once; to a new listener, or one that lacks what the log lacks, first a
        snapshot.

        Raises:
            IllegalRaftStateError: it lacks what the log lacks, and there is no snapshot.

        Kafka: KafkaRaftClient#updateListenersProgress.
        """
        if self._is_new or self._next_offset < self.log.start_offset:
            snapshot = self.log.latest_snapshot
            if snapshot is not None and (self._is_new or self._next_offset < high_watermark):
                self._next_offset = snapshot.id.offset
                if snapshot.id != BOOTSTRAP_SNAPSHOT_ID:  # It has no metadata.
                    self._host.handle_load_snapshot(snapshot)
            elif not self._is_new:
                raise IllegalRaftStateError(f"no snapshot has what is missing from {self._next_offset} on")
            self._is_new = False
        if self._next_offset < high_watermark:
            batches = self.log.read(self._next_offset, high_watermark)
            if batches:
                self._next_offset = batches[-1].end_offset
                self._host.handle_commit(batches)

    def _poll_listeners(self) -> None:
        """Kafka: KafkaRaftClient#pollListeners."""
        known = self.quorum.state.high_watermark
        if known is not None and self._next_offset < known:
            self._update_listeners_progress(known)
        if not isinstance(self.quorum.state, ResignedState):
            self._maybe_fire_leader_change()

    def _maybe_fire_leader_change(self) -> None:
        """Report a leader; a leader's own listener has to have consumed what was committed before its epoch.

        Kafka: KafkaRaftClient#maybeFireLeaderChange.
        """
        state = self.quorum.state
        if state is self._told or not self._is_registered:
            return
        current = LeaderAndEpoch(self.quorum.leader, state.epoch)
        if current == self._fired or (
            current.epoch <= self._fired.epoch and not (current.leader != NO_NODE and self._fired.leader == NO_NODE)
        ):
            self._told = state
            return
        if isinstance(state, LeaderState) and self._next_offset <= state.epoch_start_offset:
            return
        self._fired = current
        self._host.handle_leader_change(current)
