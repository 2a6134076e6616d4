"""A broker process: a partition and fetchers on a machine's storage, and their messages.

One object is one incarnation. A crash discards it; only `sim.environment.storage.Storage` survives, and is passed to
the next incarnation. All protocol decisions are made in `sim.protocol`; this module connects them to messages, time and
storage. `sim.hosts.zk_broker` and `sim.hosts.kraft_broker` add what is specific to a control plane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from sim.config import Value
from sim.environment.elision import ElidedFetch, ElidedPings
from sim.environment.network import Channel, Network
from sim.environment.storage import RecoveryError, Storage
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.control_plane import CONTROL
from sim.hosts.following import Following
from sim.hosts.isr_expiration import IsrExpiration
from sim.hosts.settings import BrokerSettings
from sim.hosts.zk_controller import noop
from sim.kernel.message import Message
from sim.kernel.scheduler import Kernel
from sim.protocol import probes
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import (
    NO_EPOCH,
    LeaderAndIsr,
    ProduceResponse,
)
from sim.protocol.replica.become_follower import restarts_fetcher
from sim.protocol.replica.isr import UNREGISTERED
from sim.protocol.replica.partition import NO_LEADER, Partition
from sim.protocol.replica.replica import Replica

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
    """

    # Not a frozen dataclass: constructing one takes ten times as long in a compiled build, and each start needs one.
    def __init__(
        self,
        broker: int,
        incarnation: int,
        topic: str,
        storage: Storage,
        decide: Decisions,
        settings: BrokerSettings,
        kernel: Kernel,
        network: Network,
        recorder: Recorder,
        loaded: Callable[[Broker], None],
        exits: Callable[[int, str], None],
    ) -> None:
        self.broker = broker
        self.incarnation = incarnation
        self.topic = topic
        self.storage = storage
        self.decide = decide
        self.settings = settings
        self.kernel = kernel
        self.network = network
        self.recorder = recorder
        self.loaded = loaded
        self.exits = exits


class Broker(Following):
    """One incarnation of a broker.

    Attributes:
        broker_epoch: of its registration, -1 before the first.
        checkpointing: whether it writes the HW file, which begins with the first decision that it adopts.
        disk_stalled_us: when its disk stalled; None: it works.
        zombie: its session expired, and its pings or heartbeats no longer arrive.
    """

    __slots__ = (
        "_exits",
        "_isr_expiration",
        "_loaded",
        "_stalled",
        "_topic",
        "checkpointing",
        "disk_stalled_us",
        "incarnation",
        "storage",
        "zombie",
    )

    def __init__(self, startup: Startup) -> None:
        super().__init__(startup.broker, startup.decide, startup.settings, startup.kernel, startup.recorder)
        self.network = startup.network
        self.incarnation = startup.incarnation
        self.storage = startup.storage
        self.epoch_end_version = 3 if self.decide.validates_position.answer else 2
        self.broker_epoch = -1
        self.zombie = False
        self.disk_stalled_us: int | None = None
        self._topic = startup.topic
        self._loaded = startup.loaded
        self._exits = startup.exits
        self._isr_expiration = IsrExpiration(self)
        self._stalled = False
        self.checkpointing = False

    # Life cycle.

    def start(self) -> None:
        """Begin to load the logs, which takes simulated time."""
        self.kernel.call_at(self.kernel.now_us + self.settings.recovery_us, self.life, self._load, None)

    def _load(self, _: object) -> None:
        """Kafka: LogManager#loadLogs."""
        storage = self.storage
        clean, known = storage.clean_shutdown, len(storage.epoch_checkpoint.entries)
        try:
            log, epochs, hw = storage.recover(self.decide)
        except RecoveryError as error:
            self.reached(probes.RECOVERY_FAILS)
            self.halt(str(error))
            return
        if self.incarnation > 1:
            self._note_recovery(log, hw, clean=clean, epochs=len(epochs.epochs) - known)
        self.partition = self._hold_partition(log, epochs, hw)
        storage.log_manager_started(self.kernel.now_us)
        self._isr_expiration.begin(self.kernel.now_us - 1)  # Scheduled before everything else (ReplicaManager.startup).
        self._loaded(self)
        self.logs_loaded()

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

    def _hold_partition(self, log: Log, epochs: LeaderEpochFileCache, hw: int) -> Partition:
        settings = self.settings
        return Partition(
            self.node,
            self._topic,
            log,
            epochs,
            hw,
            self.decide,
            self,
            min_insync_replicas=settings.min_insync_replicas,
            lag_us=settings.lag_us,
        )

    def _delete_partition(self, partition: Partition) -> None:
        """Delete log and checkpoints, because the broker is no longer a replica."""
        self.stop_fetching()
        partition.stop()
        self.wake_all()
        removed = self.storage.log.batches[:]
        self.partition = self._hold_partition(*self.storage.delete_log(self.decide))
        step = steps.Deleted(self.node, self.partition, removed)
        self._recorder.record(step)
        step.release()

    def halt(self, reason: str) -> None:
        """Exit after the current call."""
        self.kernel.call_at(self.kernel.now_us, self.life, self.exit, reason)

    def end(self) -> None:
        super().end()
        self._isr_expiration.end()
        self._loaded = self._exits = noop

    def exit(self, reason: str) -> None:
        """Exit at once."""
        self._exits(self.node, reason)

    @property
    def leads(self) -> bool:
        """Whether this broker believes that it leads the partition."""
        return self.partition is not None and self.partition.is_leader

    def on_config_changed(self, change: tuple[str, Value]) -> None:
        """The dynamic configuration changed.

        Kafka: DynamicConfigManager (0.10.2-2.6), DynamicConfigPublisher#onMetadataUpdate (3.9-4.4).
        """
        key, value = change
        partition = self.partition
        assert partition is not None
        if key == "min.insync.replicas":
            assert isinstance(value, int)
            self.settings = replace(self.settings, min_insync_replicas=value)
            partition.set_min_isr(value)
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

    def _elide_pings(self, channel: Channel[Any], interval_us: int) -> bool:
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
        self._isr_expiration.schedule()
        self._deliver_backlog()

    def freeze(self, now_us: int) -> None:
        if self.leads:
            self._isr_expiration.schedule()
        super().freeze(now_us)

    def _deliver_backlog(self) -> None:
        """Deliver waiting events in order, until one makes the rest wait again."""
        partition = self.partition
        assert partition is not None
        self._set_waiting(waits=not self.ready or self._stalled or partition.state.locked)
        events = self.backlog.events
        while events and self.waiting is None:
            gate, event = events.popleft()
            self.end_elision()
            event.happen(gate)

    def _set_waiting(self, *, waits: bool) -> None:
        """Set whether events that need the partition have to wait."""
        if waits != (self.waiting is not None):
            self.network.set_backlog(self, self.backlog if waits else None)

    def _set_metadata(self, state: LeaderAndIsr | None, live: Mapping[int, int]) -> None:
        """Adopt metadata; if it changes the answer to clients, release elided retries."""
        before = self.known_leader
        self.known, self.live = state, live
        if state is not None and state.leader in live:
            self.known_leader = (state.leader, state.leader_epoch)
        else:
            self.known_leader = (NO_LEADER, NO_EPOCH)
        if self.known_leader != before:
            self.network.note_broker_change()

    def _checkpoint_hw(self, first_us: int) -> None:
        """Start HW checkpoints when the first decision is adopted.

        Args:
            first_us: when the checkpoint task was first due.
        """
        if not self.checkpointing:
            self.checkpointing = True
            self.storage.begin_hw_checkpoints(first_us, self.kernel.now_us)

    def _become_leader(self, partition: Partition, decision: LeaderAndIsr) -> None:
        now_us = self.kernel.now_us
        self.stop_fetching()
        self._recorder.record(steps.Lead(self.node, partition, decision))
        partition.become_leader(decision, now_us)
        self._isr_expiration.schedule()

    def _become_follower(self, partition: Partition, decision: LeaderAndIsr) -> None:
        restarts = not self.is_fetching_from(decision.leader, partition.name) or restarts_fetcher(
            self.decide, partition.leader, partition.leader_epoch, decision
        )
        partition.become_follower(decision)
        self.wake_all()
        self.fetch_from(partition, decision, restarts=restarts)

    def record_ack(self, reply: ProduceResponse) -> None:
        assert self.partition is not None
        self._recorder.record(steps.Acknowledges(self.node, reply, self.partition.min_insync_replicas))

    # The ISR.

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """See `PartitionHost.propose_isr`."""
        raise NotImplementedError

    def note_proposal(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """Prepare for a proposed ISR: make sure that isr-expiration checks again."""
        self.end_elision()
        self._isr_expiration.schedule()
        self._recorder.record(steps.IsrSent(partition, isr))

    def note_laggards(self) -> None:
        """See `Serving.note_laggards`: isr-expiration checks again."""
        partition = self.partition
        assert partition is not None
        if not self._isr_expiration.scheduled and partition.is_leader and partition.has_laggards:
            self._isr_expiration.schedule()

    def is_alive(self, broker: int) -> bool:
        """See `MetadataCache.is_alive`."""
        return broker in self.live

    def registered_epoch(self, broker: int) -> int:
        """See `MetadataCache.registered_epoch`."""
        return self.live.get(broker, UNREGISTERED)

    # Controlled shutdown.

    def begin_shutdown(self) -> None:
        """Request controlled shutdown from the control plane, then stop."""
        raise NotImplementedError

    # Callbacks from the partition.

    def appended(self, replica: Replica, batch: Batch) -> None:
        """See `ReplicaHost.appended`: wakes the fetches that wait for data."""
        self._recorder.record(steps.Append(self.node, replica.log, batch))
        self.storage.appended(batch, self.kernel.now_us)
        if not self._isr_expiration.scheduled and self.leads:
            self._isr_expiration.schedule()
        self.wake_followers()

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """See `ReplicaHost.truncated`."""
        partition = self.partition
        assert replica is partition is not None
        self._recorder.truncated(self.node, partition, removed)
        self.storage.truncated(self.kernel.now_us)

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """See `ReplicaHost.hw_moved`: wakes consumers, never followers."""
        partition = self.partition
        assert replica is partition is not None
        self.storage.hw_file.catch_up(previous, self.kernel.now_us)
        self._recorder.record(steps.HighWatermark(self.node, partition, previous))
        if partition.is_leader:
            if replica.hw > previous:
                self.wake_consumers()
            self.end_elision(ElidedFetch)

    def log_start_moved(self, replica: Replica) -> None:
        """See `ReplicaHost.log_start_moved`."""
        self.end_elision()
        self.storage.log_start_moved(self.kernel.now_us)
        self._recorder.record(steps.LogStart(self.node, replica.log.log_start))
        self.network.note_broker_change()  # Where epochs end.

    def replicated(self, partition: Partition, follower: int, leo: int) -> None:
        """See `PartitionHost.replicated`. A follower whose disk was replaced lags though nothing was appended."""
        if not self._isr_expiration.scheduled and leo < partition.log.leo:
            self._isr_expiration.schedule()
        self._recorder.record(steps.Replicated(self.node, partition.leader_epoch, follower, leo))
