"""The part of a broker that answers clients and followers (KafkaApis, ReplicaManager).

Fetches that find no data wait here for data, a new HW, a change of leadership or their timeout (Kafka's purgatory of
DelayedFetch). A new HW completes only consumers' fetches: an idle follower learns it with its next fetch.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, Final

from sim.environment.elision import ElidedFetch
from sim.environment.network import Channel
from sim.environment.storage import LogDirectory
from sim.hosts.hosted_replica import HostedReplica, HostingBroker
from sim.hosts.settings import BrokerSettings
from sim.hosts.waiting import PartitionBacklog
from sim.kernel.message import Message
from sim.kernel.scheduler import Backlog, Event, Gate, Kernel
from sim.protocol import probes
from sim.protocol.log.leader_epoch_file_cache import UNDEFINED
from sim.protocol.messages import (
    DIVERGING_EPOCH,
    KAFKA_STORAGE_ERROR,
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
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
from sim.protocol.replica.fetch_session import FetchSession
from sim.protocol.replica.isr import UNREGISTERED
from sim.protocol.replica.partition import NO_LEADER, Partition

NO_BACKLOG: Final = Backlog()
"""The backlog of an ended process."""
NO_RESULT: Final[FetchResult] = ("", NONE, [], -1, -1, -1, None)
"""Placeholder for the result of a partition, which is replaced before the fetch is answered."""
SESSION_PLACES: Final = 6
"""The fewest partitions of a fetch that begins a session: with fewer, visiting all of them costs less."""
UNKNOWN_LEADER: Final = (NO_LEADER, NO_EPOCH)
"""Leader and leader epoch of a partition of which a broker knows no leader."""


class _FetchExpiry(Event):
    """Timeout of a waiting fetch."""

    __slots__ = ("_broker", "_delayed", "_since_us")
    elision_safe = True
    needs_partition = True

    def __init__(self, broker: Serving, delayed: DelayedFetch) -> None:
        self._broker = broker
        self._delayed = delayed
        self._since_us = delayed.since_us

    def needs(self, names: Container[str]) -> bool:
        """See `Event.needs`."""
        return self._delayed.request.needs(names)

    def happen(self, _: Gate) -> None:
        # If elided rounds have repeated the fetch since, another timer is set for its present round.
        if self._delayed.waits and self._delayed.since_us == self._since_us:
            self._broker.expire_fetch(self._delayed)


class DirectoryStall:
    """A log directory that does not answer.

    Attributes:
        directory: the directory.
        by: the fault that stalled it.
        names: the partitions with a replica there when it began.
    """

    __slots__ = ("by", "directory", "names")

    def __init__(self, directory: LogDirectory, by: object, names: list[str]) -> None:
        self.directory = directory
        self.by = by
        self.names = names


def _arrival(delayed: DelayedFetch) -> tuple[int, int]:
    return delayed.since_us, delayed.request.node


class Serving(HostingBroker):
    """The part of a broker that answers requests. Kafka: KafkaApis, ReplicaManager.

    Attributes:
        first: the replica of the cluster's first partition, mostly the only one; None until the logs are loaded, and if
            its log directory has failed.
        has_loaded: whether the logs are loaded.
        offline: the partitions whose replicas are in failed log directories.
        broker_epoch: the broker epoch of its registration; -1 before the first, until which it answers no requests.
        known: the partitions' states in its metadata.
        known_leaders: partition -> leader and leader epoch in its metadata responses; no leader if its metadata does
            not list the leader as alive.
        backlog: holds back events while the partitions are unusable, as they are at the start (`Node.waiting`).
        stalled: its log directories that do not answer, while others do.
        epoch_end_version: the newest version of OffsetsForLeaderEpoch that it offers to clients.
    """

    __slots__ = (
        "_sessions",
        "backlog",
        "broker_epoch",
        "epoch_end_version",
        "first",
        "has_loaded",
        "known",
        "known_leaders",
        "offline",
        "stalled",
    )

    def __init__(self, broker: int, settings: BrokerSettings, kernel: Kernel) -> None:
        super().__init__(broker)
        self.settings = settings
        self.kernel = kernel
        self.first: HostedReplica | None = None
        self.has_loaded = False
        self.offline: set[str] = set()
        self.replicas = {}
        self.epoch_end_version = 3
        self.broker_epoch = -1
        self.known: dict[str, LeaderAndIsr] = {}
        self.live = {}
        self.known_leaders: dict[str, tuple[int, int]] = {}
        self._sessions: dict[int, FetchSession] = {}
        """The fetch sessions of followers that fetch several partitions."""
        self.stalled: list[DirectoryStall] = []
        self.backlog: Backlog = PartitionBacklog(self)
        self.waiting = self.backlog
        self.update_gate()

    @property
    def is_blocked(self) -> bool:
        """Whether no partition can be used."""
        raise NotImplementedError

    @property
    def locked(self) -> list[str]:
        """The partitions whose ISRs are being written to ZooKeeper (leaderIsrUpdateLock)."""
        raise NotImplementedError

    @property
    def partition(self) -> Partition | None:
        """The first partition; None until the logs are loaded."""
        first = self.first
        return None if first is None else first.partition

    def replica(self, name: str) -> HostedReplica | None:
        """The replica of a partition; None if there is none."""
        first = self.first
        return first if first is not None and first.name == name else self.replicas.get(name)

    def receive_other(self, message: Event) -> None:
        """Dispatch a message of a type for which `Following.receive` has no handler.

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
        self.first = None
        for session in self._sessions.values():
            session.dispose()
        self._sessions.clear()
        for replica in self.replicas.values():
            replica.end()
        self.replicas.clear()
        self.backlog = NO_BACKLOG

    def on_produce(self, request: ProduceRequest) -> None:
        """Handle a Produce request. Kafka: ReplicaManager#appendRecords."""
        replica = self.replica(request.name)
        if replica is None:
            if request.acks:
                error = self._no_replica(request.name)
                self.reply(request.client, ProduceResponse(request, error, -1, self.kernel.now_us))
            return
        replica.partition.produce(request, self.kernel.now_us)

    def _no_replica(self, name: str, unknown: str = UNKNOWN_TOPIC_OR_PARTITION) -> str:
        """The error for a partition of which the broker has no replica: `unknown` if its metadata lacks the partition.

        Kafka: ReplicaManager#getPartitionOrError (2.6-4.4).
        """
        if name in self.offline:
            self.reached(probes.REPLICA_OFFLINE)
            return KAFKA_STORAGE_ERROR
        return NOT_LEADER_OR_FOLLOWER if name in self.known else unknown

    def _no_result(self, name: str) -> FetchResult:
        """The result of a fetch for a partition without a replica here. Kafka: KafkaApis#handleFetchRequest."""
        error = self._no_replica(name, UNKNOWN_TOPIC_ID)
        if error == UNKNOWN_TOPIC_ID:
            self.reached(probes.UNKNOWN_TOPIC)
        return name, error, [], -1, -1, -1, None

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
        replica = self.replica(name)
        if replica is None:
            self._reply_fetch(request, self._no_result(name))
            return
        partition = replica.partition
        if request.replica >= 0 and request.replica not in partition.followers.states:
            self._answer_unassigned(replica, request)
            return
        error = partition.check_fetch(offset, epoch, last_epoch, request.replica < 0)
        if error:
            if request.replica >= 0 and error != DIVERGING_EPOCH:
                self.end_elision(ElidedFetch)
                partition.note_refused_fetch(request.replica)
                replica.note_laggards()
            self._reply_fetch(request, replica.refusal(error, last_epoch))
            return
        now_us = self.kernel.now_us
        if request.replica < 0:
            if offset < partition.hw:
                self._reply_fetch(request, replica.result(NONE, partition.read_committed(offset)))
            else:
                delayed = DelayedFetch(request, now_us)
                replica.consumers.append(delayed)
                self._await_expiry(delayed)
            return
        if partition.refuses_registration(request.replica, request.broker_epoch):
            self._reply_fetch(request, replica.result(NOT_LEADER_OR_FOLLOWER, []))
            return
        if offset < partition.log.leo:
            self.end_elision(ElidedFetch)  # The request may be late, and the follower's next one be idle and elided.
            self._reply_fetch(request, replica.result(NONE, partition.read_uncommitted(offset)))
            partition.follower_fetched(request.replica, request.broker_epoch, offset, request.leader_epochs[0], now_us)
        else:
            delayed = DelayedFetch(request, now_us)
            replica.followers.append(delayed)
            partition.follower_fetched(request.replica, request.broker_epoch, offset, request.leader_epochs[0], now_us)
            self._await_expiry(delayed)

    def _answer_unassigned(self, replica: HostedReplica, request: FetchRequest) -> None:
        """Answer a fetch from a broker that is not a follower here: with an error, or by an empty response after its
        wait time.
        """
        _, offset, epoch, last_epoch = request.positions[0]
        error = replica.partition.check_unassigned(offset, epoch, last_epoch)
        if error:
            self._reply_fetch(request, replica.refusal(error, last_epoch))
        else:
            delayed = DelayedFetch(request, self.kernel.now_us)
            replica.followers.append(delayed)
            self._await_expiry(delayed)

    def _on_fetch_of_several(self, request: FetchRequest) -> None:
        """Handle a follower's fetch of several partitions: answer it at once if one of them has records, an error or
        another epoch. The follower's states are updated after all partitions were read.

        Kafka: FetchContext (1.1-4.4).
        """
        now_us = self.kernel.now_us
        follower, broker_epoch = request.replica, request.broker_epoch
        is_current = broker_epoch in (NO_BROKER_EPOCH, self.live.get(follower, UNREGISTERED))
        session = self._session(request, is_current=is_current)
        found: dict[int, FetchResult] = {}
        counted: list[tuple[HostedReplica, int, int]] = []
        waits = True
        replicas, positions, leader_epochs = self.replicas, request.positions, request.leader_epochs
        for place in list(range(len(positions))) if session is None else session.begin_fetch(request, now_us):
            position, leader_epoch = positions[place], leader_epochs[place]
            replica = replicas.get(position[0])
            if replica is None:
                found[place] = self._no_result(position[0])
                waits = False
                continue
            partition = replica.partition
            if is_current and partition.note_idle_fetch(follower, position, leader_epoch, broker_epoch, now_us):
                if session is not None:
                    session.note_idle(place, partition, replica.nothing())
                continue
            self.end_elision(ElidedFetch)
            result, counts = replica.read_for_follower(request, position)
            found[place] = result
            if result[1] or result[2] or result[6]:
                waits = False
            if counts:
                counted.append((replica, position[1], leader_epoch))
        delayed = DelayedFetch(request, now_us, session)
        if waits:
            self._wait_on_all(delayed)
        else:
            self._reply_fetches(delayed, found)
        for replica, offset, leader_epoch in counted:
            replica.partition.follower_fetched(follower, broker_epoch, offset, leader_epoch, now_us)
        if waits and delayed.waits:
            self._await_expiry(delayed)

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
        replicas, partitions = self.replicas, []
        for position in request.positions:
            replica = replicas.get(position[0])
            if replica is None:
                return None
            partitions.append(replica.partition)
        results = [NO_RESULT] * len(partitions)
        session = self._sessions[follower] = FetchSession(self.kernel.now_us, request, partitions, results)
        return session

    def _close_session(self, follower: int) -> None:
        """Close a follower's session, if it has one; its fetch goes on waiting."""
        session = self._sessions.pop(follower, None)
        if session is not None:
            delayed = session.delayed
            session.close()
            if delayed is not None:
                delayed.session = None
                self._wait_on_all(delayed)

    def _wait_on_all(self, delayed: DelayedFetch) -> None:
        """Let a fetch wait for each of its partitions: in its session, or in the list of each partition."""
        if delayed.session is not None:
            delayed.session.delayed = delayed
            return
        replicas = self.replicas
        for position in delayed.request.positions:
            replicas[position[0]].followers.append(delayed)

    def _reply_fetches(self, delayed: DelayedFetch, found: dict[int, FetchResult]) -> None:
        """Answer a fetch of several partitions with the results found; the other partitions are idle."""
        if any(one[2] for one in found.values()) and any(one[1] or one[6] for one in found.values()):
            self.reached(probes.MIXED_RESPONSE)
        self.reply(delayed.request.node, _response(delayed, self._empty_results(delayed, found)))

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
        """Answer a fetch that timed out with an empty response; data or a change would have completed it earlier.

        Kafka: DelayedFetch#onComplete.
        """
        request = delayed.request
        wait_us = self._wait_us(request)
        if not wait_us or self.kernel.now_us > delayed.since_us + wait_us or not self._elide_if_idle(delayed):
            self.cancel_wait(delayed)
            self._reply_beside(request.node, _response(delayed, self._empty_results(delayed, {})))

    # Elision of idle fetches: see `sim.environment.elision`.

    def _elide_if_idle(self, delayed: DelayedFetch) -> bool:
        """Elide a waiting fetch if it would only get an empty response, be sent again, and so on; returns whether it
        did.

        The condition is that a round changes nothing at either side, and that its messages arrive in time. No other
        message delays them (`Channel.send_beside`), and at equal times they come first (`Kernel.schedule_first`).
        """
        if self.waiting is not None or not delayed.waits:
            return False
        request = delayed.request
        network = self.network
        asker = network.nodes.get(request.node)
        if asker is None or not network.is_steady(self, asker):
            return False
        if len(request.positions) > 1:
            results = self._empty_results(delayed, {})
            changed = None if delayed.session is None else delayed.session.changed
            if not self._are_idle(delayed, results, asker.repeated_places(request, results, changed)):
                return False
        else:
            name, offset, epoch, last_epoch = request.positions[0]
            replica = self.replica(name)
            assert replica is not None
            partition = replica.partition
            if not asker.would_repeat(request, 0, partition.hw, partition.log.log_start):
                return False
            if request.replica >= 0 and not partition.fetch_is_noop(request.replica, offset, request.leader_epochs[0]):
                return False
            if delayed.since_us < self.kernel.now_us and partition.check_fetch(
                offset, epoch, last_epoch, request.replica < 0
            ):
                return False  # The fetch was accepted and would be refused now.
            results = [replica.nothing()]
        if not network.elides:
            network.idle_messages += 2
            return False
        there, back = asker.out.get(self.node), self.reach(request.node)
        if there is None or back is None:
            return False
        wait_us = self._wait_us(request)
        answer_us = wait_us + back.longest_us
        if not asker.is_answered_in_time(self.node, delayed.since_us + answer_us, there.longest_us + answer_us):
            return False
        ElidedFetch(self, delayed, results, there, back, wait_us).begin()
        return True

    def _are_idle(self, delayed: DelayedFetch, results: Sequence[FetchResult], repeated: int) -> bool:
        """Whether a round of a fetch of several partitions is a no-op for the leader and the follower, which would
        repeat its first `repeated` positions.
        """
        request, replicas, session = delayed.request, self.replicas, delayed.session
        waited = delayed.since_us < self.kernel.now_us
        follower, leader_epochs = request.replica, request.leader_epochs
        for place in list(range(repeated)) if session is None else session.visited:
            if place >= repeated:
                break
            position = request.positions[place]
            partition = replicas[position[0]].partition
            if not partition.fetch_is_noop(follower, position[1], leader_epochs[place]):
                return False
            if waited and not partition.has_all(position) and partition.check_fetch(*position[1:]):
                return False  # The fetch was accepted and would be refused now.
        return repeated == len(results)

    def _empty_results(self, delayed: DelayedFetch, found: dict[int, FetchResult]) -> list[FetchResult]:
        """The results of a fetch of which only those partitions have news whose results are given."""
        replicas, positions, session = self.replicas, delayed.request.positions, delayed.session
        if session is None:
            if not found:
                return [replicas[position[0]].nothing() for position in positions]
            results = [NO_RESULT] * len(positions)
        else:
            results = session.results
        for place in list(range(len(positions))) if session is None else session.visited:
            result = found.get(place)
            results[place] = replicas[positions[place][0]].nothing() if result is None else result
        return results

    def note_elided_fetches(self, delayed: DelayedFetch, at_us: int) -> None:
        delayed.since_us = at_us
        follower = delayed.request.replica
        if follower >= 0:
            replicas, positions, session = self.replicas, delayed.request.positions, delayed.session
            if session is not None:
                session.note_elided_fetches(at_us)
            for place in list(range(len(positions))) if session is None else session.visited:
                replicas[positions[place][0]].partition.followers.states[follower].note_elided_fetches(at_us)

    def resume_wait(self, delayed: DelayedFetch, expires_us: int) -> None:
        self.kernel.schedule_first(expires_us, self.life, _FetchExpiry(self, delayed))

    def deliver_response(
        self, delayed: DelayedFetch, results: Sequence[FetchResult], channel: Channel[Any], arrives_us: int
    ) -> None:
        channel.deliver_at(arrives_us, _response(delayed, results))

    def cancel_wait(self, delayed: DelayedFetch) -> None:
        delayed.waits = False
        if delayed.session is not None:
            delayed.session.delayed = None
            return
        replicas = self.replicas
        for position in delayed.request.positions:
            replicas[position[0]].cancel_wait(delayed)

    def answer_waiting(self, fetches: list[DelayedFetch]) -> None:
        if self.life.elided:
            for delayed in fetches[:]:
                for exchange in self.life.elided[:]:
                    if isinstance(exchange, ElidedFetch) and exchange.delayed is delayed:
                        delayed.waits = False
                        exchange.end(self.kernel.now_us)
            # The response of such an exchange may be in flight, so that the fetch waits no longer.
            fetches[:] = [one for one in fetches if one.session is None or one.session.delayed is one]
        waiting = sorted(fetches, key=_arrival) if len(fetches) > 1 else fetches[:]
        fetches.clear()
        for delayed in waiting:
            self._answer_fetch(delayed)

    def _answer_fetch(self, delayed: DelayedFetch) -> None:
        """Answer a fetch that waited, with current data, and remove it from the lists of its other partitions.

        Kafka: DelayedFetch#onComplete.
        """
        delayed.waits = False
        request = delayed.request
        if delayed.session is not None:
            self._answer_in_session(delayed, delayed.session)
            return
        several = len(request.positions) != 1
        results: list[FetchResult] = []
        for position in request.positions:
            replica = self.replica(position[0])
            if replica is None:
                results.append(self._no_result(position[0]))
                continue
            if several:
                followers = replica.followers
                if len(followers) == 1:
                    if followers[0] is delayed:
                        followers.clear()
                elif delayed in followers:
                    followers.remove(delayed)
            results.append(replica.read(request, position))
        self.reply(request.node, FetchResponse(request, results))

    def _answer_in_session(self, delayed: DelayedFetch, session: FetchSession) -> None:
        """As `_answer_fetch`; idle partitions have nothing to read."""
        session.delayed = None
        request = delayed.request
        results = session.results
        for place in session.visited:
            position = request.positions[place]
            replica = self.replicas.get(position[0])
            results[place] = self._no_result(position[0]) if replica is None else replica.read(request, position)
        self.reply(request.node, FetchResponse(request, results, session.take_changed()))

    def _reply_fetch(self, request: FetchRequest, result: FetchResult) -> None:
        self.reply(request.node, FetchResponse(request, [result]))

    def on_epoch_end(self, request: OffsetsForLeaderEpochRequest) -> None:
        """Handle an OffsetsForLeaderEpoch request.

        Kafka: KafkaApis#handleOffsetForLeaderEpochRequest (1.1-4.4), ReplicaManager#lastOffsetForLeaderEpoch (1.1-4.4).
        """
        results = []
        for name, current_epoch, epoch in request.asks:
            replica = self.replica(name)
            if replica is not None:
                answer = replica.partition.end_offset_for(
                    current_epoch, epoch, with_epoch=request.with_epoch, client=not request.leader_epochs
                )
            else:
                answer = (self._no_replica(name), *UNDEFINED)
            results.append((name, *answer))
        response = OffsetsForLeaderEpochResponse(request, results)
        if request.is_repeated:
            self._reply_beside(request.node, response)
        else:
            self.reply(request.node, response)

    def on_list_offsets(self, request: ListOffsetsRequest) -> None:
        """Handle a ListOffsets request of a client or an out-of-range follower.

        Kafka: KafkaApis#handleListOffsetRequest (1.1-4.4), ReplicaManager#fetchOffsetForTimestamp (2.6-4.4).
        """
        replica = self.replica(request.name)
        if replica is None:
            self.reply(request.node, ListOffsetsResponse(request, self._no_replica(request.name), -1, NO_EPOCH))
            return
        partition = replica.partition
        error, offset = partition.list_offset(request.timestamp, request.leader_epoch, replica=request.replica >= 0)
        self.reply(request.node, ListOffsetsResponse(request, error, offset, partition.leader_epoch))

    def on_metadata(self, request: MetadataRequest) -> None:
        """Handle a Metadata request. Kafka: KafkaApis#handleTopicMetadataRequest."""
        leader, leader_epoch = self.known_leaders.get(request.name, UNKNOWN_LEADER)
        self.reply(request.node, MetadataResponse(request, leader, leader_epoch))

    def _reply_beside(self, node: int, reply: Message) -> None:
        """Send a response that may be elided, as `Channel.send_beside` does."""
        channel: Channel[Any] | None = self.out.get(node) or self.reach(node)
        if channel is not None:
            channel.send_beside(reply)

    def reply(self, node: int, reply: Message) -> None:
        channel = self.out.get(node) or self.reach(node)
        if channel is not None:
            channel.send(reply)


def _response(delayed: DelayedFetch, results: Sequence[FetchResult]) -> FetchResponse:
    """The response with these results, and with what they change in the fetch session, if the fetch has one."""
    session = delayed.session
    return FetchResponse(delayed.request, results, None if session is None else session.take_changed())
