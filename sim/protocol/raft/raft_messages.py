"""Requests and responses of the metadata quorum's Raft: one slotted class per RPC.

A response refers to the request that it answers. A sender waits for the response to one request object, as Kafka's
waits for one correlation id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sim.kernel.message import ABOUT, ALIKE, KIND, REPLY, Message
from sim.protocol.raft.raft_log import OffsetAndEpoch, RaftBatch, RaftSnapshot
from sim.protocol.raft.voter_set import NO_DIRECTORY, ReplicaKey, VoterNode

VOTE: Final = 80 << KIND
BEGIN_QUORUM_EPOCH: Final = 81 << KIND
END_QUORUM_EPOCH: Final = 82 << KIND
RAFT_FETCH: Final = ALIKE + (83 << KIND)
RAFT_RECORDS: Final = 84 << KIND
FETCH_SNAPSHOT: Final = 85 << KIND
CHANGE_VOTERS: Final = 86 << KIND
API_VERSIONS: Final = 87 << KIND

NO_ERROR: Final = "none"
FENCED_LEADER_EPOCH: Final = "fenced leader epoch"
UNKNOWN_LEADER_EPOCH: Final = "unknown leader epoch"
NOT_LEADER_OR_FOLLOWER: Final = "not leader or follower"
INVALID_REQUEST: Final = "invalid request"
BROKER_NOT_AVAILABLE: Final = "broker not available"
SNAPSHOT_NOT_FOUND: Final = "snapshot not found"
INVALID_VOTER_KEY: Final = "invalid voter key"
REQUEST_TIMED_OUT: Final = "request timed out"
UNSUPPORTED_VERSION: Final = "unsupported version"
DUPLICATE_VOTER: Final = "duplicate voter"
VOTER_NOT_FOUND: Final = "voter not found"
NO_NODE: Final = -1
"""In place of a node's id: no leader is known, or no vote was given."""


class RaftRequest(Message):
    """A request to a member of the quorum.

    Attributes:
        source: id of its sender.
        epoch: the sender's.
    """

    __slots__ = ("epoch", "source")
    elision_safe = True

    def __init__(self, source: int, epoch: int) -> None:
        self.source: Final = source
        self.epoch: Final = epoch


class RaftResponse(Message):
    """A response of a member of the quorum.

    Attributes:
        request: the request object that it answers.
        source: id of the member that responds.
        error: `NO_ERROR`, or the error.
        epoch: that member's.
        leader: the leader of that epoch as the member knows it, or `NO_NODE`.
    """

    __slots__ = ("epoch", "error", "leader", "request", "source")
    elision_safe = True

    def __init__(self, request: RaftRequest, source: int, error: str, epoch: int, leader: int) -> None:
        self.request: Final = request
        self.source: Final = source
        self.error: Final = error
        self.epoch: Final = epoch
        self.leader: Final = leader

    def about(self) -> int:
        return REPLY + self.request.about()


class VoteRequest(RaftRequest):
    """A request for a vote, or for a pre-vote (KIP-996). Kafka: VoteRequestData.

    Attributes:
        last_epoch: epoch of the last record in the candidate's log.
        last_offset: end offset of the candidate's log.
        pre_vote: whether the sender asks if it would get the vote.
        directory: directory id of the candidate.
        voter_directory: that of the voter, `NO_DIRECTORY` if it is unknown.
    """

    __slots__ = ("directory", "last_epoch", "last_offset", "pre_vote", "voter_directory")

    def __init__(
        self,
        source: int,
        epoch: int,
        last_epoch: int,
        last_offset: int,
        *,
        pre_vote: bool,
        directory: int = NO_DIRECTORY,
        voter_directory: int = NO_DIRECTORY,
    ) -> None:
        super().__init__(source, epoch)
        self.directory: Final = directory
        self.voter_directory: Final = voter_directory
        self.last_epoch: Final = last_epoch
        self.last_offset: Final = last_offset
        self.pre_vote: Final = pre_vote

    def about(self) -> int:
        return VOTE + (self.epoch << ABOUT) + 2 * self.source + self.pre_vote


class VoteResponse(RaftResponse):
    """Response to a request for a vote. Kafka: VoteResponseData.

    Attributes:
        granted: whether the voter gives its vote.
    """

    __slots__ = ("granted",)

    def __init__(
        self, request: RaftRequest, source: int, error: str, epoch: int, leader: int, *, granted: bool
    ) -> None:
        super().__init__(request, source, error, epoch, leader)
        self.granted: Final = granted


class BeginQuorumEpochRequest(RaftRequest):
    """A leader announces its epoch to a voter. Kafka: BeginQuorumEpochRequestData.

    Attributes:
        voter_directory: directory id of the voter, `NO_DIRECTORY` if it is unknown.
    """

    __slots__ = ("voter_directory",)

    def __init__(self, source: int, epoch: int, voter_directory: int = NO_DIRECTORY) -> None:
        super().__init__(source, epoch)
        self.voter_directory: Final = voter_directory

    def about(self) -> int:
        return BEGIN_QUORUM_EPOCH + (self.epoch << ABOUT) + self.source


class BeginQuorumEpochResponse(RaftResponse):
    """Response to the announcement of a leader. Kafka: BeginQuorumEpochResponseData."""

    __slots__ = ()


class EndQuorumEpochRequest(RaftRequest):
    """A leader that resigned announces that to a voter. Kafka: EndQuorumEpochRequestData.

    Attributes:
        preferred_successors: the other voters, those with the longest logs first.
    """

    __slots__ = ("preferred_successors",)

    def __init__(self, source: int, epoch: int, preferred_successors: tuple[ReplicaKey, ...]) -> None:
        super().__init__(source, epoch)
        self.preferred_successors: Final = preferred_successors

    def about(self) -> int:
        return END_QUORUM_EPOCH + (self.epoch << ABOUT) + self.source


class EndQuorumEpochResponse(RaftResponse):
    """Response to the announcement of a resignation. Kafka: EndQuorumEpochResponseData."""

    __slots__ = ()


class RaftFetchRequest(RaftRequest):
    """A fetch of the metadata log. Kafka: message.FetchRequestData (2.6-4.4).

    Attributes:
        fetch_offset: end offset of the sender's log, up to which a voter has flushed it.
        last_fetched_epoch: epoch of the last record in the sender's log.
        high_watermark: the sender's, -1 if it is unknown; the leader reads it from KIP-1166 on.
        max_wait_us: how long the leader may keep the request while it has nothing to send.
        directory: directory id of the sender.
    """

    __slots__ = ("directory", "fetch_offset", "high_watermark", "last_fetched_epoch", "max_wait_us")

    def __init__(
        self,
        source: int,
        epoch: int,
        fetch_offset: int,
        last_fetched_epoch: int,
        high_watermark: int,
        max_wait_us: int,
        directory: int = NO_DIRECTORY,
    ) -> None:
        super().__init__(source, epoch)
        self.directory: Final = directory
        self.fetch_offset: Final = fetch_offset
        self.last_fetched_epoch: Final = last_fetched_epoch
        self.high_watermark: Final = high_watermark
        self.max_wait_us: Final = max_wait_us

    def about(self) -> int:
        return RAFT_FETCH


class RaftFetchResponse(RaftResponse):
    """Response to a fetch of the metadata log. Kafka: FetchResponseData (2.6-4.4).

    Attributes:
        batches: records from the fetch offset on.
        high_watermark: the leader's, -1 if it is unknown.
        diverging: end offset and epoch to which the sender has to truncate its log, or None.
        snapshot_id: the snapshot that the sender has to fetch, or None.
    """

    __slots__ = ("batches", "diverging", "high_watermark", "snapshot_id")

    def __init__(
        self,
        request: RaftRequest,
        source: int,
        error: str,
        epoch: int,
        leader: int,
        batches: Sequence[RaftBatch],
        high_watermark: int,
        diverging: OffsetAndEpoch | None,
        snapshot_id: OffsetAndEpoch | None = None,
    ) -> None:
        super().__init__(request, source, error, epoch, leader)
        self.batches: Final = batches
        self.high_watermark: Final = high_watermark
        self.diverging: Final = diverging
        self.snapshot_id: Final = snapshot_id

    def about(self) -> int:
        if not self.batches:
            return REPLY + RAFT_FETCH
        return REPLY + RAFT_RECORDS + (self.epoch << ABOUT) + self.batches[-1].end_offset


class FetchSnapshotRequest(RaftRequest):
    """A fetch of a snapshot, all of it at once. Kafka: FetchSnapshotRequestData.

    Attributes:
        snapshot_id: the snapshot.
        directory: directory id of the sender.
    """

    __slots__ = ("directory", "snapshot_id")

    def __init__(self, source: int, epoch: int, snapshot_id: OffsetAndEpoch, directory: int = NO_DIRECTORY) -> None:
        super().__init__(source, epoch)
        self.directory: Final = directory
        self.snapshot_id: Final = snapshot_id

    def about(self) -> int:
        return FETCH_SNAPSHOT + (self.epoch << ABOUT) + self.snapshot_id.offset


class FetchSnapshotResponse(RaftResponse):
    """Response to the fetch of a snapshot. Kafka: FetchSnapshotResponseData.

    Attributes:
        snapshot: the snapshot, None with an error.
    """

    __slots__ = ("snapshot",)

    def __init__(
        self, request: RaftRequest, source: int, error: str, epoch: int, leader: int, snapshot: RaftSnapshot | None
    ) -> None:
        super().__init__(request, source, error, epoch, leader)
        self.snapshot: Final = snapshot


class AddVoterRequest(RaftRequest):
    """A request to make a replica a voter. Kafka: AddRaftVoterRequestData.

    Attributes:
        voter: the replica.
        ack_when_committed: whether the leader answers once the new voters are committed, and not once it has appended
            them (KIP-1186).
    """

    __slots__ = ("ack_when_committed", "voter")

    def __init__(self, source: int, epoch: int, voter: VoterNode, *, ack_when_committed: bool = True) -> None:
        super().__init__(source, epoch)
        self.voter: Final = voter
        self.ack_when_committed: Final = ack_when_committed

    def about(self) -> int:
        return CHANGE_VOTERS + self.voter.key.id


class AddVoterResponse(RaftResponse):
    """Response to a request to add a voter. Kafka: AddRaftVoterResponseData."""

    __slots__ = ()


class RemoveVoterRequest(RaftRequest):
    """A request to make a voter an observer. Kafka: RemoveRaftVoterRequestData.

    Attributes:
        voter: the voter.
    """

    __slots__ = ("voter",)

    def __init__(self, source: int, epoch: int, voter: ReplicaKey) -> None:
        super().__init__(source, epoch)
        self.voter: Final = voter

    def about(self) -> int:
        return CHANGE_VOTERS + self.voter.id


class RemoveVoterResponse(RaftResponse):
    """Response to a request to remove a voter. Kafka: RemoveRaftVoterResponseData."""

    __slots__ = ()


class UpdateVoterRequest(RaftRequest):
    """A voter's latest addresses and versions. Kafka: UpdateRaftVoterRequestData.

    Attributes:
        voter: the voter.
    """

    __slots__ = ("voter",)

    def __init__(self, source: int, epoch: int, voter: VoterNode) -> None:
        super().__init__(source, epoch)
        self.voter: Final = voter

    def about(self) -> int:
        return CHANGE_VOTERS + self.voter.key.id


class UpdateVoterResponse(RaftResponse):
    """Response to a voter's latest addresses. Kafka: UpdateRaftVoterResponseData."""

    __slots__ = ()


class ApiVersionsRequest(RaftRequest):
    """A leader asks a replica that is to become a voter for the versions that it supports.

    Kafka: ApiVersionsRequestData (0.10.2-4.4).
    """

    __slots__ = ()

    def about(self) -> int:
        return API_VERSIONS


class ApiVersionsResponse(RaftResponse):
    """Response to the question for versions. Kafka: ApiVersionsResponseData (0.10.2-4.4).

    Attributes:
        max_version: the highest kraft.version that the replica supports; -1: it knows none.
    """

    __slots__ = ("max_version",)

    def __init__(
        self, request: RaftRequest, source: int, error: str, epoch: int, leader: int, max_version: int
    ) -> None:
        super().__init__(request, source, error, epoch, leader)
        self.max_version: Final = max_version
