"""A broker's answers: what it does for clients and for brokers that follow it.

Fetches that find no data wait here until data, a new HW, a change of leadership or time ends that (Kafka's purgatory of
DelayedFetch). A new HW ends the waiting of consumers only: an idle follower learns it with its next fetch.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from sim.environment.elision import Asker, Fetch, Server
from sim.environment.network import Channel, Node
from sim.hosts.settings import BrokerSettings
from sim.hosts.waiting import PartitionBacklog
from sim.kernel.message import Message
from sim.kernel.scheduler import Backlog, Kernel
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
from sim.protocol.replica.partition import NO_LEADER, Partition

_arrival = attrgetter("delayed_since_us", "node")
NO_BACKLOG: Final = Backlog()
"""That of a process that is over."""


class Serving(Node):
    """The part of a broker that answers requests. Kafka: KafkaApis, ReplicaManager.

    Args:
        broker: its id.
        settings: its settings.
        kernel: time and timers.

    Attributes:
        partition: the partition, once the log is loaded; requests arrive only after that.
        broker_epoch: of its registration, -1 before the first: until then it answers nobody.
        known: the partition's state as its metadata has it, None before any arrived.
        live: registered brokers with their broker epochs, as its metadata has them.
        known_leader: leader and leader epoch, as it tells clients; a leader that it does not know to live is none.
        backlog: what waits for the partition; in force (`Node.waiting`) from the start.
        epoch_end_version: newest version of OffsetsForLeaderEpoch that it knows, as far as clients care.
        reached: notes a probe.
    """

    __slots__ = (
        "_parked_consumers",
        "_parked_followers",
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
        self.live: dict[int, int] = {}
        self.known_leader = (NO_LEADER, NO_EPOCH)
        self.backlog: Backlog = PartitionBacklog(self)
        self.waiting = self.backlog
        self.update_gate()
        self._parked_followers: list[FetchRequest] = []
        self._parked_consumers: list[FetchRequest] = []

    def has_to_wait(self, message: Any) -> bool:  # noqa: ARG002 - for subclasses
        """Whether a message of `sim.hosts.waiting.MAY_NEED` has to: until the broker is registered, each."""
        return self.broker_epoch < 0

    def end(self) -> None:
        """See `Node.end`. What knows this process in turn is let go of, so that it needs no garbage collector."""
        super().end()
        self.partition = None
        self.backlog = NO_BACKLOG

    def answer_produce(self, request: ProduceRequest, error: str, base_offset: int) -> None:
        """See `ProduceHost.answer_produce`; acks=0 is never answered."""
        if request.acks:
            reply = ProduceResponse(request, error, base_offset, self.kernel.now_us)
            if request.acks < 0 and not error:
                self.acknowledges(reply)
            self._reply(request.client, "on_produce_reply", reply)

    def acknowledges(self, reply: ProduceResponse) -> None:
        """A success for acks=all is about to be sent."""
        raise NotImplementedError

    def on_produce(self, request: ProduceRequest) -> None:
        """A producer sent a batch. Kafka: ReplicaManager#appendRecords."""
        assert self.partition is not None
        self.partition.produce(request, self.kernel.now_us)

    def on_fetch(self, request: FetchRequest) -> None:
        """A follower or a consumer fetches: answer at once if there is data or an error, else let it wait.

        The HW in an answer given at once is the one before this fetch was counted.
        Kafka: ReplicaManager#fetchMessages, ReplicaManager#readFromLog (3.9-4.3),
        ReplicaManager#readFromLocalLog (0.10.2-2.6).
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
                partition.fetch_refused(request.replica)
            self._refuse_fetch(request, error)
            return
        now_us = self.kernel.now_us
        if request.replica < 0:
            if offset < partition.hw:
                self._reply_fetch(request, NONE, partition.read_committed(offset))
            else:
                request.delayed = True
                request.delayed_since_us = now_us
                self._parked_consumers.append(request)
                self._await_expiry(request)
            return
        if partition.is_stale(request.replica, request.broker_epoch):
            self._refuse_fetch(request, NOT_LEADER_OR_FOLLOWER)
            return
        if offset < partition.log.leo:
            self._reply_fetch(request, NONE, partition.read_uncommitted(offset))
            partition.follower_fetched(request.replica, request.broker_epoch, offset, request.leader_epochs[0], now_us)
        else:
            request.delayed = True
            request.delayed_since_us = now_us
            self._parked_followers.append(request)
            partition.follower_fetched(request.replica, request.broker_epoch, offset, request.leader_epochs[0], now_us)
            self._await_expiry(request)

    def _answer_unassigned(self, request: FetchRequest) -> None:
        """Who fetches as a follower is none, or nobody leads here: refuse, or let it wait for nothing."""
        assert self.partition is not None
        _, offset, epoch, last_epoch = request.positions[0]
        error = self.partition.check_unassigned(offset, epoch, last_epoch)
        if error:
            self._refuse_fetch(request, error)
        else:
            request.delayed = True
            request.delayed_since_us = self.kernel.now_us
            self._parked_followers.append(request)
            self._await_expiry(request)

    def _await_expiry(self, request: FetchRequest) -> None:
        if self._goes_round(request):
            return
        entry = (request, request.delayed_since_us)
        wait_us = self._wait_us(request)
        if wait_us:
            self.kernel.call_first(request.delayed_since_us + wait_us, self.life, self._expire_fetch, entry)
        else:
            # Who does not want to wait is answered at once (ReplicaManager.fetchMessages).
            self.call(self._expire_fetch, entry)

    def _wait_us(self, request: FetchRequest) -> int:
        return self.settings.fetch_wait_us if request.replica >= 0 else self.settings.consumer_wait_us

    def _expire_fetch(self, entry: tuple[FetchRequest, int]) -> None:
        """Kafka: DelayedFetch#onComplete."""
        # Whatever could give it another answer than an empty one would have ended its waiting.
        request, delayed_since_us = entry
        if not request.delayed or request.delayed_since_us != delayed_since_us:
            return
        wait_us = self._wait_us(request)
        if not wait_us or self.kernel.now_us > delayed_since_us + wait_us or not self._goes_round(request):
            self.left(request)
            channel: Channel[Asker] | None = self.out.get(request.node) or self.reach(request.node)
            if channel is not None:
                channel.send_beside(channel.target.on_fetch_reply, FetchResponse(request, [self._nothing_new]))

    # Fetches that go round: see `sim.environment.elision`.

    def _goes_round(self, request: FetchRequest) -> bool:
        """Whether a fetch that waits would only be answered with nothing, sent again, and so on; if so, it is left out
        from now on.

        That is so if a round tells neither side anything, arrives, and arrives in time. No other message can be in its
        way (`Channel.send_beside`), and of what happens at the same time it comes first (`Kernel.call_first`).
        """
        if self.waiting is not None or not request.delayed:
            return False
        network = self.network
        partition = self.partition
        assert partition is not None
        asker = network.nodes.get(request.node)
        if asker is None or not asker.repeats(request, partition.hw, partition.log.log_start):
            return False
        if not network.steady(self.node, request.node):
            return False
        _, offset, epoch, last_epoch = request.positions[0]
        if request.replica >= 0 and not partition.knows(request.replica, offset, request.leader_epochs[0]):
            return False
        if request.delayed_since_us < self.kernel.now_us and partition.check_fetch(
            offset, epoch, last_epoch, request.replica < 0
        ):
            return False  # It was served, and would be refused now.
        if not network.elides:
            network.idle_messages += 2
            return False
        there: Channel[Server] | None = asker.out.get(self.node)
        back: Channel[Asker] | None = self.reach(request.node)
        if there is None or back is None:
            return False
        wait_us = self._wait_us(request)
        answer_us = wait_us + back.longest_us
        if not asker.waits_for(self.node, request.delayed_since_us + answer_us, there.longest_us + answer_us):
            return False
        Fetch(self, request, self._nothing_new, there, back, request.delayed_since_us, wait_us).begin()
        return True

    @property
    def _nothing_new(self) -> FetchResult:
        """The answer to a fetch that waited in vain."""
        partition = self.partition
        assert partition is not None
        log_start, epoch = partition.log.log_start, partition.leader_epoch
        return partition.name, NONE, [], partition.hw, log_start, epoch, partition.agrees

    def refetched(self, request: FetchRequest, at_us: int) -> None:
        """See `sim.environment.elision.Server`."""
        request.delayed_since_us = at_us
        if request.replica >= 0:
            assert self.partition is not None
            self.partition.followers.states[request.replica].refetched(at_us)

    def waits_until(self, request: FetchRequest, expires_us: int) -> None:
        """See `sim.environment.elision.Server`."""
        self.kernel.call_first(expires_us, self.life, self._expire_fetch, (request, request.delayed_since_us))

    def answered(self, request: FetchRequest, result: FetchResult, channel: Channel[Asker], arrives_us: int) -> None:
        """See `sim.environment.elision.Server`."""
        channel.deliver_at(arrives_us, channel.target.on_fetch_reply, FetchResponse(request, [result]))

    def left(self, request: FetchRequest) -> None:
        """See `sim.environment.elision.Server`."""
        request.delayed = False
        self._parked(request).remove(request)

    def _parked(self, request: FetchRequest) -> list[FetchRequest]:
        return self._parked_followers if request.replica >= 0 else self._parked_consumers

    def _waiting(self, delayed: list[FetchRequest]) -> list[FetchRequest]:
        """Fetches that wait at present, in the order in which they arrived, those that did so together by their nodes'
        ids; they are taken off the list.
        """
        if self.life.omissions:
            now_us = self.kernel.now_us
            for request in delayed[:]:
                if request.omission is not None:
                    request.delayed = False
                    request.omission.end(now_us)
        waiting = sorted(delayed, key=_arrival) if len(delayed) > 1 else delayed[:]
        delayed.clear()
        return waiting

    def _answer_fetch(self, request: FetchRequest) -> None:
        """Answer a fetch that waited, with what there is now. Kafka: DelayedFetch#onComplete."""
        request.delayed = False
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
        """There is data: answer the fetches of followers that wait."""
        if self._parked_followers:
            for request in self._waiting(self._parked_followers):
                self._answer_fetch(request)

    def wake_consumers(self) -> None:
        """The HW rose: answer the fetches of consumers that wait."""
        if self._parked_consumers:
            for request in self._waiting(self._parked_consumers):
                self._answer_fetch(request)

    def wake_all(self) -> None:
        """Leadership changed: answer all fetches that wait, mostly with an error."""
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
        self, request: FetchRequest, error: str, batches: list[Batch], diverging: Diverging = None
    ) -> None:
        partition = self.partition
        assert partition is not None
        log_start, epoch = partition.log.log_start, partition.leader_epoch
        result = (partition.name, error, batches, partition.hw, log_start, epoch, diverging or partition.agrees)
        channel: Channel[Asker] | None = self.out.get(request.node) or self.reach(request.node)
        if channel is not None:
            channel.send(channel.target.on_fetch_reply, FetchResponse(request, [result]))

    def on_epoch_end(self, request: OffsetsForLeaderEpochRequest) -> None:
        """A follower or a consumer asks where an epoch ended.

        Kafka: KafkaApis#handleOffsetForLeaderEpochRequest (1.1-4.3), ReplicaManager#lastOffsetForLeaderEpoch (1.1-4.3).
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
        self._reply(request.node, "on_epoch_end_reply", OffsetsForLeaderEpochResponse(request, results))

    def on_list_offsets(self, request: ListOffsetsRequest) -> None:
        """A client or an out-of-range follower asks for an offset.

        Kafka: KafkaApis#handleListOffsetRequest (1.1-4.3), ReplicaManager#fetchOffsetForTimestamp (2.6-4.3).
        """
        partition = self.partition
        assert partition is not None
        error, offset = partition.list_offset(request.timestamp, request.leader_epoch, replica=request.replica >= 0)
        reply = ListOffsetsResponse(request, error, offset, partition.leader_epoch)
        self._reply(request.node, "on_list_offsets_reply", reply)

    def on_metadata(self, request: MetadataRequest) -> None:
        """A client asks who leads. Kafka: KafkaApis#handleTopicMetadataRequest."""
        reply = MetadataResponse(request, *self.known_leader)
        self._reply(request.node, "on_metadata_reply", reply)

    def _reply(self, node: int, handler: str, reply: Message) -> None:
        channel = self.out.get(node) or self.reach(node)
        if channel is not None:
            channel.send(getattr(channel.target, handler), reply)
