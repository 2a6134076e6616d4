"""A broker process: partition and fetchers on a machine's storage, and all that they say.

One object is one incarnation. A crash drops it; what survives is the `sim.environment.storage.Storage` that the next
incarnation is given. All protocol decisions are made in `sim.protocol`; this file carries messages, time and storage to
them. What belongs to a control plane is added by `sim.hosts.zk_broker` and `sim.hosts.kraft_broker`.
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
from sim.hosts.zk_controller import nothing
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
"""Reason of an exit that is a controlled shutdown."""
REFUSED: Final = "a broker is already registered"
"""Reason of an exit at start-up: an earlier registration is in the way."""
NOT_REGISTERED: Final = "not registered in time"
"""Reason of an exit at start-up: no controller has registered the process."""


class Startup:
    """What one incarnation of a broker is started with.

    Attributes:
        broker: its id.
        incarnation: how many came before it on this machine.
        topic: name of the partition that it holds.
        storage: the machine's disk.
        decide: its rules.
        settings: its settings.
        kernel: time and timers.
        network: what it joins.
        recorder: where steps are noted.
        loaded: called when the logs are loaded.
        exits: called when the process ends by itself: (broker, reason).
    """

    __slots__ = (
        "broker",
        "decide",
        "exits",
        "incarnation",
        "kernel",
        "loaded",
        "network",
        "recorder",
        "settings",
        "storage",
        "topic",
    )

    # Not a frozen dataclass: one for each start, which takes ten times as long where this is compiled.
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

    Args:
        startup: what it is started with.

    Attributes:
        broker_epoch: of its registration, -1 before the first.
        checkpointing: whether it writes the HW file: from the first decision on that it took.
        disk_stalled_us: since when its disk does not answer; None: it does.
        zombie: its session expired, and no sign of life of it arrives any more.
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
        """Load the logs; that takes a while."""
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
        self._isr_expiration.begin(self.kernel.now_us - 1)  # It is scheduled first (ReplicaManager.startup).
        self._loaded(self)
        self.logs_loaded()

    def logs_loaded(self) -> None:
        """What comes next: becoming known to the control plane, or going on with that."""
        raise NotImplementedError

    def close_unloaded(self) -> None:
        """A controlled shutdown before the logs were loaded."""

    def _note_recovery(self, log: Log, hw: int, *, clean: bool, epochs: int) -> None:
        """Probes of a log that was loaded; `epochs` is how many more its cache has than the file had."""
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
        """The broker is no replica any more: log and checkpoints are deleted."""
        self.stop_fetching()
        partition.stop()
        self.wake_all()
        removed = self.storage.log.batches[:]
        self.partition = self._hold_partition(*self.storage.delete_log(self.decide))
        self._recorder.record(steps.Deleted(self.node, self.partition, removed))

    def halt(self, reason: str) -> None:
        """Exit by itself, once the present call is over."""
        self.kernel.call_at(self.kernel.now_us, self.life, self.exit, reason)

    def end(self) -> None:
        """See `Following.end`."""
        super().end()
        self._isr_expiration.end()
        self._loaded = self._exits = nothing

    def exit(self, reason: str) -> None:
        """Exit by itself, at once."""
        self._exits(self.node, reason)

    @property
    def leads(self) -> bool:
        """Whether this broker believes that it leads the partition."""
        return self.partition is not None and self.partition.is_leader

    def on_config_changed(self, change: tuple[str, Value]) -> None:
        """The dynamic configuration changed.

        Kafka: DynamicConfigManager (0.10.2-2.6), DynamicConfigPublisher#onMetadataUpdate (3.9-4.3).
        """
        key, value = change
        partition = self.partition
        assert partition is not None
        if key == "min.insync.replicas":
            assert isinstance(value, int)
            self.settings = replace(self.settings, min_insync_replicas=value)
            partition.min_isr_changed(value)
        elif key == "unclean.leader.election.enable":
            allowed = bool(value)
            self.settings = replace(self.settings, unclean_election=allowed)
            self.allow_unclean_election(allowed=allowed)
        self.network.changed()

    @property
    def changes_isr(self) -> bool:
        """Whether it has asked a quorum for an ISR, and does not know what became of that."""
        return False

    @property
    def ready(self) -> bool:
        """Whether it answers requests, for all that the control plane knows of it."""
        raise NotImplementedError

    # The control plane.

    def to_control(self, message: Message) -> None:
        """Send something to the control plane."""
        channel = self.out.get(CONTROL) or self.reach(CONTROL)
        assert channel is not None
        channel.send(message)

    def _elide_pings(self, channel: Channel[Any], interval_us: int) -> bool:
        """Stop simulating pings that only keep the session, from this one on (`sim.environment.elision`).

        Returns:
            Whether that was done; otherwise it is counted.
        """
        if self.network.elides:
            ElidedPings(self, channel, self.kernel.now_us, interval_us).begin()
            return True
        self.network.idle_messages += 1
        return False

    # Standing still.

    def stall(self, *, stalled: bool) -> None:
        """The disk does not answer: whatever needs the partition waits, and what waited goes on."""
        self.end_elision()
        self._stalled = stalled
        self._isr_expiration.watch()
        self._release()

    def freeze(self, now_us: int) -> None:
        """See `Node.freeze`."""
        if self.leads:
            self._isr_expiration.watch()
        super().freeze(now_us)

    def _release(self) -> None:
        """Hand over what had to wait, in order, as long as nothing stands in the way."""
        partition = self.partition
        assert partition is not None
        self._wait(waits=not self.ready or self._stalled or partition.state.locked)
        events = self.backlog.events
        while events and self.waiting is None:
            gate, event = events.popleft()
            self.end_elision()
            event.happen(gate)

    def _wait(self, *, waits: bool) -> None:
        """Whether what needs the partition waits from now on."""
        if waits != (self.waiting is not None):
            self.network.wait(self, self.backlog if waits else None)

    def _know(self, state: LeaderAndIsr | None, live: Mapping[int, int]) -> None:
        """Take metadata; where clients get another answer now, those who wait for one may try again."""
        before = self.known_leader
        self.known, self.live = state, live
        if state is not None and state.leader in live:
            self.known_leader = (state.leader, state.leader_epoch)
        else:
            self.known_leader = (NO_LEADER, NO_EPOCH)
        if self.known_leader != before:
            self.network.changed()

    def _checkpoint_hw(self, first_us: int) -> None:
        """A decision was taken: from the first one on there is a HW to write.

        Args:
            first_us: when the task that writes it was due first.
        """
        if not self.checkpointing:
            self.checkpointing = True
            self.storage.begin_hw_checkpoints(first_us, self.kernel.now_us)

    def _lead(self, partition: Partition, decision: LeaderAndIsr) -> None:
        now_us = self.kernel.now_us
        self.stop_fetching()
        self._recorder.record(steps.Lead(self.node, partition, decision))
        partition.become_leader(decision, now_us)
        self._isr_expiration.watch()

    def _follow(self, partition: Partition, decision: LeaderAndIsr) -> None:
        restarts = not self.fetches_from(decision.leader, partition.name) or restarts_fetcher(
            self.decide, partition.leader, partition.leader_epoch, decision
        )
        partition.become_follower(decision)
        self.wake_all()
        self.fetch_from(partition, decision, restarts=restarts)

    def acknowledges(self, reply: ProduceResponse) -> None:
        """See `Serving.acknowledges`."""
        assert self.partition is not None
        self._recorder.record(steps.Acknowledges(self.node, reply, self.partition.min_insync_replicas))

    # The ISR.

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """See `PartitionHost.propose_isr`."""
        raise NotImplementedError

    def note_proposal(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """An ISR is about to be proposed: see to it that it is looked at again."""
        self.end_elision()
        self._isr_expiration.watch()
        self._recorder.record(steps.IsrSent(partition, isr))

    def is_alive(self, broker: int) -> bool:
        """See `MetadataCache.is_alive`."""
        return broker in self.live

    def registered_epoch(self, broker: int) -> int:
        """See `MetadataCache.registered_epoch`."""
        return self.live.get(broker, UNREGISTERED)

    # Controlled shutdown.

    def begin_shutdown(self) -> None:
        """Ask the control plane to be relieved, then stop."""
        raise NotImplementedError

    # What a partition tells its host.

    def appended(self, replica: Replica, batch: Batch) -> None:
        """See `ReplicaHost.appended`: wakes the fetches that wait for data."""
        self._recorder.record(steps.Append(self.node, replica.log, batch))
        self.storage.appended(batch, self.kernel.now_us)
        if not self._isr_expiration.watching and self.leads:
            self._isr_expiration.watch()
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
        self.network.changed()  # Where epochs end.

    def replicated(self, partition: Partition, follower: int, leo: int) -> None:
        """See `PartitionHost.replicated`. A follower whose disk was replaced lags though nothing was appended."""
        if not self._isr_expiration.watching and leo < partition.log.leo:
            self._isr_expiration.watch()
        self._recorder.record(steps.Replicated(self.node, partition.leader_epoch, follower, leo))
