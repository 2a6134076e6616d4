"""A follower's fetcher in conversation with a leader, one round at a time.

A round is one pass of Kafka's fetcher loop: the truncation step, then one fetch. The fetcher, the follower's replicas
and the leader's partitions are the core's own; between them stands no network but `Conversation`, which hands each
request to the leader and each reply back, and can let something happen meanwhile. A leader sends one batch with each
fetch, as the source tests' does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.log.log import Log, UnexpectedAppendOffsetError
from sim.protocol.messages import (
    AGREES,
    DIVERGING_EPOCH,
    NONE,
    EpochEndResult,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    Position,
)
from sim.protocol.replica.partition import Partition
from sim.protocol.replica.partition_fetch_state import PartitionFetchState, ReplicaState
from sim.protocol.replica.replica import Replica
from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread
from sim.protocol.rules import Rules
from tests.plain import StandsIn
from tests.verification.conformance.world import LEADER, Entry, RecordingHost, make_cache, make_log, shown

BACKOFF_US: Final = 250_000
QUIET_ROUNDS: Final = 3
MOST_ROUNDS: Final = 100
_BUSY: Final = ListOffsetsRequest(-1, -1, "", -1, -1)
"""Stands for a request that is never answered."""
_STATES: Final = {ReplicaState.TRUNCATING: "truncating"}
"""Kafka looks offsets up inside a fetch, so that all other states are one there."""


class Leader(Protocol):
    """A leader that answers a fetcher."""

    def epoch_ends(self, request: OffsetsForLeaderEpochRequest) -> list[EpochEndResult]:
        """Answers to OffsetsForLeaderEpoch."""

    def fetched(self, request: FetchRequest) -> list[FetchResult] | None:
        """Answers to a fetch; None when the request as a whole fails."""

    def offset(self, request: ListOffsetsRequest) -> tuple[str, int]:
        """Answer to ListOffsets: error, offset."""


class LeaderLogs:
    """A leader that answers from partitions of the core.

    Attributes:
        partitions: what it leads.
        lookups: timestamps that ListOffsets asked for.
    """

    def __init__(self, partitions: Mapping[str, Partition]) -> None:
        self.partitions = dict(partitions)
        self.lookups: list[int] = []

    def epoch_ends(self, request: OffsetsForLeaderEpochRequest) -> list[EpochEndResult]:
        """See `Leader`."""
        return [
            (name, *self.partitions[name].end_offset_for(current, epoch, with_epoch=request.with_epoch))
            for name, current, epoch in request.asks
        ]

    def fetched(self, request: FetchRequest) -> list[FetchResult] | None:
        """See `Leader`."""
        return [self.fetch(position) for position in request.positions]

    def fetch(self, position: Position) -> FetchResult:
        """One partition's part of a fetch: at most one batch."""
        name, offset, epoch, last_epoch = position
        partition = self.partitions[name]
        error = partition.check_fetch(offset, epoch, last_epoch)
        batches = [] if error else partition.read_uncommitted(offset)[:1]
        diverging = partition.agrees
        if error == DIVERGING_EPOCH:
            error, diverging = NONE, partition.diverging(last_epoch)
        return name, error, batches, partition.hw, partition.log.log_start, partition.leader_epoch, diverging

    def offset(self, request: ListOffsetsRequest) -> tuple[str, int]:
        """See `Leader`."""
        self.lookups.append(request.timestamp)
        return self.partitions[request.name].list_offset(request.timestamp, request.leader_epoch, replica=True)


class Replies:
    """A leader without records that answers epoch requests as the table says.

    Attributes:
        by_partition: error, epoch and end offset for each partition.
        default: what the others are answered.
        hw: its HW.
    """

    def __init__(self, by_partition: Mapping[str, tuple[str, int, int]], *, hw: int = 0) -> None:
        self.by_partition = dict(by_partition)
        self.default = (NONE, -1, -1)
        self.hw = hw

    def epoch_ends(self, request: OffsetsForLeaderEpochRequest) -> list[EpochEndResult]:
        """See `Leader`."""
        return [(name, *self.by_partition.get(name, self.default)) for name, _, _ in request.asks]

    def fetched(self, request: FetchRequest) -> list[FetchResult] | None:
        """See `Leader`."""
        return [(name, NONE, [], self.hw, 0, epoch, AGREES) for name, _, epoch, _ in request.positions]

    def offset(self, request: ListOffsetsRequest) -> tuple[str, int]:
        """See `Leader`."""
        raise AssertionError(f"nothing was out of range, yet offset {request.timestamp} of {request.name} is asked for")


class BrokenLog(StandsIn, Log):
    """A log whose appends fail."""

    def append(self, batch: Batch) -> None:
        """See `Log.append`."""
        raise UnexpectedAppendOffsetError(f"{batch} cannot be appended")


class UncutReplica(StandsIn, Replica):
    """A replica on a disk that fails when it is truncated."""

    def truncate_to(self, offset: int) -> None:
        """See `Replica.truncate_to`."""
        raise OSError(f"cannot truncate to {offset}")


def make_replica(
    name: str,
    batches: list[Batch],
    rules: Rules,
    host: RecordingHost,
    *,
    entries: list[Entry],
    hw: int = 0,
    leo: int | None = None,
    strict: bool = True,
    log: Log | None = None,
    kind: type[Replica] = Replica,
) -> Replica:
    """A follower's replica as given."""
    decide = Decisions(rules)
    return kind(name, make_log(batches, leo=leo, log=log), make_cache(entries, strict=strict), hw, decide, host)


class Conversation:
    """A fetcher and its leader.

    Args:
        rules: the follower's.
        leader: who answers.
        host: what the follower's replicas tell, if they were made before.
        truncating: whether partitions are put into the state of truncation though fetches find divergence, as some
            source tests do; without effect where they begin in it.

    Attributes:
        now_us: simulated time; it passes only while all that is left to do waits for a back-off.
        slept_us: how much of it passed before the last round.
        meanwhile: called once, while the next reply to an epoch request is under way.
        epoch_replies: results of all epoch requests that were answered.
        fetches: how many fetches were answered.
    """

    def __init__(
        self, rules: Rules, leader: Leader, host: RecordingHost | None = None, *, truncating: bool = False
    ) -> None:
        self.truncating = truncating
        self.host = host or RecordingHost()
        self.leader = leader
        self.fetcher = ReplicaFetcherThread(LEADER, Decisions(rules), self.host, backoff_us=BACKOFF_US)
        self.replicas: dict[str, Replica] = {}
        self.now_us = 0
        self.slept_us = 0
        self.meanwhile: Callable[[], None] | None = None
        self.epoch_replies: list[EpochEndResult] = []
        self.epoch_requests = 0
        self.fetches = 0

    def add(self, replica: Replica, leader_epoch: int, initial_offset: int | None = None) -> None:
        """Hand a partition to the fetcher, at an initial offset: the HW of that moment.

        The fetcher is kept busy meanwhile: Kafka adds partitions under a lock, and its loop goes on afterwards.
        """
        self.replicas[replica.name] = replica
        busy = self.fetcher.in_flight
        self.fetcher.in_flight = busy or _BUSY
        hw = replica.hw
        replica.set_hw(hw if initial_offset is None else initial_offset)
        self.fetcher.add(replica, leader_epoch, self.now_us)
        replica.set_hw(hw)
        if self.truncating:
            self.truncate_first()
        self.fetcher.in_flight = busy

    def truncate_first(self) -> None:
        """Have the fetcher ask for epochs' ends before it fetches."""
        for fetch in self.fetcher.partitions.values():
            if fetch.state is ReplicaState.COMPARING:
                fetch.state = ReplicaState.TRUNCATING

    def fetch_state(self, name: str) -> PartitionFetchState | None:
        """The fetcher's state of a partition, None when it has none."""
        return self.fetcher.partitions.get(name)

    def state(self, name: str) -> str | None:
        """Kafka's word for the state of a partition."""
        fetch = self.fetch_state(name)
        return None if fetch is None else _STATES.get(fetch.state, "fetching")

    def is_delayed(self, name: str) -> bool:
        """Whether a partition waits for its back-off."""
        fetch = self.fetch_state(name)
        return fetch is not None and fetch.delayed_until_us > self.now_us

    # Rounds.

    def round(self) -> None:
        """One truncation step, then one fetch."""
        self.truncation_step()
        request = self.fetcher.in_flight
        if isinstance(request, FetchRequest):
            self._answer_fetch(request)
        while isinstance(request := self.fetcher.in_flight, ListOffsetsRequest):
            self._answer_list_offsets(request)

    def truncation_step(self) -> None:
        """Wait until no partition is delayed, then answer one epoch request, if there is any."""
        due_us = max((fetch.delayed_until_us for fetch in self.fetcher.partitions.values()), default=0)
        self.slept_us = max(due_us - self.now_us, 0)
        self.now_us += self.slept_us
        self.fetcher.step(self.now_us)
        request = self.fetcher.in_flight
        if isinstance(request, OffsetsForLeaderEpochRequest):
            self._answer_epochs(request)

    def _answer_epochs(self, request: OffsetsForLeaderEpochRequest) -> None:
        self.epoch_requests += 1
        results = self.leader.epoch_ends(request)
        self.epoch_replies += results
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        self.fetcher.on_epoch_end_reply(OffsetsForLeaderEpochResponse(request, results), self.now_us)

    def _answer_fetch(self, request: FetchRequest) -> None:
        self.fetches += 1
        results = self.leader.fetched(request)
        if results is None:
            self.fetcher.request_failed(request, self.now_us)
        else:
            self.fetcher.on_fetch_reply(FetchResponse(request, results), self.now_us)

    def answer_diverging(self, name: str, diverging: tuple[int, int], hw: int = 0) -> None:
        """Answer the fetch in flight, or the next one, with a diverging epoch, so that another one is sent.

        Args:
            name: of the partition.
            diverging: the epoch and its end offset.
            hw: the leader's.
        """
        self.truncation_step()
        request = self.fetcher.in_flight
        assert isinstance(request, FetchRequest)
        result: FetchResult = (name, NONE, [], hw, 0, request.leader_epochs[0], diverging)
        self.fetcher.on_fetch_reply(FetchResponse(request, [result]), self.now_us)
        self.truncation_step()

    def _answer_list_offsets(self, request: ListOffsetsRequest) -> None:
        error, offset = self.leader.offset(request)
        self.fetcher.on_list_offsets_reply(ListOffsetsResponse(request, error, offset, -1), self.now_us)

    def run_until_quiet(self) -> None:
        """Rounds until several in a row changed nothing."""
        quiet = 0
        for _ in range(MOST_ROUNDS):
            before = self._all()
            self.round()
            quiet = quiet + 1 if self._all() == before else 0
            if quiet == QUIET_ROUNDS:
                return
        raise AssertionError(f"not quiet after {MOST_ROUNDS} rounds")

    def _all(self) -> list[Any]:
        return [
            (name, self.state(name), shown(replica.log.batches), replica.log.leo, replica.hw, replica.epochs.entries)
            for name, replica in self.replicas.items()
        ]
