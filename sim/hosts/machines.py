"""The machines that brokers run on: their disks, and what power losses, damage and stalls do to these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol

from sim.environment.storage import Storage
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.broker import Broker
from sim.hosts.settings import BrokerSettings
from sim.kernel.scheduler import Kernel
from sim.kernel.streams import Streams, integer
from sim.protocol import probes
from sim.protocol.batch import Batch

SILENT: Final = (steps.POWER_LOSS, steps.DISK_REPLACED)
"""Ends that take the machine along: nobody resets its connections."""


class Processes(Protocol):
    """The broker processes.

    Attributes:
        running: those that run, by broker.
    """

    running: dict[int, Broker]

    def end(self, broker: int, kind: steps.StepKind, loses: Callable[[], list[Batch]]) -> bool:
        """End a process at once, and let its machine lose batches; False if none runs."""


class Machines:
    """One machine a broker.

    Args:
        processes: what runs on them.
        settings: settings of each broker.
        streams: chance.
        kernel: time.
        recorder: where ends and what they lost are noted.

    Attributes:
        storages: the disks, by broker.
    """

    def __init__(
        self,
        processes: Processes,
        settings: Mapping[int, BrokerSettings],
        streams: Streams,
        kernel: Kernel,
        recorder: Recorder,
    ) -> None:
        self._processes = processes
        self._kernel = kernel
        self._recorder = recorder
        phases = streams("writeback")  # Flushers of different machines have nothing to do with each other.
        self.storages = {
            broker: Storage(one.storage, integer(phases, 0, one.storage.writeback_interval_us - 1))
            for broker, one in settings.items()
        }
        self._lost: dict[int, list[Batch]] = {broker: [] for broker in settings}

    # Damage.

    def lose_power(self, broker: int) -> bool:
        """The machine goes off: process and page cache are gone."""
        return self._damage(broker, steps.POWER_LOSS, partial(self.storages[broker].power_lost, self._kernel.now_us))

    def replace_disk(self, broker: int) -> bool:
        """The machine dies and gets an empty disk: process, log and all checkpoint files are gone."""
        return self._damage(broker, steps.DISK_REPLACED, partial(self._replace_disk, broker))

    def _replace_disk(self, broker: int) -> list[Batch]:
        old = self.storages[broker]
        self.storages[broker] = old.anew()
        return old.log.batches

    def corrupt_tail(self, broker: int, count: int) -> bool:
        """The process ends, and the newest batches on its disk are unreadable.

        False if none ran and nothing is lost, because there is nothing or because the log was closed cleanly.
        """
        return self._damage(broker, steps.CORRUPT_TAIL, partial(self._corrupt_tail, broker, count))

    def _corrupt_tail(self, broker: int, count: int) -> list[Batch]:
        storage = self.storages[broker]
        synced = storage.synced
        lost = storage.corrupt_tail(count)
        if storage.synced < synced:
            self._recorder.coverage.reached(probes.SYNCED_LOST)
            self._recorder.record(steps.Fact(steps.SYNCED_LOST, broker))
        return lost

    def _damage(self, broker: int, kind: steps.StepKind, loses: Callable[[], list[Batch]]) -> bool:
        """End the process, if one runs, and let the machine lose batches; False if neither happened."""
        if self._processes.end(broker, kind, loses):
            return True
        lost = loses()
        self._lost[broker] += lost
        marked = self.storages[broker].clean_shutdown
        self._recorder.record(steps.End(broker, kind, lost, unclean=not marked, was_down=True))
        return bool(lost)

    # Stalls.

    def stall_disk(self, broker: int) -> bool:
        """A disk does not answer: what needs the partition waits. False if no process serves, or it stalls already.

        Appends, truncations and reads stand still, with them requests and answers about the partition. Sessions and the
        controller live on.
        """
        process = self._processes.running.get(broker)
        if process is None or process.partition is None or process.disk_stalled_us is not None:
            return False
        process.disk_stalled_us = self._kernel.now_us
        process.stall(stalled=True)
        self._recorder.record(steps.Pause(steps.DISK_STALLED, broker))
        return True

    def unstall_disk(self, broker: int) -> bool:
        """It answers again, and what waited goes on; False if it did not stall."""
        process = self._processes.running.get(broker)
        if process is None or process.disk_stalled_us is None:
            return False
        process.disk_stalled_us = None
        self._recorder.record(steps.Pause(steps.DISK_WORKS, broker))
        process.perform(_go_on, process)
        return True

    # What processes leave behind.

    def loaded(self, process: Broker) -> None:
        """A process has loaded its logs: what was lost before shows now."""
        broker = process.node
        assert process.partition is not None
        self._recorder.record(steps.Recovered(broker, process.partition, self._lost[broker]))
        self._lost[broker] = []

    def ended(self, process: Broker, kind: steps.StepKind, loses: Callable[[], list[Batch]]) -> list[Batch]:
        """A process is over: its files are as it left them.

        Args:
            process: the process.
            kind: how it ended.
            loses: what the machine loses at that, if anything.

        Returns:
            What it lost.
        """
        storage = self.storages[process.node]
        partition = process.partition
        if partition is not None:
            if partition.state.pending:
                self._recorder.coverage.reached(probes.ISR_LOST)
            since_us = [process.frozen_us if process.frozen else None, process.disk_stalled_us, self._kernel.now_us]
            storage.process_ended(partition.hw, min(time for time in since_us if time is not None))
            if kind is steps.SHUTDOWN:
                storage.close_cleanly(partition.hw if process.checkpointing else None, process.broker_epoch)
            elif kind is steps.EXIT:
                storage.close_cleanly(None)
        elif kind is steps.SHUTDOWN:
            process.close_unloaded()
        lost = loses()
        self._lost[process.node] += lost
        return lost

    def marked_clean(self, process: Broker) -> bool:
        """Whether the disk says that this process, and none after it, was shut down cleanly."""
        storage = self.storages[process.node]
        return storage.clean_shutdown and storage.clean_broker_epoch == process.broker_epoch >= 0


def _go_on(process: Broker) -> None:
    process.stall(stalled=False)
