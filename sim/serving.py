"""A broker's answers: what it does for clients and for brokers that follow it.

Fetches that find no data wait here until data, a new HW, a change of leadership or time ends that (Kafka's purgatory of
DelayedFetch). A new HW ends the waiting of consumers only: an idle follower learns it with its next fetch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from sim.kernel import Kernel
from sim.network import Node
from sim.protocol.batch import Batch
from sim.protocol.epochs import UNDEFINED
from sim.protocol.messages import (
    NO_EPOCH,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    EpochEndReply,
    EpochEndRequest,
    FetchReply,
    FetchRequest,
    FetchResult,
    LeaderAndIsr,
    ListOffsetsReply,
    ListOffsetsRequest,
    MetadataReply,
    MetadataRequest,
    ProduceReply,
    ProduceRequest,
)
from sim.protocol.partition import NO_LEADER, Partition
from sim.settings import BrokerSettings


class Serving(Node):
    """The part of a broker that answers requests.

    Args:
        broker: its id.
        settings: its settings.
        kernel: time and timers.

    Attributes:
        partition: the partition, once the log is loaded; requests arrive only after that.
        broker_epoch: of its registration, -1 before the first: until then it answers nobody.
        known: the partition's state as its metadata has it, None before any arrived.
        live: registered brokers with their broker epochs, as its metadata has them.
        holding: whether what needs the partition has to wait: before registration, while the ISR is being written (the
            writer holds leaderIsrUpdateLock), while the disk does not answer.
        held: what waits, with its handlers.
        epoch_end_version: newest version of OffsetsForLeaderEpoch that it knows, as far as clients care.
    """

    def __init__(self, broker: int, settings: BrokerSettings, kernel: Kernel) -> None:
        super().__init__(broker)
        self.settings = settings
        self.kernel = kernel
        self.partition: Partition | None = None
        self.epoch_end_version = 3
        self.broker_epoch = -1
        self.known: LeaderAndIsr | None = None
        self.live: dict[int, int] = {}
        self.holding = True
        self.held: deque[tuple[Callable[[Any], object], Any]] = deque()
        self._parked_followers: list[FetchRequest] = []
        self._parked_consumers: list[FetchRequest] = []

    def answer_produce(self, request: ProduceRequest, error: str, base_offset: int) -> None:
        """See `PartitionHost.answer_produce`; acks=0 is never answered."""
        if request.acks:
            reply = ProduceReply(request, error, base_offset, self.kernel.now_us)
            if request.acks < 0 and not error:
                self.acknowledges(reply)
            self._reply(request.client, "on_produce_reply", reply)

    def acknowledges(self, reply: ProduceReply) -> None:
        """A success for acks=all is about to be sent."""
        raise NotImplementedError

    def on_produce(self, request: ProduceRequest) -> None:
        """A producer sent a batch."""
        if self.holding:
            self.held.append((self.on_produce, request))
            return
        assert self.partition is not None
        self.partition.produce(request, self.kernel.now_us)

    def on_fetch(self, request: FetchRequest) -> None:
        """A follower or a consumer fetches: answer at once if there is data or an error, else let it wait.

        The HW in an answer given at once is the one before this fetch was counted (ReplicaManager.readFromLocalLog).
        """
        if self.holding:
            self.held.append((self.on_fetch, request))
            return
        partition = self.partition
        assert partition is not None
        _, offset, epoch, last_epoch = request.positions[0]
        error = partition.check_fetch(offset, epoch, last_epoch, request.replica < 0)
        if error:
            self._reply_fetch(request, error, [])
            return
        if request.replica < 0:
            if offset < partition.hw:
                self._reply_fetch(request, NONE, partition.read_committed(offset))
            else:
                request.parked = True
                self._parked_consumers.append(request)
            return
        now_us = self.kernel.now_us
        if offset < partition.log.leo:
            self._reply_fetch(request, NONE, partition.read_uncommitted(offset))
            partition.follower_fetched(request.replica, request.broker_epoch, offset, request.leader_epochs[0], now_us)
        else:
            request.parked = True
            self._parked_followers.append(request)
            self.kernel.call_at(now_us + self.settings.fetch_wait_us, self.life, self._expire_fetch, request)
            partition.follower_fetched(request.replica, request.broker_epoch, offset, request.leader_epochs[0], now_us)

    def _expire_fetch(self, request: FetchRequest) -> None:
        # Whatever could give it another answer than an empty one would have ended its waiting.
        if self.holding:
            self.held.append((self._expire_fetch, request))
        elif request.parked:
            request.parked = False
            self._parked_followers.remove(request)
            self._reply_fetch(request, NONE, [])

    def _answer_fetch(self, request: FetchRequest) -> None:
        """Answer a fetch that waited, with what there is now."""
        request.parked = False
        partition = self.partition
        assert partition is not None
        _, offset, epoch, last_epoch = request.positions[0]
        error = partition.check_fetch(offset, epoch, last_epoch, request.replica < 0)
        if error:
            self._reply_fetch(request, error, [])
        elif request.replica < 0:
            self._reply_fetch(request, NONE, partition.read_committed(offset))
        else:
            self._reply_fetch(request, NONE, partition.read_uncommitted(offset))

    def wake_followers(self) -> None:
        """There is data: answer the fetches of followers that wait."""
        if self._parked_followers:
            parked, self._parked_followers = self._parked_followers, []
            for request in parked:
                self._answer_fetch(request)

    def wake_consumers(self) -> None:
        """The HW rose: answer the fetches of consumers that wait."""
        if self._parked_consumers:
            parked, self._parked_consumers = self._parked_consumers, []
            for request in parked:
                self._answer_fetch(request)

    def wake_all(self) -> None:
        """Leadership changed: answer all fetches that wait, mostly with an error."""
        self.wake_followers()
        self.wake_consumers()

    def _reply_fetch(self, request: FetchRequest, error: str, batches: list[Batch]) -> None:
        partition = self.partition
        assert partition is not None
        result: FetchResult = (
            partition.name,
            error,
            batches,
            partition.hw,
            partition.log.log_start,
            partition.leader_epoch,
        )
        channel = self.out.get(request.node) or self.reach(request.node)
        if channel is not None:
            channel.send(channel.target.on_fetch_reply, FetchReply(request, [result]))  # type: ignore[attr-defined]

    def on_epoch_end(self, request: EpochEndRequest) -> None:
        """A follower or a consumer asks where an epoch ended."""
        if self.holding:
            self.held.append((self.on_epoch_end, request))
            return
        assert self.partition is not None
        results = []
        for name, current_epoch, epoch in request.asks:
            if name == self.partition.name:
                answer = self.partition.end_offset_for(current_epoch, epoch, with_epoch=request.with_epoch)
            else:
                answer = (UNKNOWN_TOPIC_OR_PARTITION, *UNDEFINED)
            results.append((name, *answer))
        self._reply(request.node, "on_epoch_end_reply", EpochEndReply(request, results))

    def on_list_offsets(self, request: ListOffsetsRequest) -> None:
        """A client or an out-of-range follower asks for an offset."""
        if self.holding:
            self.held.append((self.on_list_offsets, request))
            return
        partition = self.partition
        assert partition is not None
        error, offset = partition.list_offset(request.timestamp, request.leader_epoch, replica=request.replica >= 0)
        reply = ListOffsetsReply(request, error, offset, partition.leader_epoch)
        self._reply(request.node, "on_list_offsets_reply", reply)

    @property
    def known_leader(self) -> tuple[int, int]:
        """Leader and leader epoch as clients are told; a leader that this broker does not know to live is none."""
        known = self.known
        if known is None or known.leader not in self.live:
            return NO_LEADER, NO_EPOCH
        return known.leader, known.leader_epoch

    def on_metadata(self, request: MetadataRequest) -> None:
        """A client asks who leads."""
        if self.broker_epoch < 0:
            self.held.append((self.on_metadata, request))
            return
        reply = MetadataReply(request, *self.known_leader)
        self._reply(request.node, "on_metadata_reply", reply)

    def _reply(self, node: int, handler: str, reply: Any) -> None:
        channel = self.reach(node)
        if channel is not None:
            channel.send(getattr(channel.target, handler), reply)
