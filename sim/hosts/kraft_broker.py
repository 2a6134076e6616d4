"""A broker of a KRaft cluster: registration and heartbeats, replay of the metadata log, AlterPartition.

A new process registers at once, loads its logs meanwhile, and stays fenced until it has replayed its own registration
record. From then on it serves requests and follows leaders, fenced or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sim.environment.log_directories import FutureReplica
from sim.environment.network import Channel
from sim.environment.storage import LogDirectory
from sim.history import steps
from sim.hosts.broker import NOT_REGISTERED, SHUTDOWN, Broker, Startup
from sim.hosts.control_plane import CONTROL
from sim.hosts.hosted_replica import HostedReplica
from sim.hosts.metadata_log import FETCH_TIMEOUT_US
from sim.hosts.peers import QuorumSessions
from sim.hosts.serving import DirectoryStall
from sim.kernel.build import COMPILED
from sim.kernel.message import Message
from sim.kernel.scheduler import Event, Gate, IdleCall
from sim.protocol import probes
from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem, AlterPartitionManager
from sim.protocol.kraft.broker_lifecycle_manager import RECOVERY, RUNNING, BrokerLifecycleManager, LifecycleHost
from sim.protocol.kraft.metadata import (
    UNASSIGNED,
    ConfigRecord,
    MetadataImage,
    PartitionRegistration,
    Record,
    TopicRemoval,
)
from sim.protocol.kraft.quorum_messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    MetadataRecords,
)
from sim.protocol.messages import NO_BROKER_EPOCH
from sim.protocol.replica.become_follower import stops_fetcher
from sim.protocol.replica.partition import Partition

COPY_US: Final = 100_000
"""Time until a future replica has copied a log, here always the same."""
ASSIGN_DELAY_US: Final = 100_000
"""Time for which AssignmentsManager collects assignments before it sends them; here of replicas whose copy is held back
by a quota, because records may be appended meanwhile.
"""
FIRST_ASSIGN_RETRY_US: Final = 100_000
LONGEST_ASSIGN_RETRY_US: Final = 10_000_000
"""Longest back-off between retries of AssignReplicasToDirs, which doubles each time."""


class _Communication(Event):
    """Timer of the next registration or heartbeat."""

    __slots__ = ("_lifecycle", "_number")
    elision_safe = True

    def __init__(self, lifecycle: BrokerLifecycleManager, number: int) -> None:
        self._lifecycle = lifecycle
        self._number = number

    def happen(self, _: Gate) -> None:
        self._lifecycle.communicate(self._number)


class _ResponseTimeout(Event):
    """Timeout of a request to the controller."""

    __slots__ = ("_broker", "_request")
    elision_safe = True

    def __init__(self, broker: KRaftBroker, request: Message) -> None:
        self._broker = broker
        self._request = request

    def happen(self, _: Gate) -> None:
        self._broker.time_out_request(self._request)


class _Lifecycle(LifecycleHost):
    """Passes the calls of a broker's `BrokerLifecycleManager` on to it."""

    __slots__ = ("_broker",)

    def __init__(self, broker: KRaftBroker) -> None:
        self._broker = broker

    def send_registration(self) -> None:
        self._broker.send_registration()

    def send_heartbeat(self, *, want_fence: bool, want_shut_down: bool) -> None:
        self._broker.send_heartbeat(want_fence=want_fence, want_shut_down=want_shut_down)

    def communicate_after(self, after_us: int, number: int) -> None:
        self._broker.communicate_after(after_us, number)

    def time_out_registration_after(self, after_us: int) -> None:
        self._broker.time_out_registration_after(after_us)

    def time_out_directory_report(self, number: int) -> None:
        self._broker.time_out_directory_report(number)

    def directory_unreported(self) -> None:
        self._broker.directory_unreported()

    def caught_up(self) -> None:
        self._broker.caught_up()

    def shutting_down(self) -> None:
        self._broker.shutting_down()


class KRaftBroker(Broker):
    """One incarnation of a KRaft broker, which reads only records of the metadata log that it has received.

    Kafka: BrokerServer, BrokerMetadataPublisher.

    Attributes:
        image: the metadata that it has replayed.
        fenced: whether it is fenced according to the last response of the controller.
    """

    __deletable__ = ("_lifecycle", "_sender")
    __slots__ = (
        "_alter_request",
        "_assigning",
        "_awaits_metadata",
        "_deleted",
        "_ending",
        "_in_phase",
        "_lifecycle",
        "_lifecycle_request",
        "_log",
        "_moving",
        "_only_directory",
        "_previous_broker_epoch",
        "_promoted",
        "_published_us",
        "_received",
        "_registered_directories",
        "_sender",
        "_skipped",
        "_wants_shut_down",
        "fenced",
        "image",
    )

    def __init__(self, startup: Startup, log: list[Record]) -> None:
        super().__init__(startup)
        self.image = MetadataImage()
        self.fenced = True
        settings = self.settings
        self._lifecycle = BrokerLifecycleManager(
            _Lifecycle(self), self.decide, settings.heartbeat_us, settings.session_us
        )
        self._in_phase = False
        """Whether the first interval between its heartbeats has begun."""
        self._lifecycle_request: BrokerRegistrationRequest | BrokerHeartbeatRequest | None = None
        self._previous_broker_epoch = -1
        self._registered_directories: tuple[int, ...] = ()
        self._only_directory = -1
        self._published_us = -1
        self._log = log
        self._received = 0
        """Number of metadata records received without a gap."""
        self._awaits_metadata = False
        """Whether it is resuming, and its fetch of the metadata log has neither been answered nor timed out."""
        self._wants_shut_down = False
        self._ending = ""
        """Why it exits, once it has begun to."""
        self._assigning: dict[str, int] = {}
        """Partition -> id of its log directory, while that is being reported."""
        self._moving: dict[str, LogDirectory] = {}
        """Partition -> log directory to which its replica is being moved."""
        self._promoted: set[str] = set()
        """The partitions being moved of which it has asked for the directory of the future replica."""
        self._deleted: list[str] = []
        self._skipped: set[str] = set()
        """The partitions with a log that it does not use: see `_skips_log`."""
        self._sender = AlterPartitionManager(self)
        self._alter_request: AlterPartitionRequest | None = None

    def receive_other(self, message: Event) -> None:
        if isinstance(message, BrokerHeartbeatResponse):
            self.on_heartbeat_reply(message)
        elif isinstance(message, MetadataRecords):
            self.on_metadata_records(message)
        elif isinstance(message, AlterPartitionResponse):
            self.on_alter_partition_reply(message)
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
        self._previous_broker_epoch = self.directories.clean_broker_epoch
        used = self.directories.used_broker_epoch
        if used != self._previous_broker_epoch and self.decide.ignores_offline_directories.yes():
            self._previous_broker_epoch = used
        live = self._registered_directories = tuple([directory.number for directory in self.live_directories])
        self._only_directory = -1 if self.directories.are_several else live[0]
        self._lifecycle.start()
        if self.directories.cordoned:
            self.cordon()
        super().start()

    def end(self) -> None:
        super().end()
        self._log = []
        self._lifecycle_request = None
        self._sender = AlterPartitionManager(self)

    def dispose(self) -> None:
        del self._lifecycle, self._sender
        self._alter_request = None

    def send_registration(self) -> None:
        """See `LifecycleHost.send_registration`."""
        request = BrokerRegistrationRequest(
            self.node, self.incarnation, self._previous_broker_epoch, self._registered_directories
        )
        self.to_control(request)
        self._await_answer(request, self.kernel.now_us)

    def on_registered(self, reply: BrokerRegistrationResponse) -> None:
        """Handle the response to a registration, which is refused while an earlier incarnation may be alive."""
        mutant = self.decide.mutants.registration_of_another_request
        mutant.took = True
        if reply.request is not self._lifecycle_request and (self.broker_epoch >= 0 or not mutant.differs()):
            return
        self._lifecycle_request = None
        if reply.error:
            self.reached(probes.REGISTRATION_REFUSED)
            self._lifecycle.failed()
            return
        self.broker_epoch = reply.broker_epoch
        self._lifecycle.registered()
        self._publish()

    def time_out_registration_after(self, after_us: int) -> None:
        """See `LifecycleHost.time_out_registration_after`."""
        timeout = IdleCall(self._registration_timed_out, None)
        self.kernel.schedule(self.kernel.now_us + after_us, self.life, timeout)

    def _registration_timed_out(self, _: object) -> None:
        self._lifecycle.registration_timed_out()

    def shutting_down(self) -> None:
        """See `LifecycleHost.shutting_down`: the logs are closed once all log directories answer."""
        self._ending = SHUTDOWN if self._wants_shut_down else NOT_REGISTERED
        if not self.stalled:
            self.exit(self._ending)

    def directory_works(self, stall: DirectoryStall) -> None:
        super().directory_works(stall)
        if self._ending and not self.stalled:
            self.exit(self._ending)

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

    # Heartbeats.

    def send_heartbeat(self, *, want_fence: bool, want_shut_down: bool) -> None:
        """See `LifecycleHost.send_heartbeat`."""
        channel: Channel[QuorumSessions] | None = self.out.get(CONTROL)
        if channel is not None and self._can_elide_pings(channel):
            interval_us = self._round_trip_us(channel) + self._lifecycle.interval_us
            if self._elide_pings(channel, interval_us):
                return
        request = BrokerHeartbeatRequest(
            self.node,
            self.broker_epoch,
            self.image.offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offline_directories=self._lifecycle.offline_directories,
            cordoned=self._lifecycle.reported_cordoned,
        )
        if not self.zombie:
            channel = self.reach(CONTROL)
            assert channel is not None
            channel.send_usually(request)
        self._await_answer(request, self.kernel.now_us)

    def _round_trip_us(self, channel: Channel[QuorumSessions]) -> int:
        """Round trip of an elided heartbeat."""
        return channel.usual_us + channel.target.response_latency_us(self.node)

    @property
    def _timeout_us(self) -> int:
        """Timeout of registrations and heartbeats.

        BrokerServer gives their NodeToControllerChannelManager half the session timeout (KAFKA-14392). Its earlier
        resends, if ``controller.socket.timeout.ms`` is shorter, are not modelled.
        """
        return self.settings.session_us // 2

    def _await_answer(self, request: BrokerRegistrationRequest | BrokerHeartbeatRequest, sent_us: int) -> None:
        self._lifecycle_request = request
        self.kernel.schedule(sent_us + self._timeout_us, self.life, _ResponseTimeout(self, request))

    def communicate_after(self, after_us: int, number: int) -> None:
        """See `LifecycleHost.communicate_after`."""
        if not self._in_phase and self._lifecycle.state == RUNNING:
            self._in_phase = True
            after_us = self.first_interval_us(after_us)
        communication = _Communication(self._lifecycle, number)
        self.kernel.schedule_first(self.kernel.now_us + after_us, self.life, communication)

    def _can_elide_pings(self, channel: Channel[QuorumSessions]) -> bool:
        """Whether this and later heartbeats and their responses will arrive and change nothing but the session."""
        lifecycle = self._lifecycle
        if self.zombie or not lifecycle.is_steady(fenced=self.fenced):
            return False
        controller = channel.target
        if not self.network.is_steady(self, controller):
            return False
        round_us = self._round_trip_us(channel)
        return (
            round_us < self._timeout_us
            and controller.is_keepalive(
                self.node, self.broker_epoch, self.image.offset, want_fence=lifecycle.wants_fence
            )
            and controller.cannot_expire(
                self.node, self.kernel.now_us + channel.usual_us, round_us + lifecycle.interval_us
            )
        )

    def resume_pings(self, channel: Channel[QuorumSessions], sent_us: int, next_us: int) -> None:
        now_us = self.kernel.now_us
        arrives_us, answered_us = sent_us + channel.usual_us, sent_us + self._round_trip_us(channel)
        if answered_us <= now_us:
            self._lifecycle.resume(next_us - now_us)
            return
        request = BrokerHeartbeatRequest(
            self.node,
            self.broker_epoch,
            self.image.offset,
            want_fence=self._lifecycle.wants_fence,
            want_shut_down=False,
            cordoned=self._lifecycle.reported_cordoned,
        )
        self._await_answer(request, sent_us)
        if arrives_us > now_us:
            channel.deliver_at(arrives_us, request)
        else:
            channel.target.deliver_response(request, answered_us)

    def on_heartbeat_reply(self, reply: BrokerHeartbeatResponse) -> None:
        """Handle the response to a heartbeat."""
        if reply.request is not self._lifecycle_request:
            return
        self._lifecycle_request = None
        if reply.error:
            self._lifecycle.failed()
            return
        self.fenced = reply.is_fenced
        if self._lifecycle.unreported:
            self._lifecycle.note_report(reply.request.offline_directories)
        if reply.request.cordoned == self._lifecycle.cordoned:
            self._lifecycle.cordon_unreported = False
        self._lifecycle.heartbeat_answered(
            is_caught_up=reply.is_caught_up, is_fenced=reply.is_fenced, should_shut_down=reply.should_shut_down
        )

    def caught_up(self) -> None:
        """See `LifecycleHost.caught_up`."""
        self._request_unfencing()

    def _request_unfencing(self) -> None:
        """Ask to be unfenced once the controller knows that the broker has caught up, and metadata was published."""
        if self.ready and self._lifecycle.state == RECOVERY:
            self._lifecycle.set_ready_to_unfence()

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
            self._request_unfencing()
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
        self._recorder.record(steps.Metadata(steps.REPLAYED_METADATA, self.node, image.offset, fresh))
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
                self._assigning.pop(name, None)
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
            and self._assigning.get(name) != directory
            and self.decide.knows_directories.yes()
        ):
            self._assign(name, directory, ASSIGN_DELAY_US if self._is_behind(name) else 0)
        if len(self.live_directories) < len(self.directories.all) and self._skips_log(partition, state):
            return
        if state.leader == self.node:
            if state.leader_epoch > partition.leader_epoch:
                self._become_leader(replica, state)
            else:
                partition.become_leader(state, self.kernel.now_us)
                self.isr_expiration.schedule()
            self.network.note_broker_change()
        elif stops_fetcher(self.node, state, shutting_down=self._wants_shut_down):
            self._await_leader(replica, state)
        elif state.leader_epoch > partition.leader_epoch:
            self._become_follower(replica, state)
        else:
            partition.become_follower(state)
        self._checkpoint_hw(self._published_us)

    def _await_leader(self, replica: HostedReplica, state: PartitionRegistration) -> None:
        """Stop fetching: there is no leader, or the broker shuts down and has left the ISR (see `stops_fetcher`)."""
        self.stop_fetching(replica.name)
        if self._wants_shut_down and self._is_behind(replica.name):
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
                self._recorder.of(state.name).record(step)
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

    def _assign(self, name: str, directory: int, delay_us: int = 0) -> None:
        """Report the log directory of a replica, in place of an earlier one that the metadata does not have yet.

        Kafka: AssignmentsManager#onAssignment, AssignmentsManagerDeadlineFunction.
        """
        self._assigning[name] = directory
        entry = name, directory, FIRST_ASSIGN_RETRY_US
        if delay_us:
            self.kernel.call_at(self.kernel.now_us + delay_us, self.life, self._assign_directory, entry)
        else:
            self._assign_directory(entry)

    def _assign_directory(self, entry: tuple[str, int, int]) -> None:
        """Report the log directory of a replica until the metadata has it, also after it has failed; the entry has the
        partition, the id of the directory, and the time until the report is repeated.

        Kafka: AssignmentsManager#onAssignment.
        """
        name, directory, retry_us = entry
        if self._assigning.get(name) != directory:
            return
        state = self.known.get(name)
        if (
            not isinstance(state, PartitionRegistration)
            or self.node not in state.replicas
            or state.directory(self.node) == directory
        ):
            del self._assigning[name]
            return
        self.to_control(AssignReplicasToDirsRequest(self.node, self.broker_epoch, name, directory))
        later = name, directory, min(2 * retry_us, LONGEST_ASSIGN_RETRY_US)
        self.kernel.call_at(self.kernel.now_us + retry_us, self.life, self._assign_directory, later)

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
            if self._assigning.get(name, directory.number) != directory.number or self._is_assigned_elsewhere(name):
                self.to_control(AssignReplicasToDirsRequest(self.node, self.broker_epoch, name, directory.number))
                self._assign(name, directory.number)

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
            self._assigning.pop(name, None)
            self._move_if_assigned(self.replicas[name], state, target.number)
        elif self._assigning.get(name) != target.number:
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
        if directory is not None and self._assigning.get(name) == self._moving[name].number:
            self._assign(name, directory.number, ASSIGN_DELAY_US)

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
        self._assign(name, target.number, ASSIGN_DELAY_US if is_held else 0)

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
            return target.number if self._assigning.get(replica.name) == target.number else directory
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
        """See `Broker.cordon`. Kafka: DirectoryEventHandler#handleCordoned (4.3-4.4)."""
        self.end_elision()
        self._lifecycle.propagate_directory_cordoned(self.directories.cordoned)

    def report_failed(self, directory: LogDirectory) -> None:
        """See `Broker.report_failed`. Kafka: DirectoryEventHandler#handleFailure (3.9-4.4)."""
        self._lifecycle.propagate_directory_failure(directory.number)

    def time_out_directory_report(self, number: int) -> None:
        """See `LifecycleHost.time_out_directory_report`."""
        due_us = self.kernel.now_us + self.settings.directory_failure_us
        self.kernel.call_at(due_us, self.life, self._directory_report_timed_out, number)

    def _directory_report_timed_out(self, number: int) -> None:
        self._lifecycle.directory_report_timed_out(number)

    def directory_unreported(self) -> None:
        """See `LifecycleHost.directory_unreported`: the shutdown hook stops the broker in a controlled way."""
        self.reached(probes.DIRECTORY_UNREPORTED)
        self.begin_shutdown()

    # AlterPartition.

    @property
    def changes_isr(self) -> bool:
        if self._sender.pending:
            return True
        return any(replica.partition.state.pending for replica in self.replicas.values())

    def propose_isr(self, replica: HostedReplica, isr: tuple[int, ...]) -> None:
        """See `Broker.propose_isr`: send an AlterPartition to the controller."""
        partition = replica.partition
        known = partition.state.broker_epochs
        epochs = {member: known.get(member, NO_BROKER_EPOCH) for member in isr}
        epochs[self.node] = self.broker_epoch
        change = AlterPartitionItem(partition.name, isr, partition.leader_epoch, partition.partition_epoch, epochs)
        in_flight = self._sender.in_flight
        if in_flight is not None and all(other.name != change.name for other in in_flight):
            self.reached(probes.ISR_CHANGE_WAITS)
        self._sender.submit(partition, change, self.kernel.now_us)

    def send_alter_partition(self, changes: Sequence[AlterPartitionItem]) -> None:
        """See `AlterPartitionHost.send_alter_partition`; the request is resent after a timeout.

        Kafka: DefaultAlterPartitionManager#sendRequest.
        """
        request = self._alter_request = AlterPartitionRequest(self.node, self.broker_epoch, changes)
        self.to_control(request)
        due_us = self.kernel.now_us + self.settings.controller_socket_timeout_us
        self.kernel.schedule(due_us, self.life, _ResponseTimeout(self, request))

    def retry_alter_partition(self, after_us: int) -> None:
        """See `AlterPartitionHost.retry_alter_partition`."""
        self.kernel.call_at(self.kernel.now_us + after_us, self.life, self._resend, None)

    def _resend(self, _: object) -> None:
        self._sender.send()

    def time_out_request(self, request: Message) -> None:
        """Handle a request timeout; an AlterPartition is resent unchanged. Kafka: NodeToControllerChannelManager."""
        if request is self._lifecycle_request:
            self.end_elision()
            self._lifecycle_request = None
            self._lifecycle.failed()
        elif request is self._alter_request:
            self.end_elision()
            self.send_alter_partition(self._alter_request.changes)

    def on_alter_partition_reply(self, reply: AlterPartitionResponse) -> None:
        """Handle the response to an AlterPartition."""
        if reply.request is not self._alter_request:
            return
        self._alter_request = None
        self._sender.on_reply(reply.error, reply.results, self.kernel.now_us)
        self.isr_expiration.schedule()
        self.network.note_broker_change()

    # Controlled shutdown.

    def begin_shutdown(self) -> None:
        """See `Broker.begin_shutdown`: heartbeats request it until the controller allows it."""
        self._wants_shut_down = True
        self._lifecycle.begin_controlled_shutdown()

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


if not COMPILED:
    KRaftBroker.handlers = {
        **Broker.handlers,
        BrokerHeartbeatResponse: KRaftBroker.on_heartbeat_reply,
        MetadataRecords: KRaftBroker.on_metadata_records,
    }
