"""A member of the quorum as a function from (snapshot, event) to the next snapshot and the messages that it sends.

The code is that of the simulation (`sim.protocol.raft`). Time stands still: a timer expires as an event, by setting its
deadline to now. Linger and retry back-off are 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from highwater.lab.explore.freezing import slots_of
from sim.protocol.decisions import Decisions
from sim.protocol.raft.batch_accumulator import BatchAccumulator
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
from sim.protocol.raft.fetch_purgatory import FetchPurgatory
from sim.protocol.raft.kafka_raft_client import (
    FIRST_BOOTSTRAP_SERVER,
    KafkaRaftClient,
    LeaderAndEpoch,
    QuorumConfig,
    RaftHost,
)
from sim.protocol.raft.leader_state import LeaderState, ReplicaState, VoterChange, observer_key
from sim.protocol.raft.raft_log import (
    IllegalRaftStateError,
    RaftBatch,
    RaftLog,
    RaftSnapshot,
    VotersBatch,
    bootstrap_snapshot,
)
from sim.protocol.raft.raft_messages import RaftFetchRequest, RaftFetchResponse, RaftRequest, RaftResponse
from sim.protocol.raft.voter_set import ReplicaKey, VoterNode, VoterSet, static_voters

LATER_US: Final = 1 << 40
CONFIG: Final = QuorumConfig(LATER_US, LATER_US, LATER_US, LATER_US, 0, 0, LATER_US)
VOTERS: Final = (1, 2, 3)
VOTER_SET: Final = static_voters(VOTERS)
DIRECTORY: Final = 1
"""The directory id of the first disk of a member, in a quorum whose voters can change."""
FIRST_VOTERS: Final = VoterSet([VoterNode(ReplicaKey(voter, DIRECTORY)) for voter in VOTERS])

Encoded = tuple[Any, ...]
"""A message: its class and the values of its slots; a response has the encoded request."""


class FrozenLog(NamedTuple):
    """A log, all of it on disk.

    Attributes:
        batches: those of its segment.
        snapshots: of each snapshot, the batches that it stands for.
        base_offset: where the segment begins; so for the others of `RaftLog`.
    """

    batches: tuple[RaftBatch, ...] = ()
    snapshots: tuple[tuple[RaftBatch, ...], ...] = ()
    base_offset: int = 0
    start_offset: int = 0
    epochs_offset: int = 0
    has_epochs: bool = True
    high_watermark: int = 0

    @property
    def stands_for(self) -> tuple[RaftBatch, ...]:
        """All batches that it stands for: those of the snapshot that the segment begins with, and the segment's."""
        before: tuple[RaftBatch, ...] = ()
        if self.base_offset:
            before = tuple(batch for batch in self.snapshots[-1] if batch.end_offset <= self.base_offset)
        return before + self.batches

    def thawed(self) -> RaftLog:
        """The log of a process."""
        log = RaftLog(self.batches, [_snapshot(content) for content in self.snapshots], self.base_offset)
        log.start_offset, log.high_watermark = self.start_offset, self.high_watermark
        log.epochs_offset, log.has_epochs = self.epochs_offset, self.has_epochs
        return log


def _snapshot(content: tuple[RaftBatch, ...]) -> RaftSnapshot:
    """A snapshot; one of nothing is that of formatting."""
    return RaftSnapshot(content[-1], content, 0) if content else bootstrap_snapshot(FIRST_VOTERS, ())


def formatted_log() -> RaftLog:
    """The log of a member of a quorum whose voters can change."""
    log = RaftLog()
    log.add_snapshot(_snapshot(()))
    return log


def member_of(connection: int) -> int:
    """The member that a connection leads to: a negative one is to a bootstrap server."""
    return connection if connection > 0 else VOTERS[FIRST_BOOTSTRAP_SERVER - connection]


class Snapshot(NamedTuple):
    """A member whose process runs.

    Attributes:
        state: class of its state, and what the state has.
        log: its log.
        next_offset: of its listener; -1 for a listener that is to begin with a snapshot.
        waits: (member, request in flight) pairs.
        parked: fetches that wait at it, with the answers computed on arrival.
        control: what it has read of VotersRecords: (offset, voters) pairs, (offset, kraft.version) pairs, and how far.
        directory: the directory id of its disk; 0 if voters are known by their ids.
    """

    state: tuple[Any, ...]
    log: FrozenLog
    next_offset: int
    waits: tuple[tuple[int, Encoded], ...]
    parked: tuple[tuple[Encoded, Encoded], ...]
    control: tuple[Any, ...] = ()
    directory: int = 0

    @property
    def requests(self) -> list[tuple[int, Encoded]]:
        """(member, request in flight) pairs, those to bootstrap servers as well."""
        return [(member_of(node), request) for node, request in self.waits]


class VoterOutcome(NamedTuple):
    """What an event leads to.

    Attributes:
        after: the member.
        sent: (destination, message) pairs.
        told: (offset, batch) pairs that were reported as committed.
        ended: what the process ended with, "" if it goes on.
        restarted: whether the process is another one.
    """

    after: Snapshot
    sent: tuple[tuple[int, Encoded], ...]
    told: tuple[tuple[int, RaftBatch], ...]
    ended: str = ""
    restarted: bool = False


class _PowerLossError(Exception):
    """The member loses power in the middle of an event."""


class _Host(RaftHost):
    """A member's machine during one event."""

    def __init__(self, stored: ElectionState, writes: int) -> None:
        self.sent: list[tuple[int, RaftRequest | RaftResponse]] = []
        self.told: list[RaftBatch] = []
        self.stored = stored
        self.writes = writes
        self.log: RaftLog | None = None

    def send(self, node: int, message: RaftRequest | RaftResponse) -> None:
        self.sent.append((node, message))

    def random_below(self, bound: int) -> int:
        return min(1, bound - 1)  # A back-off of 3.9 is not over at once.

    def store(self, election: ElectionState) -> None:
        self._write()
        self.stored = election

    def flush(self) -> None:
        self._write()
        if self.log is not None:
            self.log.flush()

    def handle_commit(self, batches: Sequence[RaftBatch]) -> None:
        self.told += batches

    def handle_load_snapshot(self, snapshot: RaftSnapshot) -> None:
        assert isinstance(snapshot.content, tuple)
        self.told += snapshot.content

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        """Which controller is active follows from the state."""

    def _write(self) -> None:
        if self.writes == 0:
            raise _PowerLossError
        self.writes -= 1


class VoterMachine:
    """The members, by their rules."""

    def __init__(self, decide: Decisions) -> None:
        self._decide = decide
        self._outcomes: dict[Any, VoterOutcome] = {}
        self._batches: dict[Any, RaftBatch] = {}

    def start(self, member: int, log: RaftLog, stored: ElectionState | None, directory: int = 0) -> VoterOutcome:
        """Start a process on a disk."""
        host = _Host(stored or ElectionState(0), -1)
        own = log.reopened()
        client = self._client(member, own, stored, host, directory)
        client.poll(0)
        return self._outcome(client, host)

    def _client(
        self, member: int, log: RaftLog, stored: ElectionState | None, host: _Host, directory: int
    ) -> KafkaRaftClient:
        return KafkaRaftClient(
            member,
            () if directory else VOTERS,
            log,
            stored,
            self._decide,
            CONFIG,
            host,
            0,
            always_flushes=directory > 0,
            directory=directory,
            bootstrap_servers=VOTERS if directory else (),
        )

    def act(self, member: int, before: Snapshot, event: tuple[Any, ...], writes: int = -1) -> VoterOutcome:
        """Let an event happen at a member; it loses power in the write after so many, and starts again.

        Args:
            member: its id.
            before: the member.
            event: ``receive`` with a message, ``timeout``, ``announce``, ``check-quorum``, ``expire`` (fetches that
                wait), ``append`` with a record, ``snapshot`` (of what the listener was told, and the log begins with
                it), or ``fail`` with members whose processes ended.
            writes: number of writes that reach the disk, -1 for all.
        """
        key = member, before, event, writes
        known = self._outcomes.get(key)
        if known is None:
            known = self._outcomes[key] = self._act(member, before, event, writes)
        return known

    def _act(self, member: int, before: Snapshot, event: tuple[Any, ...], writes: int) -> VoterOutcome:
        stored = election_of(before)
        host = _Host(stored, writes)
        client = self._thaw(member, before, host)
        host.log = client.log
        try:
            self._happen(client, event)
            client.poll(0)
        except IllegalRaftStateError as error:
            # The process ends; its supervisor starts it again.
            again = self.start(member, client.log, host.stored, before.directory)
            return again._replace(ended=str(error), told=self._told(client, host), restarted=True)
        except _PowerLossError:
            again = self.start(member, client.log.after_power_loss(), host.stored, before.directory)
            sent = (*[(member_of(node), encode(message)) for node, message in host.sent], *again.sent)
            return again._replace(sent=sent, told=self._told(client, host), restarted=True)
        return self._outcome(client, host)

    def _happen(self, client: KafkaRaftClient, event: tuple[Any, ...]) -> None:
        kind = event[0]
        state = client.quorum.state
        if kind == "receive":
            client.handle(self._decode(event[1], client), 0)
            after = client.quorum.state
            if isinstance(after, FollowerState):
                after.fetch_timeout_at_us = LATER_US  # After EndQuorumEpoch, too, a timeout is an event of its own.
        elif kind == "timeout":
            _expire(state)
        elif kind == "append":
            client.prepare_append(client.quorum.epoch, (event[1],), 0)
        elif kind == "remove":
            client.remove_voter(ReplicaKey(event[1], client.quorum.voter_set.directory(event[1])), _ignore, 0)
        elif kind == "snapshot":
            self._make_snapshot(client)
        elif kind in ("expire", "fail"):
            self._end_fetches(client, event)
        else:
            assert isinstance(state, LeaderState)
            if kind == "announce":
                state.begin_quorum_epoch_at_us = 0
            else:
                state._check_quorum_timer_us = 0  # noqa: SLF001

    def _make_snapshot(self, client: KafkaRaftClient) -> None:
        log, end = client.log, client._next_offset  # noqa: SLF001
        snapshot = _snapshot(tuple(batch for batch in _freeze_log(log).stands_for if batch.end_offset <= end))
        log.add_snapshot(snapshot)
        log.delete_before_snapshot(snapshot.id)

    def _end_fetches(self, client: KafkaRaftClient, event: tuple[Any, ...]) -> None:
        """Answer the fetches that wait, or break the connections to members that ended."""
        waiting = client._fetches.take_all()  # noqa: SLF001
        if event[0] == "expire":
            for parked in waiting:
                client._host.send(parked.request.source, parked.response)  # noqa: SLF001
            return
        for node in list(client.requests.in_flight):
            if member_of(node) in event[1]:
                client.requests.reset(node)
        for parked in waiting:
            if parked.request.source not in event[1]:
                client._fetches.wait(parked.request, parked.response, LATER_US)  # noqa: SLF001

    # Snapshots.

    def _outcome(self, client: KafkaRaftClient, host: _Host) -> VoterOutcome:
        waits = tuple(sorted((node, encode(request)) for node, request in client.requests.in_flight.items()))
        parked = tuple((encode(fetch.request), encode(fetch.response)) for fetch in client._fetches._parked)  # noqa: SLF001
        log = client.log
        begins = client._is_new and bool(log.snapshots)  # noqa: SLF001
        log.batches = [self._interned(batch) for batch in log.batches]
        snapshot = Snapshot(
            _freeze_state(client.quorum.state),
            _freeze_log(log),
            -1 if begins else client._next_offset,  # noqa: SLF001
            waits,
            parked,
            _freeze_control(client) if client.quorum.key.directory else (),
            client.quorum.key.directory,
        )
        sent = tuple((member_of(node), encode(message)) for node, message in host.sent)
        return VoterOutcome(snapshot, sent, self._told(client, host))

    def _told(self, client: KafkaRaftClient, host: _Host) -> tuple[tuple[int, RaftBatch], ...]:
        places = {self._key(batch): place for place, batch in enumerate(_freeze_log(client.log).stands_for)}
        return tuple((places[self._key(batch)], self._interned(batch)) for batch in host.told)

    def _interned(self, batch: RaftBatch) -> RaftBatch:
        return self._batches.setdefault(self._key(batch), batch)

    @staticmethod
    def _key(batch: RaftBatch) -> tuple[Any, ...]:
        voters = batch.voters.nodes if isinstance(batch, VotersBatch) else ()
        return batch.base_offset, batch.epoch, tuple(batch.records), batch.is_control, voters

    def _thaw(self, member: int, before: Snapshot, host: _Host) -> KafkaRaftClient:
        log = before.log.thawed()
        scratch = _Host(ElectionState(0), -1)
        client = self._client(member, log, None, scratch, before.directory)
        _thaw_control(client, before.control)
        client._host = host  # noqa: SLF001
        client.quorum._store = host.store  # noqa: SLF001
        client.quorum.state = _thaw_state(before.state)
        leader = client.quorum.state
        if isinstance(leader, LeaderState) and before.directory:
            leader._voter_set = client.partition.voters  # noqa: SLF001
        client._next_offset = max(0, before.next_offset)  # noqa: SLF001
        client._is_new = before.next_offset < 0  # noqa: SLF001
        client.requests.reset_all()
        for node, request in before.waits:
            client.requests.on_request_sent(node, _decode_request(request), 0)
        purgatory = FetchPurgatory()
        for request, response in before.parked:
            asked_for = _decode_request(request)
            answer = _build(response, {"request": asked_for})
            assert isinstance(asked_for, RaftFetchRequest)
            assert isinstance(answer, RaftFetchResponse)
            purgatory.wait(asked_for, answer, LATER_US)
        client._fetches = purgatory  # noqa: SLF001
        return client

    def _decode(self, message: Encoded, client: KafkaRaftClient) -> RaftRequest | RaftResponse:
        """A message; a response to a request in flight refers to that very object."""
        if not issubclass(message[0], RaftResponse):
            return _decode_request(message)
        response = dict(zip(slots_of(message[0]), message[1:], strict=True))
        encoded = response["request"]
        waiting = None
        for node, request in client.requests.in_flight.items():
            if member_of(node) == response["source"] and encode(request) == encoded:
                waiting = request
        same = waiting is not None
        built = _build(message, {"request": waiting if same else _decode_request(encoded)})
        assert isinstance(built, RaftResponse)
        return built


def is_expected(snapshot: Snapshot, response: Encoded) -> bool:
    """Whether a member waits for a response."""
    values = dict(zip(slots_of(response[0]), response[1:], strict=True))
    return (values["source"], values["request"]) in snapshot.requests


def is_response(message: Encoded) -> bool:
    """Whether a message is a response."""
    return issubclass(message[0], RaftResponse)


def values_of(message: Encoded) -> dict[str, Any]:
    """What a message has, by name."""
    return dict(zip(slots_of(message[0]), message[1:], strict=True))


def election_of(snapshot: Snapshot) -> ElectionState:
    """What quorum-state has: each transition that changes it is stored."""
    return _election(snapshot.state)


@cache
def _election(state: tuple[Any, ...]) -> ElectionState:
    return _thaw_state(state).election()


def encode(message: RaftRequest | RaftResponse) -> Encoded:
    """A message as a value."""
    values: list[Any] = []
    for name in slots_of(type(message)):
        value = getattr(message, name)
        if isinstance(value, RaftRequest):
            value = encode(value)
        elif isinstance(value, list):
            value = tuple(value)
        elif isinstance(value, RaftSnapshot):
            value = value.content
        values.append(value)
    return (type(message), *values)


def _decode_request(message: Encoded) -> RaftRequest:
    built = _build(message, {})
    assert isinstance(built, RaftRequest)
    return built


def _build(message: Encoded, instead: dict[str, Any]) -> object:
    """A message of its values: its constructor has a parameter for each, of the same name."""
    values = values_of(message) | instead
    if values.get("snapshot") is not None:
        values["snapshot"] = _snapshot(values["snapshot"])
    return message[0](**values)


def _ignore(_: str) -> None:
    """The administrator learns nothing."""


def _freeze_replica(replica: ReplicaState) -> tuple[int, int, int]:
    return replica.replica, replica.directory, replica.end_offset


def _freeze_control(client: KafkaRaftClient) -> tuple[Any, ...]:
    partition = client.partition
    voters = tuple((offset, found.nodes) for offset, found in partition._voters)  # noqa: SLF001
    return voters, tuple(partition._versions), max(partition._next_offset, client.log.end_offset)  # noqa: SLF001


def _thaw_control(client: KafkaRaftClient, control: tuple[Any, ...]) -> None:
    if control:
        partition = client.partition
        partition._voters = [(offset, VoterSet(nodes)) for offset, nodes in control[0]]  # noqa: SLF001
        partition._versions = list(control[1])  # noqa: SLF001
        partition._next_offset = control[2]  # noqa: SLF001
        partition._note_last()  # noqa: SLF001


def _expire(state: EpochState) -> None:
    """Let the timeout of a state be over."""
    if isinstance(state, FollowerState):
        state.fetch_timeout_at_us = 0
    elif isinstance(state, CandidateState) and state.back_off_until_us is not None:
        state.back_off_until_us = 0
    else:
        assert isinstance(state, UnattachedState | NomineeState | ResignedState)
        state.election_at_us = 0


# States: what makes a difference while time stands still.


def _freeze_log(log: RaftLog) -> FrozenLog:
    contents: list[tuple[RaftBatch, ...]] = []
    for snapshot in log.snapshots:
        assert isinstance(snapshot.content, tuple)
        contents.append(snapshot.content)
    return FrozenLog(
        tuple(log.batches),
        tuple(contents),
        log.base_offset,
        log.start_offset,
        log.epochs_offset,
        log.has_epochs,
        log.high_watermark,
    )


def _freeze_state(state: EpochState) -> tuple[Any, ...]:
    common = type(state), state.epoch, state.high_watermark
    if isinstance(state, LeaderState):
        known = [_freeze_replica(replica) for replica in state._voters.values()]  # noqa: SLF001
        observers = sorted(_freeze_replica(replica) for replica in state._observers.values())  # noqa: SLF001
        last = -1 if state.removing is None else state.removing.last_offset
        begun = state.begin_quorum_epoch_at_us > 0
        lists = tuple(known), tuple(observers)
        return (*common, state.local_id, state.epoch_start_offset, lists, begun, last, state.directory)
    if isinstance(state, FollowerState):
        voted = ReplicaKey(state.voted, state.voted_directory)
        return (*common, state.leader, voted, state.has_fetched_from_leader, state.fetching_snapshot)
    if isinstance(state, ResignedState):
        voters = tuple(state._voters)  # noqa: SLF001
        return (*common, state.local_id, tuple(state.unacked_voters), state.preferred_successors, voters)
    if isinstance(state, UnattachedState):
        return (*common, state.leader, ReplicaKey(state.voted, state.voted_directory))
    assert isinstance(state, NomineeState)
    votes = tuple(state.votes._states.items())  # noqa: SLF001
    if isinstance(state, ProspectiveState):
        local_id = state._local_id  # noqa: SLF001
        voted = ReplicaKey(state.voted, state.voted_directory)
        return (*common, votes, local_id, state.leader, voted, state.reaches_leader, state.voters.nodes)
    assert isinstance(state, CandidateState)
    retries = min(state.retries, 1)
    nodes = state.voters.nodes
    return (*common, votes, state.local_id, retries, state.back_off_until_us, nodes, state.directory)


def _thaw_state(frozen: tuple[Any, ...]) -> EpochState:
    cls, epoch, high_watermark = frozen[:3]
    rest = frozen[3:]
    if cls is LeaderState:
        return _thaw_leader(epoch, high_watermark, rest)
    if cls is FollowerState:
        voted = rest[1]
        follower = FollowerState(epoch, rest[0], voted.id, high_watermark, LATER_US, voted.directory)
        follower.has_fetched_from_leader, follower.fetching_snapshot = rest[2:]
        return follower
    if cls is ResignedState:
        resigned = ResignedState(rest[0], epoch, rest[3], rest[2], LATER_US)
        resigned.unacked_voters = list(rest[1])
        return resigned
    if cls is UnattachedState:
        return UnattachedState(epoch, rest[0], rest[1].id, high_watermark, LATER_US, rest[1].directory)
    nominee: NomineeState
    if cls is ProspectiveState:
        voters = VoterSet(rest[5])
        nominee = ProspectiveState(
            rest[1],
            epoch,
            rest[2],
            rest[3].id,
            voters,
            high_watermark,
            LATER_US,
            reaches_leader=rest[4],
            voted_directory=rest[3].directory,
            directory=voters.directory(rest[1]),
        )
    else:
        candidate = CandidateState(rest[1], epoch, VoterSet(rest[4]), high_watermark, LATER_US, rest[2], rest[5])
        candidate.back_off_until_us = rest[3]
        nominee = candidate
    nominee.votes._states = dict(rest[0])  # noqa: SLF001
    return nominee


def _thaw_leader(epoch: int, high_watermark: int | None, rest: tuple[Any, ...]) -> LeaderState:
    local_id, start, (known, observers), begun, last, directory = rest
    ends = [end for replica, _, end in (*known, *observers) if replica == local_id]
    accumulator = BatchAccumulator(epoch, max(ends), 0)
    first = FIRST_VOTERS if directory else VOTER_SET
    leader = LeaderState(local_id, epoch, start, first, (), accumulator, LATER_US, 0, directory)
    leader.high_watermark = high_watermark
    leader._voters = {}  # noqa: SLF001
    for replica, its_directory, end in (*known, *observers):
        state = ReplicaState(replica, its_directory, has_acknowledged_leader=False)
        if replica == local_id:
            state = leader._own  # noqa: SLF001
        state.end_offset = end
        if (replica, its_directory, end) in known:
            leader._voters[replica] = state  # noqa: SLF001
        else:
            leader._observers[observer_key(replica, its_directory)] = state  # noqa: SLF001
    if last >= 0:
        leader.removing = VoterChange(_ignore, LATER_US, last_offset=last)
    leader.begin_quorum_epoch_at_us = LATER_US if begun else 0
    return leader
