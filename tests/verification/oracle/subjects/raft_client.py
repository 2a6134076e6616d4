"""A member of the metadata quorum: Kafka's KafkaRaftClient with its log on a disk, against that of `sim.protocol.raft`.

The voters are 0, 1 and 2, and 9 is an observer. Random numbers are 0. Operations: ``new local epoch leader voted
epochs`` (only the first one counts: the member, its quorum-state, and the epochs of the records in its log),
``advance ms``, ``append``, ``resign``, ``vote source epoch last-epoch last-offset pre-vote``, ``begin source epoch``,
``end source epoch successors``, ``fetch source epoch offset last-epoch hw max-wait-ms``, ``fetch-snapshot source epoch
offset snapshot-epoch``, ``snapshot`` (the process makes one of all that it knows to be committed), ``restart lost`` (1:
without the snapshots), and ``respond source error epoch leader content`` to the last request to a member. The content
is 1 for a vote; 1, epoch, 0, HW for a record; 2, epoch, end offset for where the logs part; 3, epoch, end offset for a
snapshot; 1 for a snapshot that is not there. A record or snapshot has at least the last epoch of the log, and at most
the member's.

With kraft.version 1, ``new`` has four more: the voters of the bootstrap snapshot (id, directory, listeners of each;
none: an observer that was formatted without), the member's directory and listeners, and whether it joins by itself.
There is no configuration of voters, the bootstrap servers are 0 to 3 (-2 to -5 as destinations), and requests name
directories: of the candidate and the voter (vote), of the voter (begin), of all successors (end), of the replica
(fetch, fetch-snapshot). Further operations are ``add-voter id directory ack-when-committed``, ``remove-voter id
directory``, and ``update-voter id epoch directory listeners max-version``. A content of 4, epoch, 0, HW and voters is a
VotersRecord, one of 5 a batch with a KRaftVersionRecord before it; a snapshot has the voters that follow its four
numbers; a response to the question for versions has the highest kraft.version, -1 for none. ``restart 1`` keeps the
bootstrap snapshot.

To be seen are state, epoch, leader, quorum-state (epoch, leader, vote), start and end of the log, its last epoch, HW,
the first and the last snapshot, requests, responses, and what the listener was told; with kraft.version 1 also the
voters, whether the member is one, the version and the directory of the vote; or that the process has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.protocol.decisions import Decisions
from sim.protocol.raft.batch_accumulator import NotLeaderError
from sim.protocol.raft.election_state import ElectionState
from sim.protocol.raft.kafka_raft_client import (
    CLEAN_INTERVAL_US,
    KafkaRaftClient,
    LeaderAndEpoch,
    QuorumConfig,
    RaftHost,
)
from sim.protocol.raft.raft_log import (
    BOOTSTRAP_SNAPSHOT_ID,
    IllegalRaftStateError,
    OffsetAndEpoch,
    RaftBatch,
    RaftLog,
    RaftSnapshot,
    VotersBatch,
    bootstrap_snapshot,
)
from sim.protocol.raft.raft_messages import (
    SNAPSHOT_NOT_FOUND,
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
from sim.protocol.raft.voter_set import ReplicaKey, VoterNode, VoterSet
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Operation, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from random import Random

    from sim.protocol.rules import Rules

IN_4_2: Final = {"observer_fetch_timeout": "leader-too", "begin_quorum_epoch": "silent-voters"}
"""What 4.2 has of 4.3: no mode has it with the rest of 4.2."""
RULES: Final = {
    release: rules.override(IN_4_2 if release.startswith("4.2") else {}) for release, rules in since("3.9.0").items()
}
MS: Final = 1_000
CONFIG: Final = QuorumConfig(10_000 * MS, 50_000 * MS, 100 * MS, 5_000 * MS, 50 * MS, 0, 0, 20_000 * MS)
VOTERS: Final = (0, 1, 2)
SERVERS: Final = (0, 1, 2, 3)
OBSERVER: Final = 9
POLLS: Final = 4
START_US: Final = 1_000_000 * MS
VOTER_ERRORS: Final = {
    "add": ["REQUEST_TIMED_OUT", "DUPLICATE_VOTER", "UNSUPPORTED_VERSION"],
    "remove": ["REQUEST_TIMED_OUT", "VOTER_NOT_FOUND", "UNSUPPORTED_VERSION"],
    "update": ["REQUEST_TIMED_OUT", "VOTER_NOT_FOUND", "UNSUPPORTED_VERSION"],
    "vote": ["INVALID_VOTER_KEY"],
    "prevote": ["INVALID_VOTER_KEY"],
    "begin": ["INVALID_VOTER_KEY"],
}
ENDS: Final = ["ends"]
ERRORS: Final = (
    "NONE",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "NOT_LEADER_OR_FOLLOWER",
    "BROKER_NOT_AVAILABLE",
    "INVALID_REQUEST",
)


class Member(RaftHost):
    """A member's disk and its process, which begins with the first operation."""

    def __init__(self, rules: Rules, release: str) -> None:
        self._acks_early = release >= "4.2"
        self._decide = Decisions(rules)
        self._now_us = START_US
        self._local = self._clean_us = 0
        self._voters: tuple[int, ...] = VOTERS
        self._directory, self._listeners = 1, 0
        self._joins = False
        self._log = RaftLog()
        self._stored: ElectionState | None = None
        self._client: KafkaRaftClient | None = None
        self._sent: list[tuple[int, RaftRequest]] = []
        self._answers: list[RaftResponse] = []
        self._last: dict[int, RaftRequest] = {}
        self._told: list[list[Any]] = []
        self._has_ended = False
        self._exists = False
        """Whether there was a process."""

    # What the client asks of its process.

    def send(self, node: int, message: RaftRequest | RaftResponse) -> None:
        if isinstance(message, RaftRequest):
            self._sent.append((node, message))
        else:
            self._answers.append(message)

    def random_below(self, bound: int) -> int:
        return 0

    def store(self, election: ElectionState) -> None:
        self._stored = election

    def flush(self) -> None:
        self._log.flush()

    def handle_commit(self, batches: Sequence[RaftBatch]) -> None:
        told, first, end = self._told, batches[0].base_offset, batches[-1].end_offset
        if told and told[-1][0] == "commit" and told[-1][2] == first:
            told[-1][2] = end
        else:
            told.append(["commit", first, end])

    def handle_load_snapshot(self, snapshot: RaftSnapshot) -> None:
        self._told.append(["snapshot", *snapshot.id])

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        self._told.append(["leader", leader.leader, leader.epoch])

    # Operations.

    @property
    def questions(self) -> dict[str, int]:
        """What it has last asked -> the member."""
        return {_asked(request, self._decide): node for node, request in self._last.items()}

    @property
    def asked(self) -> dict[int, str]:
        """The members to which it has sent a request -> the kind of the last one."""
        return {node: _asked(request, self._decide).split()[0] for node, request in self._last.items()}

    @property
    def ends(self) -> list[int]:
        """Where batches of its log begin and end."""
        return [self._log.base_offset, *[batch.end_offset for batch in self._log.batches]]

    def do(self, operation: Operation) -> Any:
        """Run one operation; the visible state after it."""
        name, *values = operation
        if self._has_ended and name != "restart":
            return ENDS
        try:
            if not self._exists and name != "new":
                self._start()
            self._act(name, values)
            self._poll()
            state = self._state()
        except (IllegalRaftStateError, NotLeaderError, ValueError, AssertionError):
            self._has_ended = True
            return ENDS
        self._has_ended = False
        return state

    def _start(self) -> None:
        self._sent, self._answers, self._told = [], [], []
        if self._log.misses_snapshot:
            raise IllegalRaftStateError("no snapshot")
        self._log.flush()
        self._log = self._log.reopened()
        self._clean_us = self._now_us + CLEAN_INTERVAL_US
        self._exists = True
        self._client = KafkaRaftClient(
            self._local,
            self._voters,
            self._log,
            self._stored,
            self._decide,
            CONFIG._replace(auto_join=self._joins),
            self,
            self._now_us,
            always_flushes=self._joins,
            directory=self._directory,
            bootstrap_servers=() if self._voters else SERVERS,
            listeners=self._listeners,
        )
        self._poll()

    def _poll(self) -> None:
        assert self._client is not None
        for _ in range(POLLS):
            self._client.poll(self._now_us)

    def _act(self, name: str, values: list[Any]) -> None:
        client = self._client
        if name == "new":
            if not self._exists:
                self._begin(*values)
            return
        if name == "restart":
            if values[0] == 1:
                kept = [snapshot for snapshot in self._log.snapshots if snapshot.id == BOOTSTRAP_SNAPSHOT_ID]
                self._log = self._log.without_snapshots()
                self._log.snapshots += kept
            self._last.clear()
            self._start()
            return
        assert client is not None
        if name == "advance":
            self._advance(values[0])
        elif name == "append":
            client.prepare_append(client.quorum.epoch, ("x",), self._now_us)
        elif name == "resign":
            client.resign(client.quorum.epoch)
        elif name == "snapshot":
            self._make_snapshot()
        elif name == "respond":
            self._respond(*values)
        else:
            if name == "fetch" and not self._voters:
                values[2] = self._begin_of_batch(values[2])
            if name == "add-voter" and not self._acks_early:
                values[2] = 1
            client.handle(_request(name, values, knows_pre_votes=self._decide.asks_for_pre_votes.answer), self._now_us)

    def _begin_of_batch(self, offset: int) -> int:
        """Where the batch begins that holds an offset; the offset, if it is none of the log's."""
        bases = [batch.base_offset for batch in self._log.batches if batch.base_offset <= offset < batch.end_offset]
        return bases[0] if bases and offset >= self._log.start_offset else offset

    def _advance(self, ms: int) -> None:
        """Let time pass, with a poll whenever old snapshots are looked for: a minute after the last time."""
        end_us = self._now_us + ms * MS
        while self._clean_us <= end_us:
            self._now_us = self._clean_us
            self._clean_us += CLEAN_INTERVAL_US
            self._poll()
        self._now_us = end_us

    def _begin(self, local: int, epoch: int, leader: int, voted: int, epochs: list[int], *dynamic: Any) -> None:
        self._local = local
        self._stored = ElectionState(epoch, leader, voted)
        self._log = RaftLog([RaftBatch(offset, number, 1, ("a",)) for offset, number in enumerate(epochs)])
        if dynamic:
            voters, self._directory, self._listeners, joins = dynamic
            self._joins = joins == 1
            self._voters = ()
            if voters:
                self._log.add_snapshot(bootstrap_snapshot(_voters(voters)))
        self._start()

    def _make_snapshot(self) -> None:
        assert self._client is not None
        log, offset = self._log, self._client.high_watermark or 0
        batches = log.read(log.start_offset, offset)
        if not batches:
            return
        partition = self._client.partition
        voters, version = partition.voter_set_at(offset - 1), partition.kraft_version_at(offset - 1)
        if (
            voters is not None and not version
        ):  # A log that has lost its bootstrap snapshot. Kafka: RecordsSnapshotWriter.
            raise IllegalRaftStateError("a snapshot of voters without a version")
        made = RaftSnapshot(batches[-1], None, self._now_us, voters, version)
        if log.snapshot(made.id) is None and log.snapshot_instead(*made.id) is None:
            log.add_snapshot(made)
            partition.truncate_old_entries(offset)

    def _respond(self, source: int, error_name: str, epoch: int, leader: int, content: list[int]) -> None:
        request = self._last.get(source)
        if request is None:
            return
        assert self._client is not None
        error = error_name.lower().replace("_", " ")
        kind, number, offset, hw = [*content, 0, 0, 0, 0][:4]
        source = self._client.member_of(source)
        response: RaftResponse
        if isinstance(request, VoteRequest):
            response = VoteResponse(request, source, error, epoch, leader, granted=kind % 2 == 1)
        elif isinstance(request, BeginQuorumEpochRequest):
            response = BeginQuorumEpochResponse(request, source, error, epoch, leader)
        elif isinstance(request, EndQuorumEpochRequest):
            response = EndQuorumEpochResponse(request, source, error, epoch, leader)
        elif isinstance(request, FetchSnapshotRequest):
            snapshot = None
            if error == "none" and kind == 1:
                error = SNAPSHOT_NOT_FOUND
            elif error == "none":
                end, last_epoch = request.snapshot_id
                last, voters = RaftBatch(end - 1, last_epoch, 1, ("z",)), _voters(content[4:])
                snapshot = RaftSnapshot(last, None, self._now_us, *((voters, 1) if voters.ids else ()))
            response = FetchSnapshotResponse(request, source, error, epoch, leader, snapshot)
        elif not isinstance(request, RaftFetchRequest):
            response = _answered(request, source, error, epoch, leader, kind)
        else:
            of_leader = max(self._log.last_fetched_epoch, min(number, self._client.quorum.epoch))
            batches = [RaftBatch(self._log.end_offset, of_leader, 1, ("y",))] if kind == 1 else []
            if kind in (4, 5):
                batches = [VotersBatch(self._log.end_offset, of_leader, kind - 3, _voters(content[4:]), kind - 4)]
            if not self._voters:
                hw = self._log.end_offset if kind == 5 and hw == self._log.end_offset + 1 else self._begin_of_batch(hw)
                offset = self._begin_of_batch(offset) if kind == 2 else offset
            diverging = OffsetAndEpoch(offset, number) if kind == 2 else None
            snapshot_id = OffsetAndEpoch(offset, of_leader) if kind == 3 else None
            response = RaftFetchResponse(request, source, error, epoch, leader, batches, hw, diverging, snapshot_id)
        self._client.handle(response, self._now_us)

    # What is to be seen.

    def _state(self) -> list[Any]:
        client, log, stored = self._client, self._log, self._stored
        assert client is not None
        assert stored is not None
        quorum, known = client.quorum, client.high_watermark
        ends = [list(log.snapshots[place].id) if log.snapshots else None for place in (0, -1)]
        self._last.update(self._sent)
        requests = sorted([f"{node}:{_asked(request, self._decide)}" for node, request in self._sent])
        answers = sorted([_said(response) for response in self._answers])
        told, self._sent, self._answers, self._told = self._told, [], [], []
        seen = [
            type(quorum.state).__name__.removesuffix("State"),
            quorum.epoch,
            quorum.leader,
            [stored.epoch, stored.leader, stored.voted],
            log.start_offset,
            log.end_offset,
            log.last_fetched_epoch,
            -1 if known is None else known,
            ends,
            requests,
            answers,
            told,
        ]
        if not self._voters:
            partition = client.partition
            voters = sorted([":".join(map(str, (*node.key, node.listeners))) for node in partition.voters.nodes])
            seen.append([voters, quorum.is_voter, partition.kraft_version, stored.voted_directory])
        return seen


def _answered(request: RaftRequest, source: int, error: str, epoch: int, leader: int, version: int) -> RaftResponse:
    """A response to a change of the voters, or to a question for versions."""
    if isinstance(request, ApiVersionsRequest):
        return ApiVersionsResponse(request, source, error, epoch, leader, version)
    if isinstance(request, AddVoterRequest):
        return AddVoterResponse(request, source, error, epoch, leader)
    if isinstance(request, RemoveVoterRequest):
        return RemoveVoterResponse(request, source, error, epoch, leader)
    return UpdateVoterResponse(request, source, error, epoch, leader)


def _voters(numbers: Sequence[int]) -> VoterSet:
    """Voters of triples: id, directory, listeners."""
    found: dict[int, VoterNode] = {}
    for place in range(0, len(numbers) - 2, 3):
        voter, directory, listeners = numbers[place : place + 3]
        found.setdefault(voter, VoterNode(ReplicaKey(voter, directory), listeners))
    return VoterSet(list(found.values()))


def _request(name: str, values: list[Any], *, knows_pre_votes: bool) -> RaftRequest:
    source, epoch, *others = values
    if name == "vote":
        candidate, voter = others[3:] or (0, 0)
        pre_vote = knows_pre_votes and others[2] == 1
        return VoteRequest(
            source, epoch, others[0], others[1], pre_vote=pre_vote, directory=candidate, voter_directory=voter
        )
    if name == "begin":
        return BeginQuorumEpochRequest(source, epoch, *others)
    if name == "end":
        return EndQuorumEpochRequest(source, epoch, tuple([ReplicaKey(voter, *others[1:]) for voter in others[0]]))
    if name == "fetch-snapshot":
        return FetchSnapshotRequest(source, epoch, OffsetAndEpoch(others[0], others[1]), *others[2:])
    if name == "add-voter":
        return AddVoterRequest(9, 0, VoterNode(ReplicaKey(source, epoch)), ack_when_committed=others[0] == 1)
    if name == "remove-voter":
        return RemoveVoterRequest(9, 0, ReplicaKey(source, epoch))
    if name == "update-voter":
        return UpdateVoterRequest(source, epoch, VoterNode(ReplicaKey(source, others[0]), others[1], others[2]))
    assert name == "fetch"
    return RaftFetchRequest(source, epoch, others[0], others[1], others[2], others[3] * MS, *others[4:])


def _asked(request: RaftRequest, decide: Decisions) -> str:
    if isinstance(request, VoteRequest):
        kind = "prevote" if request.pre_vote else "vote"
        return f"{kind} {request.epoch} {request.last_epoch} {request.last_offset}"
    if isinstance(request, BeginQuorumEpochRequest):
        return f"begin {request.epoch}"
    if isinstance(request, EndQuorumEpochRequest):
        return f"end {request.epoch} {[key.id for key in request.preferred_successors]}"
    if isinstance(request, FetchSnapshotRequest):
        return f"fetch-snapshot {request.epoch} {request.snapshot_id.offset} {request.snapshot_id.epoch}"
    if isinstance(request, ApiVersionsRequest):
        return "versions"
    if isinstance(request, AddVoterRequest):
        return f"add {request.voter.key.id} {request.voter.key.directory}"
    if isinstance(request, RemoveVoterRequest):
        return f"remove {request.voter.id} {request.voter.directory}"
    if isinstance(request, UpdateVoterRequest):
        return f"update {request.epoch}"
    assert isinstance(request, RaftFetchRequest)
    words = f"fetch {request.epoch} {request.fetch_offset} {request.last_fetched_epoch}"
    return f"{words} {request.high_watermark}" if decide.hw_answers_fetches.answer else words


def _said(response: RaftResponse) -> str:
    words = f"{response.error.upper().replace(' ', '_')} {response.epoch} {response.leader}"
    if isinstance(response, AddVoterResponse | RemoveVoterResponse):
        return f"{'add' if isinstance(response, AddVoterResponse) else 'remove'} {words.split()[0]}"
    if isinstance(response, UpdateVoterResponse):
        return f"update {words}"
    if isinstance(response, VoteResponse):
        return f"vote {words} {str(response.granted).lower()}"
    if isinstance(response, BeginQuorumEpochResponse):
        return f"begin {words}"
    if isinstance(response, EndQuorumEpochResponse):
        return f"end {words}"
    if isinstance(response, FetchSnapshotResponse):
        found = OffsetAndEpoch(0, 0) if response.snapshot is None else response.snapshot.id
        return f"fetch-snapshot {words} {found.offset} {found.epoch}"
    assert isinstance(response, RaftFetchResponse)
    none = OffsetAndEpoch(-1, -1)
    diverging, snapshot = response.diverging or none, response.snapshot_id or none
    records = sum([batch.size for batch in response.batches])
    ends = f"diverging {diverging.epoch} {diverging.offset} snapshot {snapshot.offset} {snapshot.epoch}"
    return f"fetch {words} records {records} hw {response.high_watermark} {ends}"


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    member = Member(rules, release)
    return [member.do(operation) for operation in case]


# Cases. A case follows what the core does, so that most messages fit the state of the member.


def draw(rng: Random, release: str) -> Case:
    """A member that leads, follows or stands for election, with messages of which most fit its state."""
    member = Member(RULES[release], release)
    local = rng.choice((0, 0, 0, 1, OBSERVER))
    epochs: list[int] = []
    for _ in range(rng.choice((0, 0, 2, 5))):
        epochs.append(max([1, *epochs]) + rng.choice((0, 0, 0, 1)))
    epoch = max([0, *epochs]) + rng.choice((0, 0, 1))
    leader = rng.choice((-1, 1, 2)) if epoch else -1
    voted = rng.choice((-1, -1, 0, 1, 2)) if leader < 0 and epoch and local != OBSERVER else -1
    if leader == local:
        leader = -1
    case: Case = []

    def add(*operation: Any) -> Any:
        case.append(list(operation))
        return member.do(case[-1])

    if rng.random() < 0.5:
        _draw_dynamic(rng, release, add, member, (local, epoch, leader, voted, epochs))
        return case
    state = add("new", local, epoch, leader, voted, epochs)
    wins = rng.random() < 0.7
    for _ in range(rng.randint(3, 25)):
        if state == ENDS:
            state = add("restart", int(rng.random() < 0.2))
            continue
        state = add(*_drawn(rng, state, local, member, wins=wins))
    return case


# Cases with kraft.version 1.


def _draw_dynamic(
    rng: Random, release: str, add: Callable[..., Any], member: Member, new: tuple[int, int, int, int, list[int]]
) -> None:
    """Voters may change; the member may be none, as it has another directory or was formatted without voters."""
    local, epoch, leader, voted, epochs = new
    local = 3 if local == OBSERVER else local
    count = rng.choice((1, 2, 3, 3))
    others = rng.sample([voter for voter in VOTERS if voter != local], min(count, 2))
    chosen = sorted([local, *others][:count] if rng.random() < 0.8 else others)
    voters = [number for voter in chosen for number in (voter, 1, int(rng.random() < 0.05))]
    if rng.random() < 0.1:
        voters = []
    directory, listeners = rng.choice((1, 1, 1, 1, 2)), rng.choice((0, 0, 0, 0, 1))
    joins = int(release >= "4.2" and rng.random() < 0.3)
    state = add("new", local, epoch, leader, voted, epochs, voters, directory, listeners, joins)
    wins = rng.random() < 0.8
    for _ in range(rng.randint(3, 30)):
        if state == ENDS:
            state = add("restart", int(rng.random() < 0.2))
        else:
            state = add(*_drawn_dynamic(rng, state, local, member, wins=wins))


def _drawn_dynamic(rng: Random, state: list[Any], local: int, member: Member, *, wins: bool) -> Operation:
    name, epoch, leader = state[0], state[1], state[2]
    known = {int(entry.split(":")[0]): int(entry.split(":")[1]) for entry in state[12][0]}
    others = [node for node in SERVERS if node != local]
    chance = rng.random()
    if chance < 0.05:
        return ["restart", int(rng.random() < 0.3)]
    if chance < 0.1:
        return ["snapshot"]
    if chance < 0.2:
        return ["advance", rng.choice((1, 50, 100, 5_000, 10_000, 20_000, 25_000, 50_000, 75_000))]
    if chance < 0.26:
        return _with_directories(rng, _stranger(rng, state, others), known, member.ends)
    if name == "Leader":
        return _to_dynamic_leader(rng, state, others, known, member)
    waiting = [node for node in (*others, *range(-1 - len(SERVERS), -1)) if node in member.asked]
    if not waiting or (wins and name == "Unattached" and state[12][1]):
        return ["advance", rng.choice((5_000, 10_000, 15_000, 15_000))]
    source = leader if leader in waiting and rng.random() < 0.9 else rng.choice(waiting)
    error = "NONE"
    if rng.random() < 0.1:
        error = rng.choice(ERRORS)
    elif rng.random() < 0.3:
        error = rng.choice(VOTER_ERRORS.get(member.asked[source], ["NONE"]))
    names = leader if rng.random() < 0.9 else rng.choice((-1, 1, 2, 3))
    names = -1 if names == local else names
    if name in ("Candidate", "Prospective"):
        return ["respond", source, error, epoch, names, [int(wins)]]
    if name != "Follower":
        node = source if source >= 0 else -2 - source
        return ["respond", source, error, epoch + rng.choice((0, 0, 1)), rng.choice((-1, *others, node)), [0, 0, 0, -1]]
    return ["respond", source, error, epoch, names, _fetched_voters(rng, state, known)]


def _fetched_voters(rng: Random, state: list[Any], known: dict[int, int]) -> list[int]:
    """What a follower gets: often new voters, one more, one less, or one with another directory or other listeners."""
    content = _fetched(rng, state)
    if content[0] == 2 and state[12][2]:  # Batches are indivisible, and only the last one is small.
        content[2] = rng.choice((max(0, state[7]), state[5]))
    if content[0] not in (1, 3) or rng.random() < 0.4:
        return content
    voters = dict(known) or {1: 1, 2: 1}
    changed = rng.choice(SERVERS)
    if changed in voters and len(voters) > 1 and rng.random() < 0.6:
        del voters[changed]
    elif changed not in voters:
        voters[changed] = rng.choice((1, 1, 2))
    numbers = [number for voter in sorted(voters) for number in (voter, voters[voter], int(rng.random() < 0.05))]
    hw, end, version = state[7], state[5], state[12][2]
    if content[0] == 3:
        content[2] = content[2] if version else end + 2
        return [*content, *numbers]
    snapshot = state[8][1]
    kind = 4 if version or (snapshot is not None and snapshot[0] > end) else 5  # None ends in the middle of a batch.
    return [kind, content[1], 0, rng.choice((hw, end, end + kind - 3)), *numbers]


def _with_directories(rng: Random, operation: Operation, known: dict[int, int], ends: list[int]) -> Operation:
    """A request that names directories: mostly those of the voters."""
    name, source = operation[0], operation[1]

    def directory(node: int) -> int:
        return known.get(node, 1) if rng.random() < 0.85 else rng.choice((0, 1, 2))

    if name == "vote":
        return [*operation, directory(source), rng.choice((0, 1, 1, 2))]
    if name == "begin":
        return [*operation, rng.choice((0, 1, 1, 1, 2))]
    if name == "fetch":
        operation[3] = rng.choice((*ends, ends[-1] + 1))
    return [*operation, directory(source)]


def _to_dynamic_leader(
    rng: Random, state: list[Any], others: list[int], known: dict[int, int], member: Member
) -> Operation:
    chance, end = rng.random(), state[5]
    if "versions" in member.questions and chance < 0.5:
        source = member.questions["versions"]
        error = "NONE" if rng.random() < 0.9 else rng.choice(ERRORS)
        return ["respond", source, error, 0, -1, [rng.choice((1, 1, 1, 1, 0, -1))]]
    if chance < 0.12:
        return ["add-voter", rng.choice(SERVERS), rng.choice((1, 1, 2, 0)), rng.randint(0, 1)]
    if chance < 0.22:
        voter = rng.choice((*known, *SERVERS)) if known else 1
        return ["remove-voter", voter, known.get(voter, 1) if rng.random() < 0.9 else rng.randint(0, 2)]
    if chance < 0.27:
        voter = rng.choice(others)
        epoch = state[1] + rng.choice((0, 0, 0, 0, -1, 1))
        return ["update-voter", voter, epoch, known.get(voter, 1), rng.randint(0, 1), rng.choice((1, 1, 1, 0))]
    operation = _to_leader(rng, state, others)
    if operation[0] == "fetch":
        operation[3] = end if rng.random() < 0.6 else rng.choice((*member.ends, end + 1))
        operation[4] = state[6] if rng.random() < 0.8 else operation[4]
    if not operation[0].startswith("fetch"):
        return operation
    operation[2] = max(0, operation[2] + rng.choice((*[0] * 12, 1, 1, -1)))
    return _with_directories(rng, operation, known, [operation[3]] if rng.random() < 0.95 else member.ends)


def _drawn(rng: Random, state: list[Any], local: int, member: Member, *, wins: bool) -> Operation:
    """An operation that fits a state, or one that does not."""
    name, epoch, leader = state[0], state[1], state[2]
    chance = rng.random()
    if chance < 0.05:
        return ["restart", int(rng.random() < 0.3)]
    if chance < 0.13:
        return ["snapshot"]
    if chance < 0.25:
        return ["advance", rng.choice((1, 50, 100, 500, 5_000, 10_000, 20_000, 25_000, 50_000, 75_000))]
    if chance < 0.31:
        return _stranger(rng, state, [node for node in (*VOTERS, OBSERVER) if node != local])
    others = [voter for voter in VOTERS if voter != local]
    if name == "Leader":
        return _to_leader(rng, state, others)
    waiting = [node for node in others if node in member.asked]
    if not waiting:
        return ["advance", rng.choice((5_000, 10_000, 15_000))]
    if wins and name == "Unattached":
        return ["advance", 15_000]
    source = leader if leader in waiting else rng.choice(waiting)
    error = rng.choice(ERRORS) if rng.random() < 0.08 else "NONE"
    known = leader if rng.random() < 0.9 else rng.choice((-1, 1, 2))
    if name in ("Candidate", "Prospective"):
        return ["respond", source, error, epoch, -1 if known == local else known, [int(wins)]]
    if name != "Follower":  # It searches a leader.
        return ["respond", source, error, epoch, rng.choice((-1, source)), [0, 0, 0, -1]]
    return ["respond", source, error, epoch, known, _fetched(rng, state)]


def _fetched(rng: Random, state: list[Any]) -> list[int]:
    """What a follower gets: mostly a record."""
    epoch, end, last_epoch, hw = state[1], state[5], state[6], state[7]
    chance = rng.random()
    if chance < 0.6:
        number = rng.choice((last_epoch, epoch)) if last_epoch else epoch
        return [1, max(number, last_epoch), 0, rng.choice((hw, end, end + 1))]
    if chance < 0.75:
        return [0, 0, 0, rng.choice((hw, end, end))]
    if chance < 0.85:
        least = max(hw, 0) if rng.random() < 0.8 else 0
        return [2, rng.randint(0, max(last_epoch, 1)), rng.randint(least, end + 1), hw]
    later = rng.randint(1, 4) if rng.random() < 0.9 else 0
    return [3, rng.choice((max(last_epoch, 1), epoch)), max(1, end + later), hw]


def _to_leader(rng: Random, state: list[Any], others: list[int]) -> Operation:
    epoch, start, end, last_epoch, hw = state[1], state[4], state[5], state[6], state[7]
    chance = rng.random()
    source = rng.choice([*others, *others, OBSERVER])
    if chance < 0.25:
        return ["append"]
    if chance < 0.27:
        return ["resign"]
    if chance < 0.4 and state[8][0] is None and hw > 0:
        return ["snapshot"]
    if chance < 0.4:
        place = state[8][rng.choice((0, 1))] or [end, epoch]
        return ["fetch-snapshot", source, epoch, place[0], max(0, place[1] - int(rng.random() < 0.1))]
    offset = rng.choice((end, end, end, end, end - 1, start, start - 1, 0, rng.randint(0, end + 1)))
    number = rng.choice((last_epoch, last_epoch, rng.randint(0, epoch)))
    return ["fetch", source, epoch, max(0, offset), number, rng.choice((hw, hw - 1, -1)), rng.choice((0, 500))]


def _stranger(rng: Random, state: list[Any], others: list[int]) -> Operation:
    """A request that may come at any time."""
    epoch, leader, end = state[1], state[2], state[5]
    source, voter = rng.choice(others), rng.choice([node for node in others if node in VOTERS])
    number = max(0, epoch + rng.choice((-1, 0, 0, 0, 1)))
    if number == epoch and leader in others and rng.random() < 0.9:
        voter = leader
    chance = rng.random()
    if chance < 0.5:
        last = max(0, number - rng.choice((0, 1, 1, 1)))
        return ["vote", source, number, last, rng.choice((end, end, end + 1, max(0, end - 1))), rng.randint(0, 1)]
    if chance < 0.65:
        return ["begin", voter, number]
    if chance < 0.8:
        return ["end", voter, number, rng.sample(VOTERS, rng.randint(0, 3))]
    if chance < 0.9:
        return ["fetch-snapshot", source, number, end, epoch]
    return ["fetch", source, number, end, max(0, number - 1), -1, rng.choice((0, 500))]


SUBJECT: Final = Subject(
    "raft-client",
    "org.apache.kafka.raft.RaftClientMember",
    RULES,
    draw,
    run,
    quick=500,
    usual=5_000,
    deep=20_000,
    names_brokers=True,
    recorded=130_000,
)
