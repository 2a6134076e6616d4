"""The machines that brokers run on: their disks, power losses, disk damage, stalls, and failing log directories."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from sim.environment.file_damage import (
    EPOCHS,
    MARKER,
    PARTITION_METADATA,
    SNAPSHOTS,
    FileDamage,
    damage_file,
    load_in_vain,
    repair_file,
)
from sim.environment.log_directories import LogDirectories
from sim.environment.storage import LogDirectory, Storage
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.broker import Broker
from sim.hosts.partition_backlog import DirectoryStall
from sim.hosts.process_files import ProcessFiles
from sim.hosts.settings import BrokerSettings
from sim.kernel.scheduler import Kernel
from sim.kernel.streams import Streams, integer
from sim.protocol import probes
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions

SILENT: Final = (steps.POWER_LOSS, steps.DISK_REPLACED)
"""Ends after which no TCP reset is sent."""
_DISK_DAMAGE: Final = (steps.DISK_REPLACED, steps.CORRUPT_TAIL, steps.DIRECTORY_REPLACED)
"""Ends after which fsynced batches may be gone."""


_Failure = tuple[object, int, LogDirectory]
"""The fault that failed a log directory (or None), the broker, and the directory."""
Loss = Callable[[], Mapping[str, list[Batch]]]
"""Makes a machine lose batches, which it returns by partition."""


class Processes(Protocol):
    """The broker processes; `running` has those that run, by broker."""

    running: dict[int, Broker]

    def end(self, broker: int, kind: steps.StepKind, loses: Loss) -> bool:
        """End a process at once and make its machine lose batches; False if none runs."""


class Machines:
    """One machine per broker, with the log directories `directories`. `storages` are the files of the first partition.
    The next process of a broker in `leaving` starts without this directory, and of one in `growing` with one more.

    Args:
        first: the first partition, which has files on each machine. Brokers create those of the others.
        place: number of the log directory with the files of the first partition.
    """

    def __init__(
        self,
        processes: Processes,
        settings: Mapping[int, BrokerSettings],
        first: str,
        streams: Streams,
        kernel: Kernel,
        recorder: Recorder,
        place: int = 1,
    ) -> None:
        self._processes = processes
        self._settings = settings
        self._kernel = kernel
        self._recorder = recorder
        self._files = ProcessFiles(kernel, recorder.coverage)
        phases = streams("writeback")  # The flushers of different machines are independent.
        self.directories = {
            broker: LogDirectories(
                one.storage,
                first,
                integer(phases, 0, one.storage.writeback_interval_us - 1),
                one.log_directories,
                place,
            )
            for broker, one in settings.items()
        }
        self._first = first
        self._lost: dict[tuple[int, str], list[Batch]] = {}
        self._failed_by: list[_Failure] = []
        self.leaving: dict[int, LogDirectory] = {}
        self.growing: set[int] = set()

    @property
    def storages(self) -> dict[int, Storage]:
        """The files of the first partition, by broker."""
        return {broker: directories.files(self._first) for broker, directories in self.directories.items()}

    # Damage.

    def lose_power(self, broker: int) -> bool:
        """Cut the power of the machine: process and page cache are lost.

        False if no process ran and nothing was lost.
        """
        return self._damage(broker, steps.POWER_LOSS, partial(self._lose_power, broker))

    def _lose_power(self, broker: int) -> Mapping[str, list[Batch]]:
        return self.directories[broker].power_lost(self._kernel.now_us)

    def replace_disk(self, broker: int) -> bool:
        """Replace all disks by empty ones: process, logs and checkpoint files are lost.

        False if no process ran and nothing was lost.
        """
        return self._damage(broker, steps.DISK_REPLACED, partial(self._replace_disk, broker))

    def _replace_disk(self, broker: int) -> Mapping[str, list[Batch]]:
        return self.directories[broker].replace_all()

    def replace_directory(self, broker: int, place: int) -> bool:
        """Kill the process, and replace the log directory of this number by an empty one with another id.

        False if no process ran and nothing was lost. Other directories keep their files.
        """
        directory = self.directories[broker].all[place - 1]
        ended = self._processes.end(broker, steps.KILL, dict)
        return self._lose_in(broker, directory, steps.DIRECTORY_REPLACED, was_down=True) or ended

    def corrupt_tail(self, broker: int, count: int, place: int = 0) -> bool:
        """End the process and make the newest batches of its logs unreadable; with `place` only of those in the log
        directory of this number.

        False if none ran and nothing was lost, because the log is empty or was closed cleanly.
        """
        if place:
            return self._corrupt_in(broker, self.directories[broker].all[place - 1], count)
        return self._damage(broker, steps.CORRUPT_TAIL, partial(self._corrupt_tail, broker, count))

    def _corrupt_tail(self, broker: int, count: int) -> Mapping[str, list[Batch]]:
        directories = self.directories[broker]
        synced = {name: storage.synced for name, storage in directories.storages.items()}
        lost = directories.corrupt_tails(count)
        self._note_synced_lost(broker, directories.storages, synced)
        return lost

    def _note_synced_lost(self, broker: int, storages: Mapping[str, Storage], before: Mapping[str, int]) -> None:
        """Record which logs have fewer fsynced batches than `before`."""
        for name, storage in storages.items():
            if storage.synced < before[name]:
                self._recorder.coverage.reached(probes.SYNCED_LOST)
                self._recorder.of(name).record(steps.Fact(steps.SYNCED_LOST, broker))

    def _corrupt_in(self, broker: int, directory: LogDirectory, count: int) -> bool:
        """Kill the process and make the newest batches in one log directory unreadable; see `corrupt_tail`."""
        ended = self._processes.end(broker, steps.KILL, dict)
        if directory.failed:
            return ended
        storages = directory.storages
        synced = {name: storage.synced for name, storage in storages.items()}
        lost = directory.corrupt_tails(count)
        self._note_synced_lost(broker, storages, synced)
        self._note_flushed(broker, storages, damaged=True)
        self._record_lost(broker, steps.CORRUPT_TAIL, lost, unclean=not directory.clean_shutdown)
        return any(lost.values()) or ended

    def _record_lost(
        self,
        broker: int,
        kind: steps.StepKind,
        lost: Mapping[str, list[Batch]],
        *,
        unclean: bool = True,
        was_down: bool = True,
        noted: bool = True,
    ) -> None:
        """Record an end of some replicas of a broker, with the batches that they lost. If these are `noted`, the next
        process finds that they are gone.
        """
        for name, batches in lost.items():
            if batches and noted:
                self._lost.setdefault((broker, name), []).extend(batches)
            recorder = self._recorder.of(name)
            if not recorder.closed:
                recorder.record(steps.End(broker, kind, batches, unclean=unclean, was_down=was_down))

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
        offline: Container[str] = (),
    ) -> None:
        """Record the end of a process for each partition, with the batches that its replica lost. Replicas that are
        `offline` have ended before.
        """
        first, down = self._recorder, was_down or self._first in offline
        first.record(steps.End(broker, kind, lost.get(self._first, []), unclean=unclean, was_down=down))
        for name, recorder in first.further.items():
            if not recorder.closed:
                down = was_down or name in offline
                recorder.record(steps.End(broker, kind, lost.get(name, []), unclean=unclean, was_down=down))

    # Log directories that fail.

    def place_of(self, broker: int, name: str, number: int) -> int:
        """The number of the log directory that a fault strikes: `number`, counted on from 1 if there are not so many.
        If it is 0, the one with the files of a partition; the first if there is none.
        """
        directories = self.directories[broker].all
        if number:
            return (number - 1) % len(directories) + 1
        return next((place for place, directory in enumerate(directories, 1) if name in directory.storages), 1)

    def fail_directory(self, broker: int, place: int, by: object = None) -> bool:
        """Fail a log directory, numbered from 1; a paused process notices when it resumes. False if it had failed.

        Data that had not been fsynced or written back is lost. The broker keeps serving the replicas in other
        directories; after the last one it exits. `by` is the fault, see `repair_directory`.
        Kafka: ReplicaManager.LogDirFailureHandler (1.1-4.4), ReplicaManager#handleLogDirFailure (1.1-4.4),
        LogManager#handleLogDirFailure (1.1-4.4).
        """
        directory = self.directories[broker].all[place - 1]
        if directory.failed:
            return False
        failure = by, broker, directory
        self._failed_by.append(failure)
        process = self._processes.running.get(broker)
        if process is None:
            self._lose_in(broker, directory, steps.DIRECTORY_FAILED, was_down=True)
        else:
            process.perform(self._directory_failed, (process, failure))
        return True

    def _directory_failed(self, entry: tuple[Broker, _Failure]) -> None:
        """Let a process notice that a log directory has failed, unless it was repaired while the process was paused."""
        process, failure = entry
        by, broker, directory = failure
        if directory.failed or failure not in self._failed_by:
            return
        if directory not in process.live_directories:
            self._lose_in(broker, directory, steps.DIRECTORY_FAILED, was_down=True)
            return
        stall = next((one for one in process.backlog.stalled if one.directory is directory), None)
        written_us = directory.checkpointable_us(self._files.written_us(process))
        if stall is not None:
            self._record_stall(stall, steps.DISK_WORKS, broker)
        for name in directory.storages:
            replica = process.replicas.get(name)
            if replica is not None:
                self._files.close(process, replica, steps.DIRECTORY_FAILED, written_us)
        for name, future in process.directories.futures.items():
            if name in directory.storages or future.directory is directory:
                process.directories.end_following(name, process.decide, self._kernel.now_us)
        process.replica_manager.stop_serving(directory)
        is_full = by is not None and by is directory.full_by
        self._lose_in(broker, directory, steps.DIRECTORY_FAILED, was_down=False, keeps=is_full)
        directory.stalled_us = -1
        if directory in process.backlog.full:
            process.backlog.free(directory)
        if stall is not None:
            process.backlog.directory_works(stall)  # Writes fail now.
        if process.live_directories:
            self._recorder.coverage.reached(probes.DIRECTORY_FAILS)
            process.report_failed(directory)
        else:
            self._recorder.coverage.reached(probes.LAST_DIRECTORY)
            if is_full:
                process.exit("no log directory has space")  # Its supervisor starts it again.
            else:
                self._processes.end(broker, steps.HALT, dict)

    def remove_directory(self, broker: int) -> None:
        """Take a directory out of ``log.dirs``, see `leaving`; not the last one that works."""
        directory, directories = self.leaving.pop(broker), self.directories[broker]
        if directory in directories.all and any(one is not directory for one in directories.online):
            self._lose_in(broker, directory, steps.DIRECTORY_REPLACED, was_down=True, removed=True)

    def _lose_in(
        self,
        broker: int,
        directory: LogDirectory,
        kind: steps.StepKind,
        *,
        was_down: bool,
        removed: bool = False,
        keeps: bool = False,
    ) -> bool:
        """Fail a directory, or replace or remove it; record the end of each replica, with its loss. Returns whether
        anything was lost. See `LogDirectories.fail` for `keeps`.
        """
        directories = self.directories[broker]
        damaged = kind in _DISK_DAMAGE
        names = list(directory.storages)
        if not damaged:
            self._note_flushed(broker, directory.storages, damaged=False)
        if removed:
            lost = directories.remove_directory(directory)
        elif damaged:
            lost = directories.replace(directory)
        else:
            lost = directories.fail(directory, self._kernel.now_us, keeps=keeps)
        if damaged:
            self._note_nothing_flushed(broker, names)
        of_names = {name: lost.get(name, []) for name in names}
        self._record_lost(broker, kind, of_names, was_down=was_down, noted=not removed)
        return any(of_names.values())

    def repair_directory(self, broker: int, *, replaced: bool, by: object = None) -> bool:
        """Repair the log directory that the fault `by` failed; it has its files, or if `replaced` none. False if there
        is none to repair. A running broker does not use the directory before its next start.
        """
        entry = next((one for one in self._failed_by if one[:2] == (by, broker)), None)
        if entry is None:
            return False
        self._failed_by.remove(entry)
        directory = entry[2]
        # Several faults may have failed the same directory of a paused process, or the machine has got new disks.
        if not directory.failed or directory not in self.directories[broker].all:
            return False
        if replaced:
            self._lose_in(broker, directory, steps.DIRECTORY_REPLACED, was_down=True)
        else:
            directory.failed = False
        return True

    def working_directories(self, broker: int) -> list[LogDirectory]:
        """The log directories of a machine without those that have failed, noticed by a paused process or not."""
        failing = [directory for _, node, directory in self._failed_by if node == broker]
        return [one for one in self.directories[broker].online if not any(one is other for other in failing)]

    def keeps_replica(self, broker: int, name: str) -> bool:
        """Whether a replica of a partition is in one of the `working_directories`, or in none."""
        directory = self.directories[broker].directory_of(name)
        return directory is None or any(one is directory for one in self.working_directories(broker))

    def offline_replicas(self, name: str, replicas: Sequence[int]) -> list[int]:
        """Those of a partition's replicas whose files are in log directories that have failed and were not repaired, or
        that their brokers do not create because the files might be there: their own directory was replaced.

        Kafka: Partition#createLogInAssignedDirectoryId (3.9-4.4).
        """
        if not self._failed_by:
            return []
        return [
            broker
            for broker in replicas
            if self.directories[broker].has_failed(name) or self._is_not_created(broker, name)
        ]

    def _is_not_created(self, broker: int, name: str) -> bool:
        """Whether a broker has no replica of a partition because one of its log directories has failed."""
        process = self._processes.running.get(broker)
        if process is None or name in process.replicas or name not in process.replica_manager.offline:
            return False
        return any(directory.failed for directory in self.directories[broker].all)

    def offline(self, process: Broker) -> list[str]:
        """The partitions whose replicas a process does not have, because their log directories have failed."""
        names = self.directories[process.node].names_outside(process.live_directories)
        return [name for name in names if name not in process.replicas]

    def started_without(self, process: Broker) -> None:
        """Record the end of each replica that a new process does not have, because its directory has failed."""
        self._recorder.coverage.reached(probes.STARTS_WITHOUT_DIRECTORY)
        for name in self.offline(process):
            recorder = self._recorder.of(name)
            if not recorder.closed:
                recorder.record(steps.End(process.node, steps.DIRECTORY_OFFLINE, [], unclean=True))

    # Damaged files.

    def damage_file(self, broker: int, damage: FileDamage, decide: Decisions) -> bool:
        """Damage a file of a broker that is down, whose next process has these rules. False if the broker has no such
        file, or its next process reads the same.
        """
        directory = self.directories[broker].directory_of(damage.name)
        if directory is None or directory.failed:
            return False
        outcome = damage_file(directory, damage, decide)
        if not outcome.effective:
            return False
        if outcome.fails:
            for other in self.directories[broker].online if outcome.stops else ():
                if other is not directory:
                    load_in_vain(other, decide)
                    self._fail_with_file(broker, other, damage)
            self._fail_with_file(broker, directory, damage)
        of_replica = damage.file in (EPOCHS, PARTITION_METADATA, SNAPSHOTS)
        if outcome.lost:
            self._note_nothing_flushed(broker, [damage.name])
            self._lost.setdefault((broker, damage.name), []).extend(outcome.lost)
        for name in [damage.name] if of_replica else list(directory.storages):
            recorder = self._recorder.of(name)
            if not recorder.closed:
                # A marker that is old or half written has another broker epoch, or none: the controller reads it.
                unclean = bool(outcome.lost) or damage.file == MARKER or not directory.clean_shutdown
                lost = outcome.lost if name == damage.name else []
                recorder.record(steps.FileDamaged(broker, damage.file, damage.damage, lost, unclean=unclean))
        return True

    def _fail_with_file(self, broker: int, directory: LogDirectory, damage: FileDamage) -> None:
        directory.failed = True
        self._failed_by.append((damage.by, broker, directory))

    def repair_file(self, broker: int, damage: FileDamage, decide: Decisions) -> bool:
        """Repair the log directories that failed over a half-written file; False if that did not happen."""
        entries = [one for one in self._failed_by if one[:2] == (damage.by, broker)]
        repaired = False
        for _, _, directory in entries:
            if self.repair_directory(broker, replaced=False, by=damage.by):
                repair_file(directory, damage, decide)
                repaired = True
        return repaired

    # Stalls.

    def stall_disk(self, broker: int) -> bool:
        """Stall a disk: events that need the partition wait. False if no process serves, or the disk is stalled
        already.

        Appends, truncations and reads wait, and so do requests and responses about the partition. Sessions and the
        controller are not affected.
        """
        process = self._processes.running.get(broker)
        if process is None or not process.has_loaded or process.disk_stalled_us is not None:
            return False
        process.disk_stalled_us = self._kernel.now_us
        process.backlog.stall(stalled=True)
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

    def stall_directory(self, broker: int, place: int, by: object = None) -> bool:
        """Stall a log directory: what writes to it waits, and so does the metadata after a change of a replica there.
        False if no process serves with this directory, or the directory or the whole disk is stalled already.

        Reads go on, as from the page cache, and so does everything about replicas in other directories. `by` is the
        fault, see `unstall_directory`.
        """
        process = self._processes.running.get(broker)
        directory = self.directories[broker].all[place - 1]
        if process is None or not process.has_loaded or not process.ready or process.disk_stalled_us is not None:
            return False
        if directory.stalled_us >= 0 or directory not in process.live_directories:
            return False
        directory.stalled_us = self._kernel.now_us
        stall = DirectoryStall(directory, by, [name for name in directory.storages if name in process.replicas])
        self._record_stall(stall, steps.DISK_STALLED, broker)
        process.backlog.stall_directory(stall)
        self._recorder.coverage.reached(probes.DIRECTORY_STALLS)
        return True

    def unstall_directory(self, broker: int, by: object = None) -> bool:
        """End the stall of a log directory by this fault and deliver waiting events; False if there is none."""
        process = self._processes.running.get(broker)
        stall = None if process is None else next((one for one in process.backlog.stalled if one.by is by), None)
        if process is None or stall is None:
            return False
        stall.directory.stalled_us = -1
        self._record_stall(stall, steps.DISK_WORKS, broker)
        process.perform(_resume_directory, (process, stall))
        return True

    def _record_stall(self, stall: DirectoryStall, kind: steps.StepKind, broker: int) -> None:
        for name in stall.names:
            recorder = self._recorder.of(name)
            if not recorder.closed:
                recorder.record(steps.Pause(kind, broker))

    # State left by processes.

    def loaded(self, process: Broker) -> None:
        """Note that a process has loaded its logs, which shows what was lost before."""
        broker = process.node
        for replica in process.replicas.values():
            lost = self._lost.pop((broker, replica.name), [])
            if lost and process.directories.are_several:
                lost = replica.partition.log.missing(lost)  # A future replica has replaced the log.
            step = steps.Recovered(broker, replica.partition, lost)
            replica.recorder.record(step)
            step.release()

    def ended(self, process: Broker, kind: steps.StepKind, loses: Loss) -> Mapping[str, list[Batch]]:
        """Note the end of a process, whose files remain. `loses` makes the machine lose batches, which are returned by
        partition.
        """
        if process.has_loaded:
            self._files.close_all(process, kind)
            writable = [one for one in process.live_directories if one not in process.backlog.full]
            if kind is steps.SHUTDOWN:
                for directory in writable:
                    directory.mark_clean(process.broker_epoch)
            elif kind is steps.EXIT:
                for directory in writable:
                    directory.mark_clean()
        elif kind is steps.SHUTDOWN:
            process.close_unloaded()
        lost = self._note_lost(process.node, kind, loses)
        for stall in process.backlog.stalled:
            stall.directory.stalled_us = -1
        return lost

    def _note_lost(self, broker: int, kind: steps.StepKind, loses: Loss) -> Mapping[str, list[Batch]]:
        """Make a machine lose batches, and record which batches of each log had been fsynced. Returns the lost ones."""
        damaged = kind in _DISK_DAMAGE
        storages = self.directories[broker].storages
        names = list(storages)
        if not damaged:
            self._note_flushed(broker, storages, damaged=False)
        lost = loses()
        if damaged:
            left = self.directories[broker].storages
            self._note_flushed(broker, left, damaged=True)
            self._note_nothing_flushed(broker, [name for name in names if name not in left])
        for name, batches in lost.items():
            if batches:
                self._lost.setdefault((broker, name), []).extend(batches)
        return lost

    def _note_flushed(self, broker: int, storages: Mapping[str, Storage], *, damaged: bool) -> None:
        for name, storage in storages.items():
            count = min(storage.synced, len(storage.log.batches))
            most = storage.most_unflushed
            flushed = steps.Flushed(broker, storage.log, count, damaged=damaged, most_unflushed=most)
            self._recorder.of(name).record(flushed)

    def _note_nothing_flushed(self, broker: int, names: Iterable[str]) -> None:
        """Record that the disk has lost these logs."""
        for name in names:
            log = Storage(self._settings[broker].storage).log
            self._recorder.of(name).record(steps.Flushed(broker, log, 0, damaged=True))

    def marked_clean(self, process: Broker) -> bool:
        """Whether the disk has the clean-shutdown marker of this process."""
        directories = self.directories[process.node]
        return directories.clean_shutdown and directories.clean_broker_epoch == process.broker_epoch >= 0


def _resume_disk(process: Broker) -> None:
    process.backlog.stall(stalled=False)


def _resume_directory(entry: tuple[Broker, DirectoryStall]) -> None:
    process, stall = entry
    if stall in process.backlog.stalled:  # The directory has not failed meanwhile.
        process.backlog.directory_works(stall)
