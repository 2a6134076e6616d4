"""The part of a broker that answers clients and followers (KafkaApis, ReplicaManager).

Fetches that find no data wait here for data, a new HW, a change of leadership or their timeout (Kafka's purgatory of
DelayedFetch). A new HW completes only consumers' fetches: an idle follower learns it with its next fetch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sim.environment.elision import ElidedFetch, ElidingBroker
from sim.environment.network import Channel
from sim.hosts.settings import BrokerSettings
from sim.hosts.waiting import PartitionBacklog
from sim.kernel.message import Message
from sim.kernel.scheduler import Backlog, Event, Gate, Kernel
from sim.protocol.batch import Batch
from sim.protocol.log.leader_epoch_file_cache import UNDEFINED
from sim.protocol.messages import (
    DIVERGING_EPOCH,
    NO_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_OR_PARTITION,
    Diverging,
    FetchRequest,
    FetchResponse,
    FetchResult,
    LeaderAndIsr,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
)
from sim.protocol.replica.delayed_fetch import DelayedFetch
from sim.protocol.replica.partition import NO_LEADER, Partition

NO_BACKLOG: Final = Backlog()
"""The backlog of an ended process."""


class _FetchExpiry(Event):
    """Timeout of a waiting fetch."""

    __slots__ = ("_broker", "_delayed", "_since_us")
    elision_safe = True
    needs_partition = True

    def __init__(self, broker: Serving, delayed: DelayedFetch) -> None:
        self._broker = broker
        self._delayed = delayed
        self._since_us = delayed.since_us

    def happen(self, _: Gate) -> None:
        # If the fetch was sent again since, another timer is set for that.
        if self._delayed.waits and self._delayed.since_us == self._since_us:
            self._broker.expire_fetch(self._delayed)


def _arrival(delayed: DelayedFetch) -> tuple[int, int]:
    return delayed.since_us, delayed.request.node


class Serving(ElidingBroker):
    """The part of a broker that answers requests. Kafka: KafkaApis, ReplicaManager.

    Attributes:
        partition: the partition, once the log is loaded; requests arrive only after that.
        broker_epoch: of its registration, -1 before the first: until then it answers no requests.
        known: the partition's state in its metadata, None before any arrived.
        live: registered brokers with their broker epochs, in its metadata.
        known_leader: leader and leader epoch in its answers to clients; no leader if it does not know the leader to be
            alive.
        backlog: events that wait for the partition; in force (`Node.waiting`) from the start.
        epoch_end_version: newest version of OffsetsForLeaderEpoch that it supports for clients.
    """

    __slots__ = (
        "_delayed_consumers",
        "_delayed_followers",
        "backlog",
        "broker_epoch",
        "epoch_end_version",
        "kernel",
        "known",
        "known_leader",
        "live",
        "partition",
        "reached",
        "settings",
    )

    reached: Callable[[int], None]

    def __init__(self, broker: int, settings: BrokerSettings, kernel: Kernel) -> None:
        super().__init__(broker)
        self.settings = settings
        self.kernel = kernel
        self.partition: Partition | None = None
        self.epoch_end_version = 3
        self.broker_epoch = -1
        self.known: LeaderAndIsr | None = None
        self.live: Mapping[int, int] = {}
        self.known_leader = (NO_LEADER, NO_EPOCH)
        self.backlog: Backlog = PartitionBacklog(self)
        self.waiting = self.backlog
        self.update_gate()
        self._delayed_followers: list[DelayedFetch] = []
        self._delayed_consumers: list[DelayedFetch] = []

    def receive_other(self, message: Event) -> None:
        """Dispatch a message of a type that `Following.receive` does not.

        Raises:
            TypeError: see `Node.receive`.
        """
        if isinstance(message, MetadataRequest):
            self.on_metadata(message)
        elif isinstance(message, ListOffsetsRequest):
            self.on_list_offsets(message)
        elif isinstance(message, OffsetsForLeaderEpochRequest):
            self.on_epoch_end(message)
        else:
            super().receive(message)

    def end(self) -> None:
        """See `Node.end`. References back to this process are dropped, so that the garbage collector is not needed."""
        super().end()
        self.partition = None
        self.backlog = NO_BACKLOG

    def answer_produce(self, request: ProduceRequest, error: str, base_offset: int) -> None:
        """See `ProduceHost.answer_produce`; acks=0 is never answered."""
        if request.acks:
            reply = ProduceResponse(request, error, base_offset, self.kernel.now_us)
            if request.acks < 0 and not error:
                self.record_ack(reply)
            self._reply(request.client, reply)

    def record_ack(self, reply: ProduceResponse) -> None:
        """Called before a success for acks=all is sent."""
        raise NotImplementedError

    def note_laggards(self) -> None:
        """Called when a member of the ISR may have begun to lag although nothing was appended."""
        raise NotImplementedError

    def on_produce(self, request: ProduceRequest) -> None:
        """Handle a Produce request. Kafka: ReplicaManager#appendRecords."""
        assert self.partition is not None
        self.partition.produce(request, self.kernel.now_us)

    def on_fetch(self, request: FetchRequest) -> None:
        """Handle a Fetch request: answer at once with data or an error, otherwise let the fetch wait.

        The HW in an immediate response is the one before this fetch was processed.
        Kafka: ReplicaManager#fetchMessages, ReplicaManager#readFromLog (3.9-4.4), ReplicaManager#readFromLocalLog
        (0.10.2-2.6).
        """
        partition = self.partition
        assert partition is not None
        _, offset, epoch, last_epoch = request.positions[0]
        if request.replica >= 0 and request.replica not in partition.followers.states:
            self._answer_unassigned(request)
            return
        error = partition.check_fetch(offset, epoch, last_epoch, request.replica < 0)
        if error:
            if request.replica >= 0 and error != DIVERGING_EPOCH:
                partition.note_refused_fetch(request.replica)
                self.note_laggards()
            self._refuse_fetch(request, error)
            return
        now_us = self.kernel.now_us
        if request.replica < 0:
            if offset < partition.hw:
                self._reply_fetch(request, NONE, partition.read_committed(offset))
            else:
                delayed = DelayedFetch(request, now_us)
                self._delayed_consumers.append(delayed)
                self._await_expiry(delayed)
            return
        if partition.is_stale(request.replica, request.broker_epoch):
            self._refuse_fetch(request, NOT_LEADER_OR_FOLLOWER)
            return
        if offset < partition.log.leo:
            self._reply_fetch(request, NONE, partition.read_uncommitted(offset))
            partition.follower_fetched(request.replica, request.broker_epoch, offset, request.leader_epochs[0], now_us)
        else:
            delayed = DelayedFetch(request, now_us)
            self._delayed_followers.append(delayed)
            partition.follower_fetched(request.replica, request.broker_epoch, offset, request.leader_epochs[0], now_us)
            self._await_expiry(delayed)

    def _answer_unassigned(self, request: FetchRequest) -> None:
        """Answer a fetch from a broker that is not a follower here: refuse it, or let it wait in vain."""
        assert self.partition is not None
        _, offset, epoch, last_epoch = request.positions[0]
        error = self.partition.check_unassigned(offset, epoch, last_epoch)
        if error:
            self._refuse_fetch(request, error)
        else:
            delayed = DelayedFetch(request, self.kernel.now_us)
            self._delayed_followers.append(delayed)
            self._await_expiry(delayed)

    def _await_expiry(self, delayed: DelayedFetch) -> None:
        if self._elide_if_idle(delayed):
            return
        wait_us = self._wait_us(delayed.request)
        if wait_us:
            self.resume_wait(delayed, delayed.since_us + wait_us)
        else:
            # A fetch with wait time 0 is answered at once (ReplicaManager.fetchMessages).
            self.deliver(self.life, _FetchExpiry(self, delayed))

    def _wait_us(self, request: FetchRequest) -> int:
        return self.settings.fetch_wait_us if request.replica >= 0 else self.settings.consumer_wait_us

    def expire_fetch(self, delayed: DelayedFetch) -> None:
        """Answer a fetch that timed out, with an empty response: any change would have completed it earlier.

        Kafka: DelayedFetch#onComplete.
        """
        request = delayed.request
        wait_us = self._wait_us(request)
        if not wait_us or self.kernel.now_us > delayed.since_us + wait_us or not self._elide_if_idle(delayed):
            self.cancel_wait(delayed)
            channel: Channel[Any] | None = self.out.get(request.node) or self.reach(request.node)
            if channel is not None:
                channel.send_beside(FetchResponse(request, [self._empty_result]))

    # Elision of idle fetches: see `sim.environment.elision`.

    def _elide_if_idle(self, delayed: DelayedFetch) -> bool:
        """Elide a waiting fetch if it would only get an empty response, be sent again, and so on.

        That is so if a round changes nothing at either side, and its messages arrive in time. No other message delays
        them (`Channel.send_beside`), and at equal times they come first (`Kernel.schedule_first`).
        """
        if self.waiting is not None or not delayed.waits:
            return False
        request = delayed.request
        network = self.network
        partition = self.partition
        assert partition is not None
        asker = network.nodes.get(request.node)
        if asker is None or not asker.would_repeat(request, partition.hw, partition.log.log_start):
            return False
        if not network.is_steady(self.node, request.node):
            return False
        _, offset, epoch, last_epoch = request.positions[0]
        if request.replica >= 0 and not partition.fetch_is_noop(request.replica, offset, request.leader_epochs[0]):
            return False
        if delayed.since_us < self.kernel.now_us and partition.check_fetch(
            offset, epoch, last_epoch, request.replica < 0
        ):
            return False  # The fetch was accepted and would be refused now.
        if not network.elides:
            network.idle_messages += 2
            return False
        there, back = asker.out.get(self.node), self.reach(request.node)
        if there is None or back is None:
            return False
        wait_us = self._wait_us(request)
        answer_us = wait_us + back.longest_us
        if not asker.outlasts_timeout(self.node, delayed.since_us + answer_us, there.longest_us + answer_us):
            return False
        ElidedFetch(self, delayed, self._empty_result, there, back, wait_us).begin()
        return True

    @property
    def _empty_result(self) -> FetchResult:
        """The empty result of a fetch that timed out."""
        partition = self.partition
        assert partition is not None
        log_start, epoch = partition.log.log_start, partition.leader_epoch
        return partition.name, NONE, [], partition.hw, log_start, epoch, partition.agrees

    def note_elided_fetches(self, delayed: DelayedFetch, at_us: int) -> None:
        delayed.since_us = at_us
        replica = delayed.request.replica
        if replica >= 0:
            assert self.partition is not None
            self.partition.followers.states[replica].note_elided_fetches(at_us)

    def resume_wait(self, delayed: DelayedFetch, expires_us: int) -> None:
        self.kernel.schedule_first(expires_us, self.life, _FetchExpiry(self, delayed))

    def deliver_response(
        self, request: FetchRequest, result: FetchResult, channel: Channel[Any], arrives_us: int
    ) -> None:
        channel.deliver_at(arrives_us, FetchResponse(request, [result]))

    def cancel_wait(self, delayed: DelayedFetch) -> None:
        delayed.waits = False
        fetches = self._delayed_followers if delayed.request.replica >= 0 else self._delayed_consumers
        fetches.remove(delayed)

    def _take_delayed(self, fetches: list[DelayedFetch]) -> list[DelayedFetch]:
        """Take all waiting fetches off the list, in order of arrival; those that arrived together by node id."""
        if self.life.elided:
            for delayed in fetches[:]:
                for exchange in self.life.elided[:]:
                    if isinstance(exchange, ElidedFetch) and exchange.delayed is delayed:
                        delayed.waits = False
                        exchange.end(self.kernel.now_us)
        waiting = sorted(fetches, key=_arrival) if len(fetches) > 1 else fetches[:]
        fetches.clear()
        return waiting

    def _answer_fetch(self, delayed: DelayedFetch) -> None:
        """Answer a fetch that waited, with current data. Kafka: DelayedFetch#onComplete."""
        delayed.waits = False
        request = delayed.request
        partition = self.partition
        assert partition is not None
        _, offset, epoch, last_epoch = request.positions[0]
        assigned = request.replica < 0 or request.replica in partition.followers.states
        if assigned:
            error = partition.check_fetch(offset, epoch, last_epoch, request.replica < 0)
        else:
            error = partition.check_unassigned(offset, epoch, last_epoch)
        if error:
            self._refuse_fetch(request, error)
        elif request.replica < 0:
            self._reply_fetch(request, NONE, partition.read_committed(offset))
        elif not assigned:
            self._reply_fetch(request, NONE, [])
        else:
            self._reply_fetch(request, NONE, partition.read_uncommitted(offset))

    def wake_followers(self) -> None:
        """Answer waiting fetches of followers, because there is data."""
        if self._delayed_followers:
            for delayed in self._take_delayed(self._delayed_followers):
                self._answer_fetch(delayed)

    def wake_consumers(self) -> None:
        """Answer waiting fetches of consumers, because the HW rose."""
        if self._delayed_consumers:
            for delayed in self._take_delayed(self._delayed_consumers):
                self._answer_fetch(delayed)

    def wake_all(self) -> None:
        """Answer all waiting fetches, mostly with an error, because leadership changed."""
        self.wake_followers()
        self.wake_consumers()

    def _refuse_fetch(self, request: FetchRequest, error: str) -> None:
        """Answer a fetch that `Partition.check_fetch` refused: with an error, or with where the logs diverge."""
        if error == DIVERGING_EPOCH:
            assert self.partition is not None
            self._reply_fetch(request, NONE, [], self.partition.diverging(request.positions[0][3]))
        else:
            self._reply_fetch(request, error, [])

    def _reply_fetch(
        self, request: FetchRequest, error: str, batches: Sequence[Batch], diverging: Diverging = None
    ) -> None:
        partition = self.partition
        assert partition is not None
        log_start, epoch = partition.log.log_start, partition.leader_epoch
        result = (partition.name, error, batches, partition.hw, log_start, epoch, diverging or partition.agrees)
        self._reply(request.node, FetchResponse(request, [result]))

    def on_epoch_end(self, request: OffsetsForLeaderEpochRequest) -> None:
        """Handle an OffsetsForLeaderEpoch request.

        Kafka: KafkaApis#handleOffsetForLeaderEpochRequest (1.1-4.4), ReplicaManager#lastOffsetForLeaderEpoch (1.1-4.4).
        """
        assert self.partition is not None
        results = []
        for name, current_epoch, epoch in request.asks:
            if name == self.partition.name:
                answer = self.partition.end_offset_for(
                    current_epoch, epoch, with_epoch=request.with_epoch, client=not request.leader_epochs
                )
            else:
                answer = (UNKNOWN_TOPIC_OR_PARTITION, *UNDEFINED)
            results.append((name, *answer))
        self._reply(request.node, OffsetsForLeaderEpochResponse(request, results))

    def on_list_offsets(self, request: ListOffsetsRequest) -> None:
        """Handle a ListOffsets request of a client or an out-of-range follower.

        Kafka: KafkaApis#handleListOffsetRequest (1.1-4.4), ReplicaManager#fetchOffsetForTimestamp (2.6-4.4).
        """
        partition = self.partition
        assert partition is not None
        error, offset = partition.list_offset(request.timestamp, request.leader_epoch, replica=request.replica >= 0)
        reply = ListOffsetsResponse(request, error, offset, partition.leader_epoch)
        self._reply(request.node, reply)

    def on_metadata(self, request: MetadataRequest) -> None:
        """Handle a Metadata request. Kafka: KafkaApis#handleTopicMetadataRequest."""
        self._reply(request.node, MetadataResponse(request, *self.known_leader))

    def _reply(self, node: int, reply: Message) -> None:
        channel = self.out.get(node) or self.reach(node)
        if channel is not None:
            channel.send(reply)
