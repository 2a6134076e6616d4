"""Driver of kind ``raft_client``: a member of the metadata quorum, as RaftClientTestContext drives Kafka's.

Time and messages are the case's. `poll` is one call of KafkaRaftClient#poll: the state's timers first, then one
message. An operation that brings a request or a response polls until every message was handled. What a member sends is
shown by the operation that made it send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.protocol.decisions import Decisions
from sim.protocol.raft.election_state import ElectionState
from sim.protocol.raft.epoch_states import FollowerState, NomineeState, ResignedState, UnattachedState, election_at_us
from sim.protocol.raft.kafka_raft_client import KafkaRaftClient, LeaderAndEpoch, QuorumConfig, RaftHost
from sim.protocol.raft.leader_state import LeaderState
from sim.protocol.raft.raft_log import OffsetAndEpoch, RaftBatch, RaftLog, RaftSnapshot
from sim.protocol.raft.raft_messages import (
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
    VoteRequest,
    VoteResponse,
)
from sim.protocol.raft.request_manager import NEVER
from sim.protocol.raft.voter_set import ReplicaKey
from tests.verification.conformance.cases import TableError
from tests.verification.conformance.driving import Kind, Seen
from tests.verification.conformance.kinds.raft_parts import last_epoch, snapshot_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sim.protocol.rules import Rules
    from tests.verification.conformance.cases import Fields

LOCAL: Final = 0
MS: Final = 1000
CONFIG: Final = QuorumConfig(10_000 * MS, 50_000 * MS, 100 * MS, 5_000 * MS, 50 * MS, 0, 0)
"""That of RaftClientTestContext: its fetches do not wait."""
MOST_POLLS: Final = 20
NEWEST: Final = (1 << 63) - 1
"""High watermark in the fetches of RaftClientTestContext that name none."""


class Client(RaftHost):
    """The state of a case: a member and its process."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        decide = Decisions(rules)
        self.asks_for_pre_votes = decide.asks_for_pre_votes.answer
        self.sends_high_watermark = decide.hw_answers_fetches.answer
        self.now_us = 0
        self.jitter_us: int = given.get("jitter_ms", 0) * MS
        self.number: int = given.get("number", 0)
        self.config = CONFIG._replace(append_linger_us=given.get("linger_ms", 0) * MS)
        self.sent: list[tuple[int, RaftRequest]] = []
        self.requests: dict[int, list[RaftRequest]] = {}
        self.answers: list[RaftResponse] = []
        self.inbox: list[RaftRequest | RaftResponse] = []
        self.commits: list[RaftBatch] = []
        self.loaded: list[OffsetAndEpoch] = []
        self.told: list[LeaderAndEpoch] = []
        self.claimed_after: int | None = None
        self.wait_us = 0
        self.running = True
        self.log = RaftLog(_batches(0, given.get("log", ())))
        if "snapshot" in given:
            self.log.add_snapshot(snapshot_of(*given["snapshot"]))
        if given.get("begins_at_snapshot", False):
            self.log.update_high_watermark(given["snapshot"][0])
            self.log.delete_before_snapshot(OffsetAndEpoch(*given["snapshot"]))
        stored = given["stored"]
        self.stored = None if stored is None else ElectionState(*stored)
        self.client = KafkaRaftClient(
            LOCAL,
            given["voters"],
            self.log,
            self.stored,
            decide,
            self.config,
            self,
            0,
            always_flushes=given.get("can_become_voter", False),
        )

    # Callbacks.

    def send(self, node: int, message: RaftRequest | RaftResponse) -> None:
        if isinstance(message, RaftRequest):
            self.sent.append((node, message))
            self.requests.setdefault(node, []).append(message)
        else:
            self.answers.append(message)

    def random_below(self, bound: int) -> int:
        return self.jitter_us if bound == self.config.election_timeout_us else self.number

    def store(self, election: ElectionState) -> None:
        self.stored = election

    def flush(self) -> None:
        self.log.flush()

    def handle_commit(self, batches: Sequence[RaftBatch]) -> None:
        self.commits += batches

    def handle_load_snapshot(self, snapshot: RaftSnapshot) -> None:
        self.loaded.append(snapshot.id)

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        self.told.append(leader)
        if leader.leader == LOCAL:
            self.claimed_after = self.committed

    @property
    def committed(self) -> int | None:
        """Offset of the last record that the listener was given."""
        return self.commits[-1].end_offset - 1 if self.commits else None

    # Time.

    def sleep(self, op: Fields) -> None:
        self.sleep_us(op["ms"] * MS)

    def sleep_us(self, time_us: int) -> None:
        """Let time pass; fetches whose time is over are answered without a poll."""
        self.now_us += time_us
        for parked in self.client._fetches.take_expired(self.now_us):
            self.send(parked.request.source, parked.response)

    def poll(self, op: Fields) -> None:
        until = op.get("until")
        if until is None:
            for _ in range(op.get("times", 1)):
                self.poll_once()
        elif until == "request":
            self.poll_until_request()
        else:
            self.poll_until(lambda: type(self.client.quorum.state).__name__ == f"{until}State")

    def poll_once(self) -> None:
        """Kafka: KafkaRaftClient#poll."""
        client = self.client
        if client._completes_shutdown(self.now_us):
            self.running = False
            return
        self.wait_us = client._poll_state(self.now_us)
        if self.inbox:
            client.handle(self.inbox.pop(0), self.now_us)
        client._poll_listeners()

    def poll_until(self, holds: Callable[[], bool]) -> None:
        """Kafka: RaftClientTestContext#pollUntil."""
        for _ in range(MOST_POLLS):
            if holds():
                return
            self.poll_once()
        raise AssertionError("a condition did not come about")

    def poll_until_request(self) -> None:
        """Kafka: RaftClientTestContext#pollUntilRequest."""
        before = len(self.sent)
        self.poll_until(lambda: len(self.sent) > before)

    def deliver(self, message: RaftRequest | RaftResponse) -> None:
        """Poll until this message, and all before it, were handled."""
        self.inbox.append(message)
        self.poll_until(lambda: not self.inbox)

    # Elections at once.

    def become_candidate(self, _: Fields | None) -> None:
        """Kafka: RaftClientTestContext#unattachedToCandidate."""
        self.sleep_us(2 * self.config.election_timeout_us)
        if self.asks_for_pre_votes:
            self.grant()
        else:
            self.poll_once()

    def become_leader(self, _: Fields) -> None:
        """Kafka: RaftClientTestContext#unattachedToLeader, RaftClientTestContext#becomeLeader (3.9)."""
        self.become_candidate(None)
        self.grant()
        self.poll_until_request()
        for node, request in self.sent[-self.others :]:
            if not isinstance(request, BeginQuorumEpochRequest):
                raise TableError("the member does not lead")
            self.deliver(BeginQuorumEpochResponse(request, node, "none", request.epoch, LOCAL))

    @property
    def others(self) -> int:
        return len(self.client.quorum.voters) - 1

    def grant_votes(self, _: Fields) -> None:
        """Kafka: RaftClientTestContext#expectAndGrantVotes."""
        self.grant()

    def grant(self) -> None:
        """Grant all votes, or pre-votes, that the member asks for; one poll handles the first of them."""
        self.poll_until_request()
        for node, request in self.sent[-self.others :]:
            self.inbox.append(VoteResponse(request, node, "none", request.epoch, -1, granted=True))
        self.poll_once()

    # Requests and responses.

    def vote(self, op: Fields) -> None:
        last_epoch, last_offset = op["last"]
        self.deliver(VoteRequest(op["from"], op["epoch"], last_epoch, last_offset, pre_vote=op.get("pre", False)))

    def begin(self, op: Fields) -> None:
        self.deliver(BeginQuorumEpochRequest(op["from"], op["epoch"]))

    def end(self, op: Fields) -> None:
        self.deliver(
            EndQuorumEpochRequest(op["from"], op["epoch"], tuple([ReplicaKey(voter) for voter in op["successors"]]))
        )

    def fetch(self, op: Fields) -> None:
        known = op.get("hw", NEWEST)
        wait_us = op["wait_ms"] * MS
        self.deliver(RaftFetchRequest(op["from"], op["epoch"], op["offset"], op["last_epoch"], known, wait_us))

    def fetch_snapshot(self, op: Fields) -> None:
        self.deliver(FetchSnapshotRequest(op["from"], op["epoch"], OffsetAndEpoch(*op["id"])))

    def respond(self, op: Fields) -> None:
        node = op["from"]
        request = self.requests[node][-1 - op.get("older", 0)]
        self.deliver(self.response(op, node, request))

    def response(self, op: Fields, node: int, request: RaftRequest) -> RaftResponse:
        """A response to a request of the member."""
        error, epoch, leader = op.get("error", "none"), op["epoch"], op["leader"]
        if isinstance(request, VoteRequest):
            return VoteResponse(request, node, error, epoch, leader, granted=op.get("granted", False))
        if isinstance(request, BeginQuorumEpochRequest):
            return BeginQuorumEpochResponse(request, node, error, epoch, leader)
        if isinstance(request, EndQuorumEpochRequest):
            return EndQuorumEpochResponse(request, node, error, epoch, leader)
        if isinstance(request, FetchSnapshotRequest):
            snapshot = snapshot_of(*op["snapshot"]) if "snapshot" in op else None
            return FetchSnapshotResponse(request, node, error, epoch, leader, snapshot)
        assert isinstance(request, RaftFetchRequest)
        batches = _batches(request.fetch_offset, op.get("records", ()))
        diverging = OffsetAndEpoch(*op["diverging"]) if "diverging" in op else None
        instead = OffsetAndEpoch(*op["snapshot"]) if "snapshot" in op else None
        return RaftFetchResponse(request, node, error, epoch, leader, batches, op["hw"], diverging, instead)

    # What the controller calls.

    def append(self, op: Fields) -> Seen:
        epoch = op.get("epoch", self.client.quorum.epoch)
        return Seen(offset=self.client.prepare_append(epoch, ("record",) * op["records"], self.now_us))

    def write(self, op: Fields) -> None:
        """Records that no one has told the member of."""
        for batch in _batches(self.log.end_offset, [(op["epoch"], op["records"])]):
            self.log.append(batch)

    def create_snapshot(self, op: Fields) -> None:
        self.log.add_snapshot(snapshot_of(*op["id"]))

    def delete_before(self, op: Fields) -> None:
        self.log.delete_before_snapshot(OffsetAndEpoch(*op["id"]))

    def resign(self, op: Fields) -> None:
        self.client.resign(op["epoch"])

    def shutdown(self, op: Fields) -> None:
        self.client.shutdown(op["ms"] * MS, self.now_us)

    def show(self, _: Fields) -> None:
        """Only look."""

    # What is seen.

    def replica(self, op: Fields) -> Seen:
        state = self.client.quorum.state
        assert isinstance(state, LeaderState)
        known = state.replica_state(op["id"])
        assert known is not None
        times = {"fetched_ms": known.last_fetch_us, "caught_up_ms": known.last_caught_up_us}
        return Seen(end=known.end_offset, **{name: at if at < 0 else at // MS for name, at in times.items()})

    def observe(self) -> Mapping[str, object]:
        quorum, log = self.client.quorum, self.log
        told = self.told[-1] if self.told else None
        seen: dict[str, object] = {
            "state": type(quorum.state).__name__.removesuffix("State"),
            "epoch": quorum.epoch,
            "leader": quorum.leader,
            "voted": quorum.state.election().voted,
            "observer": not quorum.is_voter,
            "stored": None if self.stored is None else self.stored[:3],
            "remaining_ms": self._remaining_ms(),
            "wait_ms": (self.wait_us - self.now_us) // MS,
            "hw": self.client.high_watermark,
            "end": log.end_offset,
            "last_epoch": last_epoch(log),
            "flushed": log.flushed_offset,
            "sent": sorted(f"{_words(request)} to {node}" for node, request in self.sent),
            "answers": len(self.answers),
            "running": self.running,
            "committed": self.committed,
            "loaded": self.loaded,
            "snapshots": [snapshot.id for snapshot in log.snapshots],
            "commits": [[batch.base_offset, batch.size] for batch in self.commits],
            "control": [batch.is_control for batch in log.batches],
            "told": told,
            "claimed": told.epoch if told and told.leader == LOCAL else None,
            "claimed_after": self.claimed_after,
        }
        if isinstance(quorum.state, NomineeState):
            votes = quorum.state.votes
            seen |= {"granted": votes.is_vote_granted, "rejected": votes.is_vote_rejected}
        fetches = [request.high_watermark for _, request in self.sent if isinstance(request, RaftFetchRequest)]
        if fetches and self.sends_high_watermark:
            seen["fetch_hw"] = fetches[-1]
        answers = [_answer(response) for response in self.answers]
        seen["answered_hw"] = [answer["hw"] for kind, answer in answers if kind == "fetch_answer"]
        return seen | dict(answers)

    def _remaining_ms(self) -> int | None:
        state = self.client.quorum.state
        if isinstance(state, FollowerState):
            at_us = state.fetch_timeout_at_us
        else:
            assert isinstance(state, UnattachedState | NomineeState | ResignedState | LeaderState)
            at_us = election_at_us(state)
        return None if at_us == NEVER else max(0, at_us - self.now_us) // MS


def _batches(base_offset: int, sizes: Sequence[Sequence[int]]) -> list[RaftBatch]:
    """Batches that follow each other, from their epochs and numbers of records."""
    batches = []
    for epoch, size in sizes:
        batches.append(RaftBatch(base_offset, epoch, size, ("record",) * size))
        base_offset += size
    return batches


def _words(request: RaftRequest) -> str:
    """Kind of a request and its epoch; of a vote or a fetch then what it tells of the log, or the snapshot's id."""
    if isinstance(request, VoteRequest):
        return f"{'pre-vote' * request.pre_vote or 'vote'} {request.epoch} {request.last_epoch} {request.last_offset}"
    if isinstance(request, RaftFetchRequest):
        return f"fetch {request.epoch} {request.last_fetched_epoch} {request.fetch_offset}"
    if isinstance(request, FetchSnapshotRequest):
        return f"fetch-snapshot {request.epoch} {request.snapshot_id.epoch} {request.snapshot_id.offset}"
    if isinstance(request, BeginQuorumEpochRequest):
        return f"begin {request.epoch}"
    assert isinstance(request, EndQuorumEpochRequest)
    return f"end {request.epoch} {[key.id for key in request.preferred_successors]}"


def _answer(response: RaftResponse) -> tuple[str, Seen]:
    seen = Seen(error=response.error, epoch=response.epoch, leader=response.leader)
    if isinstance(response, VoteResponse):
        seen["granted"] = response.granted
        return "vote_answer", seen
    if isinstance(response, BeginQuorumEpochResponse):
        return "begin_answer", seen
    if isinstance(response, EndQuorumEpochResponse):
        return "end_answer", seen
    if isinstance(response, FetchSnapshotResponse):
        seen["snapshot"] = response.snapshot.id if response.snapshot else None
        return "snapshot_answer", seen
    assert isinstance(response, RaftFetchResponse)
    seen["snapshot"] = response.snapshot_id
    seen["batches"] = [[batch.base_offset, batch.epoch, batch.size] for batch in response.batches]
    seen |= {"hw": response.high_watermark, "diverging": response.diverging}
    return "fetch_answer", seen


def _afresh(act: Callable[[Client, Fields], object]) -> Callable[[Client, Fields], object]:
    """An operation that shows only what it made the member send."""

    def acting(client: Client, op: Fields) -> object:
        client.sent, client.answers = [], []
        return act(client, op)

    return acting


_OPS: Final[dict[str, Any]] = {
    "sleep": Client.sleep,
    "poll": Client.poll,
    "become_candidate": Client.become_candidate,
    "become_leader": Client.become_leader,
    "vote": Client.vote,
    "begin": Client.begin,
    "end": Client.end,
    "fetch": Client.fetch,
    "respond": Client.respond,
    "append": Client.append,
    "grant": Client.grant_votes,
    "write": Client.write,
    "fetch_snapshot": Client.fetch_snapshot,
    "create_snapshot": Client.create_snapshot,
    "delete_before": Client.delete_before,
    "resign": Client.resign,
    "shutdown": Client.shutdown,
    "show": Client.show,
    "replica": Client.replica,
}
KIND: Final = Kind(
    begin=Client,
    ops={name: _afresh(act) for name, act in _OPS.items()},
    observe=Client.observe,
)
