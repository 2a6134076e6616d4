"""The files of a broker's replicas, in the state in which an end of the process leaves them."""

from __future__ import annotations

from sim.history import steps
from sim.history.coverage import Coverage
from sim.hosts.broker import Broker
from sim.hosts.hosted_replica import HostedReplica
from sim.kernel.scheduler import Kernel
from sim.protocol import probes


class ProcessFiles:
    """See the module."""

    __slots__ = ("_coverage", "_kernel")

    def __init__(self, kernel: Kernel, coverage: Coverage) -> None:
        self._kernel = kernel
        self._coverage = coverage

    def written_us(self, process: Broker) -> int:
        """When a process last could write its files: before its pause or its disk's stall, otherwise now."""
        since_us = [process.frozen_us if process.frozen else None, process.disk_stalled_us, self._kernel.now_us]
        return min(time for time in since_us if time is not None)

    def close_all(self, process: Broker, kind: steps.StepKind) -> None:
        """Close the files of all replicas, those of future replicas included."""
        written_us = self.written_us(process)
        for replica in process.replicas.values():
            self.close(process, replica, kind, self._written_in(process, replica, written_us))
        if process.directories.futures:
            self._close_futures(process, kind)

    def _written_in(self, process: Broker, replica: HostedReplica, written_us: int) -> int:
        """When the files of a replica could be written last; `written_us` without a stall of its log directory,
        or a lack of space there.
        """
        if process.backlog.is_partial:
            directory = process.directories.directory_of(replica.name)
            if directory is not None:
                return directory.checkpointable_us(written_us)
        return written_us

    def close(self, process: Broker, replica: HostedReplica, kind: steps.StepKind, written_us: int) -> None:
        """Close the files of a replica; see `written_us`."""
        partition, storage = replica.partition, replica.storage
        if partition.state.pending:
            self._coverage.reached(probes.ISR_LOST)
        storage.process_ended(partition.hw, written_us)
        if process.backlog.full and process.directories.directory_of(replica.name) in process.backlog.full:
            return  # Each file that a controlled shutdown writes needs space.
        if kind is steps.SHUTDOWN:
            flushes = not process.decide.mutants.clean_stop_without_flush.when(not storage.is_flushed)
            writes_hw = process.replica_manager.checkpointing
            storage.close_cleanly(partition.hw if writes_hw else None, flushes=flushes)
        elif kind is steps.EXIT:
            storage.close_cleanly(None)

    def _close_futures(self, process: Broker, kind: steps.StepKind) -> None:
        directories = process.directories
        for name in directories.futures:
            storage = directories.end_following(name, process.decide, self._kernel.now_us)
            replica = process.replicas.get(name)
            if storage is not None and replica is not None and kind in (steps.SHUTDOWN, steps.EXIT):
                writes_hw = process.replica_manager.checkpointing and kind is steps.SHUTDOWN
                storage.close_cleanly(min(replica.partition.hw, storage.log.leo) if writes_hw else None)
