"""A broker process: partition and fetchers on a machine's storage, and all that they say.

One object is one incarnation. A crash drops it; what survives is the `sim.environment.storage.Storage` that the next
incarnation is given. All protocol decisions are made in `sim.protocol`; this file carries messages, time and storage to
them. What belongs to a control plane is added by `sim.hosts.zk_broker` and `sim.hosts.kraft_broker`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from sim.config import Value
from sim.environment.elision import Pings
from sim.environment.network import Channel, Network
from sim.environment.storage import RecoveryError, Storage
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.control_plane import CONTROL
from sim.hosts.peers import Server
from sim.hosts.serving import Serving
from sim.hosts.settings import BrokerSettings
from sim.hosts.zk_controller import nothing
from sim.kernel.scheduler import Kernel
from sim.protocol import probes
from sim.protocol.batch import Batch
from sim.protocol.log.epochs import EpochCache
from sim.protocol.log.log import Log
from sim.protocol.messages import (
    NO_EPOCH,
    NOT_LEADER_OR_FOLLOWER,
    Ask,
    EpochEndReply,
    EpochEndRequest,
    EpochEndResult,
    FetchReply,
    FetchRequest,
    LeaderAndIsr,
    ListOffsetsReply,
    ListOffsetsRequest,
    Position,
    ProduceReply,
)
from sim.protocol.probes import branch
from sim.protocol.replica.fetcher import FETCHING, Fetcher, restarts_fetcher
from sim.protocol.replica.isr import UNREGISTERED
from sim.protocol.replica.partition import NO_LEADER, Partition
from sim.protocol.replica.replica import Replica
from sim.protocol.rules import Rules

SHUTDOWN: Final = "shutdown"
"""Reason of an exit that is a controlled shutdown."""
REFUSED: Final = "a broker is already registered"
"""Reason of an exit at start-up: an earlier registration is in the way."""


@dataclass(frozen=True, slots=True)
class Startup:
    """What one incarnation of a broker is started with.

    Attributes:
        broker: its id.
        incarnation: how many came before it on this machine.
        topic: name of the partition that it holds.
        storage: the machine's disk.
        rules: its rules.
        settings: its settings.
        kernel: time and timers.
        network: what it joins.
        recorder: where steps are noted.
        loaded: called when the logs are loaded.
        exits: called when the process ends by itself: (broker, reason).
    """

    broker: int
    incarnation: int
    topic: str
    storage: Storage
    rules: Rules
    settings: BrokerSettings
    kernel: Kernel
    network: Network
    recorder: Recorder
    loaded: Callable[[Broker], None]
    exits: Callable[[int, str], None]


class Broker(Serving):
    """One incarnation of a broker.

    Args:
        startup: what it is started with.

    Attributes:
        broker_epoch: of its registration, -1 before the first.
        checkpointing: whether it writes checkpoints: from the first decision on that it took.
        disk_stalled_us: since when its disk does not answer; None: it does.
        zombie: its session expired, and no sign of life of it arrives any more.
    """

    __slots__ = (
        "_answered_alike",
        "_asked_us",
        "_conversation",
        "_exits",
        "_fetchers",
        "_fetches_again",
        "_loaded",
        "_loaded_us",
        "_recorder",
        "_refused",
        "_sent_us",
        "_stalled",
        "_topic",
        "_watched",
        "_watching_isr",
        "checkpointing",
        "disk_stalled_us",
        "incarnation",
        "rules",
        "storage",
        "zombie",
    )

    def __init__(self, startup: Startup) -> None:
        super().__init__(startup.broker, startup.settings, startup.kernel)
        rules, recorder = startup.rules, startup.recorder
        self.reached = recorder.coverage.reached
        self.network = startup.network
        self.incarnation = startup.incarnation
        self.storage = startup.storage
        self.rules = rules
        self.epoch_end_version = 3 if rules.consumer_validation == "yes" else 2
        self.broker_epoch = -1
        self.zombie = False
        self.disk_stalled_us: int | None = None
        self._topic = startup.topic
        self._recorder = recorder
        self._loaded = startup.loaded
        self._exits = startup.exits
        self._fetchers: dict[int, Fetcher] = {}
        self._sent_us: dict[int, int] = {}
        self._fetches_again = False
        """While an answer is taken that had nothing: what is sent then may be left out (`sim.environment.elision`)."""
        self._watched: set[int] = set()
        self._refused: dict[int, int] = {}
        self._conversation: tuple[list[Ask], list[EpochEndResult]] = ([], [])
        """Last question about epochs of a truncation that is not complete, and its answer."""
        self._answered_alike: list[Ask] = []
        """That question, if it was answered like that twice."""
        self._asked_us = 0
        self._watching_isr = False
        self._loaded_us = 0
        self._stalled = False
        self.checkpointing = False

    # Life cycle.

    def start(self) -> None:
        """Load the logs; that takes a while."""
        self.kernel.call_at(self.kernel.now_us + self.settings.recovery_us, self.life, self._load, None)

    def _load(self, _: object) -> None:
        storage = self.storage
        clean, known = storage.clean_shutdown, len(storage.epoch_checkpoint.entries)
        try:
            log, epochs, hw = storage.recover(self.rules)
        except RecoveryError as error:
            self.reached(probes.RECOVERY_FAILS)
            self.reached(branch(self.rules, "overlap_recovery"))
            self.halt(str(error))
            return
        if self.incarnation > 1:
            self._note_recovery(log, hw, clean=clean, epochs=len(epochs.epochs) - known)
        self.partition = self._hold_partition(log, epochs, hw)
        self._loaded_us = self.kernel.now_us - 1  # Task isr-expiration is scheduled first (ReplicaManager.startup).
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
        if not clean and self.rules.overlap_recovery == "passes" and log.overlaps():
            reached(branch(self.rules, "overlap_recovery"))

    def _hold_partition(self, log: Log, epochs: EpochCache, hw: int) -> Partition:
        settings = self.settings
        return Partition(
            self.node,
            self._topic,
            log,
            epochs,
            hw,
            self.rules,
            self,
            min_insync_replicas=settings.min_insync_replicas,
            lag_us=settings.lag_us,
        )

    def _delete_partition(self, partition: Partition) -> None:
        """The broker is no replica any more: log and checkpoints are deleted."""
        self._fetchers.clear()
        partition.stop()
        self.wake_all()
        removed = self.storage.log.batches[:]
        self.partition = self._hold_partition(*self.storage.delete_log(self.rules))
        self._recorder.record(steps.Deleted(self.node, self.partition, removed))

    def halt(self, reason: str) -> None:
        """Exit by itself, once the present call is over."""
        self.kernel.call_at(self.kernel.now_us, self.life, self._exit, reason)

    def end(self) -> None:
        """See `Serving.end`."""
        super().end()
        self._fetchers.clear()
        self._loaded = self._exits = nothing

    def _exit(self, reason: str) -> None:
        self._exits(self.node, reason)

    @property
    def leads(self) -> bool:
        """Whether this broker believes that it leads the partition."""
        return self.partition is not None and self.partition.is_leader

    def on_config_changed(self, change: tuple[str, Value]) -> None:
        """The dynamic configuration changed (DynamicConfigManager)."""
        key, value = change
        partition = self.partition
        assert partition is not None
        if key == "min.insync.replicas":
            assert isinstance(value, int)
            smallest = min(value, self.settings.replication_factor)
            self.settings = replace(self.settings, min_insync_replicas=smallest)
            partition.min_insync_replicas = smallest
            partition.settings_changed(self.kernel.now_us)
        elif key == "unclean.leader.election.enable":
            allowed = bool(value)
            self.settings = replace(self.settings, unclean_election=allowed)
            for fetcher in self._fetchers.values():
                fetcher.unclean_election = allowed
        self.network.changed()

    @property
    def metadata_offset(self) -> int:
        """Up to where it has replayed the metadata log of a quorum."""
        return 0

    @property
    def changes_isr(self) -> bool:
        """Whether it has asked a quorum for an ISR, and does not know what became of that."""
        return False

    @property
    def ready(self) -> bool:
        """Whether it answers requests, for all that the control plane knows of it."""
        raise NotImplementedError

    # The control plane.

    def _to_control(self, handler: str, message: object) -> None:
        channel = self.out.get(CONTROL) or self.reach(CONTROL)
        assert channel is not None
        channel.send(getattr(channel.target, handler), message)

    def _leaves_out(self, channel: Channel[Any], interval_us: int) -> bool:
        """Leave out a sign of life that only keeps the session, and those after it (`sim.environment.elision`).

        Returns:
            Whether that was done; otherwise it is counted.
        """
        idle = self.network.idle
        if idle.elides:
            idle.pings[self.node] = Pings(self, channel, self.kernel.now_us, interval_us)
            return True
        idle.messages += 1
        return False

    def ping_again(self, channel: Channel[Any], arrives_us: int, next_us: int) -> None:
        """See `sim.environment.elision.Pinger`."""
        raise NotImplementedError

    def had_read(self, at_us: int) -> int:  # noqa: ARG002 - for subclasses
        """See `sim.environment.elision.Pinger`: without a quorum nobody waits for that."""
        return 0

    # Standing still.

    def stall(self, *, stalled: bool) -> None:
        """The disk does not answer: whatever needs the partition waits, and what waited goes on."""
        self.network.settle_fetches(self.node)
        self._stalled = stalled
        self._watch_isr()
        self._release()

    def freeze(self, now_us: int) -> None:
        """See `Node.freeze`."""
        if self.leads:
            self._watch_isr()
        super().freeze(now_us)

    def _release(self) -> None:
        """Hand over what had to wait, in order, as long as nothing stands in the way."""
        partition = self.partition
        assert partition is not None
        self._wait(waits=not self.ready or self._stalled or partition.state.locked)
        calls = self.backlog.calls
        while calls and self.waiting is None:
            handler, message = calls.popleft()
            handler(message)

    def _wait(self, *, waits: bool) -> None:
        """Whether what needs the partition waits from now on."""
        if waits != (self.waiting is not None):
            self.network.wait(self, self.backlog if waits else None)

    def _know(self, state: LeaderAndIsr | None, live: dict[int, int]) -> None:
        """Take metadata; where clients get another answer now, those who wait for one may try again."""
        before = self.known_leader
        self.known, self.live = state, live
        if state is not None and state.leader in live:
            self.known_leader = (state.leader, state.leader_epoch)
        else:
            self.known_leader = (NO_LEADER, NO_EPOCH)
        if self.known_leader != before:
            self.network.changed()

    def _begin_checkpoints(self) -> None:
        """The first decision was taken."""
        if not self.checkpointing:
            self.checkpointing = True
            self.storage.begin_checkpoints(self.kernel.now_us)

    def _lead(self, partition: Partition, decision: LeaderAndIsr) -> None:
        now_us = self.kernel.now_us
        self._fetchers.clear()
        self._recorder.record(steps.Lead(self.node, partition, decision))
        partition.become_leader(decision, now_us)
        self._watch_isr()

    def _follow(self, partition: Partition, decision: LeaderAndIsr) -> None:
        restarts = restarts_fetcher(self.rules, partition.leader, partition.leader_epoch, decision)
        partition.become_follower(decision)
        self.wake_all()
        fetcher = self._fetchers.get(decision.leader)
        fetch = fetcher.partitions.get(partition.name) if fetcher else None
        if fetch is not None:
            self.reached(branch(self.rules, "fetcher_restart"))
        if fetch is None or restarts:
            self._recorder.record(steps.Follow(self.node, partition, restarts=True))
            if fetcher is None:
                fetcher = self._new_fetcher(decision.leader)
            # A thread that lost its partitions is shut down (shutdownIdleFetcherThreads); a dead one that keeps its
            # partitions stays dead.
            self._fetchers = {decision.leader: fetcher}
            fetcher.remove(partition.name)
            self._forget_conversation()
            fetcher.add(partition, decision.leader_epoch, self.kernel.now_us)
        else:
            self._recorder.record(steps.Follow(self.node, partition, restarts=False))
            fetch.leader_epoch = decision.leader_epoch
            if fetch.state is FETCHING:
                self.settled(partition, decision.leader_epoch, 0)

    def _new_fetcher(self, leader: int) -> Fetcher:
        return Fetcher(
            leader,
            self.rules,
            self,
            backoff_us=self.settings.fetch_backoff_us,
            unclean_election=self.settings.unclean_election,
        )

    def _watch_isr(self) -> None:
        """Task isr-expiration: every half lag time since the start, while leading.

        Left out while nobody lags and nothing holds it up: what is held up may find other things when its time comes.
        """
        if not self._watching_isr:
            self._watching_isr = True
            now_us, half_us = self.kernel.now_us, self.settings.lag_us // 2
            due_us = now_us + half_us - (now_us - self._loaded_us) % half_us
            self.kernel.call_at(due_us, self.life, self._shrink_isr, None)

    def _shrink_isr(self, _: object) -> None:
        self._watching_isr = False
        partition = self.partition
        if partition is not None and partition.is_leader:
            partition.shrink_isr(self.kernel.now_us)
            if partition.has_laggards or not self.network.idle.elides:
                self._watch_isr()

    def acknowledges(self, reply: ProduceReply) -> None:
        """See `Serving.acknowledges`."""
        assert self.partition is not None
        self._recorder.record(steps.Acknowledges(self.node, reply, self.partition.min_insync_replicas))

    # The ISR.

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """See `PartitionHost.propose_isr`."""
        raise NotImplementedError

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
        if not self._watching_isr and self.leads:
            self._watch_isr()
        self.wake_followers()

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """See `ReplicaHost.truncated`."""
        partition = self.partition
        assert replica is partition is not None
        self._recorder.truncated(self.node, partition, removed)
        self.storage.truncated(len(removed), self.kernel.now_us)

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """See `ReplicaHost.hw_moved`: wakes consumers, never followers."""
        partition = self.partition
        assert replica is partition is not None
        self.storage.hw_file.catch_up(previous, self.kernel.now_us)
        self._recorder.record(steps.HighWatermark(self.node, partition, previous))
        if partition.is_leader:
            if replica.hw > previous:
                self.wake_consumers()
            self.network.settle_fetches(self.node)

    def log_start_moved(self, replica: Replica, previous: int, dropped: int) -> None:
        """See `ReplicaHost.log_start_moved`."""
        self.network.settle_fetches(self.node)
        self.storage.front_dropped(dropped, previous, self.kernel.now_us)
        self._recorder.record(steps.LogStart(self.node, replica.log.log_start))
        self.network.changed()  # Where epochs end.

    def replicated(self, partition: Partition, follower: int, leo: int) -> None:
        """See `PartitionHost.replicated`. A follower whose disk was replaced lags though nothing was appended."""
        if not self._watching_isr and leo < partition.log.leo:
            self._watch_isr()
        self._recorder.record(steps.Replicated(self.node, partition.leader_epoch, follower, leo))

    def settled(self, replica: Replica, leader_epoch: int, rounds: int) -> None:
        """See `FetcherHost.settled`."""
        assert replica is self.partition
        self._forget_conversation()
        self._recorder.record(steps.Settled(self.node, leader_epoch, rounds))

    def _forget_conversation(self) -> None:
        self._conversation = ([], [])
        self._answered_alike = []

    # Requests to a leader.

    def send_fetch(self, fetcher: Fetcher, positions: list[Position], leader_epochs: list[int]) -> FetchRequest:
        """See `FetcherHost.send_fetch`; while the leader is down, its next start leads to another try (`peer_up`)."""
        leader = fetcher.leader
        node = self.node
        request = FetchRequest(node, leader, node, self.broker_epoch, positions, leader_epochs)
        channel: Channel[Server] | None = self.out.get(leader) or self.reach(leader)
        if channel is not None:
            request.version = self.network.version
            send = channel.send_beside if self._fetches_again else channel.send
            send(channel.target.on_fetch, request)
            self._watch(fetcher)
        return request

    def send_epoch_end(
        self, fetcher: Fetcher, asks: list[Ask], leader_epochs: list[int], *, with_epoch: bool
    ) -> EpochEndRequest:
        """See `FetcherHost.send_epoch_end`."""
        request = EpochEndRequest(self.node, asks, leader_epochs, with_epoch=with_epoch)
        if self._answered_alike == asks and self.network.idle.elides:
            # Truncation that never completes (KAFKA-10706): the next answer would lead to the same question again.
            round_us = self.kernel.now_us - self._asked_us
            self.network.retry_after_change(lambda: round_us, self.life, self._send_epoch_end, (fetcher, request))
        else:
            self._send_epoch_end((fetcher, request))
        return request

    def _send_epoch_end(self, entry: tuple[Fetcher, EpochEndRequest]) -> None:
        fetcher, request = entry
        channel: Channel[Server] | None = self.reach(fetcher.leader)
        if channel is not None and fetcher.in_flight in (None, request):
            self._asked_us = self.kernel.now_us
            channel.send(channel.target.on_epoch_end, request)
            self._watch(fetcher)

    def send_list_offsets(self, fetcher: Fetcher, name: str, timestamp: int, leader_epoch: int) -> ListOffsetsRequest:
        """See `FetcherHost.send_list_offsets`."""
        request = ListOffsetsRequest(self.node, self.node, name, timestamp, leader_epoch)
        channel: Channel[Server] | None = self.reach(fetcher.leader)
        if channel is not None:
            channel.send(channel.target.on_list_offsets, request)
            self._watch(fetcher)
        return request

    def _watch(self, fetcher: Fetcher) -> None:
        """Give a request up after ``replica.socket.timeout.ms``; one timer serves all requests to a leader."""
        self._watch_from(fetcher.leader, self.kernel.now_us)

    def _watch_from(self, leader: int, sent_us: int) -> None:
        self._sent_us[leader] = sent_us
        if leader not in self._watched:
            self._watch_until(leader, sent_us + self.settings.socket_timeout_us)

    def _watch_until(self, leader: int, due_us: int) -> None:
        self._watched.add(leader)
        self.kernel.call_at(max(due_us, self.kernel.now_us), self.life, self._time_out, (leader, due_us))

    def repeats(self, request: FetchRequest, hw: int, log_start: int) -> bool:
        """See `Node.repeats`."""
        partition = self.partition
        if (
            partition is None
            or partition.hw != hw
            or self.waiting is not None
            or request.broker_epoch != self.broker_epoch
        ):
            return False
        fetcher = self._fetchers.get(request.leader)
        return fetcher is not None and fetcher.repeats(request, log_start)

    def waits_for(self, peer: int, answered_us: int, period_us: int) -> bool:
        """See `Node.waits_for`."""
        timeout_us = self.settings.socket_timeout_us
        return answered_us < self._sent_us[peer] + timeout_us and period_us < timeout_us

    def fetched_again(self, request: FetchRequest, sent_us: int, answers: int) -> None:
        """See `elision.Asker`; the first of these fetches may have arrived long before it began to wait."""
        leader = request.leader
        self._watch_from(leader, sent_us if answers else self._sent_us[leader])

    def wake_fetcher(self, fetcher: Fetcher, at_us: int) -> None:
        """See `FetcherHost.wake_fetcher`."""
        self.kernel.call_at(at_us, self.life, self._step_fetcher, fetcher)

    def _step_fetcher(self, fetcher: Fetcher) -> None:
        """Take the next step, unless a leader that has heard nothing since would only refuse once more."""
        if self._fetchers.get(fetcher.leader) is not fetcher:
            return  # It has lost its partition, and is shut down.
        if self._refused.get(fetcher.leader) == self.network.version:
            self.network.retry_after_change(self._fetch_backoff_us, self.life, self._step_fetcher, fetcher)
        else:
            fetcher.step(self.kernel.now_us)

    def _fetch_backoff_us(self) -> int:
        return self.settings.fetch_backoff_us

    def _time_out(self, entry: tuple[int, int]) -> None:
        if self.frozen:  # It goes on just now: first it reads what has arrived (NetworkClient.poll).
            self.kernel.call_at(self.kernel.now_us, self.life, self._time_out, entry)
            return
        leader, until_us = entry
        self._watched.discard(leader)
        fetcher = self._fetchers.get(leader)
        request = fetcher.in_flight if fetcher is not None else None
        if fetcher is None or request is None or leader not in self.out:
            return  # A peer that is down is tried again when it is up.
        if request in self.network.idle.fetches:
            return  # It is answered again and again.
        due_us = self._sent_us[leader] + self.settings.socket_timeout_us
        if due_us <= until_us:
            fetcher.request_failed(request, self.kernel.now_us)
        else:
            self._watch_until(leader, due_us)

    def peer_up(self, peer: int) -> None:
        """See `Node.peer_up`: requests that a dead process never answered are tried again."""
        self._retry(peer)

    def disconnected(self, peer: int) -> None:
        """See `Node.disconnected`."""
        if peer in self.network.nodes:
            self.peer_up(peer)

    def _retry(self, peer: int) -> None:
        fetcher = self._fetchers.get(peer)
        if fetcher is not None and fetcher.in_flight is not None:
            fetcher.request_failed(fetcher.in_flight, self.kernel.now_us)

    def on_fetch_reply(self, reply: FetchReply) -> None:
        """A leader answered a fetch, perhaps one of an earlier incarnation, which knows other fetchers."""
        request = reply.request
        fetcher = self._fetchers.get(request.leader)
        if fetcher is not None:
            result = reply.results[0]
            if result[1] == NOT_LEADER_OR_FOLLOWER:
                self._refused[request.leader] = request.version
            self._fetches_again = not (result[1] or result[2])
            fetcher.on_fetch_reply(reply, self.kernel.now_us)
            self._fetches_again = False

    def on_epoch_end_reply(self, reply: EpochEndReply) -> None:
        """A leader answered OffsetsForLeaderEpoch."""
        # Not one that comes too late.
        if any(fetcher.in_flight is reply.request for fetcher in self._fetchers.values()):
            conversation = (reply.request.asks, reply.results)
            alike = conversation == self._conversation and not any(error for _, error, _, _ in reply.results)
            self._answered_alike = reply.request.asks if alike else []
            self._conversation = conversation
        for fetcher in self._fetchers.values():
            fetcher.on_epoch_end_reply(reply, self.kernel.now_us)

    def on_list_offsets_reply(self, reply: ListOffsetsReply) -> None:
        """A leader answered ListOffsets."""
        for fetcher in self._fetchers.values():
            fetcher.on_list_offsets_reply(reply, self.kernel.now_us)
