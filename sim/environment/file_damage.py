"""Damage to one file of a log directory while no process runs, and what the next process reads in its place.

A file is lost, replaced by its former version (a restored backup or snapshot of the disk), or half written: the rename
is done and only the first lines are there. An empty checkpoint reads like a lost one (CheckpointFile#read). What a
process does with the file depends on the file and the release:

- Without ``leader-epoch-checkpoint`` the epoch cache is empty. Recovery after an unclean shutdown adds the epochs of
  the segments that it scans, from the one with the recovery point on; after a clean shutdown nothing does.
- Without an entry in ``replication-offset-checkpoint`` the HW begins at the log start; without one in
  ``recovery-point-offset-checkpoint`` every segment is scanned after an unclean shutdown; without one in
  ``log-start-offset-checkpoint`` the log begins with its first segment.
- Without the clean-shutdown marker recovery scans the log, and the shutdown counts as unclean.
- KRaft takes a log without ``partition.metadata`` for a stray one: it renames the log, and begins an empty one (rule
  ``missing_topic_id``; not in 3.5).
- Without any producer snapshot the producer state is empty after a clean shutdown, and rebuilt from the log otherwise.
  A half-written one is deleted; if it was the only one, the log is read.
- A half-written checkpoint fails its log directory from 1.0 on (rule ``unreadable_checkpoint``). LogManager#loadLogs
  catches the error of two of them and means to go on, but the directory is on its way to LogDirFailureHandler by then.
  The process has read the broker epoch in the marker, and registers with it.
- A half-written ``partition.metadata`` ends the process, also if other directories work: its topic id is missing or too
  short, which is no IOException (PartitionMetadataReadBuffer), and LogManager#loadLogs catches no others.

Kafka: CheckpointFileWithFailureHandler#read (3.9-4.4), PartitionMetadataFile#read (3.9-4.4), LogManager#loadLogs.
"""

from __future__ import annotations

from typing import Final

from sim.environment.storage import LogDirectory, PeriodicFile, RecoveryError, Storage
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.messages import NO_BROKER_EPOCH

EPOCHS: Final = "leader-epoch-checkpoint"
HW: Final = "replication-offset-checkpoint"
RECOVERY_POINT: Final = "recovery-point-offset-checkpoint"
LOG_START: Final = "log-start-offset-checkpoint"
MARKER: Final = ".kafka_cleanshutdown"
PARTITION_METADATA: Final = "partition.metadata"
SNAPSHOTS: Final = "producer-snapshot"
FILES: Final = (EPOCHS, HW, RECOVERY_POINT, LOG_START, MARKER, PARTITION_METADATA, SNAPSHOTS)
"""The files that may be damaged; plans have their numbers, from 1. The first and the last two belong to one replica."""
LOST: Final = "lost"
OLD: Final = "old"
HALF_WRITTEN: Final = "half-written"


class FileDamage:
    """Damage to a file.

    Attributes:
        file: one of `FILES`.
        damage: `LOST`, `OLD` or `HALF_WRITTEN`.
        name: the partition, of whose replica or log directory the file is.
        by: the fault.
    """

    __slots__ = ("by", "damage", "file", "name")

    def __init__(self, file: str, damage: str, name: str, by: object) -> None:
        self.file = file
        self.damage = damage
        self.name = name
        self.by = by


class Outcome:
    """What damage did.

    Attributes:
        effective: whether the next process reads something else.
        fails: whether its log directory fails.
        stops: whether the next process ends over it, also with other log directories.
        lost: the batches of a log that is taken for a stray one.
    """

    __slots__ = ("effective", "fails", "lost", "stops")

    def __init__(
        self, *, effective: bool, fails: bool = False, stops: bool = False, lost: list[Batch] | None = None
    ) -> None:
        self.effective = effective
        self.fails = fails
        self.stops = stops
        self.lost: list[Batch] = lost or []


NOTHING: Final = Outcome(effective=False)


def damage_file(directory: LogDirectory, damage: FileDamage, decide: Decisions) -> Outcome:
    """Damage a file of a log directory that works; `decide` are the rules of the next process."""
    file, how = damage.file, damage.damage
    storage = directory.storages[damage.name]
    if file == MARKER:
        return Outcome(effective=_damage_marker(directory, how))
    if file == PARTITION_METADATA:
        return _damage_partition_metadata(directory, damage, decide)
    if file == SNAPSHOTS:
        producers = storage.log.producers
        half_writes = how == HALF_WRITTEN
        return Outcome(
            effective=producers.half_write_snapshot()
            if half_writes
            else producers.lose_snapshots(all_of_them=how == LOST)
        )
    if how == HALF_WRITTEN:
        return _half_write(directory, damage, decide)
    if file == EPOCHS:
        checkpoint = storage.epoch_checkpoint
        entries = checkpoint.before if how == OLD else []
        if entries == checkpoint.entries or not decide.answers_epochs.yes():  # 0.10.2 has no such file.
            return NOTHING
        checkpoint.damage(entries)
        return Outcome(effective=True)
    effective = False
    for each in directory.storages.values():
        kept = _checkpoint(each, file)
        content = kept.before if how == OLD else None
        if content != kept.content:
            effective = True
            kept.content = content
            if file == LOG_START:
                each.start_before_damage = max(each.start_before_damage, each.log.log_start)
    return Outcome(effective=effective)


def repair_file(directory: LogDirectory, damage: FileDamage, decide: Decisions) -> None:
    """Delete a half-written checkpoint, whose name the error has; ``partition.metadata`` is written anew.

    A process that fails has already taken the marker (KAFKA-10471, 2.8), or fails after that (up to 2.7, except over a
    leader-epoch-checkpoint).
    """
    directory.epoch_before_failure = NO_BROKER_EPOCH
    if damage.file != PARTITION_METADATA and damage.name in directory.storages:
        damage_file(directory, FileDamage(damage.file, LOST, damage.name, damage.by), decide)


def _checkpoint(storage: Storage, file: str) -> PeriodicFile:
    if file == HW:
        return storage.hw_file
    return storage.recovery_point_file if file == RECOVERY_POINT else storage.log_start_file


def _damage_marker(directory: LogDirectory, how: str) -> bool:
    """Damage the clean-shutdown marker. Its former version is that of the clean shutdown before, even if the last
    shutdown was unclean. One that is half written is a marker without a broker epoch.

    Kafka: CleanShutdownFileHandler#read (3.9-4.4), CleanShutdownFileHandler#exists (3.9-4.4).
    """
    before = directory.clean_shutdown, directory.clean_broker_epoch
    if how == LOST:
        directory.clean_shutdown = False
        directory.clean_broker_epoch = NO_BROKER_EPOCH
    elif how == HALF_WRITTEN:
        directory.clean_broker_epoch = NO_BROKER_EPOCH
    else:
        directory.restore_marker()
        if not before[0]:  # The end was unclean, so there may be no snapshot.
            for storage in directory.storages.values():
                storage.log.producers.are_snapshots_lost |= not storage.log.producers.snapshots
    return before != (directory.clean_shutdown, directory.clean_broker_epoch)


def _damage_partition_metadata(directory: LogDirectory, damage: FileDamage, decide: Decisions) -> Outcome:
    """Damage ``partition.metadata``, which never changes, and exists from 2.8 on: in the modes with KRaft.

    Kafka: LogManager#isStrayKraftReplica (3.9-4.2), BrokerMetadataPublisher#initializeManagers (3.9-4.4).
    """
    if damage.damage == OLD or not decide.has_quorum.yes():
        return NOTHING
    if damage.damage == HALF_WRITTEN:
        return _half_write(directory, damage, decide)
    if not decide.takes_for_stray.yes():
        return NOTHING
    stray = directory.storages[damage.name]
    directory.add(damage.name).keep_entries_of(stray)
    return Outcome(effective=True, lost=stray.log.batches)


def _half_write(directory: LogDirectory, damage: FileDamage, decide: Decisions) -> Outcome:
    """Half write a file. Up to 0.10.2 only the recovery point is read at the start, and its error ignored; a HW file
    that cannot be read, over which requests fail there, is not modelled.
    """
    file, storages = damage.file, directory.storages
    if file == EPOCHS:
        has_entries = bool(storages[damage.name].epoch_checkpoint.entries) and decide.answers_epochs.yes()
    else:
        has_entries = file == PARTITION_METADATA or any(
            _checkpoint(each, file).content is not None for each in storages.values()
        )
    if not has_entries:
        return NOTHING
    if not decide.fails_on_unreadable_checkpoint.yes():
        if file != RECOVERY_POINT:
            return NOTHING
        repair_file(directory, damage, decide)
        return Outcome(effective=True)
    if file in (HW, RECOVERY_POINT, LOG_START):
        repair_file(directory, damage, decide)
    if decide.has_quorum.yes() or file != EPOCHS:
        epoch = directory.clean_broker_epoch
        load_in_vain(directory, decide, without=damage.name if file == EPOCHS else "")
        directory.epoch_before_failure = epoch
    return Outcome(effective=True, fails=True, stops=file == PARTITION_METADATA)


def load_in_vain(directory: LogDirectory, decide: Decisions, *, without: str = "") -> None:
    """Take the marker and load the logs of a directory, as a process does that ends, or fails the directory, only when
    it has tried to load all logs; one of them (`without`) fails before. A log that it renames is not made anew.

    Kafka: LogManager#loadLogs.
    """
    clean = directory.take_marker()
    for name, storage in directory.storages.items():
        if name != without and not storage.is_renamed:
            try:
                storage.recover(decide, clean=clean)
            except RecoveryError:
                return
