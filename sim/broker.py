"""A broker process: hosts partitions and fetchers on a machine's storage, and talks to everybody else.

One object is one incarnation. A crash drops it; what survives is the `sim.storage.Storage` that the next incarnation
is given. All protocol decisions are made in `sim.protocol`; this file carries messages, time and storage to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sim.journal import Journal
from sim.kernel import Kernel
from sim.protocol.batch import Batch
from sim.protocol.fetcher import FETCHING, Fetcher
from sim.protocol.messages import (
    INVALID_UPDATE_VERSION,
    NOT_LEADER_OR_FOLLOWER,
    EpochEndReply,
    EpochEndRequest,
    FetchReply,
    FetchRequest,
    Goodbye,
    Heartbeat,
    IsrChange,
    LeaderAndIsr,
    ListOffsetsReply,
    ListOffsetsRequest,
    Position,
)
from sim.protocol.partition import NO_LEADER, Partition
from sim.protocol.replica import Replica
from sim.protocol.rules import Rules
from sim.serving import Serving
from sim.settings import BrokerSettings
from sim.storage import RecoveryError, Storage

CONTROL: Final = 0
"""Node id of the control plane."""
SHUTDOWN: Final = "shutdown"
"""Reason of an exit that is a controlled shutdown."""


class Broker(Serving):
    """One incarnation of a broker.

    Args:
        broker: its id.
        incarnation: how many came before it on this machine.
        topic: name of the partition that it holds.
        storage: the machine's disk.
        rules: its rules.
        settings: its settings.
        kernel: time and timers.
        journal: where steps are noted.
        loaded: called when the logs are loaded: the process can be reached from then on.
        exits: called when the process ends by itself: (broker, reason).

    Attributes:
        leads: whether it leads the partition.
    """

    def __init__(
        self,
        broker: int,
        incarnation: int,
        topic: str,
        storage: Storage,
        rules: Rules,
        settings: BrokerSettings,
        kernel: Kernel,
        journal: Journal,
        loaded: Callable[[Broker], None],
        exits: Callable[[int, str], None],
    ) -> None:
        super().__init__(broker, settings, kernel)
        self.incarnation = incarnation
        self.storage = storage
        self.rules = rules
        self._topic = topic
        self._journal = journal
        self._loaded = loaded
        self._exits = exits
        self._fetchers: dict[int, Fetcher] = {}
        self._sent_us: dict[int, int] = {}
        self._watched: set[int] = set()
        self._refused: dict[int, int] = {}
        self._shrinking = False
        self._isr_change: IsrChange | None = None
        self._isr_due_us = 0

    # Life cycle.

    def start(self) -> None:
        """Load the logs; that takes a while."""
        self.kernel.call_at(self.kernel.now_us + self.settings.recovery_us, self.life, self._load, None)

    def _load(self, _: object) -> None:
        settings = self.settings
        try:
            log, epochs, hw = self.storage.recover(self.rules)
        except RecoveryError as error:
            self.halt(str(error))
            return
        self.partition = Partition(
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
        self._loaded(self)
        self._heartbeat(None)

    def _heartbeat(self, _: object) -> None:
        """Register, stay registered, and show which decisions arrived; goes on until the process ends."""
        assert self.partition is not None
        control = self.reach(CONTROL)
        assert control is not None
        beat = Heartbeat(self.node, self.incarnation, self.partition.partition_epoch)
        control.send(control.target.on_heartbeat, beat)  # type: ignore[attr-defined]
        change = self._isr_change
        if change is not None and self._awaits(self.partition, change) and self._isr_due_us <= self.kernel.now_us:
            self._send_isr_change(change)  # Until it is refused, or a decision of a newer epoch comes.
        self.kernel.call_at(self.kernel.now_us + self.settings.heartbeat_us, self.life, self._heartbeat, None)

    def say_goodbye(self) -> None:
        """Ask the control plane to end the session; the answer ends the process (controlled shutdown)."""
        control = None if self.partition is None else self.reach(CONTROL)
        if control is not None:
            control.send(control.target.on_goodbye, Goodbye(self.node, self.incarnation))  # type: ignore[attr-defined]

    def on_goodbye_reply(self, _: Goodbye) -> None:
        """The session is closed."""
        self._exits(self.node, SHUTDOWN)

    def halt(self, reason: str) -> None:
        """Exit by itself, once the present call is over."""
        self.kernel.call_at(self.kernel.now_us, self.life, self._exit, reason)

    def _exit(self, reason: str) -> None:
        self._exits(self.node, reason)

    @property
    def leads(self) -> bool:
        """Whether this broker believes that it leads the partition."""
        return self.partition is not None and self.partition.is_leader

    # Decisions of the control plane.

    def on_leader_and_isr(self, decision: LeaderAndIsr) -> None:
        """Become leader or follower (ReplicaManager.becomeLeaderOrFollower).

        A decision whose leader epoch is not newer is ignored altogether, its partition epoch included.
        """
        partition = self.partition
        if partition is None or decision.leader_epoch <= partition.leader_epoch:
            return
        if self.known is None:
            self.storage.begin_checkpoints(self.kernel.now_us)
        self.known = decision
        self.network.changed()
        if decision.leader == self.node:
            self._lead(partition, decision)
        elif decision.leader != NO_LEADER:
            self._follow(partition, decision)
        elif partition.is_leader:
            partition.become_follower(decision)
            self.wake_all()
        else:
            # A follower cannot follow nobody: it only takes note, and goes on as it was (ReplicaManager.makeFollowers).
            partition.isr = decision.isr
            partition.partition_epoch = decision.partition_epoch

    def _lead(self, partition: Partition, decision: LeaderAndIsr) -> None:
        now_us = self.kernel.now_us
        self._fetchers.clear()
        self._journal.lead(self.node, partition, decision)
        partition.become_leader(decision, now_us)
        if not self._shrinking:
            self._shrinking = True
            self.kernel.call_at(now_us + self.settings.lag_us // 2, self.life, self._shrink_isr, None)

    def _follow(self, partition: Partition, decision: LeaderAndIsr) -> None:
        same_leader = partition.leader == decision.leader
        partition.become_follower(decision)
        self.wake_all()
        fetcher = self._fetchers.get(decision.leader)
        fetch = fetcher.partitions.get(partition.name) if fetcher else None
        if fetch is None or not same_leader or self.rules.fetcher_restart == "newer-epoch":
            self._journal.follow(self.node, partition, restarts=True)
            if fetcher is None:
                fetcher = self._new_fetcher(decision.leader)
            # A thread that lost its partitions is shut down (shutdownIdleFetcherThreads); a dead one that keeps its
            # partitions stays dead.
            self._fetchers = {decision.leader: fetcher}
            fetcher.remove(partition.name)
            fetcher.add(partition, decision.leader_epoch, self.kernel.now_us)
        else:
            self._journal.follow(self.node, partition, restarts=False)
            fetch.leader_epoch = decision.leader_epoch
            if fetch.state is FETCHING:
                self.settled(partition, decision.leader_epoch)

    def _new_fetcher(self, leader: int) -> Fetcher:
        return Fetcher(
            leader,
            self.rules,
            self,
            backoff_us=self.settings.fetch_backoff_us,
            unclean_election=self.settings.unclean_election,
        )

    def _shrink_isr(self, _: object) -> None:
        """Task isr-expiration: every half lag time while leading."""
        partition = self.partition
        self._shrinking = partition is not None and partition.is_leader
        if partition is not None and partition.is_leader:
            now_us = self.kernel.now_us
            partition.shrink_isr(now_us)
            self.kernel.call_at(now_us + self.settings.lag_us // 2, self.life, self._shrink_isr, None)

    # What a partition tells its host.

    def appended(self, replica: Replica, batch: Batch) -> None:
        """See `ReplicaHost.appended`: wakes the fetches that wait for data."""
        self._journal.append(self.node, replica, batch)
        self.storage.appended(batch, self.kernel.now_us)
        self.wake_followers()

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """See `ReplicaHost.truncated`."""
        partition = self.partition
        assert replica is partition is not None
        self._journal.truncate(self.node, partition, removed)
        self.storage.truncated(len(removed), self.kernel.now_us)

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """See `ReplicaHost.hw_moved`: wakes consumers, never followers."""
        partition = self.partition
        assert replica is partition is not None
        self.storage.hw_file.catch_up(previous, self.kernel.now_us)
        self._journal.hw(self.node, partition, previous)
        if replica.hw > previous:
            self.wake_consumers()

    def log_start_moved(self, replica: Replica, previous: int, dropped: int) -> None:
        """See `ReplicaHost.log_start_moved`."""
        self.storage.front_dropped(dropped, previous, self.kernel.now_us)
        self._journal.log_start(self.node, replica.log.log_start)

    def replicated(self, partition: Partition, follower: int, leo: int) -> None:
        """See `PartitionHost.replicated`."""
        self._journal.replicated(self.node, partition, follower, leo)

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """See `PartitionHost.propose_isr`."""
        incarnations = {state.broker: state.broker_epoch for state in partition.followers.values()}
        change = IsrChange(
            self.node, partition.name, isr, partition.leader_epoch, partition.partition_epoch, incarnations
        )
        self._isr_change = change
        self._send_isr_change(change)

    def _send_isr_change(self, change: IsrChange) -> None:
        control = self.reach(CONTROL)
        assert control is not None
        control.send(control.target.on_isr_change, change)  # type: ignore[attr-defined]
        self._isr_due_us = self.kernel.now_us + self.settings.isr_retry_us

    def on_isr_refused(self, change: IsrChange) -> None:
        """The control plane did not persist a change."""
        partition = self.partition
        assert partition is not None
        if self._awaits(partition, change):
            partition.isr_refused(INVALID_UPDATE_VERSION, self.kernel.now_us)

    @staticmethod
    def _awaits(partition: Partition, change: IsrChange) -> bool:
        return partition.pending == change.isr and partition.leader_epoch == change.leader_epoch

    def is_alive(self, broker: int) -> bool:
        """See `PartitionHost.is_alive`."""
        return broker in self.network.nodes

    def settled(self, replica: Replica, leader_epoch: int) -> None:
        """See `FetcherHost.settled`."""
        assert replica is self.partition
        self._journal.settled(self.node, leader_epoch)

    # Requests to a leader.

    def send_fetch(self, fetcher: Fetcher, positions: list[Position]) -> FetchRequest:
        """See `FetcherHost.send_fetch`; while the leader is down, its next start leads to another try (`peer_up`)."""
        leader = fetcher.leader
        node = self.node
        request = FetchRequest(node, leader, node, self.incarnation, positions)
        channel = self.out.get(leader) or self.reach(leader)
        if channel is not None:
            request.version = self.network.version
            channel.send(channel.target.on_fetch, request)  # type: ignore[attr-defined]
            self._watch(fetcher)
        return request

    def send_epoch_end(self, fetcher: Fetcher, asks: list[Position], *, with_epoch: bool) -> EpochEndRequest:
        """See `FetcherHost.send_epoch_end`."""
        request = EpochEndRequest(self.node, asks, with_epoch=with_epoch)
        channel = self.reach(fetcher.leader)
        if channel is not None:
            channel.send(channel.target.on_epoch_end, request)  # type: ignore[attr-defined]
            self._watch(fetcher)
        return request

    def send_list_offsets(self, fetcher: Fetcher, name: str, timestamp: int, leader_epoch: int) -> ListOffsetsRequest:
        """See `FetcherHost.send_list_offsets`."""
        request = ListOffsetsRequest(self.node, self.node, name, timestamp, leader_epoch)
        channel = self.reach(fetcher.leader)
        if channel is not None:
            channel.send(channel.target.on_list_offsets, request)  # type: ignore[attr-defined]
            self._watch(fetcher)
        return request

    def _watch(self, fetcher: Fetcher) -> None:
        """Give a request up after ``replica.socket.timeout.ms``; one timer serves all requests to a leader."""
        leader = fetcher.leader
        now_us = self._sent_us[leader] = self.kernel.now_us
        if leader not in self._watched:
            self._watched.add(leader)
            self.kernel.call_at(now_us + self.settings.socket_timeout_us, self.life, self._time_out, leader)

    def wake_fetcher(self, fetcher: Fetcher, at_us: int) -> None:
        """See `FetcherHost.wake_fetcher`."""
        self.kernel.call_at(at_us, self.life, self._step_fetcher, fetcher)

    def _step_fetcher(self, fetcher: Fetcher) -> None:
        """Take the next step, unless a leader that has heard nothing since would only refuse once more."""
        if self._refused.get(fetcher.leader) == self.network.version:
            self.network.retry_after_change(self._fetch_backoff_us, self.life, self._step_fetcher, fetcher)
        else:
            fetcher.step(self.kernel.now_us)

    def _fetch_backoff_us(self) -> int:
        return self.settings.fetch_backoff_us

    def _time_out(self, leader: int) -> None:
        self._watched.discard(leader)
        fetcher = self._fetchers.get(leader)
        request = fetcher.in_flight if fetcher is not None else None
        if fetcher is None or request is None or leader not in self.out:
            return  # A peer that is down is tried again when it is up.
        due_us = self._sent_us[leader] + self.settings.socket_timeout_us
        if due_us <= self.kernel.now_us:
            fetcher.request_failed(request, self.kernel.now_us)
        else:
            self._watched.add(leader)
            self.kernel.call_at(due_us, self.life, self._time_out, leader)

    def peer_up(self, peer: int) -> None:
        """See `Node.peer_up`: requests that a dead process never answered are tried again."""
        self._retry(peer)

    def disconnected(self, peer: int) -> None:
        """See `Node.disconnected`."""
        if peer in self.network.nodes:
            self._retry(peer)

    def _retry(self, peer: int) -> None:
        fetcher = self._fetchers.get(peer)
        if fetcher is not None and fetcher.in_flight is not None:
            fetcher.request_failed(fetcher.in_flight, self.kernel.now_us)

    def on_fetch_reply(self, reply: FetchReply) -> None:
        """A leader answered a fetch, perhaps one of an earlier incarnation, which knows other fetchers."""
        request = reply.request
        fetcher = self._fetchers.get(request.leader)
        if fetcher is not None:
            if reply.results[0][1] == NOT_LEADER_OR_FOLLOWER:
                self._refused[request.leader] = request.version
            fetcher.on_fetch_reply(reply, self.kernel.now_us)

    def on_epoch_end_reply(self, reply: EpochEndReply) -> None:
        """A leader answered OffsetsForLeaderEpoch."""
        for fetcher in self._fetchers.values():
            fetcher.on_epoch_end_reply(reply, self.kernel.now_us)

    def on_list_offsets_reply(self, reply: ListOffsetsReply) -> None:
        """A leader answered ListOffsets."""
        for fetcher in self._fetchers.values():
            fetcher.on_list_offsets_reply(reply, self.kernel.now_us)
