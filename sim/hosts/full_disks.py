"""Log directories whose file systems have no space for a while."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sim.environment.storage import LogDirectory
from sim.hosts.broker import Broker
from sim.hosts.machines import Machines
from sim.kernel.scheduler import Kernel


class FullDisks:
    """Fails a log directory without space at the next write: before an append or a truncation, or with the next file of
    high watermarks. All that was written stays, and the next process uses the directory again, until its own first
    write.

    Kafka: UnifiedLog#append (3.9-4.4), Log#append (0.10.2-2.6), CheckpointFileWithFailureHandler#write (3.9-4.4),
    ReplicaManager#checkpointHighWatermarks.

    Args:
        machines: the machines of the brokers.
        running: the processes that run, by broker.
        kernel: the kernel.
        shut_down: shuts a broker down in a controlled way; False if none runs.
        start: starts a broker, unless it runs.
    """

    def __init__(
        self,
        machines: Machines,
        running: Mapping[int, Broker],
        kernel: Kernel,
        shut_down: Callable[[int], bool],
        start: Callable[[int], bool],
    ) -> None:
        self._machines = machines
        self._running = running
        self._kernel = kernel
        self._shut_down = shut_down
        self._start = start

    def fill(self, broker: int, place: int, by: object) -> bool:
        """Leave no space in the file system of a log directory, numbered from 1; False if it has none or has failed.
        `by` is the fault, see `free`.
        """
        directory = self._machines.directories[broker].all[place - 1]
        if directory.failed or directory.full_us >= 0:
            return False
        directory.full_us, directory.full_by = self._kernel.now_us, by
        process = self._running.get(broker)
        if process is not None and process.has_loaded:
            self._watch(process, directory)
        return True

    def process_loaded(self, process: Broker) -> None:
        """Let the machine note that a process has loaded its logs, and watch what it writes."""
        self._machines.loaded(process)
        for directory in process.live_directories:
            if directory.full_us >= 0:
                self._watch(process, directory)

    def _watch(self, process: Broker, directory: LogDirectory) -> None:
        if directory not in process.live_directories:
            return
        backlog = process.backlog
        backlog.fill(directory, lambda failed: self._fail(process, failed))
        next_us = process.replica_manager.next_hw_checkpoint_us()
        if next_us >= 0:
            backlog.write_checkpoint_at(next_us, directory)

    def _fail(self, process: Broker, directory: LogDirectory) -> None:
        place = process.directories.all.index(directory) + 1
        self._machines.fail_directory(process.node, place, by=directory.full_by)

    def process_ended(self, process: Broker) -> None:
        """Let the next process use the directories that this one has found without space."""
        for directory in process.directories.all:
            if directory.full_us >= 0:
                self._repair(process.node, directory.full_by)

    def _repair(self, broker: int, by: object) -> None:
        """Repair each of the directories that have failed because this fault filled them."""
        while self._machines.repair_directory(broker, replaced=False, by=by):
            pass

    def free(self, broker: int, by: object) -> None:
        """Give the log directories that a fault filled their space back, and start the broker if it is down, or again
        if it does not use them.
        """
        self._repair(broker, by)
        process = self._running.get(broker)
        unused = process is None
        for directory in self._machines.directories[broker].all:
            if directory.full_us < 0 or directory.full_by is not by:
                continue
            directory.full_us, directory.full_by = -1, None
            if process is None:
                continue
            if process.has_loaded and directory in process.backlog.full:
                process.backlog.free(directory)
            unused = unused or directory not in process.live_directories
        if unused:
            self._shut_down(broker)
            self._start(broker)
