"""The Raft thread of a process: a controller's, or that of a broker, which observes the quorum.

It drives `KafkaRaftClient.poll` by timers and by messages, and does nothing else while it waits for an fsync.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sim.environment.elision import ElidingBroker
from sim.environment.network import LATENCY_US, USUAL, Node
from sim.hosts.raft_machine import RaftMachine
from sim.hosts.snapshot_generator import SnapshotGenerator
from sim.kernel.mixing import BITS, mixed
from sim.kernel.scheduler import Event, Gate, Kernel, noop
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import NO_OP, NoOpRecord, Record
from sim.protocol.raft.election_state import ElectionState
from sim.protocol.raft.epoch_states import EpochState
from sim.protocol.raft.kafka_raft_client import KafkaRaftClient, LeaderAndEpoch, QuorumConfig, RaftHost
from sim.protocol.raft.raft_log import IllegalRaftStateError, RaftBatch, RaftSnapshot
from sim.protocol.raft.raft_messages import RaftFetchRequest, RaftFetchResponse, RaftRequest, RaftResponse
from sim.protocol.raft.request_manager import NEVER
from sim.protocol.raft.voter_set import NO_DIRECTORY

FSYNC_US: Final = 1_000
"""How long an fsync of the metadata log takes."""
REFUSED_US: Final = 2 * LATENCY_US[USUAL]
"""How long it takes until a connection is refused by a machine that runs no process."""
_DRAWN_BITS: Final = 31


class IdleTime:
    """Time in which nothing but elided exchanges happens to the members of a quorum (`sim.hosts.idle_quorum`)."""

    def end(self) -> None:
        """Simulate the quorum again."""
        raise NotImplementedError

    def elide_heartbeats(self, pinger: ElidingBroker, back_us: int, interval_us: int, offset: int) -> bool:
        """Elide a broker's heartbeats to the leader, from one that is due now on; returns whether they are elided.

        Args:
            pinger: the broker.
            back_us: latency of the responses.
            interval_us: time from a response to the next heartbeat.
            offset: the metadata offset that all of them report; -1: that of the time at which they are sent.
        """
        raise NotImplementedError


class _Poll(Event):
    """Timer of the thread."""

    __slots__ = ("_at_us", "_member")
    elision_safe = True

    def __init__(self, member: RaftMember, at_us: int) -> None:
        self._member = member
        self._at_us = at_us

    def happen(self, _: Gate) -> None:
        self._member.time_is(self._at_us)


class _Flushed(Event):
    """The end of an fsync."""

    __slots__ = ("_member",)
    elision_safe = True

    def __init__(self, member: RaftMember) -> None:
        self._member = member

    def happen(self, _: Gate) -> None:
        self._member.flushed()


class _Refused(Event):
    """No process accepts the connection for a request."""

    __slots__ = ("_member", "_node", "_request")
    elision_safe = True

    def __init__(self, member: RaftMember, node: int, request: RaftRequest) -> None:
        self._member = member
        self._node = node
        self._request = request

    def happen(self, _: Gate) -> None:
        self._member.fail(self._node, self._request)


class RaftMember(RaftHost):
    """See the module. Kafka: KafkaRaftClientDriver, KafkaRaftManager.

    Args:
        owner: its process.
        kernel: time.
        machines: the machines of voters, by id.
        machine: its own.
        decide: its rules.
        config: its settings.
        key: of its random numbers.
        committed: called with batches that are committed.
        loaded: called with a snapshot that takes the place of what was committed before.
        snapshots: makes the snapshots of the process.
        leader_changed: called with another leader or epoch.
        led: called with the epoch when it becomes leader.
        crashed: called with the reason when the process has to end.
        members: see below.
        early_us: how long ago the process started.
        always_flushes: see `KafkaRaftClient`.

    Attributes:
        client: decides.
        owner: see above.
        idle: the idle time in which it takes part, or None.
        armed_us: when its timer was to expire when that began.
        members: the members that run, by id.
        snapshots: see above.
        acts_at_once: whether what is committed takes effect at once in its process.
    """

    __deletable__ = ("client",)
    __slots__ = (
        "_appended",
        "_approached_us",
        "_armed_us",
        "_committed",
        "_crashed",
        "_drawn",
        "_ended",
        "_flushing",
        "_inbox",
        "_is_busy",
        "_kernel",
        "_key",
        "_leader_changed",
        "_led",
        "_led_epoch",
        "_loaded",
        "_machine",
        "_machines",
        "_noted",
        "acts_at_once",
        "armed_us",
        "client",
        "idle",
        "members",
        "owner",
        "snapshots",
    )

    client: KafkaRaftClient

    def __init__(
        self,
        owner: Node,
        kernel: Kernel,
        machines: Mapping[int, RaftMachine],
        machine: RaftMachine,
        decide: Decisions,
        config: QuorumConfig,
        key: int,
        committed: Callable[[Sequence[RaftBatch]], None],
        loaded: Callable[[RaftSnapshot], None],
        snapshots: SnapshotGenerator,
        leader_changed: Callable[[LeaderAndEpoch], None],
        led: Callable[[int], None],
        crashed: Callable[[str], None],
        members: dict[int, RaftMember],
        *,
        early_us: int = 0,
        always_flushes: bool = False,
    ) -> None:
        self.owner = owner
        self.idle: IdleTime | None = None
        self.armed_us = NEVER
        self.acts_at_once: Callable[[], bool] = _always
        self.members = members
        members[owner.node] = self
        self._kernel = kernel
        self._machines = machines
        self._machine = machine
        self._committed = committed
        self._loaded = loaded
        self.snapshots = snapshots
        self._leader_changed = leader_changed
        self._led = led
        self._led_epoch = -1
        self._noted: EpochState | None = None
        self._crashed = crashed
        self._key = mixed(key, owner.node)
        self._key = mixed(self._key, machine.incarnation)
        self._drawn = 0
        self._inbox: deque[RaftRequest | RaftResponse] = deque()
        self._flushing = self._is_busy = self._appended = self._ended = False
        self._armed_us = NEVER
        self._approached_us = NEVER
        """When a snapshot is to be removed, as the generator knows it."""
        nodes = tuple(machines)
        self.client = KafkaRaftClient(
            owner.node,
            () if config.has_bootstrap_servers else nodes,
            machine.log,
            machine.election,
            decide,
            config,
            self,
            kernel.now_us - early_us,
            always_flushes=always_flushes,
            directory=machine.directory if config.has_bootstrap_servers else NO_DIRECTORY,
            bootstrap_servers=nodes if config.has_bootstrap_servers else (),
        )
        snapshots.partition = self.client.partition

    def end(self) -> None:
        """End with the process."""
        self._ended = True
        if self.members.get(self.owner.node) is self:
            del self.members[self.owner.node]
        self._inbox.clear()
        self.acts_at_once = _always
        self._committed = self._loaded = self._leader_changed = self._led = self._crashed = noop

    def dispose(self) -> None:
        """See `Cluster.dispose`."""
        self.end()
        del self.client

    # The thread.

    def receive(self, message: RaftRequest | RaftResponse) -> None:
        """Handle a message, after the fsync that the thread waits for."""
        if self.idle is not None:
            self.idle.end()
        if self._flushing:
            self._inbox.append(message)
        else:
            self._handle(message)

    def _handle(self, message: RaftRequest | RaftResponse) -> None:
        client, now_us = self.client, self._kernel.now_us
        self._is_busy = True
        try:
            client.handle(message, now_us)
        except IllegalRaftStateError as error:
            self._crash(str(error))
            return
        finally:
            self._is_busy = False
        if self._appended or client.quorum.state is not self._noted or not client.leads_until(self._armed_us, now_us):
            self.drive()

    def drive(self) -> None:
        """Poll, and set the timer."""
        if self.idle is not None:
            self.idle.end()
        if self._is_busy:
            self._appended = True
            return
        if self._flushing or self._ended:
            return
        now_us = self._kernel.now_us
        self._is_busy = self._appended = True
        at_us = NEVER
        try:
            while self._appended and not self._flushing and not self._ended:
                self._appended = False
                quorum = self.client.quorum
                if quorum.state is not self._noted:
                    self._note_leadership()
                at_us = self.client.poll(now_us)
                if quorum.state is not self._noted:
                    self._note_leadership()
        except IllegalRaftStateError as error:
            self._crash(str(error))
            return
        finally:
            self._is_busy = False
        clean_us = self.client.clean_us()
        if clean_us != self._approached_us:
            self._approached_us = clean_us
            if clean_us != NEVER:
                self.snapshots.approach(clean_us)
        if not self._flushing and not self._ended and at_us < self._armed_us:
            self._armed_us = at_us
            self._kernel.schedule(at_us, self.owner.life, _Poll(self, at_us))

    def _note_leadership(self) -> None:
        """Report a new epoch in which it leads."""
        quorum = self.client.quorum
        self._noted = quorum.state
        if self.client.is_leader and quorum.epoch != self._led_epoch:
            self._led_epoch = quorum.epoch
            self._led(self._led_epoch)

    def _crash(self, reason: str) -> None:
        """The exception ends the process (KAFKA-14644). Kafka: ProcessTerminatingFaultHandler."""
        if not self._ended:
            self._crashed(reason)

    def time_is(self, at_us: int) -> None:
        """The timer for that time expires, unless an earlier one replaced it."""
        if at_us == self._armed_us and not self._ended:
            self._armed_us = NEVER
            self.drive()

    def flushed(self) -> None:
        """The fsync has ended: handle what has arrived meanwhile."""
        if self._ended:
            return
        self._machine.log.flush()
        self._flushing = False
        inbox = self._inbox
        while inbox and not self._flushing and not self._ended:
            self._handle(inbox.popleft())
        self.drive()

    def fail(self, node: int, request: RaftRequest) -> None:
        """A request fails, since its connection was refused or broke."""
        if not self._ended:
            self.end_idle()
            self.client.request_failed(node, request, self._kernel.now_us)
            self.drive()

    def disconnected(self, node: int) -> None:
        """The connection to a node broke."""
        self.end_idle()
        client = self.client
        for connection, request in client.requests.in_flight.items():
            if client.member_of(connection) == node:
                self.fail(node, request)

    def end_idle(self) -> None:
        """End the idle time in which it takes part."""
        if self.idle is not None:
            self.idle.end()

    def begin_idle(self, idle: IdleTime) -> None:
        """Take part in an idle time: no timer acts."""
        self.idle = idle
        self.armed_us, self._armed_us = self._armed_us, NEVER

    def resume(self, at_us: int, now_us: int) -> None:
        """Set the timer, whose event is scheduled already if it comes later than `now_us` and was set before."""
        self._armed_us = at_us
        if at_us <= now_us or at_us != self.armed_us:
            self._kernel.schedule(at_us, self.owner.life, _Poll(self, at_us))

    @property
    def waits(self) -> bool:
        """Whether the thread only waits for messages and timers."""
        return not (self._flushing or self._is_busy or self._inbox or self._ended)

    def next_snapshot_us(self) -> int:
        """When it next makes or removes a snapshot."""
        return min(self.snapshots.due_us(), self.client.clean_us())

    @property
    def leader(self) -> int:
        """The leader as it knows it, or `NO_NODE`."""
        return self.client.quorum.leader

    # What the client asks of its process.

    def send(self, node: int, message: RaftRequest | RaftResponse) -> None:
        owner = self.owner
        if node < 0:
            node = self.client.member_of(node)
        channel = owner.out.get(node) or owner.reach(node)
        if channel is None:
            machine = self._machines.get(node)
            if isinstance(message, RaftRequest) and machine is not None and machine.has_power:
                at_us = self._kernel.now_us + REFUSED_US
                self._kernel.schedule(at_us, owner.life, _Refused(self, node, message))
        elif isinstance(message, RaftFetchRequest) or (
            isinstance(message, RaftFetchResponse) and not has_content(message.batches)
        ):
            channel.send_usually(message)
        else:
            channel.send(message)

    def random_below(self, bound: int) -> int:
        self._drawn += 1
        return (mixed(self._key, self._drawn) >> (BITS - _DRAWN_BITS)) * bound >> _DRAWN_BITS

    def store(self, election: ElectionState) -> None:
        self._machine.election = election

    def flush(self) -> None:
        log = self._machine.log
        if log.flushed_offset < log.end_offset and not self._flushing:
            self._flushing = True
            self._kernel.schedule(self._kernel.now_us + FSYNC_US, self.owner.life, _Flushed(self))

    def handle_commit(self, batches: Sequence[RaftBatch]) -> None:
        self._committed(batches)

    def handle_load_snapshot(self, snapshot: RaftSnapshot) -> None:
        self._loaded(snapshot)

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        self._leader_changed(leader)


def _always() -> bool:
    return True


def has_content(batches: Sequence[RaftBatch]) -> bool:
    """Whether batches have a record that changes metadata."""
    for batch in batches:
        for record in batch.records:
            if record is not NO_OP and not isinstance(record, NoOpRecord):
                return True
    return False


def records_of(batch: RaftBatch) -> list[Record]:
    """The records of a batch; for a control record one without contents."""
    if len(batch.records) == batch.size:
        return list(batch.records)  # type: ignore[arg-type]
    found: list[Record] = []
    for place in range(batch.size):
        record = batch.records[place] if place < len(batch.records) else NO_OP
        found.append(record)  # type: ignore[arg-type]
    return found
