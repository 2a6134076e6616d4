"""How a KRaft broker replays the metadata log: it reads the records that it has received, and acts on them."""

from __future__ import annotations

from sim.environment.network import Channel
from sim.history import steps
from sim.hosts.broker import Broker
from sim.hosts.broker_lifecycle import BrokerLifecycle
from sim.hosts.control_plane import CONTROL
from sim.hosts.kraft_metadata_cache import KRaftMetadataCache
from sim.hosts.kraft_replica_manager import KRaftReplicaManager
from sim.hosts.metadata_log import FETCH_TIMEOUT_US
from sim.hosts.peers import QuorumSessions
from sim.kernel.scheduler import IdleCall
from sim.protocol.kraft.metadata import PartitionRegistration, Record
from sim.protocol.kraft.metadata_delta import MetadataDelta
from sim.protocol.kraft.quorum_messages import MetadataRecords


class BrokerMetadataPublisher:
    """See the module. Kafka: BrokerMetadataPublisher.

    Args:
        log: the metadata log, of which it reads no more than the broker has received.

    Attributes:
        published_us: when the broker first published metadata, its own registration among it; -1 before.
        received: number of metadata records received without a gap.
    """

    __slots__ = (
        "_awaits_metadata",
        "_broker",
        "_lifecycle",
        "_log",
        "_metadata",
        "_replicas",
        "published_us",
        "received",
    )

    def __init__(
        self,
        broker: Broker,
        metadata: KRaftMetadataCache,
        replicas: KRaftReplicaManager,
        lifecycle: BrokerLifecycle,
        log: list[Record],
    ) -> None:
        self._broker = broker
        self._metadata = metadata
        self._replicas = replicas
        self._lifecycle = lifecycle
        self._log = log
        self.published_us = -1
        self.received = 0
        self._awaits_metadata = False
        """Whether it is resuming, and its fetch of the metadata log has neither been answered nor timed out."""

    def end(self) -> None:
        """Stop, because the process ended."""
        self._log = []

    def resumes(self) -> None:
        """The broker begins to resume after a pause.

        Only a response that was in flight when the pause began may come before `fetch`. It is dropped if its request
        has timed out, because Kafka's Raft thread looks at the time before it gets to know of the response.
        Kafka: KafkaRaftClient#poll, RequestManager#hasRequestTimedOut, RequestManager#isResponseExpected.
        """
        broker = self._broker
        self._awaits_metadata = broker.kernel.now_us - broker.frozen_us < FETCH_TIMEOUT_US

    def fetch(self) -> None:
        """Fetch what was committed during a pause, all in one response."""
        broker = self._broker
        channel: Channel[QuorumSessions] | None = broker.reach(CONTROL)
        assert channel is not None
        arrives_us, controller = broker.kernel.now_us + channel.usual_us, channel.target
        fetch = IdleCall(controller.fetch_metadata, (broker.node, self.received))
        broker.kernel.schedule(arrives_us, controller.life, fetch)

    def on_metadata_records(self, message: MetadataRecords) -> None:
        """Handle metadata records; all received records are applied together once the partition is usable."""
        if self._broker.frozen:  # It is resuming.
            if not self._awaits_metadata:
                return
            self._awaits_metadata = False
        if message.first <= self.received:  # Otherwise earlier records were lost and will be sent again.
            self.received = max(self.received, message.end)
            self.publish()

    def publish(self) -> None:
        """Begin to apply metadata, once logs are loaded and the broker has received its registration record.

        Kafka: BrokerMetadataPublisher#onMetadataUpdate.
        """
        broker = self._broker
        if not broker.has_loaded or broker.broker_epoch < 0:
            return
        if self.published_us < 0:
            if self.received < broker.broker_epoch:
                return
            self.published_us = broker.kernel.now_us
            self._replay()
            broker.deliver_backlog()
            self._lifecycle.request_unfencing()
            return
        backlog = broker.backlog
        if self._metadata.image.offset < self.received and (
            broker.waiting is None or (backlog.is_partial and not backlog.is_blocked)
        ):
            self._replay()

    def publish_after_backlog(self) -> None:
        """Apply metadata received while events waited, unless they have to wait still."""
        if self._broker.waiting is None or self._broker.backlog.is_partial:
            self.publish()

    def _published_end(self) -> int:
        """The offset up to which received records can be applied: those after a change of a replica whose log directory
        does not answer wait, because one thread applies all.
        """
        stalled = self._broker.backlog.stalled
        if stalled:
            for offset in range(self._metadata.image.offset, self.received):
                if any(self._replicas.changes(self._log[offset], stall.directory) for stall in stalled):
                    return offset
        return self.received

    def _replay(self) -> None:
        """Replay received records, then act on the resulting state.

        Kafka: BrokerMetadataPublisher#onMetadataUpdate.
        """
        image, end = self._metadata.image, self._published_end()
        fresh = self._log[image.offset : end]
        if not fresh and self._broker.backlog.stalled:
            return
        self._note_replayed(image.offset, fresh)
        self._apply(fresh, end)

    def _apply(self, fresh: list[Record], end: int) -> None:
        """Apply records, after which the image has the log up to an offset."""
        broker, metadata = self._broker, self._metadata
        image = metadata.image
        begins = image.offset == 0
        delta = MetadataDelta(fresh)
        listed: set[str] | None = None
        if broker.directories.are_several:
            listed = self._listed(fresh)
        else:
            for record in fresh:
                image.replay(record)
        image.offset = end
        for name in delta.deleted:
            metadata.forget(name)
        live = self._live(delta)
        last = delta.applies_configs_last(broker.decide, begins=begins)
        if not last:
            self._apply_configs(delta)
        if begins and broker.directories.futures:
            self._replicas.moves.recover_futures(image)
        states = list(delta.partitions.values())
        if states or live != metadata.live:
            metadata.update(states, live)
        self._replicas.apply_delta(states, delta.deleted, self.published_us, listed)
        if last:
            self._apply_configs(delta)

    def _listed(self, fresh: list[Record]) -> set[str]:
        """Replay records. Returns the partitions whose log directories the broker looks at: the new ones, and those of
        which it has been a replica if a record lists directories, as it does only if they or the replicas change.

        A replica that a reassignment adds is not among them (`PartitionRegistration#directory` fails), so the
        controller does not learn its directory from that.
        Kafka: TopicDelta#localChanges, PartitionChangeBuilder#setAssignmentChanges.
        """
        image, node = self._metadata.image, self._broker.node
        before: dict[str, PartitionRegistration | None] = {}
        listed = set()
        for record in fresh:
            if isinstance(record, PartitionRegistration):
                name = record.name
                state = image.partitions.get(name)
                former = before.setdefault(name, state)
                is_new = former is None or state is None
                if is_new or (former and state and node in former.replicas and _lists_directories(record, state, node)):
                    listed.add(name)
            image.replay(record)
        return listed

    def _note_replayed(self, first: int, fresh: list[Record]) -> None:
        """Record the replay of records from an offset on."""
        step = steps.Metadata(steps.REPLAYED_METADATA, self._broker.node, first, fresh)
        self._broker.recorder.record(step)

    def _apply_configs(self, delta: MetadataDelta) -> None:
        for key, value in delta.configs.items():
            self._broker.on_config_changed((key, value))

    def _live(self, delta: MetadataDelta) -> dict[int, int]:
        """The live brokers, with their broker epochs."""
        if not delta.registrations:
            return self._metadata.live
        brokers = self._metadata.image.brokers
        return {broker: entry.broker_epoch for broker, entry in brokers.items() if not entry.fenced}


def _lists_directories(record: PartitionRegistration, before: PartitionRegistration, node: int) -> bool:
    """Whether a record lists log directories: those of the replicas, which are all different, have changed."""
    return record.replicas != before.replicas or record.directory(node) != before.directory(node)
