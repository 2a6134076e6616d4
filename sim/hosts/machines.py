"""The machines that brokers run on: their disks, and power losses, disk damage and stalls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol

from sim.environment.storage import LogDirectory, Storage
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.broker import Broker
from sim.hosts.hosted_replica import HostedReplica
from sim.hosts.settings import BrokerSettings
from sim.kernel.scheduler import Kernel
from sim.kernel.streams import Streams, integer
from sim.protocol import probes
from sim.protocol.batch import Batch

SILENT: Final = (steps.POWER_LOSS, steps.DISK_REPLACED)
"""Ends after which no TCP reset is sent."""
_DISK_DAMAGE: Final = (steps.DISK_REPLACED, steps.CORRUPT_TAIL)
"""Ends after which fsynced batches may be gone."""


Loss = Callable[[], Mapping[str, list[Batch]]]
"""Makes a machine lose batches, which it returns by partition."""


class Processes(Protocol):
    """The broker processes; `running` ones by broker."""

    running: dict[int, Broker]

    def end(self, broker: int, kind: steps.StepKind, loses: Loss) -> bool:
        """End a process at once and make its machine lose batches; False if none runs."""


class Machines:
    """One machine per broker, with the log directories `directories`. `storages` are the files of the first partition.

    Args:
        first: the first partition, which has files on each machine. Brokers create those of the others.
    """

    def __init__(
        self,
        processes: Processes,
        settings: Mapping[int, BrokerSettings],
        first: str,
        streams: Streams,
        kernel: Kernel,
        recorder: Recorder,
    ) -> None:
        self._processes = processes
        self._kernel = kernel
        self._recorder = recorder
        phases = streams("writeback")  # The flushers of different machines are independent.
        self.directories = {
            broker: LogDirectory(one.storage, [first], integer(phases, 0, one.storage.writeback_interval_us - 1))
            for broker, one in settings.items()
        }
        self._first = first
        self.storages: dict[int, Storage] = {
            broker: directory.storages[self._first] for broker, directory in self.directories.items()
        }
        self._lost: dict[tuple[int, str], list[Batch]] = {}

    # Damage.

    def lose_power(self, broker: int) -> bool:
        """Power off the machine: process and page cache are lost."""
        return self._damage(broker, steps.POWER_LOSS, partial(self._lose_power, broker))

    def _lose_power(self, broker: int) -> Mapping[str, list[Batch]]:
        now_us = self._kernel.now_us
        return {name: storage.power_lost(now_us) for name, storage in self.directories[broker].storages.items()}

    def replace_disk(self, broker: int) -> bool:
        """Replace the disk by an empty one: process, log and all checkpoint files are lost."""
        return self._damage(broker, steps.DISK_REPLACED, partial(self._replace_disk, broker))

    def _replace_disk(self, broker: int) -> Mapping[str, list[Batch]]:
        old = self.directories[broker]
        empty = self.directories[broker] = old.new_empty_disk()
        self.storages[broker] = empty.storages[self._first]
        return {name: storage.log.batches for name, storage in old.storages.items()}

    def corrupt_tail(self, broker: int, count: int) -> bool:
        """End the process and make the newest batches on its disk unreadable.

        False if none ran and nothing was lost, because the log is empty or was closed cleanly.
        """
        return self._damage(broker, steps.CORRUPT_TAIL, partial(self._corrupt_tail, broker, count))

    def _corrupt_tail(self, broker: int, count: int) -> Mapping[str, list[Batch]]:
        directory = self.directories[broker]
        synced = {name: storage.synced for name, storage in directory.storages.items()}
        lost = directory.corrupt_tails(count)
        for name, storage in directory.storages.items():
            if storage.synced < synced[name]:
                self._recorder.coverage.reached(probes.SYNCED_LOST)
                self._recorder.of(name).record(steps.Fact(steps.SYNCED_LOST, broker))
        return lost

    def _damage(self, broker: int, kind: steps.StepKind, loses: Loss) -> bool:
        """End the process, if one runs, and make the machine lose batches; False if neither happened."""
        if self._processes.end(broker, kind, loses):
            return True
        lost = self._note_lost(broker, kind, loses)
        marked = self.directories[broker].clean_shutdown
        self.record_end(broker, kind, lost, unclean=not marked, was_down=True)
        return any(lost.values())

    def record_end(
        self,
        broker: int,
        kind: steps.StepKind,
        lost: Mapping[str, list[Batch]],
        *,
        unclean: bool,
        was_down: bool = False,
    ) -> None:
        """Record the end of a process for each partition, with what its replica lost."""
        first = self._recorder
        first.record(steps.End(broker, kind, lost.get(self._first, []), unclean=unclean, was_down=was_down))
        for name, recorder in first.further.items():
            if not recorder.closed:
                recorder.record(steps.End(broker, kind, lost.get(name, []), unclean=unclean, was_down=was_down))

    # Stalls.

    def stall_disk(self, broker: int) -> bool:
        """Stall a disk: events that need the partition wait. False if no process serves, or the disk is stalled
        already.

        Appends, truncations and reads wait, and so do requests and responses about the partition. Sessions and the
        controller are not affected.
        """
        process = self._processes.running.get(broker)
        if process is None or process.first is None or process.disk_stalled_us is not None:
            return False
        process.disk_stalled_us = self._kernel.now_us
        process.stall(stalled=True)
        self._recorder.record_for_all(steps.Pause(steps.DISK_STALLED, broker))
        return True

    def unstall_disk(self, broker: int) -> bool:
        """Resume a stalled disk and deliver waiting events; False if it was not stalled."""
        process = self._processes.running.get(broker)
        if process is None or process.disk_stalled_us is None:
            return False
        process.disk_stalled_us = None
        self._recorder.record_for_all(steps.Pause(steps.DISK_WORKS, broker))
        process.perform(_resume_disk, process)
        return True

    # State left by processes.

    def loaded(self, process: Broker) -> None:
        """Note that a process has loaded its logs, which shows what was lost before."""
        broker = process.node
        for replica in process.replicas.values():
            step = steps.Recovered(broker, replica.partition, self._lost.pop((broker, replica.name), []))
            replica.recorder.record(step)
            step.release()

    def ended(self, process: Broker, kind: steps.StepKind, loses: Loss) -> Mapping[str, list[Batch]]:
        """Note the end of a process, whose files remain. `loses` makes the machine lose batches, which are returned by
        partition.
        """
        if process.first is not None:
            since_us = [process.frozen_us if process.frozen else None, process.disk_stalled_us, self._kernel.now_us]
            written_us = min(time for time in since_us if time is not None)
            for replica in process.replicas.values():
                self._close(process, replica, kind, written_us)
            if kind is steps.SHUTDOWN:
                process.directory.mark_clean(process.broker_epoch)
            elif kind is steps.EXIT:
                process.directory.mark_clean()
        elif kind is steps.SHUTDOWN:
            process.close_unloaded()
        return self._note_lost(process.node, kind, loses)

    def _close(self, process: Broker, replica: HostedReplica, kind: steps.StepKind, written_us: int) -> None:
        """Note how the end of a process, which wrote files until then, leaves those of a replica."""
        partition, storage = replica.partition, replica.storage
        if partition.state.pending:
            self._recorder.coverage.reached(probes.ISR_LOST)
        storage.process_ended(partition.hw, written_us)
        if kind is steps.SHUTDOWN:
            mutant = process.decide.mutants.clean_stop_without_flush
            mutant.took = True
            flushes = storage.is_flushed or not mutant.differs()
            storage.close_cleanly(partition.hw if process.checkpointing else None, flushes=flushes)
        elif kind is steps.EXIT:
            storage.close_cleanly(None)

    def _note_lost(self, broker: int, kind: steps.StepKind, loses: Loss) -> Mapping[str, list[Batch]]:
        """Make a machine lose batches, which are returned, and note what had been fsynced."""
        damaged = kind in _DISK_DAMAGE
        if not damaged:
            self._note_flushed(broker, damaged=False)
        lost = loses()
        if damaged:
            self._note_flushed(broker, damaged=True)
        for name, batches in lost.items():
            if batches:
                self._lost.setdefault((broker, name), []).extend(batches)
        return lost

    def _note_flushed(self, broker: int, *, damaged: bool) -> None:
        for name, storage in self.directories[broker].storages.items():
            count = min(storage.synced, len(storage.log.batches))
            self._recorder.of(name).record(steps.Flushed(broker, storage.log, count, damaged=damaged))

    def marked_clean(self, process: Broker) -> bool:
        """Whether the disk has the clean-shutdown marker of this process."""
        directory = self.directories[process.node]
        return directory.clean_shutdown and directory.clean_broker_epoch == process.broker_epoch >= 0


def _resume_disk(process: Broker) -> None:
    process.stall(stalled=False)
