"""A broker as a function: a snapshot and an event go in, the next snapshot and what the broker does come out.

The code is that of `sim.protocol`: partition and fetchers, and the steps of a host, which a simulation takes in
`sim.hosts` with time and network. An outcome depends on snapshot and event alone, so each pair is computed once
(`BrokerMachine.step`). Snapshots and messages are numbers. Each control plane adds its events (`kraft.broker`,
`zookeeper.broker`).

Time stands still: `replica.lag.time.max.ms` is an event.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from highwater.lab.explore.freezing import Freezer
from highwater.lab.explore.host import NOW_US, UNSETTLED, RecordingHost
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochCheckpointFile, LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import (
    NO_BROKER_EPOCH,
    NONE,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
)
from sim.protocol.replica.abstract_fetcher_manager import AbstractFetcherManager
from sim.protocol.replica.fetch_results import READ, fetch_result, read_for_follower
from sim.protocol.replica.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from highwater.lab.explore.interning import InternTable
    from sim.protocol.decisions import Decisions
    from sim.protocol.messages import FetchResult, Position

NAME: Final = "t-0"
DOWN: Final = 0
STARTING: Final = 1
UP: Final = 2
FETCHED: Final = "fetch"
LISTED: Final = "list"
EPOCH_ENDS: Final = "epoch-ends"
Event = tuple[Any, ...]
Records = tuple[tuple[int, int] | None, ...]
H = TypeVar("H", bound=RecordingHost)


class Process(Generic[H]):
    """A running broker, taken out of a snapshot."""

    __slots__ = ("fetchers", "host", "partition")

    def __init__(self, host: H, partition: Partition, fetchers: AbstractFetcherManager) -> None:
        self.host = host
        self.partition = partition
        self.fetchers = fetchers


class ExploredDisk(NamedTuple):
    """What a process leaves when it ends, frozen.

    Attributes:
        broker: its id.
        batches: of the log, also those below the log start.
        epochs: of leader-epoch-checkpoint.
        hw: the checkpointed HW.
        first: base offset of the first segment.
        log_start: of log-start-offset-checkpoint.
    """

    broker: int
    batches: Any
    epochs: Any
    hw: int
    first: int
    log_start: int


@dataclass(frozen=True, slots=True)
class View:
    """Properties of a snapshot for the search. Those after `may_lag` are of KRaft brokers.

    Attributes:
        state: `DOWN`, `STARTING` (until it has replayed its registration) or `UP`.
        leads: it believes that it leads.
        epoch: its leader epoch, -1 unless it is up.
        settled: the epoch that it leads in or has confirmed its log in, else `UNSETTLED`.
        hw: its HW, or the checkpointed one.
        log_start: its log start.
        records: (id, epoch) at each offset, None in a hole. Deleted records are still there.
        ids: the records as a bit set.
        follows: the leader that it fetches from, 0 without one.
        waits: a request of its fetcher is unanswered.
        may_lag: followers that may lag next.
        partition_epoch: the partition epoch that it knows, while it leads.
        isr: the ISR that it knows, while it leads.
        maximal_isr: the same and the members of its proposal.
        broker_epoch: its own, -1 before its registration.
        incarnation: of its process.
        clean_epoch: while it starts: the broker epoch in its clean-shutdown file, else -1.
        knows_metadata: while it starts: the controller has committed its registration.
        min_isr: the effective ``min.insync.replicas`` by which it leads, 0 unless it leads.
        answered_min_isr: that of an AlterPartition response whose ISR it has not replayed, 0 for none.
    """

    state: int
    leads: bool
    epoch: int
    settled: int
    hw: int
    log_start: int
    records: Records
    ids: int
    follows: int = 0
    waits: bool = False
    may_lag: tuple[int, ...] = ()
    partition_epoch: int = -1
    isr: tuple[int, ...] = ()
    maximal_isr: frozenset[int] = frozenset()
    broker_epoch: int = NO_BROKER_EPOCH
    incarnation: int = 0
    clean_epoch: int = NO_BROKER_EPOCH
    knows_metadata: bool = False
    min_isr: int = 0
    answered_min_isr: int = 0


@dataclass(frozen=True, slots=True)
class BrokerOutcome:
    """The result of an event at a broker.

    Attributes:
        snapshot: its next snapshot.
        requests: (leader, payload) that its fetcher sent.
        reply: payload of the response to the event's request, -1 without one, or if it has to wait for the ISR.
        proposal: payload of what it asks of the control plane: an AlterPartition request, or the ISR that it writes to
            ZooKeeper; -1 without one.
        committed: records that its HW passed while it led, as a bit set.
        acked: records that it acknowledged, as a bit set.
        min_isr: with `committed`, in KRaft: the smallest ``min.insync.replicas`` by which it moved the HW, else 0.
        halted: the process exits.
    """

    snapshot: int
    requests: tuple[tuple[int, int], ...] = ()
    reply: int = -1
    proposal: int = -1
    committed: int = 0
    acked: int = 0
    min_isr: int = 0
    halted: bool = False


UNDAMAGED: Final[Mapping[str, Any]] = {"before": [], "damaged": None}
"""Former contents of checkpoint files: no event puts them back, so brokers that differ only in them are one state."""


class BrokerMachine(Generic[H]):
    """All snapshots of the brokers of a cluster, and what events make of them.

    Args:
        decide: the rules of all brokers.
        payloads: contents of messages.
        constants: see `Freezer`.
    """

    ACKS = -1
    """Of the producers' writes."""

    def __init__(self, decide: Decisions, payloads: InternTable, constants: Mapping[str, Any]) -> None:
        self.decide = decide
        self.views: list[View] = []
        self._payloads = payloads
        self._freezer = Freezer(decide, {**UNDAMAGED, **constants})
        self._snapshots: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._outcomes: dict[tuple[int, Event], BrokerOutcome] = {}
        self._handlers: dict[str, Callable[..., int | None]] = {
            "append": self._append,
            "lag": self._lag,
            "serve": self._serve,
            "reply": self._reply,
            "failed": self._failed,
        }
        """Events of a running broker -> what they do. Each returns the payload of a response, if there is one."""

    def step(self, snapshot: int, event: Event) -> BrokerOutcome:
        """The outcome of an event at a broker."""
        key = snapshot, event
        known = self._outcomes.get(key)
        if known is None:
            known = self._outcomes[key] = self._compute(snapshot, event)
        return known

    def _compute(self, snapshot: int, event: Event) -> BrokerOutcome:
        frozen = self._snapshots[snapshot]
        kind, *details = event
        if frozen[0] != UP:
            return self._before_up(snapshot, kind, *details)
        process = self._thaw(frozen)
        if kind == "end":
            return BrokerOutcome(self._end(process, *details))
        return self._outcome(process, self._handlers[kind](process, *details))

    def _outcome(self, process: Process[H], reply: int | None = None) -> BrokerOutcome:
        host = process.host
        proposal = -1 if host.proposal is None else self._payload(host.proposal)
        requests = tuple([(leader, self._payload(request)) for leader, request in host.requests])
        number = self._number(process)
        answer = -1 if reply is None else reply
        return BrokerOutcome(number, requests, answer, proposal, host.committed, host.acked, host.min_isr, host.halted)

    # What a control plane adds.

    def _before_up(self, snapshot: int, kind: str, *details: Any) -> BrokerOutcome:
        """An event at a broker that is not up."""
        raise NotImplementedError

    def _end(self, process: Process[H], *details: Any) -> int:
        """The process ends."""
        raise NotImplementedError

    def _host(self, own: Any) -> H:
        """The host of a process, with its own part of a snapshot."""
        raise NotImplementedError

    def _own(self, process: Process[H]) -> Any:
        """The host's own part of a snapshot, frozen. Attributes of the partition that make no difference are reset."""
        raise NotImplementedError

    def _details(self, process: Process[H]) -> tuple[Any, ...]:
        """What `View` has from `may_lag` on."""
        raise NotImplementedError

    def _lag(self, process: Process[H], follower: int) -> None:
        """A follower has not been caught up for ``replica.lag.time.max.ms``."""
        raise NotImplementedError

    # Snapshots and messages.

    def _payload(self, content: object) -> int:
        return self._payloads.number(self._freezer.freeze(content))

    def payload(self, number: int) -> Any:
        """The content of a message."""
        return self._freezer.thaw(self._payloads[number], None)

    def _thaw(self, frozen: Any) -> Process[H]:
        _, settled, partition, fetchers, own = frozen
        thaw = self._freezer.thaw
        host = self._host(own)
        host.settled_epoch = settled
        process = self._process(thaw(partition, host), host)
        process.fetchers.fetchers = thaw(fetchers, host, process.partition)
        return process

    def _process(self, partition: Partition, host: H) -> Process[H]:
        return Process(host, partition, AbstractFetcherManager(host, self.decide, 0))

    def _number(self, process: Process[H]) -> int:
        own = self._own(process)
        freeze = self._freezer.freeze
        frozen = (
            UP,
            process.host.settled_epoch,
            freeze(process.partition, inside=False),
            freeze(process.fetchers.fetchers),
            own,
        )
        number = self._numbers.get(frozen)
        return self._add(frozen, self._view(process)) if number is None else number

    def _view(self, process: Process[H]) -> View:
        partition = process.partition
        fetcher = next(iter(process.fetchers.fetchers.values()), None)
        return View(
            UP,
            partition.is_leader,
            partition.leader_epoch,
            process.host.settled_epoch,
            partition.hw,
            partition.log.log_start,
            *_contents(partition.log),
            fetcher.leader if fetcher else 0,
            fetcher is not None and fetcher.in_flight is not None,
            *self._details(process),
        )

    def _add(self, frozen: Any, view: View) -> int:
        number = self._numbers[frozen] = len(self._snapshots)
        self._snapshots.append(frozen)
        self.views.append(view)
        return number

    # Life cycle.

    def _number_down(
        self,
        broker: int,
        log: Log,
        file: LeaderEpochCheckpointFile,
        hw: int,
        incarnation: int = 0,
        clean_epoch: int = NO_BROKER_EPOCH,
    ) -> int:
        """The snapshot of a broker that is down."""
        freeze = self._freezer.freeze
        first = log.segments[0]
        start = log.log_start if self.decide.rules.log_start_checkpoint == "at-once" else first
        disk = ExploredDisk(broker, freeze([*log.below, *log.batches]), freeze(file), hw, first, start)
        frozen = DOWN, disk, incarnation, clean_epoch
        number = self._numbers.get(frozen)
        if number is not None:
            return number
        view = View(DOWN, False, -1, UNSETTLED, hw, log.log_start, *_contents(log))
        return self._add(frozen, replace(view, incarnation=incarnation, clean_epoch=clean_epoch))

    def _number_ended(
        self, process: Process[H], kept: int, incarnation: int = 0, clean_epoch: int = NO_BROKER_EPOCH
    ) -> int:
        """The snapshot of a broker after its process has ended, and `kept` offsets of its log remain."""
        partition = process.partition
        file = LeaderEpochCheckpointFile()
        file.write(partition.epochs.entries)
        log = partition.log
        log.truncate_to(kept)
        log.reload()
        return self._number_down(partition.broker, log, file, min(partition.hw, log.leo), incarnation, clean_epoch)

    def create(self, broker: int) -> int:
        """The snapshot of a broker that is down, with an empty log."""
        return self._number_down(broker, Log(), LeaderEpochCheckpointFile(), 0)

    def _load(self, disk: ExploredDisk) -> tuple[Log, LeaderEpochFileCache]:
        """The log and the epochs that a process finds when it starts (`Storage.recover`)."""
        thaw, decide = self._freezer.thaw, self.decide
        log = Log(check_first_offset=decide.checks_first_offset.answer, log_start=disk.first)
        log.set_batches(thaw(disk.batches, None))
        log.reload()
        log.advance_start(disk.log_start)
        cache = LeaderEpochFileCache(thaw(disk.epochs, None), strict=decide.records_epoch_at_election.answer)
        cache.truncate_from_end(log.leo)
        cache.truncate_from_start(disk.log_start)
        return log, cache

    def _start_process(self, disk: ExploredDisk, host: H, hw: int, min_isr: int, lag_us: int) -> Process[H]:
        """A process loads its log."""
        log, cache = self._load(disk)
        hw = max(hw, disk.log_start)
        partition = Partition(
            disk.broker, NAME, log, cache, hw, self.decide, host, min_insync_replicas=min_isr, lag_us=lag_us
        )
        return self._process(partition, host)

    # Leading.

    def _append(self, process: Process[H], first_id: int, count: int = 1) -> None:
        process.partition.produce(ProduceRequest(0, NAME, first_id, count, self.ACKS), NOW_US)

    def _serve(self, process: Process[H], follower: int, payload: int) -> int | None:
        """As `KafkaApis` handles a follower's request; ``replica.fetch.wait.max.ms`` is 0."""
        request = self.payload(payload)
        partition = process.partition
        if isinstance(request, OffsetsForLeaderEpochRequest):
            ends = [
                (name, *partition.end_offset_for(current, epoch, with_epoch=request.with_epoch))
                for name, current, epoch in request.asks
            ]
            return self._payload((EPOCH_ENDS, ends))
        if isinstance(request, ListOffsetsRequest):
            error, offset = partition.list_offset(request.timestamp, request.leader_epoch, replica=True)
            return self._payload((LISTED, error, offset, partition.leader_epoch))
        position, broker_epoch = request.positions[0], request.broker_epoch
        result, effect = self._read(partition, follower, broker_epoch, position)
        if effect == READ:
            partition.follower_fetched(follower, broker_epoch, position[1], request.leader_epochs[0], NOW_US)
            if not result[2]:  # An empty response comes later, with the HW of then.
                return self._answer(process)
        return self._fetched(result)

    def _read(
        self, partition: Partition, follower: int, broker_epoch: int, position: Position
    ) -> tuple[FetchResult, int]:
        return read_for_follower(partition, follower, broker_epoch, position)

    def _answer(self, process: Process[H]) -> int | None:
        """An empty response to a fetch."""
        return self._fetched(fetch_result(process.partition, NONE, []))

    def _fetched(self, result: FetchResult) -> int:
        return self._payload((FETCHED, (*result[:2], list(result[2]), *result[3:])))

    # Following.

    def _reply(self, process: Process[H], payload: int) -> None:
        kind, *content = self.payload(payload)
        (fetcher,) = process.fetchers.fetchers.values()
        request: Any = fetcher.in_flight
        if kind == FETCHED:
            fetcher.on_fetch_reply(FetchResponse(request, content), NOW_US)
        elif kind == LISTED:
            fetcher.on_list_offsets_reply(ListOffsetsResponse(request, *content), NOW_US)
        else:
            fetcher.on_epoch_end_reply(OffsetsForLeaderEpochResponse(request, *content), NOW_US)

    def _failed(self, process: Process[H]) -> None:
        """The connection of the request in flight broke."""
        (fetcher,) = process.fetchers.fetchers.values()
        assert fetcher.in_flight is not None
        fetcher.request_failed(fetcher.in_flight, NOW_US)


def _contents(log: Log) -> tuple[Records, int]:
    """(id, epoch) at each offset, and the ids as a bit set."""
    records: list[tuple[int, int] | None] = [None] * log.leo
    for batch in (*log.below, *log.batches):
        for offset in range(batch.base_offset, batch.last_offset + 1):
            records[offset] = batch.first_id + offset - batch.base_offset, batch.leader_epoch
    return tuple(records), sum({1 << record[0] for record in records if record is not None})
