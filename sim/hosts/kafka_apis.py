"""How a broker answers the requests of clients and followers."""

from __future__ import annotations

from typing import Final

from sim.environment.elision import ElidedFetch
from sim.hosts.broker_metadata_cache import UNKNOWN_LEADER
from sim.hosts.broker_node import BrokerNode
from sim.hosts.delayed_fetch_purgatory import DelayedFetchPurgatory, response
from sim.hosts.hosted_replica import NO_RESULT, HostedReplica, HostedReplicas
from sim.hosts.socket_server import ProduceHandler
from sim.protocol import probes
from sim.protocol.log.leader_epoch_file_cache import UNDEFINED
from sim.protocol.messages import (
    DIVERGING_EPOCH,
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
    topic_partition,
)
from sim.protocol.replica.delayed_fetch import DelayedFetch
from sim.protocol.replica.fetch_session import FetchSession
from sim.protocol.replica.isr import UNREGISTERED

SESSION_PLACES: Final = 6
"""The fewest partitions of a fetch that begins a session: with fewer, visiting all of them costs less."""


class KafkaApis(ProduceHandler):
    """See the module. Kafka: KafkaApis."""

    __slots__ = ("_broker", "_metadata", "_purgatory", "_replicas", "_sessions")

    def __init__(self, broker: BrokerNode, replicas: HostedReplicas, purgatory: DelayedFetchPurgatory) -> None:
        self._broker = broker
        self._replicas = replicas
        self._metadata = replicas.metadata
        self._purgatory = purgatory
        self._sessions: dict[int, FetchSession] = {}
        """The fetch sessions of followers that fetch several partitions."""
        broker.socket_server.serve(self)

    def end(self) -> None:
        """Close all sessions, because the process ended."""
        self._broker.socket_server.serve(None)
        for session in self._sessions.values():
            session.dispose()
        self._sessions.clear()

    def on_produce(self, request: ProduceRequest) -> None:
        """See `ProduceHandler.on_produce`. Kafka: ReplicaManager#appendRecords."""
        self._append(request)
        for other in request.others:
            self._append(other)

    def _append(self, request: ProduceRequest) -> None:
        """Append one batch of a request."""
        replica = self._replicas.hosted(request.name)
        if replica is None:
            if request.acks:
                error = self._replicas.without_replica(request.name)
                self._broker.reply_produce(ProduceResponse(request, error, -1, self._broker.kernel.now_us))
            return
        replica.partition.produce(request, self._broker.kernel.now_us)

    def expire_produce(self, request: ProduceRequest) -> None:
        for batch in (request, *request.others):
            replica = self._replicas.hosted(batch.name)
            if replica is not None:
                replica.partition.delayed.expire(batch)

    def on_fetch(self, request: FetchRequest) -> None:
        """Handle a Fetch request: answer at once with data or an error, otherwise let the fetch wait.

        The HW in an immediate response is the one before this fetch was processed.
        Kafka: ReplicaManager#fetchMessages, ReplicaManager#readFromLog (3.9-4.4), ReplicaManager#readFromLocalLog
        (0.10.2-2.6).
        """
        if len(request.positions) != 1:
            self._on_fetch_of_several(request)
            return
        if self._sessions:
            self._close_session(request.replica)
        name, offset, epoch, last_epoch = request.positions[0]
        replica = self._replicas.hosted(name)
        if replica is None and (other := self._recreated(request, 0)):
            request, replica = _about(request, 0, other), self._replicas.replicas[other]
        if replica is None:
            self._reply_fetch(request, self._replicas.no_result(name))
            return
        if request.replica < 0:
            self._on_fetch_of_consumer(replica, request)
            return
        partition = replica.partition
        if request.replica not in partition.followers.states:
            self._answer_unassigned(replica, request)
            return
        error = partition.check_fetch(offset, epoch, last_epoch)
        if error:
            if error != DIVERGING_EPOCH:
                self._broker.end_elision(ElidedFetch)
                partition.note_refused_fetch(request.replica)
                replica.note_laggards()
            self._reply_fetch(request, replica.refusal(error, last_epoch))
            return
        now_us = self._broker.kernel.now_us
        if partition.refuses_registration(request.replica, request.broker_epoch):
            self._reply_fetch(request, replica.result(NOT_LEADER_OR_FOLLOWER, []))
            return
        if offset < partition.log.leo:
            # The request may be late, and the follower's next one be idle and elided.
            self._broker.end_elision(ElidedFetch)
            self._reply_fetch(request, replica.result(NONE, partition.read_uncommitted(offset)))
            partition.follower_fetched(request.replica, request.broker_epoch, offset, request.leader_epochs[0], now_us)
        else:
            delayed = DelayedFetch(request, now_us)
            replica.followers.append(delayed)
            partition.follower_fetched(request.replica, request.broker_epoch, offset, request.leader_epochs[0], now_us)
            self._purgatory.await_expiry(delayed)

    def _on_fetch_of_consumer(self, replica: HostedReplica, request: FetchRequest) -> None:
        """Name the consumer another replica, answer it at once with records or an error, or let the fetch wait."""
        if self._purgatory.redirect(request):
            return
        _, offset, epoch, last_epoch = request.positions[0]
        partition = replica.partition
        error = partition.check_fetch(offset, epoch, last_epoch, client=True, any_replica=True)
        if error:
            self._reply_fetch(request, replica.refusal(error, last_epoch))
        elif offset < partition.hw:
            self._reply_fetch(request, replica.result(NONE, partition.read_committed(offset)))
        else:
            delayed = DelayedFetch(request, self._broker.kernel.now_us)
            replica.consumers.append(delayed)
            self._purgatory.await_expiry(delayed)

    def _recreated(self, request: FetchRequest, place: int) -> str:
        """The partition of another topic of the same name, for which the broker takes a follower's fetch of a deleted
        topic; empty if there is none here, or if the broker tells them apart by topic ids (rule ``recreated_fetch``).

        Kafka: KafkaApis#handleFetchRequest.
        """
        if request.replica < 0:  # Clients know the topic ids: see DESIGN.md.
            return ""
        name = request.positions[place][0]
        wanted = topic_partition(name)
        for other in self._replicas.replicas:
            if topic_partition(other) == wanted and other != name:
                return "" if self._broker.decide.refuses_recreated.yes() else other
        return ""

    def _answer_unassigned(self, replica: HostedReplica, request: FetchRequest) -> None:
        """Answer a fetch from a broker that is not a follower here: with an error, or by an empty response after its
        wait time.
        """
        _, offset, epoch, last_epoch = request.positions[0]
        error = replica.partition.check_unassigned(offset, epoch, last_epoch)
        if error:
            self._reply_fetch(request, replica.refusal(error, last_epoch))
        else:
            delayed = DelayedFetch(request, self._broker.kernel.now_us)
            replica.followers.append(delayed)
            self._purgatory.await_expiry(delayed)

    def _on_fetch_of_several(self, request: FetchRequest) -> None:
        """Handle a follower's fetch of several partitions: answer it at once if one of them has records, an error or
        another epoch. The follower's states are updated after all partitions were read.

        Kafka: FetchContext (1.1-4.4).
        """
        now_us = self._broker.kernel.now_us
        follower, broker_epoch = request.replica, request.broker_epoch
        is_current = broker_epoch in (NO_BROKER_EPOCH, self._metadata.live.get(follower, UNREGISTERED))
        session = self._session(request, is_current=is_current)
        found: dict[int, FetchResult] = {}
        counted: list[tuple[HostedReplica, int, int]] = []
        waits = True
        replicas, positions, leader_epochs = self._replicas.replicas, request.positions, request.leader_epochs
        for place in list(range(len(positions))) if session is None else session.begin_fetch(request, now_us):
            position, leader_epoch = positions[place], leader_epochs[place]
            replica = replicas.get(position[0])
            if replica is None and (other := self._recreated(request, place)):
                request, replica = _about(request, place, other), replicas[other]
                position = request.positions[place]
            if replica is None or (replica.partition.leader_epoch < 0 and self._replicas.was_deleted(replica)):
                found[place] = self._replicas.no_result(position[0])
                waits = False
                continue
            partition = replica.partition
            if is_current and partition.note_idle_fetch(follower, position, leader_epoch, broker_epoch, now_us):
                if session is not None:
                    session.note_idle(place, partition, replica.nothing())
                continue
            self._broker.end_elision(ElidedFetch)
            result, counts = replica.read_for_follower(request, position)
            found[place] = result
            if result[1] or result[2] or result[6]:
                waits = False
            if counts:
                counted.append((replica, position[1], leader_epoch))
        delayed = DelayedFetch(request, now_us, session)
        if waits:
            self._purgatory.wait_on_all(delayed)
        else:
            self._reply_fetches(delayed, found)
        for replica, offset, leader_epoch in counted:
            replica.partition.follower_fetched(follower, broker_epoch, offset, leader_epoch, now_us)
        if waits and delayed.waits:
            self._purgatory.await_expiry(delayed)

    def _session(self, request: FetchRequest, *, is_current: bool) -> FetchSession | None:
        """The session of a fetch of several partitions: a new one if the fetch does not continue the follower's. None
        if they are few, the fetch is not from the follower's known registration, or the broker lacks a partition.
        """
        follower = request.replica
        known = self._sessions.get(follower)
        if known is not None:
            if is_current and known.is_continued_by(request):
                return known
            self._close_session(follower)
        if not is_current or len(request.positions) < SESSION_PLACES:
            return None
        replicas, partitions = self._replicas.replicas, []
        for position in request.positions:
            replica = replicas.get(position[0])
            if replica is None:
                return None
            partitions.append(replica.partition)
        results = [NO_RESULT] * len(partitions)
        session = self._sessions[follower] = FetchSession(self._broker.kernel.now_us, request, partitions, results)
        return session

    def _close_session(self, follower: int) -> None:
        """Close a follower's session, if it has one; its fetch goes on waiting."""
        session = self._sessions.pop(follower, None)
        if session is not None:
            delayed = session.delayed
            session.close()
            if delayed is not None:
                delayed.session = None
                self._purgatory.wait_on_all(delayed)

    def _reply_fetches(self, delayed: DelayedFetch, found: dict[int, FetchResult]) -> None:
        """Answer a fetch of several partitions with the results found; the other partitions are idle."""
        if any(one[2] for one in found.values()) and any(one[1] or one[6] for one in found.values()):
            self._broker.reached(probes.MIXED_RESPONSE)
        self._broker.reply(delayed.request.node, response(delayed, self._purgatory.empty_results(delayed, found)))

    def _reply_fetch(self, request: FetchRequest, result: FetchResult) -> None:
        self._broker.reply(request.node, FetchResponse(request, [result]))

    def on_epoch_end(self, request: OffsetsForLeaderEpochRequest) -> None:
        """Handle an OffsetsForLeaderEpoch request.

        Kafka: KafkaApis#handleOffsetForLeaderEpochRequest (1.1-4.4), ReplicaManager#lastOffsetForLeaderEpoch (1.1-4.4).
        """
        results = []
        for name, current_epoch, epoch in request.asks:
            replica = self._replicas.hosted(name)
            if replica is not None:
                answer = replica.partition.end_offset_for(
                    current_epoch, epoch, with_epoch=request.with_epoch, client=not request.leader_epochs
                )
            else:
                answer = (self._replicas.without_replica(name), *UNDEFINED)
            results.append((name, *answer))
        reply = OffsetsForLeaderEpochResponse(request, results)
        if request.is_repeated:
            self._broker.reply_beside(request.node, reply)
        else:
            self._broker.reply(request.node, reply)

    def on_list_offsets(self, request: ListOffsetsRequest) -> None:
        """Handle a ListOffsets request of a client or an out-of-range follower.

        Kafka: KafkaApis#handleListOffsetRequest (1.1-4.4), ReplicaManager#fetchOffsetForTimestamp (2.6-4.4).
        """
        replica = self._replicas.hosted(request.name)
        if replica is None:
            error = self._replicas.without_replica(request.name)
            self._broker.reply(request.node, ListOffsetsResponse(request, error, -1, NO_EPOCH))
            return
        partition = replica.partition
        error, offset = partition.list_offset(request.timestamp, request.leader_epoch, replica=request.replica >= 0)
        self._broker.reply(request.node, ListOffsetsResponse(request, error, offset, partition.leader_epoch))

    def on_metadata(self, request: MetadataRequest) -> None:
        """Handle a Metadata request. Kafka: KafkaApis#handleTopicMetadataRequest."""
        leader, leader_epoch = self._metadata.leaders.get(request.name, UNKNOWN_LEADER)
        self._broker.reply(request.node, MetadataResponse(request, leader, leader_epoch))


def _about(request: FetchRequest, place: int, name: str) -> FetchRequest:
    """A fetch with another partition in one place, for the leader only: the response is to the fetch that was sent."""
    positions = list(request.positions)
    _, offset, epoch, last_epoch = positions[place]
    positions[place] = name, offset, epoch, last_epoch
    return FetchRequest(
        request.node,
        request.leader,
        request.replica,
        request.broker_epoch,
        positions,
        request.leader_epochs,
        request.version,
        request.incremental,
        request if request.sent is None else request.sent,
    )
