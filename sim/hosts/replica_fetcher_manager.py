"""The fetchers of a broker, and their requests to leaders.

`sim.protocol.replica.replica_fetcher_thread` makes all protocol decisions.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from sim.environment.network import Channel
from sim.history import steps
from sim.hosts.broker_blocking_sender import BrokerBlockingSender
from sim.hosts.broker_node import BrokerNode
from sim.hosts.hosted_replica import HostedReplica, HostedReplicas
from sim.kernel.scheduler import Call
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
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    Position,
)
from sim.protocol.replica.abstract_fetcher_manager import AbstractFetcherManager
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


class ReplicaFetcherManager:
    """See the module. Kafka: ReplicaFetcherManager, RemoteLeaderEndPoint (3.9-4.4).

    Attributes:
        manager: begins and ends their work.
        fetchers: by leader.
        sender: times their requests out.
    """

    __deletable__ = ("manager",)
    __slots__ = (
        "_after_empty_response",
        "_asked_us",
        "_broker",
        "_last_exchange",
        "_refused",
        "_repeated_asks",
        "_replicas",
        "fetchers",
        "manager",
        "reached",
        "sender",
    )

    def __init__(self, broker: BrokerNode, replicas: HostedReplicas) -> None:
        self._broker = broker
        self._replicas = replicas
        self.reached = broker.reached
        self.manager = AbstractFetcherManager(self, broker.decide, broker.settings.fetch_backoff_us)
        self.fetchers = self.manager.fetchers
        self.sender = BrokerBlockingSender(broker, self.fetchers)
        self._after_empty_response = False
        """Set while an empty response is handled: the next fetch may be elided (`sim.environment.elision`)."""
        self._refused: dict[int, int] = {}
        self._last_exchange: tuple[Sequence[Ask], Sequence[EpochEndResult]] = ([], [])
        """The last OffsetsForLeaderEpoch request of an incomplete truncation, and its response."""
        self._repeated_asks: Sequence[Ask] = []
        """That request, if it got the same response as the one before; otherwise empty."""
        self._asked_us = 0

    def end(self) -> None:
        """Stop, because the process ended."""
        self.fetchers.clear()

    def dispose(self) -> None:
        """See `Cluster.dispose`."""
        del self.manager

    # The leaders that it follows.

    def fetch_from(self, replica: HostedReplica, decision: LeaderAndIsr, *, restarts: bool) -> None:
        """Fetch from the leader that a LeaderAndIsr names; the partition is a follower already. With `restarts` the
        replica truncates and restarts even if it already fetches from that leader.
        """
        broker, manager, partition = self._broker, self.manager, replica.partition
        replica.recorder.record(steps.Follow(broker.node, partition, restarts=restarts))
        if restarts:
            repeats = bool(self._repeated_asks)
            self._forget_exchange()
            now_us, unclean = broker.kernel.now_us, broker.settings.unclean_election
            manager.add(partition, decision, now_us, unclean_election=unclean)
            if repeats and len(self.fetchers[decision.leader].partitions) > 1:
                broker.network.note_broker_change()  # An elided retry for others would hold this partition up.
        elif manager.goes_on(partition.name, decision):
            self.truncation_completed(partition, decision.leader_epoch, 0)

    def allow_unclean_election(self, *, allowed: bool) -> None:
        """Set whether unclean leader election is allowed."""
        for fetcher in self.fetchers.values():
            fetcher.unclean_election = allowed

    def halt(self, reason: str) -> None:
        """See `FetcherHost.halt`."""
        self._broker.halt(reason)

    def truncation_completed(self, replica: Replica, leader_epoch: int, rounds: int) -> None:
        """See `FetcherHost.truncation_completed`."""
        hosted = self._replicas.replica(replica.name)
        assert hosted is not None
        assert replica is hosted.partition
        self._forget_exchange()
        hosted.recorder.record(steps.Settled(self._broker.node, leader_epoch, rounds))

    def _forget_exchange(self) -> None:
        self._last_exchange = ([], [])
        self._repeated_asks = []

    # Requests to a leader, and its answers.

    def send_fetch(
        self, fetcher: ReplicaFetcherThread, positions: list[Position], leader_epochs: list[int]
    ) -> FetchRequest:
        """See `FetcherHost.send_fetch`; while the leader is down, its next start triggers a retry (`peer_up`)."""
        broker, leader = self._broker, fetcher.leader
        node, network = broker.node, broker.network
        version = network.version
        incremental = fetcher.session.incremental
        request = FetchRequest(node, leader, node, broker.broker_epoch, positions, leader_epochs, version, incremental)
        channel: Channel[Any] | None = broker.out.get(leader) or broker.reach(leader)
        if channel is not None:
            if self._after_empty_response:
                channel.send_beside(request)
            else:
                channel.send(request)
            self.sender.note_sent(leader)
        return request

    def send_epoch_end(
        self, fetcher: ReplicaFetcherThread, asks: list[Ask], leader_epochs: list[int], *, with_epoch: bool
    ) -> OffsetsForLeaderEpochRequest:
        """See `FetcherHost.send_epoch_end`."""
        broker = self._broker
        repeated = self._repeated_asks == asks and len(asks) == len(fetcher.partitions)
        request = OffsetsForLeaderEpochRequest(
            broker.node, asks, leader_epochs, with_epoch=with_epoch, is_repeated=repeated
        )
        if repeated and broker.network.elides:
            # A truncation that never completes (KAFKA-10706): the next response would lead to the same request again.
            round_us = broker.kernel.now_us - self._asked_us
            retry = Call(self._send_epoch_end, (fetcher, request))
            broker.network.retry_after_change(lambda: round_us, broker.life, retry)
        else:
            self._send_epoch_end((fetcher, request))
        return request

    def _send_epoch_end(self, entry: tuple[ReplicaFetcherThread, OffsetsForLeaderEpochRequest]) -> None:
        fetcher, request = entry
        channel = self._broker.reach(fetcher.leader)
        if channel is not None and (fetcher.in_flight is None or fetcher.in_flight is request):
            self._asked_us = self._broker.kernel.now_us
            if request.is_repeated:
                channel.send_beside(request)
            else:
                channel.send(request)
            self.sender.note_sent(fetcher.leader)

    def send_list_offsets(
        self, fetcher: ReplicaFetcherThread, name: str, timestamp: int, leader_epoch: int
    ) -> ListOffsetsRequest:
        """See `FetcherHost.send_list_offsets`."""
        node = self._broker.node
        request = ListOffsetsRequest(node, node, name, timestamp, leader_epoch)
        channel = self._broker.reach(fetcher.leader)
        if channel is not None:
            channel.send(request)
            self.sender.note_sent(fetcher.leader)
        return request

    def on_fetch_reply(self, reply: FetchResponse) -> None:
        """Handle a fetch response, perhaps to a fetcher of an earlier incarnation."""
        request = reply.request
        fetcher = self.fetchers.get(request.leader)
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
            fetcher.on_fetch_reply(reply, self._broker.kernel.now_us)
            self._after_empty_response = False

    def on_epoch_end_reply(self, reply: OffsetsForLeaderEpochResponse) -> None:
        """Handle a response to OffsetsForLeaderEpoch."""
        # Late responses do not count.
        if any(fetcher.in_flight is reply.request for fetcher in self.fetchers.values()):
            conversation = (reply.request.asks, reply.results)
            alike = conversation == self._last_exchange and not any(error for _, error, _, _ in reply.results)
            self._repeated_asks = reply.request.asks if alike else []
            self._last_exchange = conversation
        for fetcher in self.fetchers.values():
            fetcher.on_epoch_end_reply(reply, self._broker.kernel.now_us)

    def on_list_offsets_reply(self, reply: ListOffsetsResponse) -> None:
        """Handle a response to ListOffsets."""
        self._broker.end_elision()
        for fetcher in self.fetchers.values():
            fetcher.on_list_offsets_reply(reply, self._broker.kernel.now_us)

    # Back-off and lost requests.

    def wake_fetcher(self, fetcher: ReplicaFetcherThread, at_us: int) -> None:
        """See `FetcherHost.wake_fetcher`."""
        self._broker.kernel.schedule(at_us, self._broker.life, _FetcherCall(self._step_fetcher, fetcher))

    def _step_fetcher(self, fetcher: ReplicaFetcherThread) -> None:
        """Let the fetcher send its next request, unless a leader that has not changed would refuse that again."""
        broker = self._broker
        if self.fetchers.get(fetcher.leader) is not fetcher:
            return  # The fetcher was shut down.
        if self._refused.get(fetcher.leader) == broker.network.version:
            retry = _FetcherCall(self._step_fetcher, fetcher)
            broker.network.retry_after_change(self._fetch_backoff_us, broker.life, retry)
        else:
            fetcher.step(broker.kernel.now_us)

    def _fetch_backoff_us(self) -> int:
        return self._broker.settings.fetch_backoff_us

    def retry(self, leader: int) -> None:
        """Retry the request that a leader's ended process, or one whose connection broke, never answered."""
        fetcher = self.fetchers.get(leader)
        if fetcher is not None and fetcher.in_flight is not None:
            fetcher.request_failed(fetcher.in_flight, self._broker.kernel.now_us)

    # Elision of idle fetches: see `sim.environment.elision`.

    def would_repeat(self, request: FetchRequest, place: int, hw: int, log_start: int) -> bool:
        """See `Node.would_repeat`."""
        broker, replica = self._broker, self._replicas.replica(request.positions[place][0])
        if (
            replica is None
            or replica.partition.hw != hw
            or broker.waiting is not None
            or request.broker_epoch != broker.broker_epoch
        ):
            return False
        fetcher = self.fetchers.get(request.leader)
        return fetcher is not None and fetcher.would_repeat(request, place, log_start)

    def repeated_places(
        self, request: FetchRequest, results: Sequence[FetchResult], changed: Sequence[int] | None
    ) -> int:
        """See `Node.repeated_places`."""
        broker, fetcher = self._broker, self.fetchers.get(request.leader)
        if fetcher is None or broker.waiting is not None or request.broker_epoch != broker.broker_epoch:
            return 0
        return fetcher.repeated_places(request, results, changed)

    def note_log_replaced(self, name: str) -> None:
        """Note that the log of a followed partition was replaced."""
        for fetcher in self.fetchers.values():
            if name in fetcher.partitions:
                fetcher.note_change()
