"""A member of the metadata quorum under lines of text, and what it shows after each, also as a line.

The files of `raft_client/` have such lines with what Kafka's KafkaRaftClient showed: random cases, each step of which
was carried out by the class of that release in RaftClientTestContext (`tests/verification/oracle/RaftClient.java`). The
voters are 0, 1 and 2; 9 is an observer. Random numbers are 0. Times are milliseconds.

    new LOCAL EPOCH LEADER VOTED EPOCHS   quorum-state, and the epochs of the records in the log
    advance MS | append | resign
    vote SOURCE EPOCH LAST_EPOCH LAST_OFFSET x pre|std
    begin SOURCE EPOCH | end SOURCE EPOCH SUCCESSORS
    fetch SOURCE EPOCH OFFSET LAST_EPOCH HW MAX_WAIT
    respond SOURCE ERROR EPOCH LEADER ...   to the last request that was sent to this member: true|false for a vote;
                                            the epoch of a record or -, and HW; diverging, epoch, end offset and HW

A member shows state, epoch, leader, quorum-state (epoch/leader/voted), end offset and last epoch of its log, and high
watermark; then requests, then responses; or that its process ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from sim.protocol.decisions import Decisions
from sim.protocol.modes import MODES
from sim.protocol.raft.batch_accumulator import NotLeaderError
from sim.protocol.raft.election_state import ElectionState
from sim.protocol.raft.kafka_raft_client import KafkaRaftClient, LeaderAndEpoch, QuorumConfig, RaftHost
from sim.protocol.raft.raft_log import IllegalRaftStateError, OffsetAndEpoch, RaftBatch, RaftLog
from sim.protocol.raft.raft_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    RaftFetchRequest,
    RaftFetchResponse,
    RaftRequest,
    RaftResponse,
    VoteRequest,
    VoteResponse,
)

RECORDED: Final = Path(__file__).parent / "raft_client"
MODE_OF: Final = {"3.9.0": "kraft", "4.1.2": "elr", "4.3.1": "elr-4.3"}
MS: Final = 1000
CONFIG: Final = QuorumConfig(10_000 * MS, 50_000 * MS, 100 * MS, 5_000 * MS, 50 * MS, 0, 0)
"""That of RaftClientTestContext: its fetches do not wait."""
POLLS: Final = 4
ENDS: Final = "throws"

Case = list[tuple[str, str]]
"""Lines, each with what Kafka showed."""


def recorded(release: str) -> Iterator[Case]:
    """The cases of a release."""
    case: Case = []
    for line in (RECORDED / f"{release}.txt").read_text(encoding="utf-8").splitlines():
        step, _, shown = line.partition("\t")
        if step.startswith("new ") and case:
            yield case
            case = []
        case.append((step, shown))
    yield case


class Member(RaftHost):
    """A member of the quorum: its process, and the requests and responses that it has sent since the last line."""

    def __init__(self, mode: str, line: str) -> None:
        _, local, epoch, leader, voted, epochs = line.split()
        self.now_us = 0
        self.sent: list[tuple[int, RaftRequest]] = []
        self.answers: list[RaftResponse] = []
        self.last: dict[int, RaftRequest] = {}
        self.stored = ElectionState(int(epoch), int(leader), int(voted))
        numbers = [] if epochs == "-" else epochs.split(",")
        self.log = RaftLog([RaftBatch(offset, int(number), 1, ("a",)) for offset, number in enumerate(numbers)])
        decide = Decisions(MODES[mode].rules)
        self.client = KafkaRaftClient(int(local), (0, 1, 2), self.log, self.stored, decide, CONFIG, self, 0)
        self._poll()

    # Callbacks.

    def send(self, node: int, message: RaftRequest | RaftResponse) -> None:
        if isinstance(message, RaftRequest):
            self.sent.append((node, message))
            self.last[node] = message
        else:
            self.answers.append(message)

    def random_below(self, bound: int) -> int:
        return 0

    def store(self, election: ElectionState) -> None:
        self.stored = election

    def flush(self) -> None:
        self.log.flush()

    def handle_commit(self, batches: Sequence[RaftBatch]) -> None:
        """Not compared."""

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        """Not compared."""

    # Lines.

    def act(self, line: str) -> str:
        """Carry out a line; returns what the member shows."""
        try:
            self._do(line.split())
            self._poll()
        except (IllegalRaftStateError, NotLeaderError, ValueError, AssertionError):
            return ENDS
        return self.show()

    def _poll(self) -> None:
        for _ in range(POLLS):
            self.client.poll(self.now_us)

    def _do(self, words: list[str]) -> None:
        client = self.client
        if words[0] == "advance":
            self.now_us += int(words[1]) * MS
        elif words[0] == "append":
            client.prepare_append(client.quorum.epoch, ("x",), self.now_us)
        elif words[0] == "resign":
            client.resign(client.quorum.epoch)
        elif words[0] == "respond":
            client.handle(self._response(words), self.now_us)
        else:
            client.handle(_request(words), self.now_us)

    def _response(self, words: list[str]) -> RaftResponse:
        source, error = int(words[1]), words[2].lower().replace("_", " ")
        epoch, leader = int(words[3]), int(words[4])
        request = self.last[source]
        if isinstance(request, VoteRequest):
            return VoteResponse(request, source, error, epoch, leader, granted=words[5] == "true")
        if isinstance(request, BeginQuorumEpochRequest):
            return BeginQuorumEpochResponse(request, source, error, epoch, leader)
        if isinstance(request, EndQuorumEpochRequest):
            return EndQuorumEpochResponse(request, source, error, epoch, leader)
        if words[5] == "diverging":
            diverging = OffsetAndEpoch(int(words[7]), int(words[6]))
            return RaftFetchResponse(request, source, error, epoch, leader, (), int(words[8]), diverging)
        batches = [] if words[5] == "-" else [RaftBatch(self.log.end_offset, int(words[5]), 1, ("y",))]
        return RaftFetchResponse(request, source, error, epoch, leader, batches, int(words[6]), None)

    def show(self) -> str:
        """What the member shows, with what it has sent since the last call."""
        quorum, stored = self.client.quorum, self.stored
        known = self.client.high_watermark
        shown = (
            f"{type(quorum.state).__name__.removesuffix('State')} {quorum.epoch} {quorum.leader} "
            f"{stored.epoch}/{stored.leader}/{stored.voted} {self.log.end_offset}/{self.log.last_fetched_epoch} "
            f"hw {-1 if known is None else known}"
        )
        sent = ", ".join(sorted(f"{node}:{_request_words(request)}" for node, request in self.sent))
        answers = ", ".join(sorted(_response_words(response) for response in self.answers))
        self.sent, self.answers = [], []
        return f"{shown} | {sent} | {answers}"


def _request(words: list[str]) -> RaftRequest:
    kind, source, epoch = words[0], int(words[1]), int(words[2])
    if kind == "vote":
        return VoteRequest(source, epoch, int(words[3]), int(words[4]), pre_vote=words[6] == "pre")
    if kind == "begin":
        return BeginQuorumEpochRequest(source, epoch)
    if kind == "end":
        successors = () if words[3] == "-" else tuple(int(word) for word in words[3].split(","))
        return EndQuorumEpochRequest(source, epoch, successors)
    assert kind == "fetch"
    return RaftFetchRequest(source, epoch, int(words[3]), int(words[4]), int(words[5]), int(words[6]) * MS)


def _request_words(request: RaftRequest) -> str:
    if isinstance(request, VoteRequest):
        kind = "prevote" if request.pre_vote else "vote"
        return f"{kind} {request.epoch} {request.last_epoch} {request.last_offset}"
    if isinstance(request, BeginQuorumEpochRequest):
        return f"begin {request.epoch}"
    if isinstance(request, EndQuorumEpochRequest):
        return f"end {request.epoch} {list(request.preferred_successors)}"
    assert isinstance(request, RaftFetchRequest)
    return f"fetch {request.epoch} {request.fetch_offset} {request.last_fetched_epoch} {request.high_watermark}"


def _response_words(response: RaftResponse) -> str:
    words = f"{response.error.upper().replace(' ', '_')} {response.epoch} {response.leader}"
    if isinstance(response, VoteResponse):
        return f"vote {words} {str(response.granted).lower()}"
    if isinstance(response, BeginQuorumEpochResponse):
        return f"begin {words}"
    if isinstance(response, EndQuorumEpochResponse):
        return f"end {words}"
    assert isinstance(response, RaftFetchResponse)
    diverging = response.diverging or OffsetAndEpoch(-1, -1)
    records = sum(batch.size for batch in response.batches)
    end = f"diverging {diverging.epoch} {diverging.offset}"
    return f"fetch {words} records {records} hw {response.high_watermark} {end}"
