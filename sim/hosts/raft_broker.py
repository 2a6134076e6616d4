"""A broker that observes a replicated quorum: it fetches the metadata log, and knows the leader.

What the broker gets to know as committed at once is one delta.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sim.environment.network import Channel
from sim.environment.storage import LogDirectory
from sim.history import steps
from sim.hosts.broker import Broker, Startup
from sim.hosts.broker_lifecycle import BrokerLifecycle
from sim.hosts.broker_metadata_publisher import BrokerMetadataPublisher
from sim.hosts.kraft_broker import KRaftBroker
from sim.hosts.kraft_metadata_cache import KRaftMetadataCache
from sim.hosts.node_to_controller_request_thread import NodeToControllerRequestThread
from sim.hosts.raft_controller import RaftController
from sim.hosts.raft_machine import RaftMachine
from sim.hosts.raft_member import IdleTime, RaftMember, has_content, records_of
from sim.hosts.snapshot_generator import SnapshotGenerator
from sim.kernel.build import COMPILED
from sim.kernel.message import REPLY, Message
from sim.kernel.scheduler import Event, IdleCall, noop
from sim.protocol.kraft.metadata import NO_OP, MetadataImage, NoOpRecord, Record
from sim.protocol.kraft.quorum_messages import (
    HEARTBEAT,
    AlterPartitionResponse,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
    NotControllerResponse,
)
from sim.protocol.raft.kafka_raft_client import LeaderAndEpoch, QuorumConfig
from sim.protocol.raft.raft_log import RaftBatch, RaftSnapshot
from sim.protocol.raft.raft_messages import RaftFetchResponse, RaftRequest, RaftResponse


class ObserverSetup:
    """What a broker needs to observe a quorum.

    Attributes:
        machines: the machines of the controllers, by id.
        logs: broker -> what its machine has of the metadata log.
        raft: settings of the quorum.
        snapshot_interval_us: see `SnapshotGenerator`.
        key: of random numbers.
        delays_us: broker -> by how much committed records reach it later.
        committed: called with broker, incarnation and batches that it knows to be committed.
        members: see `RaftMember`.
    """

    def __init__(
        self,
        machines: Mapping[int, RaftMachine],
        raft: QuorumConfig,
        snapshot_interval_us: int,
        key: int,
        committed: Callable[[int, int, Sequence[RaftBatch]], None],
        members: dict[int, RaftMember],
    ) -> None:
        self.members = members
        self.machines = machines
        self.logs: dict[int, RaftMachine] = {}
        self.raft = raft
        self.snapshot_interval_us = snapshot_interval_us
        self.key = key
        self.delays_us: dict[int, int] = {}
        self.committed = committed

    def lose_log(self, broker: int, *, replaced: bool) -> None:
        """A broker's machine loses power, or its disk: brokers do not fsync the metadata log."""
        machine = self.logs.get(broker)
        if machine is not None:
            if replaced:
                machine.replace_disk()
            else:
                machine.lose_power()


class RaftBrokerLifecycle(BrokerLifecycle):
    """The lifecycle of such a broker."""

    __deletable__ = ("_observer",)
    __slots__ = ("_observer",)

    def __init__(self, broker: RaftBroker) -> None:
        super().__init__(broker)
        self._observer = broker

    def dispose(self) -> None:
        super().dispose()
        del self._observer

    def send_heartbeat(self, *, want_fence: bool, want_shut_down: bool) -> None:
        broker = self._broker
        idle = self._observer.member.idle
        if idle is not None:
            if self._is_elided(idle):
                return
            idle.end()
        request = self.new_heartbeat(want_fence=want_fence, want_shut_down=want_shut_down)
        if not broker.zombie:
            broker.to_control(request)
        self._channel.await_response(request, broker.kernel.now_us)

    def _is_elided(self, idle: IdleTime) -> bool:
        """Elide this heartbeat and later ones, if all arrive, and change nothing but the session."""
        broker, manager, observer = self._broker, self.manager, self._observer
        leader = observer.member.leader
        channel: Channel[RaftController] | None = broker.out.get(leader)
        if channel is None or broker.zombie or self.fenced or not manager.is_steady(fenced=False):
            return False
        controller = channel.target
        back = controller.out.get(broker.node)
        if back is None or not observer.requests.may_ping(leader) or not broker.network.is_steady(broker, controller):
            return False
        back_us = back.latency_us(REPLY + HEARTBEAT)
        round_us, arrives_us = channel.usual_us + back_us, broker.kernel.now_us + channel.usual_us
        return (
            round_us < self._channel.timeout_us
            and controller.is_keepalive(broker.node, broker.broker_epoch, arrives_us, round_us + manager.interval_us)
            and idle.elide_heartbeats(broker, back_us, manager.interval_us, observer.steady_offset)
        )

    def resume_pings(self, channel: Channel[Any], sent_us: int, next_us: int) -> None:  # noqa: ARG002
        self.manager.resume(next_us - self._broker.kernel.now_us)

    def cordon(self) -> None:
        self._observer.end_idle()
        super().cordon()

    def report_failed(self, directory: LogDirectory) -> None:
        self._observer.end_idle()
        super().report_failed(directory)

    def begin_shutdown(self) -> None:
        self._observer.end_idle()
        super().begin_shutdown()


class MetadataLoader(BrokerMetadataPublisher):
    """Replays what the broker's Raft client reports as committed. Kafka: MetadataLoader, BrokerMetadataPublisher."""

    __slots__ = ("_noted", "_records", "_snapshot", "_snapshots")

    def prepare(self, records: list[Record], snapshots: SnapshotGenerator) -> None:
        """Set the list of records, control records among them, to which `commit` adds, and what makes snapshots."""
        self._records = records
        self._snapshots = snapshots
        self._snapshot: RaftSnapshot | None = None
        """A snapshot that is not applied yet: it stands for all records below its end."""
        self._noted = 0
        """How many records the history has."""

    def resumes(self) -> None:
        """See `BrokerMetadataPublisher.resumes`: the Raft thread does what is needed."""

    def fetch(self) -> None:
        """See `BrokerMetadataPublisher.fetch`: the Raft thread does what is needed."""

    @property
    def is_current(self) -> bool:
        """Whether all records that it has received are applied."""
        return 0 <= self.published_us < self._broker.kernel.now_us and self._metadata.image.offset == self.received

    @property
    def has_all(self) -> bool:
        """Whether it has received all records that were committed."""
        return self.received == len(self._records)

    def publish(self) -> None:
        self._broker.end_idle()
        super().publish()

    def commit(self, batches: Sequence[RaftBatch], delay_us: int) -> None:
        """Apply batches as one delta, or do so later. Kafka: MetadataLoader#handleCommit."""
        records = self._records
        for batch in batches:
            records += records_of(batch)
        self._receive_after(delay_us, changes=has_content(batches))

    def load(self, snapshot: RaftSnapshot, delay_us: int) -> None:
        """Apply a snapshot in place of the records that it stands for, or do so later.

        Kafka: MetadataLoader#handleLoadSnapshot.
        """
        records = self._records
        records += [NO_OP] * (snapshot.id.offset - len(records))
        self._snapshot = snapshot
        self._receive_after(delay_us, changes=True)

    def _receive_after(self, delay_us: int, *, changes: bool) -> None:
        broker, end = self._broker, len(self._records)
        if delay_us:
            late = IdleCall(self._commit_late, end)
            broker.kernel.schedule(broker.kernel.now_us + delay_us, broker.life, late)
        else:
            self._receive(end, changes=changes)

    def _commit_late(self, end: int) -> None:
        self._receive(end, changes=True)

    def _receive(self, end: int, *, changes: bool) -> None:
        if end > self.received:
            self.received = end
            if changes:
                self._broker.end_elision()
            self.publish()

    def _replay(self) -> None:
        snapshot = self._snapshot
        if snapshot is not None and self.received >= snapshot.id.offset:
            self._replay_from(snapshot)
            return
        image, end = self._metadata.image, self._published_end()
        fresh = self._log[image.offset : end]
        if self.published_us < self._broker.kernel.now_us and _are_empty(fresh):
            image.offset = end
        else:
            super()._replay()
        self._snapshots.published(image.offset)

    def _replay_from(self, snapshot: RaftSnapshot) -> None:
        """Apply what a snapshot changes, and the records that follow it, as one delta.

        Kafka: MetadataDelta#finishSnapshot.
        """
        content, stalled = snapshot.content, self._broker.backlog.stalled
        assert isinstance(content, MetadataImage)
        changes = self._metadata.image.changes_to(content)
        if any(self._replicas.changes(record, stall.directory) for record in changes for stall in stalled):
            return
        self._snapshot = None
        self._noted = offset = snapshot.id.offset
        end = max(offset, self._published_end())
        fresh = self._log[offset:end]
        self._note_replayed(offset, fresh)
        self._apply(changes + fresh, end)
        self._snapshots.loaded()

    def _note_replayed(self, first: int, fresh: list[Record]) -> None:
        """Trailing records without contents are noted with the next one that has some."""
        end = first + len(fresh)
        while end > self._noted and isinstance(self._log[end - 1], NoOpRecord):
            end -= 1
        recorder, broker = self._broker.recorder, self._broker.node
        recorder.record(steps.Metadata(steps.REPLAYED_METADATA, broker, self._noted, self._log[self._noted : end]))
        self._noted = end


def _are_empty(records: Sequence[Record]) -> bool:
    """Whether records have no contents."""
    return all(isinstance(record, NoOpRecord) for record in records)


class RaftBroker(KRaftBroker):
    """See the module. Kafka: BrokerServer, SharedServer.

    Attributes:
        loader: its `publisher`.
        member: its Raft thread.
        requests: its requests to the active controller.
    """

    __deletable__ = ("loader", "member", "requests")
    __slots__ = ("_observer", "loader", "member", "requests")

    loader: MetadataLoader
    member: RaftMember
    requests: NodeToControllerRequestThread

    def __init__(self, startup: Startup, observer: ObserverSetup) -> None:
        records: list[Record] = []
        super().__init__(startup, records)
        self._observer = observer
        machine = observer.logs.get(self.node)
        if machine is None:
            machine = observer.logs[self.node] = RaftMachine()
        machine.start()
        snapshots = SnapshotGenerator(
            self, machine.log, observer.snapshot_interval_us, startup.kernel, startup.recorder
        )
        self.loader.prepare(records, snapshots)
        self.member = RaftMember(
            self,
            startup.kernel,
            observer.machines,
            machine,
            startup.decide,
            observer.raft,
            observer.key,
            self._on_commit,
            self._on_snapshot,
            snapshots,
            self._on_leader_change,
            noop,
            self.halt,
            observer.members,
        )
        self.member.acts_at_once = self._acts_at_once
        self.requests = NodeToControllerRequestThread(self, startup.kernel, self.member)

    @property
    def metadata_offset(self) -> int:
        self.end_idle()
        return self.image.offset

    def new_lifecycle(self) -> BrokerLifecycle:
        return RaftBrokerLifecycle(self)

    def new_publisher(self, metadata: KRaftMetadataCache, log: list[Record]) -> BrokerMetadataPublisher:
        self.loader = MetadataLoader(self, metadata, self.kraft_replicas, self.lifecycle, log)
        return self.loader

    def start(self) -> None:
        super().start()
        self.member.drive()

    def end(self) -> None:
        super().end()
        self.member.end()
        self.requests.end()

    def dispose(self) -> None:
        super().dispose()
        self.member.dispose()
        del self.member, self.requests, self.loader

    # The quorum.

    def _on_commit(self, batches: Sequence[RaftBatch]) -> None:
        observer = self._observer
        observer.committed(self.node, self.incarnation, batches)
        self.loader.commit(batches, observer.delays_us.get(self.node, 0))

    def _on_snapshot(self, snapshot: RaftSnapshot) -> None:
        step = steps.MetadataSnapshot(steps.SNAPSHOT_LOADED, self.node, snapshot, self.incarnation)
        self.recorder.record(step)
        self.loader.load(snapshot, self._observer.delays_us.get(self.node, 0))

    def _acts_at_once(self) -> bool:
        """See `RaftMember.acts_at_once`."""
        if self._observer.delays_us.get(self.node) or self.backlog.stalled or self.waiting is not None:
            return False
        return self.loader.has_all and self.loader.is_current

    @property
    def steady_offset(self) -> int:
        """The metadata offset while the broker applies nothing, -1 if it applies what is committed at once."""
        return -1 if self.waiting is None else self.image.offset

    def end_idle(self) -> None:
        self.member.end_idle()

    def _on_leader_change(self, leader: LeaderAndEpoch) -> None:
        """The next request that has no controller finds the leader."""

    # Messages.

    def receive_other(self, message: Event) -> None:
        if isinstance(message, RaftRequest | RaftResponse):
            self.member.receive(message)
        elif isinstance(message, NotControllerResponse):
            self.requests.refused(message.request)
        else:
            if isinstance(message, BrokerHeartbeatResponse | AlterPartitionResponse | BrokerRegistrationResponse):
                self.requests.answered(message.request)
            super().receive_other(message)

    def to_control(self, message: Message) -> None:
        self.requests.send(message)

    def disconnected(self, peer: int) -> None:
        if peer in self._observer.machines:
            self.member.disconnected(peer)
            self.requests.disconnected(peer)
        else:
            super().disconnected(peer)


def _on_raft_fetch_response(broker: RaftBroker, response: RaftFetchResponse) -> None:
    broker.member.receive(response)


if not COMPILED:
    # Not those of `KRaftBroker`: `receive_other` has to see all responses of controllers.
    RaftBroker.handlers = {**Broker.handlers, RaftFetchResponse: _on_raft_fetch_response}
