"""One broker as a function: the real partition and fetcher of `sim.protocol`, a snapshot and an event go in, the next
snapshot and what the broker does come out.

What a broker does depends on nothing else, so every pair of snapshot and event is computed once (`Machine.step`).
Snapshots and messages are numbers for the search; time stands still, and who lags is an event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from highwater.lab.explore.freezing import Freezer
from highwater.lab.explore.host import NOW_US, UNSETTLED, RecordingHost, follow, stop_following
from sim.protocol.decisions import Decisions
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochCheckpointFile, LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import (
    INVALID_UPDATE_VERSION,
    NONE,
    Ask,
    FetchResponse,
    FetchResult,
    LeaderAndIsr,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
)
from sim.protocol.replica.abstract_fetcher_manager import AbstractFetcherManager
from sim.protocol.replica.fetch_results import fetch_refusal, fetch_result
from sim.protocol.replica.followers import NEVER_US
from sim.protocol.replica.isr import UNREGISTERED
from sim.protocol.replica.partition import NO_LEADER, Partition
from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.protocol.rules import Rules

NAME: Final = "t-0"
LAG_US: Final = 1
CONSTANTS: Final = {"rounds": 0}
"""Counted for reports only. A follower that asks for ever (KAFKA-10706) would never come back to a known state."""
Event = tuple[Any, ...]


class Host(RecordingHost):
    """Records the requests of partition and fetcher."""

    def __init__(self) -> None:
        super().__init__(0, -1)
        self.isr: tuple[int, ...] | None = None
        self.halted = False

    def answer_produce(self, request: ProduceRequest, error: str, base_offset: int) -> None:
        """See `PartitionHost.answer_produce`."""

    def is_alive(self, broker: int) -> bool:  # noqa: ARG002
        """See `MetadataCache.is_alive`."""
        return True

    def registered_epoch(self, broker: int) -> int:  # noqa: ARG002
        """See `MetadataCache.registered_epoch`."""
        return UNREGISTERED

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:  # noqa: ARG002
        """See `PartitionHost.propose_isr`."""
        self.isr = isr

    def send_epoch_end(
        self, fetcher: ReplicaFetcherThread, asks: list[Ask], leader_epochs: list[int], *, with_epoch: bool
    ) -> OffsetsForLeaderEpochRequest:
        """See `FetcherHost.send_epoch_end`."""
        request = OffsetsForLeaderEpochRequest(0, asks, leader_epochs, with_epoch=with_epoch)
        self.requests.append((fetcher.leader, request))
        return request

    def halt(self, reason: str) -> None:  # noqa: ARG002
        """See `FetcherHost.halt`."""
        self.halted = True


@dataclass(slots=True)
class Broker:
    """A running broker, taken out of a snapshot."""

    host: Host
    partition: Partition
    fetchers: AbstractFetcherManager


class View(NamedTuple):
    """Properties of a snapshot for the search.

    Attributes:
        up: the process runs.
        leads: it believes that it leads.
        epoch: its leader epoch.
        settled: the epoch that it leads in or completed truncation for, `UNSETTLED` without one.
        hw: its HW.
        log_start: its log start.
        records: (id, epoch) at each offset, None in a hole. Deleted records are still there.
        ids: the records as a bit set.
        follows: the leader that its fetcher asks, 0 without one.
        waits: a request of its fetcher is unanswered.
        may_lag: followers whose LEO differs from the leader's.
    """

    up: bool
    leads: bool
    epoch: int
    settled: int
    hw: int
    log_start: int
    records: tuple[tuple[int, int] | None, ...]
    ids: int
    follows: int
    waits: bool
    may_lag: tuple[int, ...]


class Outcome(NamedTuple):
    """The result of an event at a broker.

    Attributes:
        snapshot: its next snapshot.
        requests: (leader, message) that its fetcher sent.
        reply: message that answers the event's request, -1 if that has to wait for the ISR.
        isr: the ISR that it wants persisted.
        committed: records that its HW passed while it led, as a bit set.
        halted: the process exits.
    """

    snapshot: int
    requests: tuple[tuple[int, int], ...]
    reply: int
    isr: tuple[int, ...] | None
    committed: int
    halted: bool


class Machine:
    """All snapshots and messages of the brokers of one cluster, and what events make of them.

    Args:
        rules: of every broker.
        replicas: the brokers.
    """

    def __init__(self, rules: Rules, replicas: tuple[int, ...]) -> None:
        self.rules = rules
        self.decide = Decisions(rules)
        self.replicas = replicas
        self._freezer = Freezer(self.decide, CONSTANTS)
        self.views: list[View] = []
        self.messages: list[Any] = []
        self._snapshots: list[Any] = []
        self._snapshot_numbers: dict[Any, int] = {}
        self._message_numbers: dict[Any, int] = {}
        self._outcomes: dict[tuple[int, Event], Outcome] = {}
        self._handlers: dict[str, Callable[..., int | None]] = {
            "control": self._on_control,
            "append": self._on_append,
            "delete": self._on_delete,
            "lag": self._on_lag,
            "persisted": self._on_persisted,
            "refused": self._on_refused,
            "serve": self._on_serve,
            "answer": self._on_answer,
            "reply": self._on_reply,
            "failed": self._on_failed,
        }

    def create(self, broker: int) -> int:
        """The snapshot of a broker that is down, with an empty log."""
        return self._number_down(broker, Log(), LeaderEpochCheckpointFile(), 0)

    def step(self, snapshot: int, event: Event) -> Outcome:
        """A broker's state after an event."""
        known = self._outcomes.get((snapshot, event))
        if known is None:
            known = self._outcomes[snapshot, event] = self._compute(snapshot, event)
        return known

    def _compute(self, snapshot: int, event: Event) -> Outcome:
        frozen = self._snapshots[snapshot]
        kind, *details = event
        reply: int | None = -1
        if kind == "start":
            broker = self._start(frozen, *details)
        else:
            broker = self._thaw(frozen)
            if kind == "crash":
                return Outcome(self._crash(broker), (), -1, None, 0, halted=False)
            reply = self._handlers[kind](broker, *details)
        host = broker.host
        after = self._number(broker)
        requests = tuple((leader, self._message(request)) for leader, request in host.requests)
        return Outcome(after, requests, -1 if reply is None else reply, host.isr, host.committed, host.halted)

    # Snapshots and messages.

    def _thaw(self, frozen: Any) -> Broker:
        settled, partition, fetchers = frozen
        host = Host()
        host.settled_epoch = settled
        thawed = self._freezer.thaw(partition, host)
        manager = AbstractFetcherManager(host, self.decide, 0)
        manager.fetchers = self._freezer.thaw(fetchers, host, thawed)
        return Broker(host, thawed, manager)

    def _number(self, broker: Broker) -> int:
        partition = broker.partition
        frozen = (
            broker.host.settled_epoch,
            self._freezer.freeze(partition, inside=False),
            self._freezer.freeze(broker.fetchers.fetchers),
        )
        number = self._snapshot_numbers.get(frozen)
        if number is None:
            number = self._add(frozen, self._view(broker))
        return number

    def _view(self, broker: Broker) -> View:
        partition = broker.partition
        fetcher = next(iter(broker.fetchers.fetchers.values()), None)
        leo = partition.log.leo
        records, ids = self._records(partition.log)
        return View(
            True,
            partition.is_leader,
            partition.leader_epoch,
            broker.host.settled_epoch,
            partition.hw,
            partition.log.log_start,
            records,
            ids,
            fetcher.leader if fetcher else 0,
            fetcher is not None and fetcher.in_flight is not None,
            tuple(
                state.broker
                for state in partition.followers.states.values()
                if state.leo != leo and state.caught_up_us == NOW_US
            ),
        )

    @staticmethod
    def _records(log: Log) -> tuple[tuple[tuple[int, int] | None, ...], int]:
        records: list[tuple[int, int] | None] = [None] * log.leo
        for batch in (*log.below, *log.batches):
            for offset in range(batch.base_offset, batch.last_offset + 1):
                records[offset] = batch.first_id + offset - batch.base_offset, batch.leader_epoch
        return tuple(records), sum({1 << record[0] for record in records if record is not None})

    def _number_down(self, broker: int, log: Log, checkpoint: LeaderEpochCheckpointFile, hw: int) -> int:
        batches = [*log.below, *log.batches]
        first = log.segments[0]
        start = log.log_start if self.rules.log_start_checkpoint == "at-once" else first
        frozen = ("down", broker, self._freezer.freeze(batches), self._freezer.freeze(checkpoint), hw, first, start)
        number = self._snapshot_numbers.get(frozen)
        if number is None:
            records, ids = self._records(log)
            number = self._add(frozen, View(False, False, -1, UNSETTLED, hw, log.log_start, records, ids, 0, False, ()))
        return number

    def _add(self, frozen: Any, view: View) -> int:
        number = self._snapshot_numbers[frozen] = len(self._snapshots)
        self._snapshots.append(frozen)
        self.views.append(view)
        return number

    def message(self, number: int) -> Any:
        """A message."""
        return self._freezer.thaw(self.messages[number], None)

    def _message(self, message: Any) -> int:
        frozen = self._freezer.freeze(message)
        number = self._message_numbers.get(frozen)
        if number is None:
            number = self._message_numbers[frozen] = len(self.messages)
            self.messages.append(frozen)
        return number

    # Life cycle.

    def _crash(self, broker: Broker) -> int:
        """The process ends; the page cache stays: nothing of the log is lost."""
        partition = broker.partition
        checkpoint = LeaderEpochCheckpointFile()
        checkpoint.write(partition.epochs.entries)
        log = partition.log
        log.reload()
        return self._number_down(partition.broker, log, checkpoint, min(partition.hw, log.leo))

    def _start(self, frozen: Any, hw: int) -> Broker:
        """The process loads its log, with a checkpointed HW (`Storage.recover`). If the file with the log start is
        written periodically, it is older than any deletion, so deleted records are back.
        """
        _, number, batches, checkpoint, _, first, start = frozen
        host = Host()
        log = Log(check_first_offset=self.rules.append_check == "first-offset", log_start=first)
        log.batches = self._freezer.thaw(batches, host)
        log.lasts = [batch.last_offset for batch in log.batches]
        log.reload()
        log.advance_start(start)
        cache = LeaderEpochFileCache(
            self._freezer.thaw(checkpoint, host), strict=self.rules.epoch_recorded_at == "election"
        )
        cache.truncate_from_end(log.leo)
        cache.truncate_from_start(start)
        partition = Partition(
            number, NAME, log, cache, max(hw, start), self.decide, host, min_insync_replicas=1, lag_us=LAG_US
        )
        return Broker(host, partition, AbstractFetcherManager(host, self.decide, 0))

    # Events: decisions of the controller (`sim.hosts.broker` for the order of things).

    def _on_control(self, broker: Broker, leader: int, epoch: int, isr: tuple[int, ...]) -> None:
        partition = broker.partition
        if epoch <= partition.leader_epoch:
            return
        # Partition epochs: each decision of the controller raises the leader epoch, and only the leader that it named
        # writes otherwise. So whether a leader knows the present version is whether it knows the present leader epoch.
        decision = LeaderAndIsr(NAME, leader, epoch, isr, epoch, self.replicas)
        host = broker.host
        if leader == partition.broker:
            stop_following(NAME, broker.fetchers)
            host.settled_epoch = epoch
            partition.become_leader(decision, NOW_US)
        elif leader != NO_LEADER:
            follow(partition, decision, broker.fetchers, host)
        # One without a leader is ignored, leader epoch included (ReplicaManager.makeFollowers).

    # Events: leading.

    def _on_append(self, broker: Broker, first_id: int, count: int) -> None:
        broker.partition.produce(ProduceRequest(0, NAME, first_id, count, 0), NOW_US)

    def _on_delete(self, broker: Broker, offset: int) -> None:
        """DeleteRecords (`sim.hosts.administrator`)."""
        broker.partition.advance_log_start(offset)

    def _on_lag(self, broker: Broker, follower: int) -> None:
        """A follower has not caught up for longer than the lag allows."""
        broker.partition.followers.states[follower].caught_up_us = NEVER_US
        broker.partition.shrink_isr(NOW_US)

    def _on_persisted(self, broker: Broker, isr: tuple[int, ...]) -> None:
        partition = broker.partition
        partition.isr_persisted(isr, partition.partition_epoch, NOW_US)

    def _on_refused(self, broker: Broker) -> None:
        broker.partition.isr_refused(INVALID_UPDATE_VERSION, NOW_US)

    def _on_serve(self, broker: Broker, follower: int, message: int) -> int | None:
        """A follower's request arrives (`sim.hosts.kafka_apis`); `replica.fetch.wait.max.ms` is 0."""
        request = self._freezer.thaw(self.messages[message], None)
        partition = broker.partition
        if isinstance(request, OffsetsForLeaderEpochRequest):
            answers = [
                (name, *partition.end_offset_for(current, epoch, with_epoch=request.with_epoch))
                for name, current, epoch in request.asks
            ]
            return self._message(OffsetsForLeaderEpochResponse(None, answers))  # type: ignore[arg-type]
        if isinstance(request, ListOffsetsRequest):
            error, offset = partition.list_offset(request.timestamp, request.leader_epoch, replica=True)
            return self._message(ListOffsetsResponse(None, error, offset, partition.leader_epoch))  # type: ignore[arg-type]
        _, offset, epoch, last_epoch = request.positions[0]
        error = partition.check_fetch(offset, epoch, last_epoch)
        if error:
            return self._fetched(fetch_refusal(partition, error, last_epoch))
        reply = None
        if offset < partition.log.leo:
            reply = self._fetched(fetch_result(partition, NONE, partition.read_uncommitted(offset)))
        partition.follower_fetched(follower, -1, offset, request.leader_epochs[0], NOW_US)
        return reply

    def _on_answer(self, broker: Broker) -> int:
        """An empty answer, once the fetch was counted and the ISR is settled."""
        return self._fetched(fetch_result(broker.partition, NONE, []))

    def _fetched(self, result: FetchResult) -> int:
        return self._message(FetchResponse(None, [result]))  # type: ignore[arg-type]

    # Events: following.

    def _on_reply(self, broker: Broker, message: int) -> None:
        reply = self._freezer.thaw(self.messages[message], None)
        (fetcher,) = broker.fetchers.fetchers.values()
        reply.request = fetcher.in_flight
        if isinstance(reply, FetchResponse):
            fetcher.on_fetch_reply(reply, NOW_US)
        elif isinstance(reply, OffsetsForLeaderEpochResponse):
            fetcher.on_epoch_end_reply(reply, NOW_US)
        else:
            fetcher.on_list_offsets_reply(reply, NOW_US)

    def _on_failed(self, broker: Broker) -> None:
        """The connection of the request under way broke."""
        (fetcher,) = broker.fetchers.fetchers.values()
        assert fetcher.in_flight is not None
        fetcher.request_failed(fetcher.in_flight, NOW_US)
