"""One of a broker's replicas: its partition, its files, and the fetches that wait for it.

A broker hosts one for each of its partitions. The replica receives the partition's callbacks (`PartitionHost`); what
concerns all replicas of a broker is in `HostedReplicas`, the broker as a whole in `sim.hosts.broker`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sim.environment.elision import ElidedFetch
from sim.environment.storage import Storage
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.broker_metadata_cache import BrokerMetadataCache
from sim.hosts.broker_node import BrokerNode
from sim.hosts.isr_expiration import IsrExpiration
from sim.protocol import probes
from sim.protocol.batch import Batch
from sim.protocol.group.group_coordinator import NO_EPOCH_GIVEN, GroupCoordinator
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import (
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    Diverging,
    FetchRequest,
    FetchResult,
    Position,
    ProduceRequest,
    ProduceResponse,
    topic_partition,
)
from sim.protocol.replica.delayed_fetch import DelayedFetch
from sim.protocol.replica.fetch_results import READ, REFUSED, fetch_refusal, fetch_result, read_for_follower
from sim.protocol.replica.partition import Partition
from sim.protocol.replica.partition_host import PartitionHost
from sim.protocol.replica.replica import Replica

NO_RESULT: Final[FetchResult] = ("", NONE, [], -1, -1, -1, None)
"""Placeholder for the result of a partition, which is replaced before the fetch is answered."""


class HostedReplicas:
    """The replicas of a broker, as they themselves and the parts of the broker see them.

    Attributes:
        broker: the broker.
        metadata: what it knows of the cluster.
        isr_expiration: shrinks the ISRs of the partitions that it leads.
        replicas: by partition; none until the logs are loaded.
        first: the replica of the cluster's first partition, mostly the only one; None until the logs are loaded, and if
            its log directory has failed.
        offline: the partitions whose replicas are in failed log directories.
        coordinator: the broker's group coordinator, if committed offsets are records.
    """

    __deletable__ = ("isr_expiration",)
    __slots__ = ("broker", "coordinator", "first", "isr_expiration", "metadata", "offline", "replicas")

    def __init__(self, broker: BrokerNode, metadata: BrokerMetadataCache) -> None:
        self.broker = broker
        self.metadata = metadata
        self.replicas: dict[str, HostedReplica] = {}
        self.first: HostedReplica | None = None
        self.offline: dict[str, None] = {}
        self.coordinator: GroupCoordinator | None = None
        self.isr_expiration = IsrExpiration(broker, self.replicas)

    def end(self) -> None:
        """Drop references back to the replicas, so that the garbage collector is not needed: the process ended."""
        self.first = None
        self.coordinator = None
        for replica in self.replicas.values():
            replica.end()
        self.replicas.clear()
        self.isr_expiration.end()

    def replica(self, name: str) -> HostedReplica | None:
        """The replica of a partition; None if there is none."""
        first = self.first
        return first if first is not None and first.name == name else self.replicas.get(name)

    def hosted(self, name: str) -> HostedReplica | None:
        """The replica of a partition, as requests find it: None also if it `was_deleted`.

        Kafka: ReplicaManager#getPartitionOrException (2.6-4.4).
        """
        replica = self.replica(name)
        if replica is not None and replica.partition.leader_epoch < 0 and self.was_deleted(replica):
            return None
        return replica

    def was_deleted(self, replica: HostedReplica) -> bool:
        """Whether the broker has deleted its replica of a partition that was reassigned; the object stays, empty."""
        return replica.partition.leader_epoch < 0 and replica.name in self.metadata.known

    def without_replica(self, name: str, unknown: str = UNKNOWN_TOPIC_OR_PARTITION) -> str:
        """The error for a partition of which the broker has no replica: `unknown` if its metadata lacks the partition.
        Of a deleted topic, one in a failed directory counts for the next topic of that name, until that has a replica.

        Kafka: ReplicaManager#getPartitionOrError (2.6-4.4).
        """
        if self.offline and name not in self.metadata.known:
            return unknown
        if self.offline and any(topic_partition(known) == topic_partition(name) for known in self.offline):
            self.broker.reached(probes.REPLICA_OFFLINE)
            return KAFKA_STORAGE_ERROR
        return NOT_LEADER_OR_FOLLOWER if name in self.metadata.known else unknown

    def no_result(self, name: str) -> FetchResult:
        """The result of a fetch for a partition without a replica here. Kafka: KafkaApis#handleFetchRequest."""
        error = self.without_replica(name, UNKNOWN_TOPIC_ID)
        if error == UNKNOWN_TOPIC_ID:
            self.broker.reached(probes.UNKNOWN_TOPIC)
        return name, error, [], -1, -1, -1, None

    def answer_waiting(self, fetches: list[DelayedFetch]) -> None:
        """Answer all fetches of a list of waiting ones, in order of arrival, then of node id."""
        raise NotImplementedError

    def stop_fetching(self, name: str) -> None:
        """Stop following the leader of a partition. Kafka: AbstractFetcherManager#removeFetcherForPartitions."""
        raise NotImplementedError

    def propose_isr(self, replica: HostedReplica, isr: tuple[int, ...]) -> None:
        """Propose an ISR to the control plane; see `PartitionHost.propose_isr`."""
        raise NotImplementedError

    def log_truncated(self, replica: HostedReplica) -> None:
        """Truncate also what else has a replica's log: see `FutureReplica.log_truncated`."""
        raise NotImplementedError


class HostedReplica(PartitionHost):
    """A replica on a broker; see the module.

    Args:
        host: the replicas of the broker.
        name: the partition.
        storage: the replica's files.
        log: its log, as recovery left it.
        epochs: its epoch cache.
        hw: the checkpointed HW.
        own_min_isr: see below.

    Attributes:
        partition: state and leadership of the replica; a new object after the replica was deleted.
        own_min_isr: ``min.insync.replicas`` of its topic; None: that of the broker.
        consumers: waiting fetches of consumers.
        followers: waiting fetches of followers, without those in fetch sessions (`FetchSession.delayed`); a fetch of
            several partitions is in the list of each of them.
        recorder: records the partition's steps.
        coordinator: the broker's group coordinator, if this is the partition of committed offsets.
        coordinator_write: the last write with acks=all of the coordinator that succeeded.
    """

    __deletable__ = ("partition",)
    __slots__ = (
        "_nothing",
        "broker",
        "consumers",
        "coordinator",
        "coordinator_write",
        "followers",
        "host",
        "name",
        "own_min_isr",
        "partition",
        "recorder",
        "storage",
    )

    def __init__(
        self,
        host: HostedReplicas,
        name: str,
        storage: Storage,
        recorder: Recorder,
        log: Log,
        epochs: LeaderEpochFileCache,
        hw: int,
        own_min_isr: int | None,
    ) -> None:
        self.own_min_isr = own_min_isr
        self.host = host
        self.broker = host.broker
        self.name = name
        self.storage = storage
        self.recorder = recorder
        self.followers: list[DelayedFetch] = []
        self.consumers: list[DelayedFetch] = []
        self.coordinator: GroupCoordinator | None = None
        self.coordinator_write: ProduceResponse | None = None
        self._nothing: FetchResult = (name, NONE, (), -1, -1, -1, None)
        self.partition = self._hold(log, epochs, hw)

    def _hold(self, log: Log, epochs: LeaderEpochFileCache, hw: int) -> Partition:
        settings, broker = self.broker.settings, self.broker
        return Partition(
            broker.node,
            self.name,
            log,
            epochs,
            hw,
            broker.decide,
            self,
            min_insync_replicas=settings.min_insync_replicas if self.own_min_isr is None else self.own_min_isr,
            lag_us=settings.lag_us,
        )

    def end(self) -> None:
        """Drop references back to this replica, so that the garbage collector is not needed."""
        self.coordinator = None
        del self.partition

    def remove(self) -> None:
        """Stop fetching, leading and waiting, because the topic was deleted or the log directory has failed. The broker
        has already removed the replica from its table.
        """
        self.host.stop_fetching(self.name)
        self._stop()

    def _stop(self) -> None:
        self.partition.stop()
        if self.coordinator is not None:
            self.coordinator.resigned(NO_EPOCH_GIVEN)
        self.wake_all()

    def delete(self) -> None:
        """Delete log and checkpoints, because the broker is no longer a replica."""
        broker = self.broker
        self.host.stop_fetching(self.name)
        self._stop()
        removed = self.storage.log.batches[:]
        self.partition = self._hold(*self.storage.delete_log(broker.decide))
        step = steps.Deleted(broker.node, self.partition, removed)
        self.recorder.record(step)
        step.release()

    # Fetches.

    def read(self, request: FetchRequest, position: Position) -> FetchResult:
        """The result of a fetch that waited. Kafka: DelayedFetch#onComplete."""
        partition = self.partition
        if len(request.positions) > 1 and partition.has_all(position) and request.replica in partition.followers.states:
            return self.nothing()
        _, offset, epoch, last_epoch = position
        is_client = request.replica < 0
        assigned = is_client or request.replica in partition.followers.states
        if assigned:
            error = partition.check_fetch(offset, epoch, last_epoch, client=is_client, any_replica=is_client)
        else:
            error = partition.check_unassigned(offset, epoch, last_epoch)
        if error:
            return self.refusal(error, last_epoch)
        if is_client:
            return self.result(NONE, partition.read_committed(offset))
        return self.result(NONE, partition.read_uncommitted(offset) if assigned else [])

    def preferred_read_replica(self, offset: int) -> int:
        """The follower from which a consumer at an offset shall fetch, -1 for this broker: one in the consumer's rack,
        alive, whose log reaches the offset; of several, that with the most records, the one that caught up last, the
        highest id.

        Kafka: ReplicaManager#findPreferredReadReplica (2.6-4.4), RackAwareReplicaSelector#select
        (2.6-4.4).
        """
        partition, near = self.partition, self.broker.settings.near_consumers
        if self.broker.node in near or not partition.is_leader:
            return -1
        if not self.broker.decide.followers_serve_consumers.yes():
            return -1
        best = (-1, -1, -1)
        for broker, state in partition.followers.states.items():
            if (
                broker in near
                and state.leo >= offset
                and self.host.metadata.is_alive(broker)
                and (state.in_isr or not self.broker.decide.reads_in_sync_only.yes())
            ):
                best = max(best, (state.leo, state.caught_up_us, broker))
        return best[2]

    def read_for_follower(self, request: FetchRequest, position: Position) -> tuple[FetchResult, bool]:
        """The result for a follower's fetch that has just arrived, and whether to update the follower's state by it."""
        result, effect = read_for_follower(self.partition, request.replica, request.broker_epoch, position)
        if effect == REFUSED:
            self.note_laggards()
        return result, effect == READ

    def result(self, error: str, batches: Sequence[Batch], diverging: Diverging = None) -> FetchResult:
        """See `fetch_result`."""
        return fetch_result(self.partition, error, batches, diverging)

    def nothing(self) -> FetchResult:
        """`result` without an error or batches; the same object as long as its contents do not change."""
        partition, known = self.partition, self._nothing
        hw, log_start, epoch = partition.hw, partition.log.log_start, partition.leader_epoch
        if known[3] != hw or known[4] != log_start or known[5] != epoch or known[6] is not partition.agrees:
            known = self._nothing = self.name, NONE, (), hw, log_start, epoch, partition.agrees
        return known

    def refusal(self, error: str, last_epoch: int) -> FetchResult:
        """See `fetch_refusal`."""
        return fetch_refusal(self.partition, error, last_epoch)

    def cancel_wait(self, delayed: DelayedFetch) -> None:
        """Remove a fetch from the list of waiting ones."""
        (self.followers if delayed.request.replica >= 0 else self.consumers).remove(delayed)

    @property
    def waiting_followers(self) -> list[DelayedFetch]:
        """All waiting fetches of followers."""
        delayed = [entry.session.delayed for entry in self.partition.followers.cached]
        return self.followers + [fetch for fetch in delayed if fetch is not None]

    def wake_followers(self) -> None:
        """Answer waiting fetches of followers, because there is data."""
        if self.partition.followers.cached:
            self.followers = self.waiting_followers
        if self.followers:
            self.host.answer_waiting(self.followers)

    def wake_consumers(self) -> None:
        """Answer waiting fetches of consumers, because the HW rose."""
        if self.consumers:
            self.host.answer_waiting(self.consumers)

    def wake_all(self) -> None:
        """Answer all waiting fetches, mostly with an error, because leadership changed."""
        self.wake_followers()
        self.wake_consumers()

    # Callbacks from the partition.

    def reached(self, probe: int) -> None:
        self.recorder.coverage.reached(probe)

    def answer_produce(self, request: ProduceRequest, error: str, base_offset: int) -> None:
        """See `PartitionHost.answer_produce`; acks=0 is never answered, and a batch that waited too long was before."""
        broker = self.broker
        if request.client == broker.node:
            self._answer_coordinator(request, error, base_offset)
        elif request.acks < 0 and broker.socket_server.is_late(request):
            broker.socket_server.answered(request)
        elif request.acks:
            reply = ProduceResponse(request, error, base_offset, broker.kernel.now_us)
            if self.own_min_isr is not None and request.acks < 0:
                self._note_own_min_isr()
            if request.acks < 0 and not error:
                state = self.partition.state
                isr = None if state.pending else state.isr
                self.recorder.record(steps.Acknowledges(broker.node, reply, self.partition.min_insync_replicas, isr))
            broker.reply_produce(reply)

    def _answer_coordinator(self, request: ProduceRequest, error: str, base_offset: int) -> None:
        """Tell the group coordinator what became of its write."""
        assert self.coordinator is not None
        if request.acks < 0 and not error:
            state = self.partition.state
            reply = self.coordinator_write = ProduceResponse(request, error, base_offset, self.broker.kernel.now_us)
            isr = None if state.pending else state.isr
            self.recorder.record(steps.Acknowledges(self.broker.node, reply, self.partition.min_insync_replicas, isr))
        self.coordinator.appended(request.first_id, error, base_offset)

    def _note_own_min_isr(self) -> None:
        size, partition = len(self.partition.state.isr), self.partition
        needed = min(self.broker.settings.min_insync_replicas, len(partition.replicas))
        if partition.is_leader and (size < partition.min_insync_replicas) != (size < needed):
            self.reached(probes.OWN_MIN_ISR)

    def appended(self, replica: Replica, batch: Batch) -> None:
        """See `PartitionHost.appended`: wakes the fetches that wait for data."""
        broker = self.broker
        self.recorder.record(steps.Append(broker.node, replica.log, batch))
        self.storage.appended(batch, broker.kernel.now_us)
        expiration = self.host.isr_expiration
        if not expiration.scheduled and self.partition.is_leader:
            expiration.schedule()
        partition = self.partition
        if partition.followers.cached:
            partition.followers.note_change()
            self.wake_followers()
        elif self.followers:
            self.host.answer_waiting(self.followers)

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """See `PartitionHost.truncated`."""
        partition = self.partition
        assert replica is partition
        if partition.followers.cached:
            partition.followers.note_change()
        self.recorder.truncated(self.broker.node, partition, removed)
        self.storage.truncated(self.broker.kernel.now_us)
        self.host.log_truncated(self)

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """See `PartitionHost.hw_moved`: wakes consumers, never followers."""
        partition, broker = self.partition, self.broker
        assert replica is partition
        if partition.followers.cached:
            partition.followers.note_change()
        self.storage.hw_file.catch_up(previous, broker.kernel.now_us)
        self.recorder.record(steps.HighWatermark(broker.node, partition, previous))
        if replica.hw > previous:
            self.wake_consumers()
        if partition.is_leader:
            broker.end_elision(ElidedFetch)
        if self.coordinator is not None:
            self.coordinator.hw_moved(replica.hw, leads=partition.is_leader)

    def log_start_moved(self, replica: Replica) -> None:
        """See `PartitionHost.log_start_moved`."""
        broker = self.broker
        broker.end_elision()
        self.partition.followers.note_change()
        self.storage.log_start_moved(broker.kernel.now_us, written=broker.decide.writes_log_start_at_once.yes())
        self.recorder.record(steps.LogStart(broker.node, replica.log.log_start))
        broker.network.note_broker_change()  # Responses about the ends of epochs may differ now.

    def replicated(self, partition: Partition, follower: int, leo: int) -> None:
        """See `PartitionHost.replicated`. A follower whose disk was replaced lags even if nothing was appended, so
        isr-expiration has to check.
        """
        broker = self.broker
        expiration = self.host.isr_expiration
        if not expiration.scheduled and leo < partition.log.leo:
            expiration.schedule()
        self.recorder.record(steps.Replicated(broker.node, partition.leader_epoch, follower, leo))

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """See `PartitionHost.propose_isr`; schedules isr-expiration as well."""
        broker = self.broker
        broker.end_elision()
        self.host.isr_expiration.schedule()
        self.recorder.record(steps.IsrSent(partition, isr))
        self.host.propose_isr(self, isr)

    def note_laggards(self) -> None:
        """Schedule isr-expiration if a member of the ISR lags, which it may do although nothing was appended."""
        partition, expiration = self.partition, self.host.isr_expiration
        if not expiration.scheduled and partition.is_leader and partition.has_laggards:
            expiration.schedule()

    def is_alive(self, broker: int) -> bool:
        """See `MetadataCache.is_alive`."""
        return self.host.metadata.is_alive(broker)

    def registered_epoch(self, broker: int) -> int:
        """See `MetadataCache.registered_epoch`."""
        return self.host.metadata.registered_epoch(broker)
