"""Events held back while a broker's partition is unusable: as long as the broker is not registered, the ISR is being
written to ZooKeeper (the writer holds leaderIsrUpdateLock), or the disk does not answer. While a log directory alone
does not answer, only what writes to it is held back; while the ISR of one of several partitions is being written, only
what needs that partition.

Other events still happen: sessions, the controller in the same process, metadata. In a paused process nothing happens;
see `sim.environment.network.Node.freeze`.
"""

from __future__ import annotations

from collections.abc import Callable

from sim.environment.storage import LogDirectory
from sim.hosts.broker_node import BrokerNode
from sim.hosts.hosted_replica import HostedReplicas
from sim.kernel.scheduler import Backlog, Event, Gate, noop


class DirectoryStall:
    """A log directory that does not answer.

    Attributes:
        directory: the directory.
        by: the fault that stalled it.
        names: the partitions with a replica there when it began.
    """

    __slots__ = ("by", "directory", "names")

    def __init__(self, directory: LogDirectory, by: object, names: list[str]) -> None:
        self.directory = directory
        self.by = by
        self.names = names


class PartitionBacklog(Backlog):
    """Holds back events that need a broker's partition (`Event.has_to_wait`, of several `Event.needs`), or write to a
    log directory that does not answer (`Event.writes_to`); others happen at once.

    Attributes:
        disk_stalled: whether no log directory answers.
        stalled: the log directories that do not answer, while others do.
        full: the log directories without space: they fail as soon as an event writes to them.
    """

    __slots__ = ("_broker", "_fails", "_replicas", "disk_stalled", "full", "stalled")

    def __init__(self, broker: BrokerNode, replicas: HostedReplicas) -> None:
        super().__init__()
        self._broker = broker
        self._replicas = replicas
        self.disk_stalled = False
        self.stalled: list[DirectoryStall] = []
        self.full: list[LogDirectory] = []
        self._fails: Callable[[LogDirectory], None] = noop

    def put(self, gate: Gate, event: Event) -> None:
        broker = self._broker
        if self.stalled and not self.is_blocked:
            waits = any(event.writes_to(stall.directory.storages) for stall in self.stalled)
        elif len(self._replicas.replicas) > 1 and not self.is_blocked and (locked := self.locked):
            waits = event.needs(locked)
        elif self.full and not self.is_blocked:
            waits = False
        else:
            waits = event.has_to_wait(registered=broker.broker_epoch >= 0)
        if waits:
            self.events.append((gate, event))
            return
        if self.full:
            self._write(event)
            if broker.has_ended:
                return
        event.happen(gate)

    def _write(self, event: Event) -> None:
        """Fail the directories without space that an event writes to."""
        for directory in self.full[:]:
            if event.writes_to(directory.storages) and not self._broker.has_ended:
                self._fails(directory)

    @property
    def is_blocked(self) -> bool:
        """Whether no partition can be used."""
        if not self._broker.ready or self.disk_stalled:
            return True
        return len(self._replicas.replicas) == 1 and bool(self.locked)

    @property
    def is_partial(self) -> bool:
        """Whether it takes events only to find out which of them write to some log directories."""
        return bool(self.stalled or self.full)

    @property
    def locked(self) -> list[str]:
        """The partitions whose ISRs are being written to ZooKeeper (leaderIsrUpdateLock)."""
        return [name for name, replica in self._replicas.replicas.items() if replica.partition.state.locked]

    def deliver(self) -> None:
        """Deliver waiting events in order, until one makes the rest wait again."""
        broker = self._broker
        self._update_waiting()
        events = self.events
        while events and broker.waiting is None:
            gate, event = events.popleft()
            broker.end_elision()
            event.happen(gate)
        if events and (self.is_partial or (len(self._replicas.replicas) > 1 and not self.is_blocked)):
            held = list(events)
            events.clear()
            for gate, event in held:
                broker.end_elision()
                self.put(gate, event)

    def _update_waiting(self) -> None:
        self.set_waiting(waits=self.is_partial or self.is_blocked or bool(self.locked))

    def set_waiting(self, *, waits: bool) -> None:
        """Set whether events that need the partition have to wait."""
        broker = self._broker
        if waits != (broker.waiting is not None):
            broker.network.set_backlog(broker, self if waits else None)

    # Directories without space.

    def fill(self, directory: LogDirectory, fails: Callable[[LogDirectory], None]) -> None:
        """Let a log directory have no space: `fails` is called with it before an event that writes to it happens."""
        self._fails = fails
        self._broker.end_elision()
        self._broker.end_idle()
        self.full.append(directory)
        self._update_waiting()

    def write_checkpoints(self) -> None:
        """Let the checkpoint files of all directories be written, which fails those without space."""
        for directory in self.full:
            self.write_checkpoint_at(self._broker.kernel.now_us, directory)

    def write_checkpoint_at(self, at_us: int, directory: LogDirectory) -> None:
        """Let a checkpoint file of a directory be written at a time, which fails it if it still has no space."""
        self._broker.kernel.call_at(at_us, self._broker.life, self._write_checkpoint, directory)

    def _write_checkpoint(self, directory: LogDirectory) -> None:
        if directory not in self.full:
            return
        if self.disk_stalled or directory.stalled_us >= 0:
            hw_checkpoint_us = self._broker.settings.storage.hw_checkpoint_us
            self.write_checkpoint_at(self._broker.kernel.now_us + hw_checkpoint_us, directory)
        else:
            self._fails(directory)

    def free(self, directory: LogDirectory) -> None:
        """Watch a directory no longer, because it has space again or has failed. No event has waited for it."""
        self.full.remove(directory)
        self._update_waiting()

    # Stalls.

    def stall(self, *, stalled: bool) -> None:
        """Stall the disk, so that events which need the partition wait; or resume it and deliver them."""
        self._broker.end_elision()
        self._broker.end_idle()
        self.disk_stalled = stalled
        self._replicas.isr_expiration.schedule()
        self._broker.deliver_backlog()

    def stall_directory(self, stall: DirectoryStall) -> None:
        """Let a log directory not answer, so that events which write to it wait."""
        self._broker.end_elision()
        self._broker.end_idle()
        self.stalled.append(stall)
        self._broker.deliver_backlog()

    def directory_works(self, stall: DirectoryStall) -> None:
        """Let a log directory answer again, and deliver the events that waited for it."""
        self._broker.end_elision()
        self._broker.end_idle()
        self.stalled.remove(stall)
        self._broker.deliver_backlog()
