"""The part of a broker that follows leaders: its fetchers, their requests and timeouts.

`sim.protocol.replica.replica_fetcher_thread` makes all protocol decisions.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from sim.environment.elision import ElidedFetch
from sim.environment.network import Channel
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.hosted_replica import HostedReplica
from sim.hosts.serving import Serving
from sim.hosts.settings import BrokerSettings
from sim.kernel.build import COMPILED
from sim.kernel.scheduler import Call, Event, Gate, Kernel
from sim.protocol import probes
from sim.protocol.decisions import Decisions
from sim.protocol.messages import (
    NOT_LEADER_OR_FOLLOWER,
    Ask,
    EpochEndResult,
    FetchRequest,
    FetchResponse,
    FetchResult,
    LeaderAndIsr,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    Position,
    ProduceRequest,
)
from sim.protocol.replica.partition import NO_LEADER
from sim.protocol.replica.partition_fetch_state import FETCHING
from sim.protocol.replica.replica import Replica
from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread


class _FetcherCall(Call):
    """A call that lets a fetcher go on after its back-off."""

    __slots__ = ()
    needs_partition = True

    def writes_to(self, names: Container[str]) -> bool:
        """See `Event.writes_to`: a fetcher may truncate, so it waits with all its partitions."""
        fetcher: ReplicaFetcherThread = self.argument
        return any(name in names for name in fetcher.partitions)

    def needs(self, names: Container[str]) -> bool:
        """See `Event.needs`."""
        return self.writes_to(names)


class _RequestTimeout(Event):
    """Checks whether a request to a leader has timed out."""

    __slots__ = ("_broker", "_leader", "_until_us")
    elision_safe = True

    def __init__(self, broker: Following, leader: int, until_us: int) -> None:
        self._broker = broker
        self._leader = leader
        self._until_us = until_us

    def happen(self, _: Gate) -> None:
        self._broker.time_out(self, self._leader, self._until_us)


class Following(Serving):
    """The part of a broker that follows leaders: it fetches into the replicas that `Serving` serves.

    Kafka: ReplicaFetcherManager, AbstractFetcherManager, server.ReplicaFetcherBlockingSend (1.1-2.6),
    BrokerBlockingSender (3.9-4.4).
    """

    __slots__ = (
        "_added",
        "_after_empty_response",
        "_asked_us",
        "_fetchers",
        "_keeps_idle",
        "_last_exchange",
        "_refused",
        "_repeated_asks",
        "_sent_us",
        "_timers_set",
        "recorder",
    )

    def __init__(
        self, broker: int, decide: Decisions, settings: BrokerSettings, kernel: Kernel, recorder: Recorder
    ) -> None:
        super().__init__(broker, settings, kernel)
        self.decide = decide
        self.reached = recorder.coverage.reached
        self.recorder = recorder
        self._fetchers: dict[int, ReplicaFetcherThread] = {}
        self._keeps_idle = False
        """Whether fetchers without partitions keep running until `shut_down_idle_fetchers`."""
        self._added: list[ReplicaFetcherThread] | None = None
        """The fetchers that get partitions, while they are to send requests only once they have all of them."""
        self._sent_us: dict[int, int] = {}
        self._after_empty_response = False
        """Set while an empty response is handled: the next fetch may be elided (`sim.environment.elision`)."""
        self._timers_set: set[int] = set()
        self._refused: dict[int, int] = {}
        self._last_exchange: tuple[Sequence[Ask], Sequence[EpochEndResult]] = ([], [])
        """The last OffsetsForLeaderEpoch request of an incomplete truncation, and its response."""
        self._repeated_asks: Sequence[Ask] = []
        """That request, if it got the same response as the one before; otherwise empty."""
        self._asked_us = 0

    def end(self) -> None:
        super().end()
        self._fetchers.clear()

    def receive(self, message: Event) -> None:
        # The most frequent types first: each test takes time.
        if isinstance(message, FetchRequest):
            self.on_fetch(message)
        elif isinstance(message, FetchResponse):
            self.on_fetch_reply(message)
        elif isinstance(message, ProduceRequest):
            self.on_produce(message)
        else:
            self.receive_other(message)

    def receive_other(self, message: Event) -> None:
        if isinstance(message, OffsetsForLeaderEpochResponse):
            self.on_epoch_end_reply(message)
        elif isinstance(message, ListOffsetsResponse):
            self.on_list_offsets_reply(message)
        else:
            super().receive_other(message)

    # The leader that it follows.

    def fetch_from(self, replica: HostedReplica, decision: LeaderAndIsr, *, restarts: bool) -> None:
        """Fetch from the leader that a LeaderAndIsr names; the partition is a follower already. With `restarts` the
        replica truncates and restarts even if it already fetches from that leader.

        Kafka: AbstractFetcherManager#addFetcherForPartitions.
        """
        partition = replica.partition
        fetcher = self._fetchers.get(decision.leader)
        fetch = fetcher.partitions.get(partition.name) if fetcher else None
        if fetcher is None or fetch is None or restarts:
            replica.recorder.record(steps.Follow(self.node, partition, restarts=True))
            if fetcher is None:
                fetcher = self._new_fetcher(decision.leader)
            self._fetchers[decision.leader] = fetcher
            fetcher.remove(partition.name)
            self._stop_fetching(partition.name, spared=decision.leader)
            repeats = bool(self._repeated_asks)
            self._forget_exchange()
            added = self._added
            fetcher.add(partition, decision.leader_epoch, self.kernel.now_us, steps=added is None)
            if added is not None and fetcher not in added:
                added.append(fetcher)
            if repeats and len(fetcher.partitions) > 1:
                self.network.note_broker_change()  # An elided retry for others would hold this partition up.
        else:
            replica.recorder.record(steps.Follow(self.node, partition, restarts=False))
            fetch.leader_epoch = decision.leader_epoch
            fetcher.note_change()
            if fetch.state is FETCHING:
                self.truncation_completed(partition, decision.leader_epoch, 0)

    def begin_changes(self) -> None:
        """Begin to apply several changes together: see `end_changes`."""
        self._keeps_idle = True
        self._added = []

    def end_changes(self) -> None:
        """Let fetchers fetch all partitions that they got, and shut down those without partitions.

        Kafka: AbstractFetcherManager#addFetcherForPartitions, AbstractFetcherManager#shutdownIdleFetcherThreads.
        """
        added, self._added = self._added, None
        self._keeps_idle = False
        for fetcher in added or ():
            fetcher.step(self.kernel.now_us)
        self.shut_down_idle_fetchers()

    def is_fetching_from(self, leader: int, name: str) -> bool:
        """Whether a fetcher fetches this partition from that broker."""
        fetcher = self._fetchers.get(leader)
        return fetcher is not None and name in fetcher.partitions

    def stop_fetching(self, name: str) -> None:
        self._stop_fetching(name, spared=NO_LEADER)

    def _stop_fetching(self, name: str, *, spared: int) -> None:
        """Remove a partition from all fetchers but that of the leader `spared`. A fetcher without partitions is shut
        down; a dead one that still has partitions stays, and stays dead.
        """
        for leader, fetcher in list(self._fetchers.items()):
            if leader != spared and name in fetcher.partitions:
                fetcher.remove(name)
                if fetcher.partitions:
                    if fetcher.in_flight is not None:
                        self.reached(probes.FETCHER_STAYS)
                elif not self._keeps_idle:
                    del self._fetchers[leader]

    def shut_down_idle_fetchers(self) -> None:
        """Shut down fetchers without partitions, after several changes were applied together.

        Kafka: AbstractFetcherManager#shutdownIdleFetcherThreads.
        """
        for leader, fetcher in list(self._fetchers.items()):
            if not fetcher.partitions:
                del self._fetchers[leader]

    def allow_unclean_election(self, *, allowed: bool) -> None:
        """Set whether unclean leader election is allowed."""
        for fetcher in self._fetchers.values():
            fetcher.unclean_election = allowed

    def halt(self, reason: str) -> None:
        """See `FetcherHost.halt`."""
        raise NotImplementedError

    def _new_fetcher(self, leader: int) -> ReplicaFetcherThread:
        """Kafka: ReplicaFetcherManager#createFetcherThread."""
        return ReplicaFetcherThread(
            leader,
            self.decide,
            self,
            backoff_us=self.settings.fetch_backoff_us,
            unclean_election=self.settings.unclean_election,
        )

    def truncation_completed(self, replica: Replica, leader_epoch: int, rounds: int) -> None:
        """See `FetcherHost.truncation_completed`."""
        hosted = self.replica(replica.name)
        assert hosted is not None
        assert replica is hosted.partition
        self._forget_exchange()
        hosted.recorder.record(steps.Settled(self.node, leader_epoch, rounds))

    def _forget_exchange(self) -> None:
        self._last_exchange = ([], [])
        self._repeated_asks = []

    # Requests to a leader, and its answers.

    def send_fetch(
        self, fetcher: ReplicaFetcherThread, positions: list[Position], leader_epochs: list[int]
    ) -> FetchRequest:
        """See `FetcherHost.send_fetch`; while the leader is down, its next start triggers a retry (`peer_up`)."""
        leader = fetcher.leader
        node = self.node
        version = self.network.version
        incremental = fetcher.session.incremental
        request = FetchRequest(node, leader, node, self.broker_epoch, positions, leader_epochs, version, incremental)
        channel: Channel[Any] | None = self.out.get(leader) or self.reach(leader)
        if channel is not None:
            if self._after_empty_response:
                channel.send_beside(request)
            else:
                channel.send(request)
            self._set_timeout(fetcher)
        return request

    def send_epoch_end(
        self, fetcher: ReplicaFetcherThread, asks: list[Ask], leader_epochs: list[int], *, with_epoch: bool
    ) -> OffsetsForLeaderEpochRequest:
        """See `FetcherHost.send_epoch_end`."""
        repeated = self._repeated_asks == asks and len(asks) == len(fetcher.partitions)
        request = OffsetsForLeaderEpochRequest(
            self.node, asks, leader_epochs, with_epoch=with_epoch, is_repeated=repeated
        )
        if repeated and self.network.elides:
            # A truncation that never completes (KAFKA-10706): the next response would lead to the same request again.
            round_us = self.kernel.now_us - self._asked_us
            retry = Call(self._send_epoch_end, (fetcher, request))
            self.network.retry_after_change(lambda: round_us, self.life, retry)
        else:
            self._send_epoch_end((fetcher, request))
        return request

    def _send_epoch_end(self, entry: tuple[ReplicaFetcherThread, OffsetsForLeaderEpochRequest]) -> None:
        fetcher, request = entry
        channel = self.reach(fetcher.leader)
        if channel is not None and (fetcher.in_flight is None or fetcher.in_flight is request):
            self._asked_us = self.kernel.now_us
            if request.is_repeated:
                channel.send_beside(request)
            else:
                channel.send(request)
            self._set_timeout(fetcher)

    def send_list_offsets(
        self, fetcher: ReplicaFetcherThread, name: str, timestamp: int, leader_epoch: int
    ) -> ListOffsetsRequest:
        """See `FetcherHost.send_list_offsets`."""
        request = ListOffsetsRequest(self.node, self.node, name, timestamp, leader_epoch)
        channel = self.reach(fetcher.leader)
        if channel is not None:
            channel.send(request)
            self._set_timeout(fetcher)
        return request

    def on_fetch_reply(self, reply: FetchResponse) -> None:
        """Handle a fetch response, perhaps to a fetcher of an earlier incarnation."""
        request = reply.request
        fetcher = self._fetchers.get(request.leader)
        if fetcher is not None:
            refused = empty = True
            results, incremental = reply.results, reply.incremental
            if incremental is not None:
                if len(incremental.places) < len(results):
                    refused = False
                results = [results[place] for place in incremental.places]
            for result in results:
                error = result[1]
                if error != NOT_LEADER_OR_FOLLOWER:
                    refused = False
                if error or result[2]:
                    empty = False
            if refused and len(fetcher.partitions) <= len(reply.results):
                self._refused[request.leader] = request.version
            self._after_empty_response = empty
            fetcher.on_fetch_reply(reply, self.kernel.now_us)
            self._after_empty_response = False

    def on_epoch_end_reply(self, reply: OffsetsForLeaderEpochResponse) -> None:
        """Handle a response to OffsetsForLeaderEpoch."""
        # Late responses do not count.
        if any(fetcher.in_flight is reply.request for fetcher in self._fetchers.values()):
            conversation = (reply.request.asks, reply.results)
            alike = conversation == self._last_exchange and not any(error for _, error, _, _ in reply.results)
            self._repeated_asks = reply.request.asks if alike else []
            self._last_exchange = conversation
        for fetcher in self._fetchers.values():
            fetcher.on_epoch_end_reply(reply, self.kernel.now_us)

    def on_list_offsets_reply(self, reply: ListOffsetsResponse) -> None:
        """Handle a response to ListOffsets."""
        self.end_elision()
        for fetcher in self._fetchers.values():
            fetcher.on_list_offsets_reply(reply, self.kernel.now_us)

    # Back-off and timeouts.

    def wake_fetcher(self, fetcher: ReplicaFetcherThread, at_us: int) -> None:
        """See `FetcherHost.wake_fetcher`."""
        self.kernel.schedule(at_us, self.life, _FetcherCall(self._step_fetcher, fetcher))

    def _step_fetcher(self, fetcher: ReplicaFetcherThread) -> None:
        """Let the fetcher send its next request, unless a leader that has not changed would refuse that again."""
        if self._fetchers.get(fetcher.leader) is not fetcher:
            return  # The fetcher was shut down.
        if self._refused.get(fetcher.leader) == self.network.version:
            retry = _FetcherCall(self._step_fetcher, fetcher)
            self.network.retry_after_change(self._fetch_backoff_us, self.life, retry)
        else:
            fetcher.step(self.kernel.now_us)

    def _fetch_backoff_us(self) -> int:
        return self.settings.fetch_backoff_us

    def _set_timeout(self, fetcher: ReplicaFetcherThread) -> None:
        """Time out a request after ``replica.socket.timeout.ms``; one timer serves all requests to a leader."""
        self._set_timeout_from(fetcher.leader, self.kernel.now_us)

    def _set_timeout_from(self, leader: int, sent_us: int) -> None:
        self._sent_us[leader] = sent_us
        if leader not in self._timers_set:
            self._set_timeout_at(leader, sent_us + self.settings.socket_timeout_us)

    def _set_timeout_at(self, leader: int, due_us: int) -> None:
        self._timers_set.add(leader)
        timeout = _RequestTimeout(self, leader, due_us)
        self.kernel.schedule(max(due_us, self.kernel.now_us), self.life, timeout)

    def time_out(self, timeout: Event, leader: int, until_us: int) -> None:
        """Time out requests to a leader; `until_us` is the deadline as of the last check."""
        if self.frozen:  # The broker is resuming: it first handles received messages (NetworkClient.poll).
            self.kernel.schedule(self.kernel.now_us, self.life, timeout)
            return
        self._timers_set.discard(leader)
        fetcher = self._fetchers.get(leader)
        request = fetcher.in_flight if fetcher is not None else None
        if fetcher is None or request is None or leader not in self.out:
            return  # Requests to a peer that is down are retried when it is up.
        for exchange in self.life.elided:
            if isinstance(exchange, ElidedFetch) and exchange.delayed.request is request:
                return  # Its elided rounds are answered in time.
        due_us = self._sent_us[leader] + self.settings.socket_timeout_us
        if due_us <= until_us:
            fetcher.request_failed(request, self.kernel.now_us)
        else:
            self._set_timeout_at(leader, due_us)

    def peer_up(self, peer: int) -> None:
        """See `Node.peer_up`: requests that the ended process never answered are retried."""
        self._retry(peer)

    def disconnected(self, peer: int) -> None:
        if peer in self.network.nodes:
            self.peer_up(peer)

    def _retry(self, peer: int) -> None:
        fetcher = self._fetchers.get(peer)
        if fetcher is not None and fetcher.in_flight is not None:
            fetcher.request_failed(fetcher.in_flight, self.kernel.now_us)

    # Elision of idle fetches: see `sim.environment.elision`.

    def would_repeat(self, request: FetchRequest, place: int, hw: int, log_start: int) -> bool:
        replica = self.replica(request.positions[place][0])
        if (
            replica is None
            or replica.partition.hw != hw
            or self.waiting is not None
            or request.broker_epoch != self.broker_epoch
        ):
            return False
        fetcher = self._fetchers.get(request.leader)
        return fetcher is not None and fetcher.would_repeat(request, place, log_start)

    def repeated_places(
        self, request: FetchRequest, results: Sequence[FetchResult], changed: Sequence[int] | None
    ) -> int:
        fetcher = self._fetchers.get(request.leader)
        if fetcher is None or self.waiting is not None or request.broker_epoch != self.broker_epoch:
            return 0
        return fetcher.repeated_places(request, results, changed)

    def note_log_replaced(self, name: str) -> None:
        """Note that the log of a followed partition was replaced."""
        for fetcher in self._fetchers.values():
            if name in fetcher.partitions:
                fetcher.note_change()

    def is_answered_in_time(self, peer: int, answered_us: int, period_us: int) -> bool:
        timeout_us = self.settings.socket_timeout_us
        return answered_us < self._sent_us[peer] + timeout_us and period_us < timeout_us

    def note_elided_rounds(self, request: FetchRequest, sent_us: int, answers: int) -> None:
        """See `Node.note_elided_rounds`. Without an answer the noted send time stays: `sent_us`, counted back from the
        wait, is too late if the leader held the fetch back before.
        """
        leader = request.leader
        self._set_timeout_from(leader, sent_us if answers else self._sent_us[leader])


if not COMPILED:
    Following.handlers = {
        FetchRequest: Following.on_fetch,
        FetchResponse: Following.on_fetch_reply,
        ProduceRequest: Following.on_produce,
        MetadataRequest: Following.on_metadata,
        OffsetsForLeaderEpochRequest: Following.on_epoch_end,
        OffsetsForLeaderEpochResponse: Following.on_epoch_end_reply,
    }
