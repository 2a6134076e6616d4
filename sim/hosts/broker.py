"""A broker process: its replicas, and what connects them to messages, time and storage.

One object is one incarnation. A crash discards it; only `sim.environment.storage.LogDirectory` survives, and is passed
to the next incarnation. All protocol decisions are made in `sim.protocol`. `sim.hosts.zk_broker` and
`sim.hosts.kraft_broker` add what is specific to a control plane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sim.config import Value
from sim.environment.log_directories import LogDirectories
from sim.environment.network import Network
from sim.environment.storage import LogDirectory
from sim.history.recorder import Recorder
from sim.hosts.broker_metadata_cache import BrokerMetadataCache
from sim.hosts.broker_node import BrokerNode
from sim.hosts.hosted_coordinator import HostedCoordinator
from sim.hosts.hosted_replica import HostedReplica
from sim.hosts.kafka_apis import KafkaApis
from sim.hosts.partition_backlog import PartitionBacklog
from sim.hosts.replica_manager import ReplicaManager
from sim.hosts.settings import BrokerSettings
from sim.kernel.build import COMPILED
from sim.kernel.scheduler import Event, Kernel, noop
from sim.protocol.decisions import Decisions
from sim.protocol.group.group_messages import CommittedOffsets
from sim.protocol.messages import (
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
)
from sim.protocol.replica.partition import Partition

SHUTDOWN: Final = "shutdown"
"""Exit reason: controlled shutdown."""
REFUSED: Final = "a broker is already registered"
"""Exit reason at start-up: an earlier registration is still valid."""
NOT_REGISTERED: Final = "not registered in time"
"""Exit reason at start-up: no controller registered the process in time."""


class Startup:
    """Arguments for one incarnation of a broker.

    Attributes:
        incarnation: number of earlier incarnations on this machine.
        loaded: called when the logs are loaded.
        exits: called with (broker, reason) when the process exits by itself.
        min_isrs: ``min.insync.replicas`` of partitions whose topics have their own.
        places: topic -> number of the log directory, from 1, in which its replicas are created, if it has one.
        phase: see `BrokerNode.first_interval_us`; below 2**`PHASE_BITS`.
        offsets: contents of the records of committed offsets; None if these are no records.
    """

    # Not a frozen dataclass: constructing one takes ten times as long in a compiled build, and each start needs one.
    def __init__(
        self,
        broker: int,
        incarnation: int,
        directories: LogDirectories,
        live_directories: list[LogDirectory],
        decide: Decisions,
        settings: BrokerSettings,
        kernel: Kernel,
        network: Network,
        recorder: Recorder,
        loaded: Callable[[Broker], None],
        exits: Callable[[int, str], None],
        min_isrs: Mapping[str, int],
        places: Mapping[str, int],
        phase: int,
        offsets: CommittedOffsets | None = None,
    ) -> None:
        self.offsets = offsets
        self.min_isrs = min_isrs
        self.places = places
        self.broker = broker
        self.incarnation = incarnation
        self.directories = directories
        self.live_directories = live_directories
        self.decide = decide
        self.settings = settings
        self.kernel = kernel
        self.network = network
        self.recorder = recorder
        self.loaded = loaded
        self.exits = exits
        self.phase = phase


class Broker(BrokerNode):
    """One incarnation of a broker.

    Attributes:
        metadata: what it knows of the cluster.
        replica_manager: its replicas.
        apis: answers requests.
        backlog: holds back events while the partitions are unusable, as they are at the start (`Node.waiting`).
        disk_stalled_us: when its disk stalled; None: it works.
        epoch_end_version: the newest version of OffsetsForLeaderEpoch that it offers to clients.
        coordinator: its group coordinator, if committed offsets are records.
    """

    __deletable__ = ("apis", "backlog", "replica_manager")
    __slots__ = (
        "_loaded",
        "_offsets",
        "apis",
        "backlog",
        "coordinator",
        "disk_stalled_us",
        "epoch_end_version",
        "metadata",
        "replica_manager",
    )

    metadata: BrokerMetadataCache
    replica_manager: ReplicaManager
    apis: KafkaApis
    backlog: PartitionBacklog

    def __init__(self, startup: Startup) -> None:
        super().__init__(
            startup.broker,
            startup.incarnation,
            startup.directories,
            startup.live_directories,
            startup.decide,
            startup.settings,
            startup.kernel,
            startup.network,
            startup.recorder,
            startup.exits,
            startup.phase,
        )
        self.epoch_end_version = 3 if self.decide.validates_position.answer else 2
        self.disk_stalled_us: int | None = None
        self._loaded = startup.loaded
        self._offsets = startup.offsets
        self.coordinator: HostedCoordinator | None = None

    def _compose(self, metadata: BrokerMetadataCache, replica_manager: ReplicaManager) -> None:
        """Put the broker together from its replicas."""
        self.metadata = metadata
        self.replica_manager = replica_manager
        self.apis = KafkaApis(self, replica_manager, replica_manager.purgatory)
        self.backlog = PartitionBacklog(self, replica_manager)
        if self._offsets is not None:
            self.coordinator = HostedCoordinator(self, replica_manager, self._offsets)
            replica_manager.coordinator = self.coordinator.group
        self.waiting = self.backlog
        self.update_gate()

    @property
    def replicas(self) -> dict[str, HostedReplica]:
        """Its replicas by partition; none until the logs are loaded."""
        return self.replica_manager.replicas

    def replica(self, name: str) -> HostedReplica | None:
        """The replica of a partition; None if there is none."""
        return self.replica_manager.replica(name)

    @property
    def partition(self) -> Partition | None:
        """The first partition; None until the logs are loaded."""
        first = self.replica_manager.first
        return None if first is None else first.partition

    # Messages.

    def receive(self, message: Event) -> None:
        # The most frequent types first: each test takes time.
        if isinstance(message, FetchRequest):
            self.apis.on_fetch(message)
        elif isinstance(message, FetchResponse):
            self.replica_manager.fetchers.on_fetch_reply(message)
        elif isinstance(message, ProduceRequest):
            self.socket_server.receive(message)
        else:
            self.receive_other(message)

    def receive_other(self, message: Event) -> None:
        """Dispatch a message of a type for which `receive` has no handler.

        Raises:
            TypeError: see `Node.receive`.
        """
        if isinstance(message, OffsetsForLeaderEpochResponse):
            self.replica_manager.fetchers.on_epoch_end_reply(message)
        elif isinstance(message, ListOffsetsResponse):
            self.replica_manager.fetchers.on_list_offsets_reply(message)
        elif isinstance(message, MetadataRequest):
            self.apis.on_metadata(message)
        elif isinstance(message, ListOffsetsRequest):
            self.apis.on_list_offsets(message)
        elif isinstance(message, OffsetsForLeaderEpochRequest):
            self.apis.on_epoch_end(message)
        elif self.coordinator is None or not self.coordinator.receive(message):
            super().receive(message)

    def peer_up(self, peer: int) -> None:
        self.replica_manager.fetchers.retry(peer)

    def disconnected(self, peer: int) -> None:
        if peer in self.network.nodes:
            self.peer_up(peer)

    # Elision of idle fetches that it sends: see `sim.environment.elision`.

    def would_repeat(self, request: FetchRequest, place: int, hw: int, log_start: int) -> bool:
        return self.replica_manager.fetchers.would_repeat(request, place, hw, log_start)

    def repeated_places(
        self, request: FetchRequest, results: Sequence[FetchResult], changed: Sequence[int] | None
    ) -> int:
        return self.replica_manager.fetchers.repeated_places(request, results, changed)

    def is_answered_in_time(self, peer: int, answered_us: int, period_us: int) -> bool:
        return self.replica_manager.fetchers.sender.is_answered_in_time(peer, answered_us, period_us)

    def note_elided_rounds(self, request: FetchRequest, sent_us: int, answers: int) -> None:
        self.replica_manager.fetchers.sender.note_elided_rounds(request, sent_us, answers)

    # Life cycle.

    def start(self) -> None:
        """Begin to load the logs, which takes simulated time."""
        self.kernel.call_at(self.kernel.now_us + self.settings.recovery_us, self.life, self._load, None)

    def _load(self, _: object) -> None:
        error = self.replica_manager.load()
        if error:
            self.halt(error)
            return
        self.has_loaded = True
        self._loaded(self)
        self.logs_loaded()

    def logs_loaded(self) -> None:
        """Continue start-up after the logs are loaded: register, or act on the registration."""
        raise NotImplementedError

    def close_unloaded(self) -> None:
        """Shut down in a controlled way before the logs are loaded."""

    def begin_shutdown(self) -> None:
        """Request controlled shutdown from the control plane, then stop."""
        raise NotImplementedError

    def end(self) -> None:
        """See `Node.end`. References back to this process are dropped, so that the garbage collector is not needed."""
        super().end()
        self.apis.end()
        self.replica_manager.end()
        self._loaded = noop

    def dispose(self) -> None:
        if self.coordinator is not None:
            self.coordinator.dispose()
            self.coordinator = None
        self.replica_manager.dispose()
        del self.apis, self.backlog, self.replica_manager

    def on_config_changed(self, change: tuple[str, Value]) -> None:
        """See `BrokerNode.on_config_changed`.

        Kafka: DynamicConfigManager (0.10.2-2.6), DynamicConfigPublisher#onMetadataUpdate (3.9-4.4).
        """
        key, value = change
        if key == "min.insync.replicas":
            assert isinstance(value, int)
            if self.settings.min_insync_replicas != value:
                self.settings = replace(self.settings, min_insync_replicas=value)
            self.replica_manager.set_min_isr(value)
        elif key == "unclean.leader.election.enable":
            allowed = bool(value)
            if self.settings.unclean_election != allowed:
                self.settings = replace(self.settings, unclean_election=allowed)
            self.replica_manager.fetchers.allow_unclean_election(allowed=allowed)
        self.network.note_broker_change()

    @property
    def received_changes(self) -> int:
        """Number of metadata records that it has replayed, or of watch events of its session that it has handled."""
        return self.metadata_offset

    def settings_in_force(self, name: str) -> dict[str, Value]:
        """The dynamic settings that it uses for a partition; for observers."""
        replica, settings = self.replica(name), self.settings
        min_isr = settings.min_insync_replicas if replica is None else replica.partition.configured_min_isr
        return {"min.insync.replicas": min_isr, "unclean.leader.election.enable": settings.unclean_election}

    @property
    def changes_isr(self) -> bool:
        """Whether an AlterPartition of this broker is pending."""
        return False

    # Log directories.

    def move_replica(self, name: str, directory: LogDirectory) -> bool:  # noqa: ARG002 - for KRaft
        """Begin to move a replica to another log directory; False if there is none, or it is there or on its way."""
        return False

    def throttle_moves(self, *, throttled: bool) -> None:
        """Begin or end a quota that holds future replicas back once they have caught up with their logs."""

    def cordon(self) -> None:
        """Tell the control plane which log directories are cordoned now."""

    def report_failed(self, directory: LogDirectory) -> None:
        """Report a log directory that has failed to the control plane."""

    # Events that wait.

    def freeze(self, now_us: int) -> None:
        for replica in self.replicas.values():
            if replica.partition.is_leader:
                self.replica_manager.isr_expiration.schedule()
        super().freeze(now_us)

    def deliver_backlog(self) -> None:
        self.backlog.deliver()

    def checkpoints_begin(self) -> None:
        self.backlog.write_checkpoints()

    def put_back(self, event: Event) -> None:
        self.backlog.put(self.life, event)


def _on_fetch(broker: Broker, request: FetchRequest) -> None:
    broker.apis.on_fetch(request)


def _on_fetch_reply(broker: Broker, reply: FetchResponse) -> None:
    broker.replica_manager.fetchers.on_fetch_reply(reply)


def _on_produce(broker: Broker, request: ProduceRequest) -> None:
    broker.socket_server.receive(request)


def _on_metadata(broker: Broker, request: MetadataRequest) -> None:
    broker.apis.on_metadata(request)


def _on_epoch_end(broker: Broker, request: OffsetsForLeaderEpochRequest) -> None:
    broker.apis.on_epoch_end(request)


def _on_epoch_end_reply(broker: Broker, reply: OffsetsForLeaderEpochResponse) -> None:
    broker.replica_manager.fetchers.on_epoch_end_reply(reply)


if not COMPILED:
    Broker.handlers = {
        FetchRequest: _on_fetch,
        FetchResponse: _on_fetch_reply,
        ProduceRequest: _on_produce,
        MetadataRequest: _on_metadata,
        OffsetsForLeaderEpochRequest: _on_epoch_end,
        OffsetsForLeaderEpochResponse: _on_epoch_end_reply,
    }
