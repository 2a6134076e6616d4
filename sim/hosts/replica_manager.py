"""A broker's replicas: they are loaded, created, deleted, and made to lead or to follow.

`sim.hosts.kraft_replica_manager` and `sim.hosts.zk_replica_manager` add what makes them lead and follow.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.environment.log_directories import next_directory
from sim.environment.storage import LogDirectory, RecoveryError, Storage
from sim.history import steps
from sim.hosts.broker_metadata_cache import BrokerMetadataCache
from sim.hosts.broker_node import BrokerNode
from sim.hosts.delayed_fetch_purgatory import DelayedFetchPurgatory
from sim.hosts.hosted_replica import HostedReplica, HostedReplicas
from sim.hosts.replica_fetcher_manager import ReplicaFetcherManager
from sim.protocol import probes
from sim.protocol.group.group_messages import OFFSETS
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import LeaderAndIsr, topic_of
from sim.protocol.replica.delayed_fetch import DelayedFetch


class ReplicaManager(HostedReplicas):
    """See the module. Kafka: ReplicaManager, kafka.log.LogManager.

    Args:
        min_isrs: ``min.insync.replicas`` of partitions whose topics have their own.
        places: topic -> number of the log directory, from 1, in which its replicas are created, if it has one.

    Attributes:
        fetchers: fetch what it follows.
        purgatory: the fetches that wait.
        checkpointing: whether it writes the HW file, which begins with the first decision that it adopts.
    """

    __deletable__ = ("fetchers", "purgatory")
    __slots__ = (
        "_checkpointing_us",
        "_clean",
        "_loaded_us",
        "_min_isrs",
        "_places",
        "_removed",
        "checkpointing",
        "fetchers",
        "purgatory",
    )

    def __init__(
        self, broker: BrokerNode, metadata: BrokerMetadataCache, min_isrs: Mapping[str, int], places: Mapping[str, int]
    ) -> None:
        super().__init__(broker, metadata)
        self.fetchers = ReplicaFetcherManager(broker, self)
        self.purgatory = DelayedFetchPurgatory(broker, self)
        self._min_isrs = min_isrs
        self._places = places
        self.checkpointing = False
        self._checkpointing_us = 0
        """When the checkpoint task was first due."""
        self._loaded_us = 0
        self._clean: list[LogDirectory] = []
        """Directories with future replicas on the machine that had a marker when this process loaded its logs."""
        self._removed: list[HostedReplica] = []
        """Replicas of deleted topics and of failed log directories, which late responses may still be about."""

    def end(self) -> None:
        super().end()
        self.fetchers.end()
        for replica in self._removed:
            replica.end()
        self._removed.clear()

    def dispose(self) -> None:
        """See `Cluster.dispose`."""
        self.fetchers.dispose()
        del self.fetchers, self.purgatory, self.isr_expiration

    # Logs and their directories.

    def load(self) -> str:
        """Load the logs of the directories that work, each of them after its own marker. Returns why one cannot be
        loaded, if so.

        Kafka: LogManager#loadLogs.
        """
        broker = self.broker
        now_us = broker.kernel.now_us
        replicas: dict[str, HostedReplica] = {}
        for directory in broker.live_directories:
            clean = directory.take_marker()
            if clean and broker.directories.futures:
                self._clean.append(directory)
            for name, storage in directory.storages.items():
                known = len(storage.epoch_checkpoint.entries)
                try:
                    log, epochs, hw = storage.recover(broker.decide, clean=clean)
                except RecoveryError as error:
                    broker.reached(probes.RECOVERY_FAILS)
                    return str(error)
                if broker.incarnation > 1:
                    self._note_recovery(log, hw, clean=clean, epochs=len(epochs.epochs) - known)
                    if storage.misses_files(log, epochs):
                        broker.recorder.of(name).record(steps.Fact(steps.FILE_MISSED, broker.node))
                replicas[name] = self._hosted(name, storage, log, epochs, hw)
        self._loaded_us = now_us
        for replica in replicas.values():
            replica.storage.log_manager_started(now_us)
            if self.first is None:
                self.first = replica
        self.replicas.update(replicas)
        self.isr_expiration.begin(now_us - 1)  # Scheduled before everything else (ReplicaManager.startup).
        return ""

    def _note_recovery(self, log: Log, hw: int, *, clean: bool, epochs: int) -> None:
        """Note probes after loading a log; `epochs` is the number of epochs that its cache has and the file lacked."""
        reached = self.broker.reached
        reached(probes.LOADED_CLEAN if clean else probes.LOADED_UNCLEAN)
        if hw != log.leo:
            reached(probes.HW_FILE_BEHIND if hw < log.leo else probes.HW_FILE_AHEAD)
        if epochs:
            reached(probes.CACHE_CUT if epochs < 0 else probes.CACHE_REBUILT)

    def _hosted(self, name: str, storage: Storage, log: Log, epochs: LeaderEpochFileCache, hw: int) -> HostedReplica:
        recorder, min_isr = self.broker.recorder.of(name), self._min_isrs.get(name)
        replica = HostedReplica(self, name, storage, recorder, log, epochs, hw, min_isr)
        if name == OFFSETS:
            replica.coordinator = self.coordinator
        return replica

    def create_replica(self, name: str) -> HostedReplica:
        """Create an empty replica, in the directory of its topic or the one with the fewest logs, and checkpoint its HW
        with those of the others.

        Kafka: ReplicaManager#getOrCreatePartition (0.10.2-2.0), ReplicaManager#getOrCreatePartition (3.9-4.4),
        LogManager#getOrCreateLog (1.1-4.4).
        """
        broker = self.broker
        directories, now_us = broker.directories, broker.kernel.now_us
        storage = directories.add(name, self.directory_for(name))
        replica = self.replicas[name] = self._hosted(name, storage, *storage.recover(broker.decide, clean=True))
        storage.log_manager_started(now_us, self._loaded_us)
        if self.first is None and name == broker.recorder.name:
            self.first = replica
        step = steps.Recovered(broker.node, replica.partition, directories.lost.pop(name, []))
        replica.recorder.record(step)
        step.release()
        if self.checkpointing:
            storage.begin_hw_checkpoints(self._checkpointing_us, now_us)
        return replica

    def directory_for(self, name: str) -> LogDirectory:
        """The log directory for a new replica."""
        broker = self.broker
        directories = broker.directories
        if not directories.are_several:
            return directories.all[0]
        place = self._places.get(topic_of(name), 0)
        if 0 < place <= len(directories.all) and directories.all[place - 1] in broker.live_directories:
            return directories.all[place - 1]
        held = [state.name for state in self.metadata.known.values() if broker.node in state.replicas]
        return next_directory(broker.live_directories, held)

    def remove_replica(self, replica: HostedReplica) -> None:
        """Delete a replica with its files, because its topic was deleted: fetches that wait get an error.

        Kafka: ReplicaManager#stopPartitions (3.9-4.4).
        """
        self.forget_replica(replica)
        replica.remove()

    def forget_replica(self, replica: HostedReplica) -> None:
        """Forget a replica and its files."""
        name = replica.name
        del self.replicas[name]
        if replica is self.first:
            self.first = None
        self.broker.directories.remove(name)
        self._removed.append(replica)

    def recover_future(self, name: str) -> None:
        """Use the files of a future replica as those of the replica, in place of those that it has, if any.

        Records that the future replica never copied are truncated, because no crash has lost them. Those that it had,
        and lost by a power loss, are recorded as lost with the process.
        Kafka: LogManager#recoverAbandonedFutureLogs (3.9-4.4).
        """
        broker = self.broker
        future = broker.directories.futures[name]
        clean = future.directory in self._clean
        held = self.replicas.get(name)
        if held is not None and held.partition.log.leo > future.leo:
            broker.reached(probes.COPY_BEHIND)
            held.partition.truncate_to(future.leo)
        former, storage = broker.directories.recover_future(name)
        before = self.replicas.pop(name, None)
        recorder = broker.recorder.of(name)
        lost = storage.log.missing(former)
        if lost:
            recorder.record(steps.End(broker.node, steps.DIRECTORY_OFFLINE, lost, unclean=True))
        replica = self.replicas[name] = self._hosted(name, storage, *storage.recover(broker.decide, clean=clean))
        if before is not None:
            if before is self.first:
                self.first = replica
            self._removed.append(before)
            before.remove()
        storage.log_manager_started(broker.kernel.now_us, self._loaded_us)
        step = steps.Recovered(broker.node, replica.partition, lost)
        recorder.record(step)
        step.release()
        broker.reached(probes.FUTURE_RECOVERED)

    def log_truncated(self, replica: HostedReplica) -> None:
        futures = self.broker.directories.futures
        if futures and replica.name in futures:
            futures[replica.name].log_truncated(replica.partition.log.leo, self.broker.kernel.now_us)

    def stop_serving(self, directory: LogDirectory) -> None:
        """Stop serving the replicas in a log directory that has failed; their files stay.

        Kafka: ReplicaManager#handleLogDirFailure (1.1-4.4).
        """
        broker = self.broker
        broker.live_directories = [one for one in broker.live_directories if one is not directory]
        for name in directory.storages:
            self.offline[name] = None
            replica = self.replicas.pop(name, None)
            if replica is not None:
                if replica is self.first:
                    self.first = None
                self._removed.append(replica)
                replica.remove()
        broker.network.note_broker_change()

    def set_min_isr(self, min_isr: int) -> None:
        """Set ``min.insync.replicas`` of the partitions whose topics have none of their own."""
        for replica in self.replicas.values():
            if replica.own_min_isr is None:
                replica.partition.set_min_isr(min_isr)

    # Leading and following.

    def checkpoint_hw(self, first_us: int) -> None:
        """Start HW checkpoints when the first decision is adopted.

        Args:
            first_us: when the checkpoint task was first due.
        """
        if not self.checkpointing:
            self.checkpointing = True
            self._checkpointing_us = first_us
            for replica in self.replicas.values():
                replica.storage.begin_hw_checkpoints(first_us, self.broker.kernel.now_us)
            self.broker.checkpoints_begin()

    def next_hw_checkpoint_us(self) -> int:
        """When HW files are written next, at the earliest now; -1 while they are not written."""
        if not self.checkpointing:
            return -1
        now_us, first_us = self.broker.kernel.now_us, self._checkpointing_us
        interval_us = self.broker.settings.storage.hw_checkpoint_us
        return first_us + max(0, -(-(now_us - first_us) // interval_us)) * interval_us

    def was_hw_written(self, since_us: int) -> bool:
        """Whether HW files were written after a time."""
        first_us, interval_us = self._checkpointing_us, self.broker.settings.storage.hw_checkpoint_us
        next_us = first_us + ((since_us - first_us) // interval_us + 1) * interval_us
        return next_us <= self.broker.kernel.now_us

    def become_leader(self, replica: HostedReplica, decision: LeaderAndIsr) -> None:
        """Lead a partition."""
        partition, broker = replica.partition, self.broker
        now_us = broker.kernel.now_us
        self.fetchers.manager.remove(replica.name)
        replica.recorder.record(steps.Lead(broker.node, partition, decision))
        partition.become_leader(decision, now_us)
        self.isr_expiration.schedule()
        if replica.coordinator is not None:
            replica.coordinator.elected(partition.leader_epoch)

    def become_follower(self, replica: HostedReplica, decision: LeaderAndIsr) -> None:
        """Follow the leader of a partition."""
        partition = replica.partition
        restarts = self.fetchers.manager.restarts(partition, decision)
        partition.become_follower(decision)
        if replica.coordinator is not None:
            replica.coordinator.resigned(partition.leader_epoch)
        replica.wake_all()
        self.fetchers.fetch_from(replica, decision, restarts=restarts)

    def stop_fetching(self, name: str) -> None:
        self.fetchers.manager.remove(name)

    def answer_waiting(self, fetches: list[DelayedFetch]) -> None:
        self.purgatory.answer_waiting(fetches)
