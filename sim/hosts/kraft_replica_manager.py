"""The replicas of a KRaft broker, which lead and follow as the records say that the broker replays."""

from __future__ import annotations

from collections.abc import Container, Mapping

from sim.environment.storage import LogDirectory
from sim.history import steps
from sim.hosts.alter_partition_channel import AlterPartitionChannel
from sim.hosts.assignments_manager import ASSIGN_DELAY_US, AssignmentsManager
from sim.hosts.broker_lifecycle import BrokerLifecycle
from sim.hosts.broker_node import BrokerNode
from sim.hosts.hosted_replica import HostedReplica
from sim.hosts.kraft_metadata_cache import KRaftMetadataCache
from sim.hosts.replica_alter_log_dirs_thread import ReplicaAlterLogDirsThread
from sim.hosts.replica_manager import ReplicaManager
from sim.protocol import probes
from sim.protocol.kraft.local_replica_change import AWAITS, FOLLOWS, LEADS, LEADS_ON, OUTDATED, local_replica_change
from sim.protocol.kraft.metadata import UNASSIGNED, PartitionRegistration, Record, TopicRemoval
from sim.protocol.messages import NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION, topic_of, topic_partition
from sim.protocol.replica.partition import Partition


class KRaftReplicaManager(ReplicaManager):
    """See the module. Kafka: ReplicaManager (0.10.2-4.4).

    Attributes:
        assignments: reports their log directories.
        isr_channel: sends their ISR changes.
        moves: moves them between log directories.
    """

    __deletable__ = ("assignments", "isr_channel", "moves")
    __slots__ = (
        "_has_published",
        "_lifecycle",
        "_listed",
        "_only_directory",
        "_proposed",
        "_skipped",
        "_uncreated",
        "assignments",
        "isr_channel",
        "moves",
    )

    def __init__(
        self,
        broker: BrokerNode,
        metadata: KRaftMetadataCache,
        lifecycle: BrokerLifecycle,
        min_isrs: Mapping[str, int],
        places: Mapping[str, int],
    ) -> None:
        super().__init__(broker, metadata, min_isrs, places)
        self._lifecycle = lifecycle
        self.assignments = AssignmentsManager(broker, metadata.known)
        self.isr_channel = AlterPartitionChannel(broker, self.isr_expiration)
        self.moves = ReplicaAlterLogDirsThread(broker, self, self.assignments)
        self._only_directory = -1 if broker.directories.are_several else broker.live_directories[0].number
        self._listed: Container[str] | None = None
        """See `apply_delta`."""
        self._skipped: dict[str, int] = {}
        """The partitions with a log that it does not use (`_skips_log`), and since when it uses another one in that
        directory; -1: it does not.
        """
        self._has_published = False
        """Whether it has acted on metadata."""
        self._uncreated: set[str] = set()
        """Those of `offline` that it did not create: see `_can_create`."""
        self._proposed: dict[str, None] = {}
        """The partitions whose ISR was proposed, until it is found to be settled."""

    def end(self) -> None:
        super().end()
        self.isr_channel.end()

    def dispose(self) -> None:
        super().dispose()
        self.isr_channel.dispose()
        del self.assignments, self.isr_channel, self.moves

    def apply_delta(
        self,
        states: list[PartitionRegistration],
        deleted: list[str],
        published_us: int,
        listed: Container[str] | None = None,
    ) -> None:
        """Act on new states of partitions, and on deleted topics. `published_us` is when the broker first published
        metadata. Of the partitions in `listed` (None: all) the broker looks at the log directory that the metadata has.

        Kafka: ReplicaManager#applyDelta.
        """
        self._listed = listed
        adopts = False
        if not deleted and len(states) < 2:
            for state in states:
                adopts = self._apply(state)
        else:
            adopts = self._apply_all(states, deleted)
        if adopts:
            self.checkpoint_hw(published_us)
        for name in self._skipped:
            self._forget_hw(name, begins=not self._has_published)
        self._has_published = True

    def _apply_all(self, states: list[PartitionRegistration], deleted: list[str]) -> bool:
        """Act on several new states, or on deleted topics; returns whether a replica adopts a state."""
        # A thread that loses its last partition goes on with one that it gets by the same changes. Those of deleted
        # topics stay until a broker leads or follows another partition.
        fetchers = self.fetchers.manager
        fetchers.keeps_idle = True
        self._remove_deleted(deleted)
        states.sort(key=self._turn)
        adopts = False
        for state in states:
            if self._apply(state):
                adopts = True
        fetchers.keeps_idle = False
        if states:
            fetchers.shut_down_idle()
        return adopts

    def _turn(self, state: PartitionRegistration) -> int:
        """The order of new states: a broker deletes replicas that were reassigned away, then leads, then follows."""
        node = self.broker.node
        if node not in state.replicas:
            return 0
        return 1 if state.leader == node else 2

    def _remove_deleted(self, deleted: list[str]) -> None:
        """Remove the replicas of deleted topics; also those that it finds when it starts, after it was down meanwhile.

        Kafka: ReplicaManager#applyDelta, LogManager#isStrayKraftReplica (3.9-4.2),
        LogManager#isStrayReplica (4.3-4.4).
        """
        if not deleted:
            return
        for name in deleted:
            replica = self.replicas.get(name)
            self._skipped.pop(name, None)
            if name in self._uncreated:
                self._forget_uncreated(name)
            if replica is not None:
                self.assignments.pending.pop(name, None)
                self.remove_replica(replica)
        self.broker.network.note_broker_change()

    def _apply(self, state: PartitionRegistration) -> bool:
        """Lead, follow or delete the replica (rule ``reassigned_replica``), as the new state says. Returns whether the
        replica adopts it.

        Kafka: ReplicaManager#applyDelta.
        """
        name, broker = state.name, self.broker
        node, replica = broker.node, self.replica(name)
        if node not in state.replicas:
            if replica is not None and broker.decide.deletes_reassigned_replica.yes():
                self._delete_replica(replica)
            elif name in self._uncreated:
                self._forget_uncreated(name)
            return False
        if replica is None:
            if not self._can_create(state):
                return False
            replica = self.create_replica(name)
        partition = replica.partition
        change = local_replica_change(node, partition, state, shutting_down=self._lifecycle.wants_shut_down)
        if change == OUTDATED:
            return False
        self._assign_directory(replica, state)
        if len(broker.live_directories) < len(broker.directories.all) and self._skips_log(partition, state):
            return False
        if change == LEADS:
            self.become_leader(replica, state)
            broker.network.note_broker_change()
        elif change == LEADS_ON:
            partition.become_leader(state, broker.kernel.now_us)
            self.isr_expiration.schedule()
            broker.network.note_broker_change()
        elif change == AWAITS:
            self._await_leader(replica, state)
        elif change == FOLLOWS:
            self.become_follower(replica, state)
        else:
            partition.become_follower(state)
        return True

    def _assign_directory(self, replica: HostedReplica, state: PartitionRegistration) -> None:
        """Tell the controller the log directory of a replica if the metadata has another one.

        Kafka: ReplicaManager#maybeUpdateTopicAssignment (3.9-4.4).
        """
        name, broker = replica.name, self.broker
        directory = self._only_directory if self._only_directory >= 0 else self.moves.place(replica, state)
        if (
            state.directory(broker.node) != directory
            and (self._is_listed(name) or self.moves.is_moving(name))
            and self.assignments.pending.get(name) != directory
            and broker.decide.knows_directories.yes()
        ):
            self.assignments.assign(name, directory, ASSIGN_DELAY_US if self.moves.is_behind(name) else 0)

    def _await_leader(self, replica: HostedReplica, state: PartitionRegistration) -> None:
        """Stop fetching: there is no leader, or the broker shuts down and has left the ISR (see `stops_fetcher`)."""
        self.fetchers.manager.remove(replica.name)
        if self._lifecycle.wants_shut_down and self.moves.is_behind(replica.name):
            self.moves.take_back_assignment(replica.name)
        replica.partition.become_follower(state)
        replica.wake_all()
        replica.recorder.record(steps.Follow(self.broker.node, replica.partition, restarts=True))

    def _delete_replica(self, replica: HostedReplica) -> None:
        """Delete the log, because the broker is no longer a replica. With several log directories the replica is
        forgotten, too, because it may be created again in another one.

        Kafka: ReplicaManager#stopPartitions.
        """
        partition, directories = replica.partition, self.broker.directories
        self._skipped.pop(replica.name, None)
        if directories.futures:
            directories.futures.pop(replica.name, None)
        if partition.leader_epoch >= 0 or partition.log.leo:
            replica.delete()
        if directories.are_several:
            self.forget_replica(replica)

    # Log directories.

    def directory_for(self, name: str) -> LogDirectory:
        """See `ReplicaManager.directory_for`: the directory that the metadata has, if it works, the broker looks at it
        (`apply_delta`), and no other is wanted.

        Kafka: LogManager#getOrCreateLog (1.1-4.4).
        """
        state = self.metadata.known.get(name)
        is_wanted = topic_of(name) in self._places
        if isinstance(state, PartitionRegistration) and self._is_listed(name) and not is_wanted:
            assigned = state.directory(self.broker.node)
            for directory in self.broker.live_directories:
                if directory.number == assigned:
                    return directory
        return super().directory_for(name)

    def _is_listed(self, name: str) -> bool:
        return self._listed is None or name in self._listed

    def _can_create(self, state: PartitionRegistration) -> bool:
        """Whether a replica that was not found may be created: its files may be in a directory that has failed.

        If the metadata does not have its directory yet, it is created nevertheless.
        Kafka: Partition#createLogInAssignedDirectoryId (3.9-4.4), ReplicaManager#getOrCreatePartition (0.10.2-2.0),
        ReplicaManager#getOrCreatePartition (3.9-4.4).
        """
        broker = self.broker
        node, directories, live = broker.node, broker.directories, broker.live_directories
        if len(live) == len(directories.all):
            return True
        name = state.name
        if name in self._uncreated and self._has_directory(state):
            self._uncreated.discard(name)  # LogManager.getOrCreateLog fails now, and the partition is offline.
        if name in self.offline:
            return False
        if not self._has_directory(state):
            self.offline[name] = None
            self._uncreated.add(name)
            return False
        self._note_online(name)
        if name in directories.names_outside(live):
            broker.reached(probes.REPLICA_ELSEWHERE)
            lost = directories.abandon(name, live)
            step = steps.End(node, steps.DIRECTORY_OFFLINE, lost, unclean=True, was_down=True)
            broker.recorder.of(name).record(step)
        return True

    def _has_directory(self, state: PartitionRegistration) -> bool:
        """Whether a log may be used or created: the metadata has a directory that works, or none.

        Kafka: Partition#createLogInAssignedDirectoryId (3.9-4.4).
        """
        assigned = state.directory(self.broker.node)
        if assigned == UNASSIGNED or not self._is_listed(state.name):
            return True
        return assigned in [directory.number for directory in self.broker.live_directories]

    def _forget_uncreated(self, name: str) -> None:
        self._uncreated.discard(name)
        self.offline.pop(name, None)

    def _note_online(self, name: str) -> None:
        """Note that a replica is created: one of that name in a failed directory counts no longer.

        Kafka: ReplicaManager#getOrCreatePartition (3.9-4.4).
        """
        wanted = topic_partition(name)
        for known in [known for known in self.offline if topic_partition(known) == wanted]:
            del self.offline[known]
            self._uncreated.discard(known)

    def without_replica(self, name: str, unknown: str = UNKNOWN_TOPIC_OR_PARTITION) -> str:
        """See `HostedReplicas.without_replica`; a replica that was not created, because its directory may have failed,
        neither leads nor follows.
        """
        return NOT_LEADER_OR_FOLLOWER if name in self._uncreated else super().without_replica(name, unknown)

    def _skips_log(self, partition: Partition, state: PartitionRegistration) -> bool:
        """Whether the broker does not use a log that it has, because a log directory has failed and the metadata has
        neither the log's directory nor another that works. It adopts the state as a follower, but follows nobody.

        Kafka: Partition#createLogInAssignedDirectoryId (3.9-4.4).
        """
        broker, name = self.broker, state.name
        if partition.leader_epoch >= 0 and name not in self._skipped:
            return False
        if self._has_directory(state):
            if name in self._skipped:
                self._forget_hw(name)
                del self._skipped[name]
            return False
        if broker.decide.uses_skipped_log.yes():
            return False
        broker.reached(probes.LOG_SKIPPED)
        self._skipped.setdefault(name, -1)
        if state.leader != broker.node:
            partition.become_follower(state)
        return True

    def _forget_hw(self, name: str, *, begins: bool = False) -> None:
        """Forget the HW of a log that is not used, once the file of its directory was written without it, because the
        broker uses another log there. When the broker `begins`, that file is written next.

        Kafka: ReplicaManager#checkpointHighWatermarks (0.10.2-4.4).
        """
        replica, directory = self.replicas.get(name), self.broker.directories.directory_of(name)
        if replica is None or directory is None or not self.checkpointing:
            return
        if self._skipped[name] < 0 and any(map(self._uses_log, directory.storages)):
            self._skipped[name] = self.broker.kernel.now_us - begins
        if self._skipped[name] >= 0 and self.was_hw_written(self._skipped[name]):
            replica.storage.hw_file.content = None
            replica.partition.set_hw(replica.partition.log.log_start)

    def _uses_log(self, name: str) -> bool:
        replica = self.replicas.get(name)
        return replica is not None and replica.partition.leader_epoch >= 0 and name not in self._skipped

    def stop_serving(self, directory: LogDirectory) -> None:
        super().stop_serving(directory)
        self.moves.remove_failed(directory)

    def changes(self, record: Record, directory: LogDirectory) -> bool:
        """Whether a record of the metadata log changes a replica in a log directory, or creates one there."""
        if isinstance(record, TopicRemoval):
            return any(name in directory.storages for name in record.names)
        if not isinstance(record, PartitionRegistration):
            return False
        name = record.name
        if self.replica(name) is None and self.broker.node in record.replicas and name not in self.offline:
            return self.directory_for(name) is directory
        return name in directory.storages

    # The ISR.

    @property
    def changes_isr(self) -> bool:
        """Whether an AlterPartition is pending."""
        if self.isr_channel.manager.pending:
            return True
        for name in list(self._proposed):
            replica = self.replicas.get(name)
            if replica is not None and replica.partition.state.pending:
                return True
            del self._proposed[name]
        return False

    def propose_isr(self, replica: HostedReplica, isr: tuple[int, ...]) -> None:
        self._proposed[replica.name] = None
        self.isr_channel.propose_isr(replica.partition, isr)
