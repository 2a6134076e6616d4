"""Moves of a broker's replicas between its log directories."""

from __future__ import annotations

from typing import Final

from sim.environment.log_directories import FutureReplica
from sim.environment.storage import LogDirectory
from sim.hosts.assignments_manager import ASSIGN_DELAY_US, AssignmentsManager
from sim.hosts.broker_node import BrokerNode
from sim.hosts.hosted_replica import HostedReplica
from sim.hosts.replica_manager import ReplicaManager
from sim.protocol import probes
from sim.protocol.kraft.metadata import MetadataImage, PartitionRegistration

COPY_US: Final = 100_000
"""Time until a future replica has copied a log, here always the same."""


class ReplicaAlterLogDirsThread:
    """See the module. Kafka: ReplicaAlterLogDirsThread (1.1-4.4)."""

    __slots__ = ("_assignments", "_broker", "_known", "_moving", "_promoted", "_replicas")

    def __init__(self, broker: BrokerNode, replicas: ReplicaManager, assignments: AssignmentsManager) -> None:
        self._broker = broker
        self._replicas = replicas
        self._known = replicas.metadata.known
        self._assignments = assignments
        self._moving: dict[str, LogDirectory] = {}
        """Partition -> log directory to which its replica is being moved."""
        self._promoted: set[str] = set()
        """The partitions being moved of which it has asked for the directory of the future replica."""

    def move_replica(self, name: str, directory: LogDirectory) -> bool:
        """See `Broker.move_replica`: the future replica copies the log, and is then assigned to its directory.

        A process that ends before that leaves the copy to the next one (`_continue_move`, `recover_futures`).
        Kafka: ReplicaManager#alterReplicaLogDirs (1.1-4.4).
        """
        broker = self._broker
        here = broker.directories.directory_of(name)
        if name not in self._replicas.replicas or name in self._moving or directory is here or directory.cordoned:
            return False
        if len(broker.live_directories) < len(broker.directories.all):
            return False  # The future replica may be in a directory that has failed.
        self._begin_move(name, directory)
        return True

    def _begin_move(self, name: str, directory: LogDirectory) -> None:
        broker = self._broker
        due_us = broker.kernel.now_us + COPY_US
        self._moving[name] = directory
        self._promoted.discard(name)
        broker.directories.futures[name] = FutureReplica(directory, due_us)
        broker.kernel.call_at(due_us, broker.life, self._promote, name)

    def _continue_move(self, name: str) -> None:
        """Continue a move that the end of an earlier process has interrupted.

        Kafka: ReplicaManager#maybeAddLogDirFetchers (2.6-4.4).
        """
        directories = self._broker.directories
        directory = directories.futures[name].directory
        if directory is directories.directory_of(name):
            del directories.futures[name]  # The log was created anew, in the directory of the copy.
        elif directory in self._broker.live_directories:
            self._broker.reached(probes.MOVE_CONTINUED)
            self._begin_move(name, directory)

    def recover_futures(self, image: MetadataImage) -> None:
        """Use the future replicas in directories that the metadata has already: the end of an earlier process came
        between the assignment and the replacement of the log (KAFKA-16082). Kafka does not compare the two logs; with
        rule ``lagging_future_log=keeps-log`` a log that has more records stays, and is copied again.

        Kafka: LogManager#recoverAbandonedFutureLogs (3.9-4.4).
        """
        broker, replicas = self._broker, self._replicas
        for name, future in list(broker.directories.futures.items()):
            state = image.partitions.get(name)
            is_usable = future.storage is not None and future.directory in broker.live_directories
            if state is None or not is_usable or state.directory(broker.node) != future.directory.number:
                continue
            replica = replicas.replicas.get(name)
            if replica is None or not future.lacks_of(replica.partition.log) or not broker.decide.keeps_log.yes():
                replicas.recover_future(name)

    def place(self, replica: HostedReplica, state: PartitionRegistration) -> int:
        """The id of the log directory of a replica that the metadata should have; a move goes on, or ends."""
        name, directories = replica.name, self._broker.directories
        if directories.futures and name in directories.futures and name not in self._moving:
            self._continue_move(name)
        directory = directories.directory_of(name)
        assert directory is not None
        if self._moving and name in self._moving:
            return self._move_if_assigned(replica, state, directory.number)
        return directory.number

    def remove_failed(self, directory: LogDirectory) -> None:
        """Of a replica that was being moved from a directory that has failed, assign that directory again, so that the
        controller does not count on the other.

        Kafka: ReplicaAlterLogDirsThread#removePartitions (3.9-4.4).
        """
        for name in [name for name in self._moving if name in directory.storages]:
            del self._moving[name]
            is_other = self._assignments.pending.get(name, directory.number) != directory.number
            if is_other or self._is_assigned_elsewhere(name):
                self._assignments.send(name, directory.number)
                self._assignments.assign(name, directory.number)

    def _is_assigned_elsewhere(self, name: str) -> bool:
        """Whether this process has asked for the directory of a future replica, and the metadata has it."""
        state, future = self._known.get(name), self._broker.directories.futures.get(name)
        if future is None or name not in self._promoted or not isinstance(state, PartitionRegistration):
            return False
        return state.directory(self._broker.node) == future.directory.number

    def is_moving(self, name: str) -> bool:
        """Whether a replica is being moved."""
        return name in self._moving

    def is_behind(self, name: str) -> bool:
        """Whether a future replica copies the log still, or is held back by a quota, so that it cannot replace it."""
        if not self._moving or name not in self._moving:
            return False
        future = self._broker.directories.futures[name]
        return future.storage is not None or future.copied_us > self._broker.kernel.now_us

    def throttle_moves(self, *, throttled: bool) -> None:
        """See `Broker.throttle_moves`: without the quota, future replicas catch up at once.

        Kafka: LocalLeaderEndPoint#buildFetch (3.9-4.4).
        """
        broker = self._broker
        for name, target in list(self._moving.items()):
            if name not in self._replicas.replicas or target not in broker.live_directories:
                continue
            if throttled:
                self._hold_back(name)
            elif broker.directories.futures[name].storage is not None:
                self._follow_again(name, target)

    def _follow_again(self, name: str, target: LogDirectory) -> None:
        """A future replica catches up after the quota: it replaces the log if it is assigned still, or is assigned
        again.
        """
        self._broker.directories.futures[name].storage = None
        state = self._known.get(name)
        if isinstance(state, PartitionRegistration) and state.directory(self._broker.node) == target.number:
            self._assignments.pending.pop(name, None)
            self._move_if_assigned(self._replicas.replicas[name], state, target.number)
        elif self._assignments.pending.get(name) != target.number:
            self._promote(name)

    def _hold_back(self, name: str) -> bool:
        """Let a future replica that has caught up no longer follow the log, whose records have exceeded the quota."""
        broker, log = self._broker, self._replicas.replicas[name].partition.log
        now_us = broker.kernel.now_us
        if log.leo == log.log_start or broker.directories.futures[name].copied_us > now_us:
            return False
        broker.directories.end_following(name, broker.decide, now_us)
        broker.reached(probes.COPY_HELD_BACK)
        return True

    def take_back_assignment(self, name: str) -> None:
        """The fetcher of a future replica is removed before it has replaced the log: assign the log's directory again.

        Kafka: ReplicaAlterLogDirsThread#removePartitions (3.9-4.4).
        """
        directory = self._broker.directories.directory_of(name)
        if directory is not None and self._assignments.pending.get(name) == self._moving[name].number:
            self._assignments.assign(name, directory.number, ASSIGN_DELAY_US)

    def _promote(self, name: str) -> None:
        """The future replica has caught up: the controller has to know its directory before it replaces the log.

        Kafka: ReplicaAlterLogDirsThread#maybePromoteFutureReplica (3.9-4.4).
        """
        target = self._moving.get(name)
        state = self._known.get(name)
        if target is None or name not in self._replicas.replicas or not isinstance(state, PartitionRegistration):
            self._moving.pop(name, None)
            return
        self._promoted.add(name)
        is_held = self._broker.directories.throttled and self._hold_back(name)
        self._assignments.assign(name, target.number, ASSIGN_DELAY_US if is_held else 0)

    def _move_if_assigned(self, replica: HostedReplica, state: PartitionRegistration, directory: int) -> int:
        """Let the future replica replace the log if the metadata has its directory. Returns the directory that the
        metadata should have: without a directory that has failed meanwhile, and the log's own if the future replica is
        behind, until it has caught up and its directory is assigned again.

        Kafka: ReplicaManager#maybeUpdateTopicAssignment (3.9-4.4), ReplicaAlterLogDirsThread#addPartitions (2.6-4.4).
        """
        broker, name = self._broker, replica.name
        target = self._moving[name]
        if target not in broker.live_directories:
            del self._moving[name]
            return directory
        if state.directory(broker.node) != target.number:
            return target.number if self._assignments.pending.get(name) == target.number else directory
        if self.is_behind(name):
            broker.reached(probes.ASSIGNED_BEHIND)
            return directory
        del self._moving[name]
        broker.end_elision()
        broker.directories.move(name, target, broker.kernel.now_us)
        replica.partition.followers.note_change()
        replica.partition.replace_with_future_log()
        self._replicas.fetchers.note_log_replaced(name)
        broker.reached(probes.REPLICA_MOVED)
        broker.network.note_broker_change()
        return target.number
