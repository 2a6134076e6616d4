"""A KRaft broker as a function: a snapshot and an event go in, the next snapshot and what the broker does come out.

The code is that of `sim.protocol`: partition, fetchers, AlterPartition manager, and the steps of a host, which a
simulation takes in `sim.hosts` with time and network. An outcome depends on snapshot and event alone, so each pair is
computed once (`BrokerMachine.step`). Snapshots and messages are numbers.

Time stands still: `replica.lag.time.max.ms` is an event, and a follower outside of the ISR never holds the HW back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from highwater.lab.explore.freezing import Freezer
from highwater.lab.explore.host import NOW_US, UNSETTLED, RecordingHost, follow, stop_following
from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem, AlterPartitionManager, proposed_isr
from sim.protocol.kraft.broker_lifecycle_manager import adopts_registration
from sim.protocol.kraft.local_replica_change import AWAITS, FOLLOWS, LEADS, LEADS_ON, OUTDATED, local_replica_change
from sim.protocol.kraft.metadata import MIN_ISR, BrokerRegistration, ConfigRecord, PartitionRegistration
from sim.protocol.kraft.metadata_delta import MetadataDelta
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochCheckpointFile, LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import (
    NO_BROKER_EPOCH,
    NONE,
    Ask,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
)
from sim.protocol.replica.abstract_fetcher_manager import AbstractFetcherManager
from sim.protocol.replica.fetch_results import READ, fetch_result, read_for_follower
from sim.protocol.replica.followers import NEVER_US
from sim.protocol.replica.isr import UNREGISTERED
from sim.protocol.replica.partition import Partition
from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from highwater.lab.explore.interning import Table
    from sim.protocol.decisions import Decisions
    from sim.protocol.kraft.metadata import Record
    from sim.protocol.replica.replica import Replica

NAME: Final = "t-0"
DOWN: Final = 0
STARTING: Final = 1
UP: Final = 2
Event = tuple[Any, ...]
Registrations = dict[int, BrokerRegistration]

CONSTANTS: Final[dict[str, Any]] = {
    "caught_up_us": NEVER_US,
    "fetch_us": NOW_US,
    "leader_leo_at_fetch": -1,
    "delayed_until_us": NOW_US,
    "version": -1,
    "rounds": 0,
    "is_open": True,
}
"""Times, numbers that only reports read, and whether a fetch session is open, which only ZooKeeper's brokers read."""
_FORMER_FOLLOWERS: Final = "leo-from-earlier-leadership"
"""The mutant that reads the followers of an earlier leadership."""


class Host(RecordingHost):
    """Records what partition, fetcher and AlterPartition manager ask of their broker."""

    def __init__(
        self, broker: int, incarnation: int, broker_epoch: int, registrations: Registrations, settled: int
    ) -> None:
        super().__init__(broker, broker_epoch)
        self.incarnation = incarnation
        self.registrations = registrations
        self.settled_epoch = settled
        self.manager = AlterPartitionManager(self)
        self.proposals: list[AlterPartitionItem] = []
        self.acked = 0
        self.min_isr = 0

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """Note as committed what a leader's HW passes, and the ``min.insync.replicas`` by which it does."""
        super().hw_moved(replica, previous)
        if self.committed:
            assert isinstance(replica, Partition)
            self.min_isr = min(replica.min_insync_replicas, self.min_isr or replica.min_insync_replicas)

    def answer_produce(self, request: ProduceRequest, error: str, base_offset: int) -> None:  # noqa: ARG002
        """Note acknowledged records; a refused write is not sent again."""
        if not error:
            self.acked |= ((1 << request.count) - 1) << request.first_id

    def is_alive(self, broker: int) -> bool:
        """See `MetadataCache.is_alive`."""
        known = self.registrations.get(broker)
        return known is not None and not known.fenced and not known.shutting_down

    def registered_epoch(self, broker: int) -> int:
        """See `MetadataCache.registered_epoch`."""
        known = self.registrations.get(broker)
        return UNREGISTERED if known is None or known.fenced else known.broker_epoch

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """As `AlterPartitionChannel.propose_isr`."""
        self.manager.submit(partition, proposed_isr(partition, isr, self.broker_epoch), NOW_US)

    # AlterPartitionHost.

    def send_alter_partition(self, changes: list[AlterPartitionItem]) -> None:
        """See `AlterPartitionHost.send_alter_partition`."""
        self.proposals += changes

    def retry_alter_partition(self, after_us: int) -> None:  # noqa: ARG002
        """See `AlterPartitionHost.retry_alter_partition`."""
        raise AssertionError("a request with a stale broker epoch is not delivered")

    # FetcherHost.

    def send_epoch_end(
        self,
        fetcher: ReplicaFetcherThread,  # noqa: ARG002
        asks: list[Ask],  # noqa: ARG002
        leader_epochs: list[int],  # noqa: ARG002
        *,
        with_epoch: bool,  # noqa: ARG002
    ) -> OffsetsForLeaderEpochRequest:
        """See `FetcherHost.send_epoch_end`."""
        raise AssertionError("KRaft brokers truncate by fetch responses")

    def halt(self, reason: str) -> None:
        """See `FetcherHost.halt`."""
        raise AssertionError(f"KRaft brokers do not halt: {reason}")


@dataclass(slots=True)
class Process:
    """A running broker, taken out of a snapshot."""

    host: Host
    partition: Partition
    fetchers: AbstractFetcherManager


class View(NamedTuple):
    """Properties of a snapshot for the search.

    Attributes:
        state: `DOWN`, `STARTING` (until it has replayed its registration) or `UP`.
        leads: it believes that it leads.
        epoch: its leader epoch, -1 unless it is up.
        partition_epoch: the partition epoch that it knows, while it leads.
        settled: the epoch that it leads in or has confirmed its log in, else `UNSETTLED`.
        hw: its HW, or the checkpointed one.
        records: (id, epoch) at each offset.
        ids: the records as a bit set.
        follows: the leader that it fetches from, 0 without one.
        waits: a request of its fetcher is unanswered.
        isr: the ISR that it knows, while it leads.
        maximal_isr: the same and the members of its proposal.
        may_lag: ISR members that lack records, while no proposal is pending.
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
    partition_epoch: int
    settled: int
    hw: int
    records: tuple[tuple[int, int], ...]
    ids: int
    follows: int
    waits: bool
    isr: tuple[int, ...]
    maximal_isr: frozenset[int]
    may_lag: tuple[int, ...]
    broker_epoch: int
    incarnation: int
    clean_epoch: int
    knows_metadata: bool
    min_isr: int
    answered_min_isr: int


class Outcome(NamedTuple):
    """The result of an event at a broker.

    Attributes:
        snapshot: its next snapshot.
        requests: (leader, payload) that its fetcher sent.
        reply: payload of the response to the event's request, -1 without one.
        proposal: payload of an AlterPartition request, -1 without one.
        committed: records that its HW passed while it led, as a bit set.
        acked: records that it acknowledged, as a bit set.
        min_isr: with `committed`: the smallest ``min.insync.replicas`` by which it moved the HW, else 0.
    """

    snapshot: int
    requests: tuple[tuple[int, int], ...] = ()
    reply: int = -1
    proposal: int = -1
    committed: int = 0
    acked: int = 0
    min_isr: int = 0


class BrokerMachine:
    """All snapshots of the brokers of a cluster, and what events make of them.

    Args:
        decide: the rules of all brokers.
        payloads: contents of messages.
        records: contents of metadata records.
        min_isr_changes: whether ``min.insync.replicas`` may change.
    """

    def __init__(self, decide: Decisions, payloads: Table, records: Table, *, min_isr_changes: bool) -> None:
        self.decide = decide
        self.views: list[View] = []
        self._payloads = payloads
        self._records = records
        self._keeps_answered = min_isr_changes and decide.adopts_answered_min_isr.answer
        constants = dict(CONSTANTS)
        if decide.rules.mutant != _FORMER_FOLLOWERS:
            constants["_former"] = {}
        self._freezer = Freezer(decide, constants)
        self._thawed: list[Record] = []
        self._snapshots: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._outcomes: dict[tuple[int, Event], Outcome] = {}

    def create(self, broker: int) -> int:
        """The snapshot of a broker that is down, with an empty log."""
        return self._number_down(broker, 0, Log(), LeaderEpochCheckpointFile(), 0, NO_BROKER_EPOCH)

    def step(self, snapshot: int, event: Event) -> Outcome:
        """The outcome of an event at a broker."""
        key = snapshot, event
        known = self._outcomes.get(key)
        if known is None:
            known = self._outcomes[key] = self._compute(snapshot, event)
        return known

    def _compute(self, snapshot: int, event: Event) -> Outcome:
        frozen = self._snapshots[snapshot]
        kind, *details = event
        view = self.views[snapshot]
        if view.state == DOWN:
            assert kind == "start"
            return Outcome(self._start(frozen))
        if view.state == STARTING and kind != "end":
            if kind == "publish":
                return self._outcome(self._publish(frozen, *details), -1)
            return Outcome(self._starts(frozen, kind, *details))
        if view.state == STARTING:
            return Outcome(self._end_starting(frozen, *details))
        process = self._thaw(frozen)
        if kind == "end":
            return Outcome(self._end(process, view, *details))
        reply = self._dispatch(process, kind, details)
        return self._outcome(process, reply)

    def _dispatch(self, process: Process, kind: str, details: Sequence[Any]) -> int:
        if kind == "replay":
            self._replay(process, details[0])
        elif kind == "serve":
            return self._serve(process, *details)
        elif kind == "reply":
            self._reply(process, *details)
        elif kind == "altered":
            self._altered(process, *details)
        elif kind == "append":
            process.partition.produce(ProduceRequest(0, NAME, details[0], 1, -1), NOW_US)
        elif kind == "lag":
            self._lag(process, *details)
        else:
            assert kind == "failed"
            self._failed(process)
        return -1

    def _outcome(self, process: Process, reply: int) -> Outcome:
        host = process.host
        assert len(host.proposals) <= 1
        proposal = self._payload((host.broker_epoch, host.proposals[0])) if host.proposals else -1
        requests = tuple([(leader, self._payload(request)) for leader, request in host.requests])
        return Outcome(self._number(process), requests, reply, proposal, host.committed, host.acked, host.min_isr)

    # Snapshots and messages.

    def _payload(self, content: object) -> int:
        return self._payloads.number(self._freezer.freeze(content))

    def payload(self, number: int) -> Any:
        """The content of a message."""
        return self._freezer.thaw(self._payloads[number], None)

    def record(self, number: int) -> Record:
        """A metadata record."""
        while len(self._thawed) <= number:
            self._thawed.append(self._freezer.thaw(self._records[len(self._thawed)], None))
        return self._thawed[number]

    def _thaw(self, frozen: Any) -> Process:
        _, broker, incarnation, broker_epoch, registrations, settled, partition, fetchers, pending = frozen
        thaw = self._freezer.thaw
        host = Host(broker, incarnation, broker_epoch, thaw(registrations, None), settled)
        thawed = thaw(partition, host)
        if pending is not None:
            item = thaw(pending, None)
            host.manager.submit(thawed, item, NOW_US)
            host.proposals.clear()
        manager = AbstractFetcherManager(host, self.decide, 0)
        manager.fetchers = thaw(fetchers, host, thawed)
        return Process(host, thawed, manager)

    def _number(self, process: Process) -> int:
        host, partition = process.host, process.partition
        freeze = self._freezer.freeze
        if not partition.is_leader:
            # Only a leader reads these, and it gets new ones when it is elected. Records arrive in order.
            partition.state.commit(())
            partition.epoch_start = 0
            partition.partition_epoch = -1
        if not partition.state.pending:
            # Only a proposal reads these.
            partition.state.broker_epochs = {}
            partition.state.advances_hw = False
        if not self._keeps_answered:
            partition.answered_min_isr = 0
        pending = host.manager.pending.get(NAME)
        frozen = (
            UP,
            host.broker,
            host.incarnation,
            host.broker_epoch,
            freeze(dict(sorted(host.registrations.items()))),
            host.settled_epoch,
            freeze(partition, inside=False),
            freeze(process.fetchers.fetchers),
            None if pending is None else freeze(pending),
        )
        number = self._numbers.get(frozen)
        return self._add(frozen, self._view(process)) if number is None else number

    def _view(self, process: Process) -> View:
        partition, host = process.partition, process.host
        fetcher = next(iter(process.fetchers.fetchers.values()), None)
        leo = partition.log.leo
        records, ids = _contents(partition.log)
        leads = partition.is_leader
        state = partition.state
        lagging = [one.broker for one in partition.followers.states.values() if one.in_isr and one.leo != leo]
        return View(
            UP,
            leads,
            partition.leader_epoch,
            partition.partition_epoch,
            host.settled_epoch,
            partition.hw,
            records,
            ids,
            fetcher.leader if fetcher else 0,
            fetcher is not None and fetcher.in_flight is not None,
            state.isr if leads else (),
            frozenset({*state.isr, *state.pending}) if leads else frozenset(),
            tuple(lagging) if leads and not state.pending else (),
            host.broker_epoch,
            host.incarnation,
            NO_BROKER_EPOCH,
            True,
            partition.min_insync_replicas if leads else 0,
            partition.answered_min_isr,
        )

    def _number_down(
        self, broker: int, incarnation: int, log: Log, file: LeaderEpochCheckpointFile, hw: int, clean_epoch: int
    ) -> int:
        freeze = self._freezer.freeze
        frozen = (DOWN, broker, incarnation, freeze(log.batches), freeze(file), hw, clean_epoch)
        return self._number_idle(frozen, DOWN, _contents(log), hw, incarnation, clean_epoch, -1, False)

    def _number_idle(
        self,
        frozen: Any,
        state: int,
        contents: tuple[tuple[tuple[int, int], ...], int],
        hw: int,
        incarnation: int,
        clean_epoch: int,
        broker_epoch: int,
        knows_metadata: bool,
    ) -> int:
        number = self._numbers.get(frozen)
        if number is not None:
            return number
        view = View(
            state,
            False,
            -1,
            -1,
            UNSETTLED,
            hw,
            *contents,
            0,
            False,
            (),
            frozenset(),
            (),
            broker_epoch,
            incarnation,
            clean_epoch,
            knows_metadata,
            0,
            0,
        )
        return self._add(frozen, view)

    def _add(self, frozen: Any, view: View) -> int:
        number = self._numbers[frozen] = len(self._snapshots)
        self._snapshots.append(frozen)
        self.views.append(view)
        return number

    # Life cycle.

    def _end(self, process: Process, view: View, kept: int, clean: bool) -> int:
        """The process ends, and `kept` offsets of its log remain."""
        partition = process.partition
        file = LeaderEpochCheckpointFile()
        file.write(partition.epochs.entries)
        log = partition.log
        if kept < log.leo:
            log.truncate_to(kept)
        log.reload()
        hw = min(partition.hw, log.leo)
        epoch = process.host.broker_epoch if clean else NO_BROKER_EPOCH
        return self._number_down(partition.broker, view.incarnation, log, file, hw, epoch)

    def _end_starting(self, frozen: Any, kept: int, _: bool) -> int:
        """A process that has not published metadata ends: its clean-shutdown file is gone."""
        _, broker, incarnation, batches, file, hw, _, _, _ = frozen
        log = self._load(batches)
        if kept < log.leo:
            log.truncate_to(kept)
        thawed = self._freezer.thaw(file, None)
        return self._number_down(broker, incarnation, log, thawed, min(hw, log.leo), NO_BROKER_EPOCH)

    def _load(self, batches: Any) -> Log:
        log = Log(check_first_offset=self.decide.checks_first_offset.answer)
        log.set_batches(self._freezer.thaw(batches, None))
        log.reload()
        return log

    def _start(self, frozen: Any) -> int:
        """A process starts, and registers with the broker epoch in its clean-shutdown file."""
        _, broker, incarnation, batches, file, hw, clean_epoch = frozen
        state = (STARTING, broker, incarnation + 1, batches, file, hw, clean_epoch, NO_BROKER_EPOCH, None)
        return self._number_starting(state)

    def _number_starting(self, frozen: Any) -> int:
        _, _, incarnation, batches, _, hw, clean_epoch, broker_epoch, metadata = frozen
        contents = _contents(self._load(batches))
        return self._number_idle(
            frozen, STARTING, contents, hw, incarnation, clean_epoch, broker_epoch, metadata is not None
        )

    def _starts(self, frozen: Any, kind: str, *details: Any) -> int:
        _, broker, incarnation, batches, file, hw, clean_epoch, broker_epoch, metadata = frozen
        if kind == "committed":
            metadata = tuple(details)
        else:
            assert kind == "registered"
            answered, epoch = details
            is_answer = broker_epoch < 0 and answered == incarnation
            if adopts_registration(self.decide, broker_epoch, is_answer=is_answer):
                broker_epoch = epoch
        state = (STARTING, broker, incarnation, batches, file, hw, clean_epoch, broker_epoch, metadata)
        return self._number_starting(state)

    def _publish(self, frozen: Any, image: Any, numbers: tuple[int, ...]) -> Process:
        """The first replay of metadata, with the broker's own registration, after `Storage.recover`."""
        _, broker, incarnation, batches, file, hw, _, broker_epoch, metadata = frozen
        freezer = self._freezer
        registrations, record, min_isr = metadata if metadata is not None else image
        for number in numbers:  # The configuration at the start.
            known = self.record(number)
            if isinstance(known, ConfigRecord) and known.key == MIN_ISR:
                min_isr = known.value
        host = Host(broker, incarnation, broker_epoch, freezer.thaw(registrations, None), UNSETTLED)
        log = self._load(batches)
        decide = self.decide
        cache = LeaderEpochFileCache(freezer.thaw(file, None), strict=decide.records_epoch_at_election.answer)
        cache.truncate_from_end(log.leo)
        partition = Partition(broker, NAME, log, cache, hw, decide, host, min_insync_replicas=min_isr, lag_us=NOW_US)
        process = Process(host, partition, AbstractFetcherManager(host, decide, 0))
        self._replay(process, (record, *numbers) if record >= 0 else numbers, begins=True)
        return process

    # Metadata (`BrokerMetadataPublisher`).

    def _replay(self, process: Process, numbers: tuple[int, ...], *, begins: bool = False) -> None:
        delta = MetadataDelta([self.record(number) for number in numbers])
        for record in delta.registrations:
            assert isinstance(record, BrokerRegistration)
            process.host.registrations[record.broker] = record
        last = delta.applies_configs_last(self.decide, begins=begins)
        min_isr = delta.configs.get(MIN_ISR, 0)
        assert isinstance(min_isr, int)
        if min_isr and not last:
            process.partition.set_min_isr(min_isr)
        for state in delta.partitions.values():
            self._apply(process, state)
        if min_isr and last:
            process.partition.set_min_isr(min_isr)

    def _apply(self, process: Process, state: PartitionRegistration) -> None:
        """As `KRaftReplicaManager` does by the same changes."""
        partition, host, fetchers = process.partition, process.host, process.fetchers
        change = local_replica_change(partition.broker, partition, state, shutting_down=False)
        if change == OUTDATED:
            return
        if change in (LEADS, LEADS_ON):
            if change == LEADS:
                stop_following(NAME, fetchers)
                host.settled_epoch = state.leader_epoch
            partition.become_leader(state, NOW_US)
        elif change == AWAITS:
            stop_following(NAME, fetchers)
            partition.become_follower(state)
            host.settled_epoch = UNSETTLED
        elif change == FOLLOWS:
            follow(partition, state, fetchers, host)
        else:
            partition.become_follower(state)

    # Leading.

    def _lag(self, process: Process, follower: int) -> None:
        """One ISR member has not been caught up for ``replica.lag.time.max.ms``."""
        followers = process.partition.followers
        for state in followers.states.values():
            state.caught_up_us = NEVER_US if state.broker == follower else NOW_US
        process.partition.shrink_isr(NOW_US)

    def _altered(self, process: Process, payload: int) -> None:
        results = self.payload(payload)
        process.host.manager.on_reply(NONE, {NAME: results}, NOW_US)

    def _serve(self, process: Process, follower: int, payload: int) -> int:
        """As `KafkaApis.on_fetch` and `on_list_offsets`; ``replica.fetch.wait.max.ms`` is 0."""
        request = self.payload(payload)
        partition = process.partition
        if isinstance(request, ListOffsetsRequest):
            error, offset = partition.list_offset(request.timestamp, request.leader_epoch, replica=True)
            return self._payload(("list", error, offset, partition.leader_epoch))
        position, broker_epoch = request.positions[0], request.broker_epoch
        result, effect = read_for_follower(partition, follower, broker_epoch, position)
        if effect == READ:
            partition.follower_fetched(follower, broker_epoch, position[1], request.leader_epochs[0], NOW_US)
            if not result[2]:  # An empty response comes later, with the HW of then.
                result = fetch_result(partition, NONE, [])
        return self._payload(("fetch", (*result[:2], list(result[2]), *result[3:])))

    # Following.

    def _reply(self, process: Process, payload: int) -> None:
        kind, *content = self.payload(payload)
        (fetcher,) = process.fetchers.fetchers.values()
        request: Any = fetcher.in_flight
        if kind == "fetch":
            fetcher.on_fetch_reply(FetchResponse(request, content), NOW_US)
        else:
            error, offset, epoch = content
            fetcher.on_list_offsets_reply(ListOffsetsResponse(request, error, offset, epoch), NOW_US)

    def _failed(self, process: Process) -> None:
        """The connection of the request in flight broke."""
        (fetcher,) = process.fetchers.fetchers.values()
        assert fetcher.in_flight is not None
        fetcher.request_failed(fetcher.in_flight, NOW_US)


def _contents(log: Log) -> tuple[tuple[tuple[int, int], ...], int]:
    """(id, epoch) at each offset, and the ids as a bit set."""
    records: list[tuple[int, int]] = []
    for batch in log.batches:
        records += [(one, batch.leader_epoch) for one in batch.ids()]
    return tuple(records), sum({1 << one for one, _ in records})
