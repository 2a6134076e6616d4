"""A broker of a KRaft cluster: registration and heartbeats, replay of the metadata log, AlterPartition.

A new process registers at once, loads its logs meanwhile, and stays fenced until it has replayed its own registration
record. From then on it serves requests and follows leaders, fenced or not.
"""

from __future__ import annotations

from sim.environment.network import Channel
from sim.environment.storage import LogDirectory
from sim.hosts.broker import Broker, Startup
from sim.hosts.broker_lifecycle import BrokerLifecycle
from sim.hosts.broker_metadata_publisher import BrokerMetadataPublisher
from sim.hosts.kraft_metadata_cache import KRaftMetadataCache
from sim.hosts.kraft_replica_manager import KRaftReplicaManager
from sim.hosts.peers import QuorumSessions
from sim.kernel.build import COMPILED
from sim.kernel.scheduler import Event
from sim.protocol.kraft.metadata import MetadataImage, Record
from sim.protocol.kraft.quorum_messages import (
    AlterPartitionResponse,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    MetadataRecords,
)


class KRaftBroker(Broker):
    """One incarnation of a KRaft broker, which reads only records of the metadata log that it has received.

    Kafka: BrokerServer.

    Attributes:
        image: the metadata that it has replayed.
        lifecycle: its registration, heartbeats and shutdown.
        kraft_replicas: its replicas, as `Broker.replica_manager`.
        publisher: replays the metadata log.
    """

    __deletable__ = ("kraft_replicas", "lifecycle", "publisher")
    __slots__ = ("image", "kraft_replicas", "lifecycle", "publisher")

    def __init__(self, startup: Startup, log: list[Record]) -> None:
        super().__init__(startup)
        metadata = KRaftMetadataCache(self.network)
        self.image: MetadataImage = metadata.image
        self.lifecycle = self.new_lifecycle()
        self.kraft_replicas = KRaftReplicaManager(self, metadata, self.lifecycle, startup.min_isrs, startup.places)
        self.publisher = self.new_publisher(metadata, log)
        self._compose(metadata, self.kraft_replicas)

    def new_lifecycle(self) -> BrokerLifecycle:
        """Its registration, heartbeats and shutdown."""
        return BrokerLifecycle(self)

    def new_publisher(self, metadata: KRaftMetadataCache, log: list[Record]) -> BrokerMetadataPublisher:
        """What replays the metadata log."""
        return BrokerMetadataPublisher(self, metadata, self.kraft_replicas, self.lifecycle, log)

    def receive_other(self, message: Event) -> None:
        if isinstance(message, BrokerHeartbeatResponse):
            self.lifecycle.on_heartbeat_reply(message)
        elif isinstance(message, MetadataRecords):
            self.publisher.on_metadata_records(message)
        elif isinstance(message, AlterPartitionResponse):
            self.kraft_replicas.isr_channel.on_reply(message)
        elif isinstance(message, BrokerRegistrationResponse):
            self.on_registered(message)
        elif isinstance(message, GetReplicaLogInfoRequest):
            self.on_get_replica_log_info(message)
        else:
            super().receive_other(message)

    # Life cycle.

    def start(self) -> None:
        """Register and load the logs; the broker is reachable meanwhile. Kafka: BrokerServer#startup."""
        self.network.join(self)
        self.lifecycle.start()
        super().start()

    def end(self) -> None:
        super().end()
        self.publisher.end()
        self.lifecycle.end()

    def dispose(self) -> None:
        super().dispose()
        self.lifecycle.dispose()
        del self.lifecycle, self.kraft_replicas, self.publisher

    def on_registered(self, reply: BrokerRegistrationResponse) -> None:
        """Handle the response to a registration."""
        if self.lifecycle.on_registered(reply):
            self.publisher.publish()

    def logs_loaded(self) -> None:
        self.publisher.publish()

    def close_unloaded(self) -> None:
        for directory in self.live_directories:
            directory.close_unloaded(self.decide, self.broker_epoch)

    def begin_shutdown(self) -> None:
        self.lifecycle.begin_shutdown()

    @property
    def metadata_offset(self) -> int:
        return self.image.offset

    @property
    def ready(self) -> bool:
        """See `BrokerNode.ready`: the broker has replayed its own registration, and its logs are loaded."""
        return self.publisher.published_us >= 0

    def resume_pings(self, channel: Channel[QuorumSessions], sent_us: int, next_us: int) -> None:
        self.lifecycle.resume_pings(channel, sent_us, next_us)

    def thaw(self) -> None:
        """See `Node.thaw`: the broker then fetches what was committed during the pause."""
        self.publisher.resumes()
        super().thaw()
        if not self.frozen and self.network.nodes.get(self.node) is self:
            self.publisher.fetch()

    def deliver_backlog(self) -> None:
        super().deliver_backlog()
        self.publisher.publish_after_backlog()
        self.lifecycle.exit_if_ending()

    # Log directories.

    def move_replica(self, name: str, directory: LogDirectory) -> bool:
        return self.kraft_replicas.moves.move_replica(name, directory)

    def throttle_moves(self, *, throttled: bool) -> None:
        self.kraft_replicas.moves.throttle_moves(throttled=throttled)

    def cordon(self) -> None:
        self.lifecycle.cordon()

    def report_failed(self, directory: LogDirectory) -> None:
        self.lifecycle.report_failed(directory)

    # Questions about its replicas.

    @property
    def changes_isr(self) -> bool:
        return self.kraft_replicas.changes_isr

    def on_get_replica_log_info(self, request: GetReplicaLogInfoRequest) -> None:
        """Answer the controller with the log end offset and last epoch."""
        replica = self.replica(request.name)
        if replica is None:
            return  # The topic was deleted, or is not known yet; the controller asks again.
        last_epoch, leo = replica.partition.log.end
        state = self.image.partitions.get(request.name)
        leader_epoch = state.leader_epoch if state is not None else -1
        self.to_control(GetReplicaLogInfoResponse(request, self.broker_epoch, last_epoch, leo, leader_epoch))


def _on_heartbeat_reply(broker: KRaftBroker, reply: BrokerHeartbeatResponse) -> None:
    broker.lifecycle.on_heartbeat_reply(reply)


def _on_metadata_records(broker: KRaftBroker, message: MetadataRecords) -> None:
    broker.publisher.on_metadata_records(message)


if not COMPILED:
    KRaftBroker.handlers = {
        **Broker.handlers,
        BrokerHeartbeatResponse: _on_heartbeat_reply,
        MetadataRecords: _on_metadata_records,
    }
