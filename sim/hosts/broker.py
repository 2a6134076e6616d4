"""A broker process: replicas and fetchers on a machine's log directory, and their messages.

One object is one incarnation. A crash discards it; only `sim.environment.storage.LogDirectory` survives, and is passed
to the next incarnation. All protocol decisions are made in `sim.protocol`; this module connects them to messages, time
and storage. `sim.hosts.zk_broker` and `sim.hosts.kraft_broker` add what is specific to a control plane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from sim.config import Value
from sim.environment.elision import ElidedPings
from sim.environment.log_directories import LogDirectories, next_directory
from sim.environment.network import Channel, Network
from sim.environment.storage import LogDirectory, RecoveryError, Storage
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.control_plane import CONTROL
from sim.hosts.following import Following
from sim.hosts.hosted_replica import HostedReplica
from sim.hosts.isr_expiration import IsrExpiration
from sim.hosts.serving import UNKNOWN_LEADER, DirectoryStall
from sim.hosts.settings import BrokerSettings
from sim.kernel.message import Message
from sim.kernel.scheduler import Kernel, noop
from sim.protocol import probes
from sim.protocol.decisions import Decisions
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import LeaderAndIsr, topic_of
from sim.protocol.replica.become_follower import restarts_fetcher

SHUTDOWN: Final = "shutdown"
"""Exit reason: controlled shutdown."""
REFUSED: Final = "a broker is already registered"
"""Exit reason at start-up: an earlier registration is still valid."""
NOT_REGISTERED: Final = "not registered in time"
"""Exit reason at start-up: no controller registered the process in time."""
PHASE_BITS: Final = 31
"""Size of `Startup.phase`."""


class Startup:
    """Arguments for one incarnation of a broker.

    Attributes:
        incarnation: number of earlier incarnations on this machine.
        loaded: called when the logs are loaded.
        exits: called with (broker, reason) when the process exits by itself.
        min_isrs: ``min.insync.replicas`` of partitions whose topics have their own.
        places: topic -> number of the log directory, from 1, in which its replicas are created, if it has one.
        phase: see `Broker.first_interval_us`; below 2**`PHASE_BITS`.
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
    ) -> None:
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


class Broker(Following):
    """One incarnation of a broker.

    Attributes:
        broker_epoch: of its registration, -1 before the first.
        checkpointing: whether it writes the HW file, which begins with the first decision that it adopts.
        disk_stalled_us: when its disk stalled; None: it works.
        directories: the log directories of its machine.
        live_directories: those that worked at its start, and have not failed since; it uses no others.
        zombie: its session expired, and its pings or heartbeats no longer arrive.
    """

    __slots__ = (
        "_checkpointing_us",
        "_clean",
        "_exits",
        "_loaded",
        "_loaded_us",
        "_min_isrs",
        "_phase",
        "_places",
        "_removed",
        "_stalled",
        "checkpointing",
        "directories",
        "disk_stalled_us",
        "incarnation",
        "live_directories",
        "zombie",
    )

    def __init__(self, startup: Startup) -> None:
        super().__init__(startup.broker, startup.decide, startup.settings, startup.kernel, startup.recorder)
        self.network = startup.network
        self.incarnation = startup.incarnation
        self.directories = startup.directories
        self.live_directories = startup.live_directories
        self._phase = startup.phase
        self.epoch_end_version = 3 if self.decide.validates_position.answer else 2
        self.broker_epoch = -1
        self.zombie = False
        self.disk_stalled_us: int | None = None
        self._loaded = startup.loaded
        self._min_isrs = startup.min_isrs
        self._places = startup.places
        self._exits = startup.exits
        self.isr_expiration = IsrExpiration(self)
        self._stalled = False
        self.checkpointing = False
        self._checkpointing_us = 0
        """When the checkpoint task was first due."""
        self._loaded_us = 0
        self._clean: list[LogDirectory] = []
        """Directories with future replicas on the machine that had a marker when this process loaded its logs."""
        self._removed: list[HostedReplica] = []
        """Replicas of deleted topics and of failed log directories, which late responses may still be about."""

    def first_interval_us(self, interval_us: int) -> int:
        """The first interval of its pings or heartbeats, a part of the others: otherwise those of brokers that started
        together would stay in step, and their sessions would always end in one order.
        """
        return 1 + (interval_us * self._phase >> PHASE_BITS)

    # Life cycle.

    def start(self) -> None:
        """Begin to load the logs, which takes simulated time."""
        self.kernel.call_at(self.kernel.now_us + self.settings.recovery_us, self.life, self._load, None)

    def _load(self, _: object) -> None:
        """Load the logs of the directories that work, each of them after its own marker. Kafka: LogManager#loadLogs."""
        replicas: dict[str, HostedReplica] = {}
        for directory in self.live_directories:
            clean = directory.take_marker()
            if clean and self.directories.futures:
                self._clean.append(directory)
            for name, storage in directory.storages.items():
                known = len(storage.epoch_checkpoint.entries)
                try:
                    log, epochs, hw = storage.recover(self.decide, clean=clean)
                except RecoveryError as error:
                    self.reached(probes.RECOVERY_FAILS)
                    self.halt(str(error))
                    return
                if self.incarnation > 1:
                    self._note_recovery(log, hw, clean=clean, epochs=len(epochs.epochs) - known)
                replicas[name] = self._hosted(name, storage, log, epochs, hw)
        self.has_loaded = True
        self._loaded_us = self.kernel.now_us
        for replica in replicas.values():
            replica.storage.log_manager_started(self.kernel.now_us)
            if self.first is None:
                self.first = replica
        self.replicas = replicas
        self.isr_expiration.begin(self.kernel.now_us - 1)  # Scheduled before everything else (ReplicaManager.startup).
        self._loaded(self)
        self.logs_loaded()

    def _hosted(self, name: str, storage: Storage, log: Log, epochs: LeaderEpochFileCache, hw: int) -> HostedReplica:
        recorder, min_isr = self.recorder.of(name), self._min_isrs.get(name)
        return HostedReplica(self, name, storage, recorder, log, epochs, hw, min_isr)

    def add_replica(self, name: str) -> HostedReplica:
        """Create an empty replica, in the directory of its topic or the one with the fewest logs.

        Kafka: ReplicaManager#getOrCreatePartition (0.10.2-2.0), ReplicaManager#getOrCreatePartition (3.9-4.4),
        LogManager#getOrCreateLog (1.1-4.4).
        """
        storage = self.directories.add(name, self._directory_for(name))
        replica = self.replicas[name] = self._hosted(name, storage, *storage.recover(self.decide, clean=True))
        storage.log_manager_started(self.kernel.now_us, self._loaded_us)
        step = steps.Recovered(self.node, replica.partition, self.directories.lost.pop(name, []))
        replica.recorder.record(step)
        step.release()
        return replica

    def _directory_for(self, name: str) -> LogDirectory:
        """The log directory for a new replica."""
        directories = self.directories
        if not directories.are_several:
            return directories.all[0]
        place = self._places.get(topic_of(name), 0)
        if 0 < place <= len(directories.all) and directories.all[place - 1] in self.live_directories:
            return directories.all[place - 1]
        held = [state.name for state in self.known.values() if self.node in state.replicas]
        return next_directory(self.live_directories, held)

    def remove_replica(self, replica: HostedReplica) -> None:
        """Delete a replica with its files, because its topic was deleted: fetches that wait get an error.

        Kafka: ReplicaManager#stopPartitions (3.9-4.4).
        """
        name = replica.name
        del self.replicas[name]
        self.directories.remove(name)
        self._removed.append(replica)
        replica.remove()

    def recover_future(self, name: str) -> None:
        """Use the files of a future replica as those of the replica, in place of those that it has, if any.

        Records that the future replica never copied are truncated, because no crash has lost them. Those that it had,
        and lost by a power loss, are recorded as lost with the process.
        Kafka: LogManager#recoverAbandonedFutureLogs (3.9-4.4).
        """
        future = self.directories.futures[name]
        clean = future.directory in self._clean
        held = self.replicas.get(name)
        if held is not None and held.partition.log.leo > future.leo:
            self.reached(probes.COPY_BEHIND)
            held.partition.truncate_to(future.leo)
        former, storage = self.directories.recover_future(name)
        before = self.replicas.pop(name, None)
        recorder = self.recorder.of(name)
        lost = storage.log.missing(former)
        if lost:
            recorder.record(steps.End(self.node, steps.DIRECTORY_OFFLINE, lost, unclean=True))
        replica = self.replicas[name] = self._hosted(name, storage, *storage.recover(self.decide, clean=clean))
        if before is not None:
            if before is self.first:
                self.first = replica
            self._removed.append(before)
            before.remove()
        storage.log_manager_started(self.kernel.now_us, self._loaded_us)
        step = steps.Recovered(self.node, replica.partition, lost)
        recorder.record(step)
        step.release()
        self.reached(probes.FUTURE_RECOVERED)

    def move_replica(self, name: str, directory: LogDirectory) -> bool:  # noqa: ARG002 - for KRaft
        """Begin to move a replica to another log directory; False if there is none, or it is there or on its way."""
        return False

    def log_truncated(self, replica: HostedReplica) -> None:
        """See `HostingBroker.log_truncated`."""
        futures = self.directories.futures
        if futures and replica.name in futures:
            futures[replica.name].log_truncated(replica.partition.log.leo, self.kernel.now_us)

    def throttle_moves(self, *, throttled: bool) -> None:
        """Begin or end a quota that holds future replicas back once they have caught up with their logs."""

    def cordon(self) -> None:
        """Tell the control plane which log directories are cordoned now."""

    def report_failed(self, directory: LogDirectory) -> None:
        """Report a log directory that has failed to the control plane."""

    def stop_serving(self, directory: LogDirectory) -> None:
        """Stop serving the replicas in a log directory that has failed; their files stay.

        Kafka: ReplicaManager#handleLogDirFailure (1.1-4.4).
        """
        self.live_directories = [one for one in self.live_directories if one is not directory]
        for name in directory.storages:
            self.offline.add(name)
            replica = self.replicas.pop(name, None)
            if replica is not None:
                if replica is self.first:
                    self.first = None
                self._removed.append(replica)
                replica.remove()
        self.network.note_broker_change()

    def logs_loaded(self) -> None:
        """Continue start-up after the logs are loaded: register, or act on the registration."""
        raise NotImplementedError

    def close_unloaded(self) -> None:
        """Shut down in a controlled way before the logs are loaded."""

    def _note_recovery(self, log: Log, hw: int, *, clean: bool, epochs: int) -> None:
        """Note probes after loading a log; `epochs` is the number of epochs that its cache has and the file lacked."""
        reached = self.reached
        reached(probes.LOADED_CLEAN if clean else probes.LOADED_UNCLEAN)
        if hw != log.leo:
            reached(probes.HW_FILE_BEHIND if hw < log.leo else probes.HW_FILE_AHEAD)
        if epochs:
            reached(probes.CACHE_CUT if epochs < 0 else probes.CACHE_REBUILT)

    def halt(self, reason: str) -> None:
        """Exit after the current call."""
        self.kernel.call_at(self.kernel.now_us, self.life, self.exit, reason)

    def end(self) -> None:
        super().end()
        for replica in self._removed:
            replica.end()
        self._removed.clear()
        self.isr_expiration.end()
        self._loaded = self._exits = noop

    def exit(self, reason: str) -> None:
        """Exit at once."""
        self._exits(self.node, reason)

    @property
    def leads(self) -> bool:
        """Whether this broker believes that it leads the first partition."""
        first = self.first
        return first is not None and first.partition.is_leader

    def on_config_changed(self, change: tuple[str, Value]) -> None:
        """The dynamic configuration changed.

        Kafka: DynamicConfigManager (0.10.2-2.6), DynamicConfigPublisher#onMetadataUpdate (3.9-4.4).
        """
        key, value = change
        if key == "min.insync.replicas":
            assert isinstance(value, int)
            self.settings = replace(self.settings, min_insync_replicas=value)
            for replica in self.replicas.values():
                if replica.own_min_isr is None:
                    replica.partition.set_min_isr(value)
        elif key == "unclean.leader.election.enable":
            allowed = bool(value)
            self.settings = replace(self.settings, unclean_election=allowed)
            self.allow_unclean_election(allowed=allowed)
        self.network.note_broker_change()

    @property
    def changes_isr(self) -> bool:
        """Whether an AlterPartition of this broker is pending."""
        return False

    @property
    def ready(self) -> bool:
        """Whether it answers requests, as far as registration is concerned."""
        raise NotImplementedError

    # The control plane.

    def to_control(self, message: Message) -> None:
        """Send a message to the control plane."""
        channel = self.out.get(CONTROL) or self.reach(CONTROL)
        assert channel is not None
        channel.send(message)

    def elide_pings(self, channel: Channel[Any], interval_us: int) -> bool:
        """Elide pings that only keep the session, from this one on (`sim.environment.elision`). Returns whether they
        are elided; otherwise the ping is counted as idle.
        """
        if self.network.elides:
            ElidedPings(self, channel, self.kernel.now_us, interval_us).begin()
            return True
        self.network.idle_messages += 1
        return False

    # Stalls.

    def stall(self, *, stalled: bool) -> None:
        """Stall the disk, so that events which need the partition wait; or resume it and deliver them."""
        self.end_elision()
        self._stalled = stalled
        self.isr_expiration.schedule()
        self._deliver_backlog()

    def stall_directory(self, stall: DirectoryStall) -> None:
        """Let a log directory not answer, so that events which write to it wait."""
        self.end_elision()
        self.stalled.append(stall)
        self._deliver_backlog()

    def directory_works(self, stall: DirectoryStall) -> None:
        """Let a log directory answer again, and deliver the events that waited for it."""
        self.end_elision()
        self.stalled.remove(stall)
        self._deliver_backlog()

    def freeze(self, now_us: int) -> None:
        for replica in self.replicas.values():
            if replica.partition.is_leader:
                self.isr_expiration.schedule()
        super().freeze(now_us)

    def _deliver_backlog(self) -> None:
        """Deliver waiting events in order, until one makes the rest wait again."""
        self._set_waiting(waits=bool(self.stalled) or self.is_blocked or bool(self.locked))
        events = self.backlog.events
        while events and self.waiting is None:
            gate, event = events.popleft()
            self.end_elision()
            event.happen(gate)
        if events and (self.stalled or (len(self.replicas) > 1 and not self.is_blocked)):
            held = list(events)
            events.clear()
            for gate, event in held:
                self.end_elision()
                self.backlog.put(gate, event)

    @property
    def is_blocked(self) -> bool:
        """See `Serving.is_blocked`."""
        return not self.ready or self._stalled or (len(self.replicas) == 1 and bool(self.locked))

    @property
    def locked(self) -> list[str]:
        """See `Serving.locked`."""
        return [name for name, replica in self.replicas.items() if replica.partition.state.locked]

    def _set_waiting(self, *, waits: bool) -> None:
        """Set whether events that need the partition have to wait."""
        if waits != (self.waiting is not None):
            self.network.set_backlog(self, self.backlog if waits else None)

    def _set_metadata(self, states: Iterable[LeaderAndIsr], live: Mapping[int, int]) -> None:
        """Adopt new states of partitions, and the live brokers; if that changes the answer to clients, release elided
        retries.
        """
        before = self.live
        about: Iterable[LeaderAndIsr] = states
        for state in states:
            self.known[state.name] = state
        if live is not before and live != before:
            self.live = dict(live)
            other = before.keys() ^ live.keys()
            if other:
                about = [*states, *[state for state in self.known.values() if state.leader in other]]
        changes = False
        leaders = self.known_leaders
        for state in about:
            leader = (state.leader, state.leader_epoch) if state.leader in self.live else UNKNOWN_LEADER
            if leaders.get(state.name, UNKNOWN_LEADER) != leader:
                leaders[state.name] = leader
                changes = True
        if changes:
            self.network.note_broker_change()

    def _checkpoint_hw(self, first_us: int) -> None:
        """Start HW checkpoints when the first decision is adopted.

        Args:
            first_us: when the checkpoint task was first due.
        """
        if not self.checkpointing:
            self.checkpointing = True
            self._checkpointing_us = first_us
            for replica in self.replicas.values():
                replica.storage.begin_hw_checkpoints(first_us, self.kernel.now_us)

    def _create_replica(self, name: str) -> HostedReplica:
        """`add_replica`, and checkpoint its HW with those of the others."""
        replica = self.add_replica(name)
        if self.checkpointing:
            replica.storage.begin_hw_checkpoints(self._checkpointing_us, self.kernel.now_us)
        return replica

    def _become_leader(self, replica: HostedReplica, decision: LeaderAndIsr) -> None:
        now_us, partition = self.kernel.now_us, replica.partition
        self.stop_fetching(replica.name)
        replica.recorder.record(steps.Lead(self.node, partition, decision))
        partition.become_leader(decision, now_us)
        self.isr_expiration.schedule()

    def _become_follower(self, replica: HostedReplica, decision: LeaderAndIsr) -> None:
        partition = replica.partition
        restarts = not self.is_fetching_from(decision.leader, partition.name) or restarts_fetcher(
            self.decide, partition.leader, partition.leader_epoch, decision
        )
        partition.become_follower(decision)
        replica.wake_all()
        self.fetch_from(replica, decision, restarts=restarts)

    # Controlled shutdown.

    def begin_shutdown(self) -> None:
        """Request controlled shutdown from the control plane, then stop."""
        raise NotImplementedError
