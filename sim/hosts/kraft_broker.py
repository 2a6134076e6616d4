"""A broker of a KRaft cluster: registration and heartbeats, replay of the metadata log, AlterPartition.

A new process registers at once, loads its logs meanwhile, and stays fenced until it has replayed its own registration
record. From then on it serves requests and follows leaders, fenced or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sim.environment.log_directories import FutureReplica
from sim.environment.network import Channel
from sim.environment.storage import LogDirectory
from sim.history import steps
from sim.hosts.alter_partition_channel import AlterPartitionChannel
from sim.hosts.assignments_manager import ASSIGN_DELAY_US, AssignmentsManager
from sim.hosts.broker import Broker, Startup
from sim.hosts.broker_lifecycle import BrokerLifecycle
from sim.hosts.control_plane import CONTROL
from sim.hosts.hosted_replica import HostedReplica
from sim.hosts.metadata_log import FETCH_TIMEOUT_US
from sim.hosts.peers import QuorumSessions
from sim.hosts.serving import DirectoryStall
from sim.kernel.build import COMPILED
from sim.kernel.scheduler import Event, IdleCall
from sim.protocol import probes
from sim.protocol.kraft.metadata import (
    UNASSIGNED,
    ConfigRecord,
    MetadataImage,
    PartitionRegistration,
    Record,
    TopicRemoval,
)
from sim.protocol.kraft.quorum_messages import (
    AlterPartitionResponse,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    MetadataRecords,
)
from sim.protocol.replica.become_follower import stops_fetcher
from sim.protocol.replica.partition import Partition

COPY_US: Final = 100_000
"""Time until a future replica has copied a log, here always the same."""


class KRaftBroker(Broker):
    """One incarnation of a KRaft broker, which reads only records of the metadata log that it has received.

    Kafka: BrokerServer, BrokerMetadataPublisher.

    Attributes:
        image: the metadata that it has replayed.
        lifecycle: its registration, heartbeats and shutdown.
        isr_channel: sends its ISR changes.
        assignments: reports the log directories of its replicas.
    """

    __deletable__ = ("assignments", "isr_channel", "lifecycle")
    __slots__ = (
        "_awaits_metadata",
        "_deleted",
        "_log",
        "_moving",
        "_only_directory",
        "_promoted",
        "_published_us",
        "_received",
        "_skipped",
        "assignments",
        "image",
        "isr_channel",
        "lifecycle",
    )

    def __init__(self, startup: Startup, log: list[Record]) -> None:
        super().__init__(startup)
        self.image = MetadataImage()
        self.lifecycle = BrokerLifecycle(self)
        self.isr_channel = AlterPartitionChannel(self)
        self.assignments = AssignmentsManager(self, self.known)
        self._only_directory = -1
        self._published_us = -1
        self._log = log
        self._received = 0
        """Number of metadata records received without a gap."""
        self._awaits_metadata = False
        """Whether it is resuming, and its fetch of the metadata log has neither been answered nor timed out."""
        self._moving: dict[str, LogDirectory] = {}
        """Partition -> log directory to which its replica is being moved."""
        self._promoted: set[str] = set()
        """The partitions being moved of which it has asked for the directory of the future replica."""
        self._deleted: list[str] = []
        self._skipped: set[str] = set()
        """The partitions with a log that it does not use: see `_skips_log`."""

    def receive_other(self, message: Event) -> None:
        if isinstance(message, BrokerHeartbeatResponse):
            self.lifecycle.on_heartbeat_reply(message)
        elif isinstance(message, MetadataRecords):
            self.on_metadata_records(message)
        elif isinstance(message, AlterPartitionResponse):
            self.isr_channel.on_reply(message)
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
        self._only_directory = -1 if self.directories.are_several else self.live_directories[0].number
        self.lifecycle.start()
        super().start()

    def end(self) -> None:
        super().end()
        self._log = []
        self.lifecycle.end()
        self.isr_channel.end()

    def dispose(self) -> None:
        self.lifecycle.dispose()
        self.isr_channel.dispose()
        del self.lifecycle, self.isr_channel, self.assignments

    def on_registered(self, reply: BrokerRegistrationResponse) -> None:
        """Handle the response to a registration."""
        if self.lifecycle.on_registered(reply):
            self._publish()

    def directory_works(self, stall: DirectoryStall) -> None:
        super().directory_works(stall)
        self.lifecycle.exit_if_ending()

    def logs_loaded(self) -> None:
        self._publish()

    def close_unloaded(self) -> None:
        for directory in self.live_directories:
            directory.close_unloaded(self.decide, self.broker_epoch)

    @property
    def metadata_offset(self) -> int:
        return self.image.offset

    @property
    def ready(self) -> bool:
        """See `Broker.ready`: the broker has replayed its own registration, and its logs are loaded."""
        return self._published_us >= 0

    def resume_pings(self, channel: Channel[QuorumSessions], sent_us: int, next_us: int) -> None:
        self.lifecycle.resume_pings(channel, sent_us, next_us)

    # Metadata.

    def thaw(self) -> None:
        """See `Node.thaw`: the broker then fetches what was committed during the pause, all in one response.

        Only a response that was in flight when the pause began may come before. It is dropped if its request has timed
        out, because Kafka's Raft thread looks at the time before it gets to know of the response.
        Kafka: KafkaRaftClient#poll, RequestManager#hasRequestTimedOut, RequestManager#isResponseExpected.
        """
        self._awaits_metadata = self.kernel.now_us - self.frozen_us < FETCH_TIMEOUT_US
        super().thaw()
        if self.frozen or self.network.nodes.get(self.node) is not self:
            return
        channel: Channel[QuorumSessions] | None = self.reach(CONTROL)
        assert channel is not None
        arrives_us, controller = self.kernel.now_us + channel.usual_us, channel.target
        fetch = IdleCall(controller.fetch_metadata, (self.node, self._received))
        self.kernel.schedule(arrives_us, controller.life, fetch)

    def on_metadata_records(self, message: MetadataRecords) -> None:
        """Handle metadata records; all received records are applied together once the partition is usable."""
        if self.frozen:  # It is resuming.
            if not self._awaits_metadata:
                return
            self._awaits_metadata = False
        if message.first <= self._received:  # Otherwise earlier records were lost and will be sent again.
            self._received = max(self._received, message.end)
            self._publish()

    def _publish(self) -> None:
        """Begin to apply metadata, once logs are loaded and the broker has received its registration record.

        Kafka: BrokerMetadataPublisher#onMetadataUpdate.
        """
        if not self.has_loaded or self.broker_epoch < 0:
            return
        if not self.ready:
            if self._received < self.broker_epoch:
                return
            self._published_us = self.kernel.now_us
            self._replay()
            self._deliver_backlog()
            self.lifecycle.request_unfencing()
        elif self.image.offset < self._received and (self.waiting is None or (self.stalled and not self.is_blocked)):
            self._replay()

    def _deliver_backlog(self) -> None:
        """See `Broker._deliver_backlog`; metadata received meanwhile is applied first."""
        super()._deliver_backlog()
        if self.waiting is None or self.stalled:
            self._publish()

    def _published_end(self) -> int:
        """The offset up to which received records can be applied: those after a change of a replica whose log directory
        does not answer wait, because one thread applies all.
        """
        if self.stalled:
            for offset in range(self.image.offset, self._received):
                if any(self._changes(self._log[offset], stall.directory) for stall in self.stalled):
                    return offset
        return self._received

    def _changes(self, record: Record, directory: LogDirectory) -> bool:
        """Whether a record of the metadata log changes a replica in a log directory, or creates one there."""
        if isinstance(record, TopicRemoval):
            return any(name in directory.storages for name in record.names)
        if not isinstance(record, PartitionRegistration):
            return False
        if self.replica(record.name) is None and self.node in record.replicas and record.name not in self.offline:
            return self._directory_for(record.name) is directory
        return record.name in directory.storages

    def _replay(self) -> None:
        """Replay received records, then act on the resulting state.

        Rule ``config_replay`` decides when configuration changes apply. The first records that a broker replays have
        its configuration at the start.
        Kafka: BrokerMetadataPublisher#onMetadataUpdate.
        """
        image = self.image
        names: dict[str, None] = {}
        fresh = self._log[image.offset : self._published_end()]
        if self.stalled and not fresh:
            return
        self.recorder.record(steps.Metadata(steps.REPLAYED_METADATA, self.node, image.offset, fresh))
        begins = image.offset == 0
        changed: dict[str, Any] = {}
        live = self._read(fresh, names, changed)
        last = bool(changed) and bool(names) and not begins and self.decide.applies_configs_last.yes()
        if not last:
            self._apply_configs(changed)
        if begins and self.directories.futures:
            self._recover_futures()
        states = [image.partitions[name] for name in names]
        if states or live != self.live:
            self._set_metadata(states, live)
        self._apply_decisions(states)
        if last:
            self._apply_configs(changed)

    def _apply_configs(self, changed: Mapping[str, Any]) -> None:
        for key, value in changed.items():
            self.on_config_changed((key, value))

    def _apply_decisions(self, states: list[PartitionRegistration]) -> None:
        """Act on new states of partitions, and on deleted topics. Kafka: ReplicaManager#applyDelta."""
        if not self._deleted and len(states) < 2:
            for state in states:
                self._apply_decision(state)
            return
        # A thread that loses its last partition goes on with one that it gets by the same changes. Those of deleted
        # topics stay until a broker leads or follows another partition.
        self._keeps_idle = True
        self._remove_deleted()
        states.sort(key=self._follows)
        for state in states:
            self._apply_decision(state)
        self._keeps_idle = False
        if states:
            self.shut_down_idle_fetchers()

    def _forget_topic(self, record: TopicRemoval, names: dict[str, None]) -> None:
        """Replay the deletion of a topic; `names` are the partitions with new states."""
        for name in record.names:
            names.pop(name, None)
            self.known.pop(name, None)
            self.known_leaders.pop(name, None)
            self._deleted.append(name)

    def _remove_deleted(self) -> None:
        """Remove the replicas of deleted topics; also those that it finds when it starts, after it was down meanwhile.

        Kafka: ReplicaManager#applyDelta, LogManager#isStrayKraftReplica (3.9-4.2),
        LogManager#isStrayReplica (4.3-4.4).
        """
        if not self._deleted:
            return
        for name in self._deleted:
            replica = self.replicas.get(name)
            if replica is not None:
                self.assignments.pending.pop(name, None)
                self.remove_replica(replica)
        self._deleted.clear()
        self.network.note_broker_change()

    def _read(self, fresh: list[Record], names: dict[str, None], changed: dict[str, Any]) -> dict[int, int]:
        """Read records into the image, and note the partitions and the configuration that they change; returns the live
        brokers.
        """
        image = self.image
        brokers_changed = False
        for record in fresh:
            image.replay(record)
            if isinstance(record, PartitionRegistration):
                names[record.name] = None
            elif isinstance(record, TopicRemoval):
                self._forget_topic(record, names)
            elif isinstance(record, ConfigRecord):
                changed[record.key] = record.value
            else:
                brokers_changed = True
        if not brokers_changed:
            return self.live
        return {broker: entry.broker_epoch for broker, entry in image.brokers.items() if not entry.fenced}

    def _follows(self, state: PartitionRegistration) -> bool:
        """The order of new states: a broker first leads, then follows."""
        return state.leader != self.node

    def is_alive(self, broker: int) -> bool:
        """See `MetadataCache.is_alive`: neither fenced nor shutting down (KIP-841)."""
        return self.image.is_active(broker)

    def _apply_decision(self, state: PartitionRegistration) -> None:
        """Lead, follow or delete the replica, as the new state says.

        A leader that knows the partition epoch already, from its AlterPartition response, adopts the state again and so
        discards what it has proposed meanwhile.
        Kafka: ReplicaManager#applyDelta, ReplicaManager#applyLocalLeadersDelta,
        ReplicaManager#applyLocalFollowersDelta.
        """
        replica = self.replica(state.name)
        if replica is None:
            if self.node not in state.replicas or not self._can_create(state):
                return
            replica = self._create_replica(state.name)
        partition = replica.partition
        if self.node not in state.replicas:
            self._delete_replica(replica)
            return
        if state.partition_epoch < partition.partition_epoch:
            return
        name = state.name
        directory = self._only_directory if self._only_directory >= 0 else self._place(replica, state)
        if (
            state.directory(self.node) != directory
            and self.assignments.pending.get(name) != directory
            and self.decide.knows_directories.yes()
        ):
            self.assignments.assign(name, directory, ASSIGN_DELAY_US if self._is_behind(name) else 0)
        if len(self.live_directories) < len(self.directories.all) and self._skips_log(partition, state):
            return
        if state.leader == self.node:
            if state.leader_epoch > partition.leader_epoch:
                self._become_leader(replica, state)
            else:
                partition.become_leader(state, self.kernel.now_us)
                self.isr_expiration.schedule()
            self.network.note_broker_change()
        elif stops_fetcher(self.node, state, shutting_down=self.lifecycle.wants_shut_down):
            self._await_leader(replica, state)
        elif state.leader_epoch > partition.leader_epoch:
            self._become_follower(replica, state)
        else:
            partition.become_follower(state)
        self._checkpoint_hw(self._published_us)

    def _await_leader(self, replica: HostedReplica, state: PartitionRegistration) -> None:
        """Stop fetching: there is no leader, or the broker shuts down and has left the ISR (see `stops_fetcher`)."""
        self.stop_fetching(replica.name)
        if self.lifecycle.wants_shut_down and self._is_behind(replica.name):
            self._take_back_assignment(replica.name)
        replica.partition.become_follower(state)
        replica.wake_all()
        replica.recorder.record(steps.Follow(self.node, replica.partition, restarts=True))

    def _delete_replica(self, replica: HostedReplica) -> None:
        """Delete the log, because the broker is no longer a replica. Kafka: ReplicaManager#stopPartitions."""
        partition = replica.partition
        if self.directories.futures:
            self.directories.futures.pop(replica.name, None)
        if partition.leader_epoch < 0 and not partition.log.leo:
            return
        replica.delete()

    # Log directories.

    def _place(self, replica: HostedReplica, state: PartitionRegistration) -> int:
        """The id of the log directory of a replica that the metadata should have; a move goes on, or ends."""
        name, directories = replica.name, self.directories
        if directories.futures and name in directories.futures and name not in self._moving:
            self._continue_move(name)
        directory = directories.directory_of(name)
        assert directory is not None
        if self._moving and name in self._moving:
            return self._move_if_assigned(replica, state, directory.number)
        return directory.number

    def _can_create(self, state: PartitionRegistration) -> bool:
        """Whether a replica that was not found may be created: its files may be in a directory that has failed.

        If the metadata does not have its directory yet, it is created nevertheless.
        Kafka: Partition#createLogInAssignedDirectoryId (3.9-4.4), ReplicaManager#getOrCreatePartition (0.10.2-2.0),
        ReplicaManager#getOrCreatePartition (3.9-4.4).
        """
        directories, live = self.directories, self.live_directories
        if len(live) == len(directories.all):
            return True
        if state.name in self.offline:
            return False
        assigned = state.directory(self.node)
        if assigned in [directory.number for directory in live]:
            return True
        if assigned == UNASSIGNED:
            if state.name in directories.names_outside(live):
                self.reached(probes.REPLICA_ELSEWHERE)
                lost = directories.abandon(state.name, live)
                step = steps.End(self.node, steps.DIRECTORY_OFFLINE, lost, unclean=True, was_down=True)
                self.recorder.of(state.name).record(step)
            return True
        self.offline.add(state.name)
        return False

    def _skips_log(self, partition: Partition, state: PartitionRegistration) -> bool:
        """Whether the broker does not use a log that it has, because a log directory has failed and the metadata has
        neither the log's directory nor another that works. It adopts the state as a follower, but follows nobody.

        Kafka: Partition#createLogInAssignedDirectoryId (3.9-4.4).
        """
        name, assigned = state.name, state.directory(self.node)
        if partition.leader_epoch >= 0 and name not in self._skipped:
            return False
        if assigned == UNASSIGNED or assigned in [directory.number for directory in self.live_directories]:
            self._skipped.discard(name)
            return False
        if self.decide.uses_skipped_log.yes():
            return False
        self.reached(probes.LOG_SKIPPED)
        self._skipped.add(name)
        if state.leader != self.node:
            partition.become_follower(state)
        return True

    # Moves between log directories.

    def move_replica(self, name: str, directory: LogDirectory) -> bool:
        """See `Broker.move_replica`: the future replica copies the log, and is then assigned to its directory.

        A process that ends before that leaves the copy to the next one (`_continue_move`, `_recover_futures`).
        Kafka: ReplicaManager#alterReplicaLogDirs (1.1-4.4).
        """
        here = self.directories.directory_of(name)
        if name not in self.replicas or name in self._moving or directory is here or directory.cordoned:
            return False
        if len(self.live_directories) < len(self.directories.all):
            return False  # The future replica may be in a directory that has failed.
        self._begin_move(name, directory)
        return True

    def _begin_move(self, name: str, directory: LogDirectory) -> None:
        due_us = self.kernel.now_us + COPY_US
        self._moving[name] = directory
        self._promoted.discard(name)
        self.directories.futures[name] = FutureReplica(directory, due_us)
        self.kernel.call_at(due_us, self.life, self._promote, name)

    def _continue_move(self, name: str) -> None:
        """Continue a move that the end of an earlier process has interrupted.

        Kafka: ReplicaManager#maybeAddLogDirFetchers (2.6-4.4).
        """
        directory = self.directories.futures[name].directory
        if directory is self.directories.directory_of(name):
            del self.directories.futures[name]  # The log was created anew, in the directory of the copy.
        elif directory in self.live_directories:
            self.reached(probes.MOVE_CONTINUED)
            self._begin_move(name, directory)

    def _recover_futures(self) -> None:
        """Use the future replicas in directories that the metadata has already: the end of an earlier process came
        between the assignment and the replacement of the log (KAFKA-16082). Kafka does not compare the two logs; with
        rule ``lagging_future_log=keeps-log`` a log that has more records stays, and is copied again.

        Kafka: LogManager#recoverAbandonedFutureLogs (3.9-4.4).
        """
        for name, future in list(self.directories.futures.items()):
            state = self.image.partitions.get(name)
            is_usable = future.storage is not None and future.directory in self.live_directories
            if state is None or not is_usable or state.directory(self.node) != future.directory.number:
                continue
            replica = self.replicas.get(name)
            if replica is None or not future.lacks_of(replica.partition.log) or not self.decide.keeps_log.yes():
                self.recover_future(name)

    def stop_serving(self, directory: LogDirectory) -> None:
        """See `Broker.stop_serving`: of a replica that was being moved to another directory, the directory that has
        failed is assigned again, so that the controller does not count on it.

        Kafka: ReplicaAlterLogDirsThread#removePartitions (3.9-4.4).
        """
        super().stop_serving(directory)
        for name in [name for name in self._moving if name in directory.storages]:
            del self._moving[name]
            is_other = self.assignments.pending.get(name, directory.number) != directory.number
            if is_other or self._is_assigned_elsewhere(name):
                self.assignments.send(name, directory.number)
                self.assignments.assign(name, directory.number)

    def _is_assigned_elsewhere(self, name: str) -> bool:
        """Whether this process has asked for the directory of a future replica, and the metadata has it."""
        state, future = self.known.get(name), self.directories.futures.get(name)
        if future is None or name not in self._promoted or not isinstance(state, PartitionRegistration):
            return False
        return state.directory(self.node) == future.directory.number

    def _is_behind(self, name: str) -> bool:
        """Whether a future replica copies the log still, or is held back by a quota, so that it cannot replace it."""
        if not self._moving or name not in self._moving:
            return False
        future = self.directories.futures[name]
        return future.storage is not None or future.copied_us > self.kernel.now_us

    def throttle_moves(self, *, throttled: bool) -> None:
        """See `Broker.throttle_moves`: without the quota, future replicas catch up at once.

        Kafka: LocalLeaderEndPoint#buildFetch (3.9-4.4).
        """
        for name, target in list(self._moving.items()):
            if name not in self.replicas or target not in self.live_directories:
                continue
            if throttled:
                self._hold_back(name)
            elif self.directories.futures[name].storage is not None:
                self._follow_again(name, target)

    def _follow_again(self, name: str, target: LogDirectory) -> None:
        """A future replica catches up after the quota: it replaces the log if it is assigned still, or is assigned
        again.
        """
        self.directories.futures[name].storage = None
        state = self.known.get(name)
        if isinstance(state, PartitionRegistration) and state.directory(self.node) == target.number:
            self.assignments.pending.pop(name, None)
            self._move_if_assigned(self.replicas[name], state, target.number)
        elif self.assignments.pending.get(name) != target.number:
            self._promote(name)

    def _hold_back(self, name: str) -> bool:
        """Let a future replica that has caught up no longer follow the log, whose records have exceeded the quota."""
        log = self.replicas[name].partition.log
        if log.leo == log.log_start or self.directories.futures[name].copied_us > self.kernel.now_us:
            return False
        self.directories.end_following(name, self.decide, self.kernel.now_us)
        self.reached(probes.COPY_HELD_BACK)
        return True

    def _take_back_assignment(self, name: str) -> None:
        """The fetcher of a future replica is removed before it has replaced the log: assign the log's directory again.

        Kafka: ReplicaAlterLogDirsThread#removePartitions (3.9-4.4).
        """
        directory = self.directories.directory_of(name)
        if directory is not None and self.assignments.pending.get(name) == self._moving[name].number:
            self.assignments.assign(name, directory.number, ASSIGN_DELAY_US)

    def _promote(self, name: str) -> None:
        """The future replica has caught up: the controller has to know its directory before it replaces the log.

        Kafka: ReplicaAlterLogDirsThread#maybePromoteFutureReplica (3.9-4.4).
        """
        target = self._moving.get(name)
        state = self.known.get(name)
        if target is None or name not in self.replicas or not isinstance(state, PartitionRegistration):
            self._moving.pop(name, None)
            return
        self._promoted.add(name)
        is_held = self.directories.throttled and self._hold_back(name)
        self.assignments.assign(name, target.number, ASSIGN_DELAY_US if is_held else 0)

    def _move_if_assigned(self, replica: HostedReplica, state: PartitionRegistration, directory: int) -> int:
        """Let the future replica replace the log if the metadata has its directory. Returns the directory that the
        metadata should have: without a directory that has failed meanwhile, and the log's own if the future replica is
        behind, until it has caught up and its directory is assigned again.

        Kafka: ReplicaManager#maybeUpdateTopicAssignment (3.9-4.4), ReplicaAlterLogDirsThread#addPartitions (2.6-4.4).
        """
        target = self._moving[replica.name]
        if target not in self.live_directories:
            del self._moving[replica.name]
            return directory
        if state.directory(self.node) != target.number:
            return target.number if self.assignments.pending.get(replica.name) == target.number else directory
        if self._is_behind(replica.name):
            self.reached(probes.ASSIGNED_BEHIND)
            return directory
        del self._moving[replica.name]
        self.end_elision()
        self.directories.move(replica.name, target, self.kernel.now_us)
        replica.partition.note_change()
        replica.partition.replace_with_future_log()
        self.note_log_replaced(replica.name)
        self.reached(probes.REPLICA_MOVED)
        self.network.note_broker_change()
        return target.number

    def cordon(self) -> None:
        self.lifecycle.cordon()

    def report_failed(self, directory: LogDirectory) -> None:
        self.lifecycle.report_failed(directory)

    # AlterPartition.

    @property
    def changes_isr(self) -> bool:
        if self.isr_channel.manager.pending:
            return True
        return any(replica.partition.state.pending for replica in self.replicas.values())

    def propose_isr(self, replica: HostedReplica, isr: tuple[int, ...]) -> None:
        self.isr_channel.propose_isr(replica.partition, isr)

    # Controlled shutdown.

    def begin_shutdown(self) -> None:
        self.lifecycle.begin_shutdown()

    # Unclean recovery.

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


if not COMPILED:
    KRaftBroker.handlers = {
        **Broker.handlers,
        BrokerHeartbeatResponse: _on_heartbeat_reply,
        MetadataRecords: KRaftBroker.on_metadata_records,
    }
