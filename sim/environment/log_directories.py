"""The log directories of one machine (``log.dirs``), each of which may fail alone.

Each directory has its own files and its own clean-shutdown marker (`sim.environment.storage.LogDirectory`). Directories
are numbered from 1 in the order of ``log.dirs``. The id of a directory (`LogDirectory.number`) is stored on its disk:
a directory that comes back empty has a new id (``meta.properties``, KIP-858).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sim.environment.storage import LogDirectory, Storage, StorageSettings
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.log.log import Log
from sim.protocol.messages import NO_BROKER_EPOCH


class FutureReplica:
    """A copy that is being made of a log in another directory of its broker (KIP-113): the files ``NAME.ID-future``.

    Attributes:
        directory: the directory of the copy.
        copied_us: when it has caught up with the log, which it follows from then on.
        storage: its files while it does not follow the log: a quota holds it back, or the process or the log's
            directory has ended. Otherwise None.
        leo: the LEO of these files when it last followed the log, less what the log has truncated since.
    """

    __slots__ = ("copied_us", "directory", "leo", "storage")

    def __init__(self, directory: LogDirectory, copied_us: int) -> None:
        self.directory = directory
        self.copied_us = copied_us
        self.storage: Storage | None = None
        self.leo = 0

    def lacks_of(self, log: Log) -> list[Batch]:
        """The batches of a log that its files do not have."""
        assert self.storage is not None
        return self.storage.log.missing(log.batches)

    def log_truncated(self, offset: int, now_us: int) -> None:
        """The log was truncated to an offset, and so are files that do not follow it: no quota delays that.

        Kafka: AbstractFetcherManager#markPartitionsForTruncation (1.1-4.4), ReplicaAlterLogDirsThread#truncate
        (2.6-4.4).
        """
        storage = self.storage
        if storage is not None and storage.log.leo > offset:
            storage.log.truncate_to(offset)
            storage.truncated(now_us)
            self.leo = offset


class LogDirectories:
    """The log directories of a machine.

    Args:
        settings: settings of the disks.
        name: the partition that has files from the start.
        writeback_phase_us: time of the kernel's first write-back.
        count: number of directories.
        place: the number of the directory with the files of `name`.

    Attributes:
        all: the directories in the order of ``log.dirs``.
        futures: the future replicas, by partition.
        throttled: whether a quota holds future replicas back once they have caught up
            (``replica.alter.log.dirs.io.max.bytes.per.second``).
        lost: the batches of removed directories, by partition, until a process creates the replica anew.
    """

    __slots__ = ("_next_id", "_settings", "all", "futures", "lost", "throttled")

    def __init__(
        self, settings: StorageSettings, name: str, writeback_phase_us: int = 0, count: int = 1, place: int = 1
    ) -> None:
        self._settings = settings
        self._next_id = count
        self.futures: dict[str, FutureReplica] = {}
        self.throttled = False
        self.lost: dict[str, list[Batch]] = {}
        self.all = [
            LogDirectory(settings, (name,) if number == place else (), writeback_phase_us, number - 1)
            for number in range(1, count + 1)
        ]

    @property
    def online(self) -> list[LogDirectory]:
        """The directories that work. Kafka: LogManager#liveLogDirs (1.1-4.4)."""
        return [directory for directory in self.all if not directory.failed]

    @property
    def are_several(self) -> bool:
        """Whether there is more than one."""
        return len(self.all) > 1

    @property
    def cordoned(self) -> tuple[int, ...]:
        """The ids of the cordoned directories that work. Kafka: LogManager#cordonedLogDirs (4.3-4.4)."""
        return tuple([directory.number for directory in self.all if directory.cordoned and not directory.failed])

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the directories that work. Kafka: LogManager#directoryIds (3.9-4.4)."""
        return tuple([directory.number for directory in self.all if not directory.failed])

    def names_outside(self, live: Sequence[LogDirectory]) -> list[str]:
        """The partitions with files in directories that a process does not use; it uses those in `live`."""
        if len(live) == len(self.all):
            return []
        return [name for directory in self.all if directory not in live for name in directory.storages]

    # Files of replicas.

    @property
    def storages(self) -> Mapping[str, Storage]:
        """The files of each replica, by partition."""
        if len(self.all) == 1:
            return self.all[0].storages
        return {name: storage for directory in self._working_last() for name, storage in directory.storages.items()}

    def _working_last(self) -> list[LogDirectory]:
        """All directories. A failed one may have files of a replica that was created again in one that works."""
        return [*[directory for directory in self.all if directory.failed], *self.online]

    def directory_of(self, name: str) -> LogDirectory | None:
        """The directory with the files of a replica; None without any. One that has failed may have others, from before
        the replica was created again.
        """
        found = None
        for directory in self.all:
            if name in directory.storages:
                if not directory.failed:
                    return directory
                found = directory
        return found

    def has_failed(self, name: str) -> bool:
        """Whether the directory with the files of a replica has failed."""
        directory = self.directory_of(name)
        return directory is not None and directory.failed

    def files(self, name: str) -> Storage:
        """The files of a replica; empty ones if there is none."""
        directory = self.directory_of(name)
        return Storage(self._settings) if directory is None else directory.storages[name]

    def log(self, name: str) -> Log:
        """The log of a replica; an empty one if there is none."""
        directory = self.directory_of(name)
        return Log() if directory is None else directory.storages[name].log

    def add(self, name: str, directory: LogDirectory) -> Storage:
        """Create the files of a replica in a directory. Files of that name elsewhere, which never had a record, are
        deleted.
        """
        self.remove(name)
        return directory.add(name)

    def remove(self, name: str) -> None:
        """Delete the files of a replica and of its copy; a directory that has failed keeps them."""
        if self.futures:
            self.futures.pop(name, None)
        for directory in self.online:
            directory.storages.pop(name, None)

    def move(self, name: str, directory: LogDirectory, now_us: int) -> None:
        """Move the files of a replica to another directory. Kafka: LogManager#replaceCurrentWithFutureLog (1.1-4.4)."""
        source = self.directory_of(name)
        assert source is not None
        storage = directory.storages[name] = source.storages.pop(name)
        storage.moved(now_us)
        self.futures.pop(name, None)

    def end_following(self, name: str, decide: Decisions, now_us: int) -> Storage | None:
        """Let a future replica follow its log no longer: its files stay as they are. Returns them; None if it had not
        caught up.
        """
        future = self.futures[name]
        if future.storage is None and future.copied_us <= now_us:
            current = self.files(name)
            kept = current.epoch_checkpoint.entries
            epochs = current.log.epoch_starts()
            if epochs != kept and decide.carries_epochs.yes():
                epochs = kept[:]
            future.storage = current.future_copy(epochs, future.copied_us)
            future.leo = current.log.leo
        return future.storage

    def recover_future(self, name: str) -> tuple[list[Batch], Storage]:
        """Rename the files of a future replica to those of the replica, in place of the files that it has in another
        directory. Returns the batches of these, and the new files.

        Kafka: LogManager#recoverAbandonedFutureLogs (3.9-4.4).
        """
        future = self.futures.pop(name)
        assert future.storage is not None
        source = self.directory_of(name)
        former = [] if source is None else source.storages.pop(name).log.batches
        future.directory.storages[name] = future.storage
        return former, future.storage

    # Markers of clean shutdowns.

    @property
    def clean_shutdown(self) -> bool:
        """Whether all directories work and have the marker."""
        return all(directory.clean_shutdown and not directory.failed for directory in self.all)

    @property
    def clean_broker_epoch(self) -> int:
        """The broker epoch in the markers; `NO_BROKER_EPOCH` if a directory has failed or has none, or if they differ.
        They are read before the logs are loaded, also in a directory that fails then.

        Kafka: LogManager#readBrokerEpochFromCleanShutdownFiles (3.9-4.4).
        """
        return _common(
            directory.epoch_before_failure if directory.failed else directory.clean_broker_epoch
            for directory in self.all
        )

    @property
    def used_broker_epoch(self) -> int:
        """The broker epoch in the markers of the directories that work and are not new; `NO_BROKER_EPOCH` if one has
        none, or if they differ.
        """
        return _common(directory.clean_broker_epoch for directory in self.online if not directory.is_new)

    def forget_epochs_before_failure(self) -> None:
        """A process has read the markers: later ones do not use the directories that fail now."""
        for directory in self.all:
            directory.epoch_before_failure = NO_BROKER_EPOCH

    # Damage.

    def power_lost(self, now_us: int) -> dict[str, list[Batch]]:
        """Lose what the machine had not written when its power failed; returns the lost batches by partition."""
        for future in self.futures.values():
            if future.storage is not None:
                future.storage.power_lost(future.directory.writable_us(now_us))
        return {name: lost for directory in self._working_last() for name, lost in directory.power_lost(now_us).items()}

    def corrupt_tails(self, count: int) -> dict[str, list[Batch]]:
        """See `LogDirectory.corrupt_tails`; directories that have failed stay as they are."""
        lost: dict[str, list[Batch]] = {}
        for directory in self.online:
            lost.update(directory.corrupt_tails(count))
        return lost

    def fail(self, directory: LogDirectory, now_us: int, *, keeps: bool = False) -> dict[str, list[Batch]]:
        """Fail a directory. Nothing more is written to it, so data that had not been fsynced or written back is lost,
        unless the disk `keeps` it, because only space lacks. Returns the lost batches by partition. A marker, which a
        broker that is down has left, stays: it was fsynced (CleanShutdownFileHandler#write).
        """
        directory.failed = True
        if keeps:
            return {}
        for future in self.futures.values():
            if future.storage is not None and future.directory is directory:
                future.storage.power_lost(directory.writable_us(now_us))
        return directory.power_lost(now_us)

    def abandon(self, name: str, live: Sequence[LogDirectory]) -> list[Batch]:
        """Delete the old files of a replica, whose directory is not among those that its process uses (`live`), because
        the replica is created anew in one of these. An operator has to delete them when the old directory is repaired:
        Kafka does not start with the replica in two directories. Returns the lost batches.

        Kafka: LogManager#loadLog (1.1-4.4).
        """
        for directory in self.all:
            if directory not in live and name in directory.storages:
                return directory.storages.pop(name).log.batches
        return []

    def add_directory(self) -> None:
        """Add an empty directory to ``log.dirs``, last in order, without a clean-shutdown marker."""
        added = self.all[0].new_empty_disk(self._next_id, keeps_names=False)
        added.cordoned = False
        self.all.append(added)
        self._next_id += 1

    def remove_directory(self, directory: LogDirectory) -> dict[str, list[Batch]]:
        """Take a directory out of ``log.dirs``; returns the batches in it by partition, which are in `lost`, too."""
        self.all.remove(directory)
        lost = self._lose(directory)
        self.lost.update(lost)
        return lost

    def replace(self, directory: LogDirectory) -> dict[str, list[Batch]]:
        """Replace a directory by an empty one; returns the lost batches by partition."""
        empty = directory.new_empty_disk(self._next_id, keeps_names=not self.are_several)
        self._next_id += 1
        self.all[self.all.index(directory)] = empty
        return self._lose(directory)

    def _lose(self, directory: LogDirectory) -> dict[str, list[Batch]]:
        """Drop the future replicas of a directory that is gone; returns the batches that were in it by partition."""
        self.futures = {name: future for name, future in self.futures.items() if future.directory is not directory}
        return {name: storage.log.batches for name, storage in directory.storages.items()}

    def replace_all(self) -> dict[str, list[Batch]]:
        """Replace each directory by an empty one; returns the lost batches by partition."""
        lost: dict[str, list[Batch]] = {}
        for directory in self.all[:]:
            lost.update(self.replace(directory))
        return lost


def next_directory(live: Sequence[LogDirectory], held: Iterable[str]) -> LogDirectory:
    """The directory for a new log: the one with the fewest logs among those that a process uses and that are not
    cordoned, the first if there are several; if all are cordoned, the first. `held` are the partitions of which the
    broker has a replica.

    Kafka: LogManager#nextLogDirs (2.6-4.4).
    """
    names = set(held)
    best, fewest = live[0], -1
    for directory in [one for one in live if not one.cordoned]:
        count = len(names.intersection(directory.storages))
        if fewest < 0 or count < fewest:
            best, fewest = directory, count
    return best


def _common(epochs: Iterable[int]) -> int:
    """The broker epoch in markers; `NO_BROKER_EPOCH` if they differ, or without any."""
    found = set(epochs)
    return found.pop() if len(found) == 1 else NO_BROKER_EPOCH
