"""Two log directories of a broker: Kafka's LogManager against `LogDirectories`, `LogDirectory` and `Storage`.

Operations: ``start`` (a process loads the logs of the directories that work), ``stop broker-epoch`` (in order),
``crash``, ``checkpoint`` (recovery points and log starts are written), ``fail directory``, ``mend directory`` (it
works for the next process; empty if the other one has one of its logs), ``create partition directory``, ``append
partition count epoch rolls producer sequence`` (a follower's; -1: of no idempotent producer), ``hw partition offset``,
``begin partition offset`` (the log start moves up, as far as the HW), ``truncate partition offset`` and
``truncate-fully partition offset`` (unless it is empty), ``delete partition`` (the HW files are written, too), and
between two processes ``damage file how partition``: a file of a partition or of the directory in which it is, as
`sim.environment.file_damage` has them, is lost, half written, or as it was before the operation that last changed its
entries. To be seen are the broker epoch that a process finds in the markers, of each directory its marker and its
checkpoint files, and of each log its directory, recovery point, log start, LEO, HW, leader epochs, batches, and
producers with their last sequence. After damage the directories are not seen until the next start, when a process
meets it. Of a log without its ``partition.metadata`` no other file is damaged, and of its directory none half written.
A missing marker is not restored: Kafka would skip recovery after a crash, trust index files that end in preallocated
zeros, and may fail to roll after a truncation (BufferOverflowException in TimeIndex.maybeAppend).
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

from sim.environment.file_damage import (
    EPOCHS,
    FILES,
    HALF_WRITTEN,
    HW,
    LOG_START,
    LOST,
    MARKER,
    OLD,
    PARTITION_METADATA,
    RECOVERY_POINT,
    SNAPSHOTS,
    FileDamage,
    damage_file,
    load_in_vain,
    repair_file,
)
from sim.environment.log_directories import LogDirectories
from sim.environment.storage import INITIAL_DELAY_US, LogDirectory, Storage, StorageSettings
from sim.protocol.batch import NO_SEQUENCE, Batch
from sim.protocol.decisions import Decisions
from sim.protocol.log import producer_state_manager
from sim.protocol.replica.partition_host import PartitionHost
from sim.protocol.replica.replica import Replica
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Operation, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection

    from sim.protocol.rules import Rules

NEVER: Final = 1 << 60
INTERVAL_US: Final = 60_000_000
SETTINGS: Final = StorageSettings(NEVER, NEVER, NEVER, NEVER, 1, NEVER, NEVER, INTERVAL_US, INTERVAL_US, INTERVAL_US)
DIRECTORIES: Final = 2
PARTITIONS: Final = 3
PRODUCERS: Final = 2
CHECKPOINTS: Final = {HW: "hw_file", RECOVERY_POINT: "recovery_point_file", LOG_START: "log_start_file"}


class Driver(PartitionHost):
    """A machine with two log directories, and the process on it, as `sim.hosts` has them."""

    def __init__(self, rules: Rules, imitated: Collection[str]) -> None:
        self._rules = rules
        self._writes_all = "neighbours-recovery-points" in imitated
        self._directories = LogDirectories(SETTINGS, "", count=DIRECTORIES, place=0)
        for directory in self._directories.all:
            directory.clean_shutdown = False
        self._now_us = 0
        self._loaded_us = 0
        self._runs = False
        self._replicas: dict[str, Replica] = {}
        self._rolls = False
        self._former: dict[tuple[int, str, str], tuple[Any, Any]] = {}
        """(directory, file, partition) -> entries, and those before."""
        self._unreadable: dict[int, FileDamage] = {}
        """Directories that will fail with the next process."""
        self._is_damaged = False
        self._stray: set[str] = set()
        """Logs that the next process takes for stray ones."""

    # The replicas' host.

    def _storage(self, replica: Replica) -> Storage:
        return self._directories.files(replica.name)

    def appended(self, replica: Replica, batch: Batch) -> None:
        """See `PartitionHost`."""
        self._storage(replica).appended(batch, self._now_us)
        if self._rolls:
            self._rolls = False
            self._storage(replica).roll(batch, self._now_us)

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """See `PartitionHost`."""
        self._storage(replica).truncated(self._now_us)

    def _write_all(self, name: str, *, log_starts: bool = False) -> None:
        """Write the files of the directory of a replica, if Kafka is imitated: recovery points, and log starts."""
        directory = self._directories.directory_of(name)
        if self._writes_all and directory is not None:
            for storage in directory.storages.values():
                storage.recovery_point_file.content = storage.recovery_point
                start = storage.log.log_start
                if log_starts:
                    storage.log_start_file.content = start if start > storage.log.segments[0] else None

    def _write_hws(self) -> None:
        """Write the HW files, because a replica is deleted."""
        for replica in self._replicas.values():
            self._storage(replica).hw_file.content = replica.hw

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """See `PartitionHost`."""

    def log_start_moved(self, replica: Replica) -> None:
        """See `PartitionHost`."""
        self._storage(replica).log_start_moved(self._now_us)

    def reached(self, probe: int) -> None:
        """See `PartitionHost`."""

    # Operations.

    def do(self, operation: Operation) -> list[Any]:
        """Run one operation; the visible state after it."""
        name, *values = operation
        answer = None
        if name == "start":
            answer = self._start()
        elif name in ("stop", "crash", "fail", "mend", "damage"):
            getattr(self, f"_{name}")(*values)
        elif self._runs:
            self._change(name, *values)
        if self._runs:
            self._note_entries()
        return [answer, self._runs, *map(self._files, self._directories.all), *map(self._log, range(PARTITIONS))]

    def _files(self, directory: LogDirectory) -> Any:
        if self._is_damaged or directory.failed:
            return "damaged" if self._is_damaged else "failed"
        marker = directory.clean_broker_epoch if directory.clean_shutdown else None
        known = sorted((int(name), storage) for name, storage in directory.storages.items())
        files = [
            [[name, getattr(storage, CHECKPOINTS[file]).content] for name, storage in known]
            for file in (RECOVERY_POINT, LOG_START, HW)
        ]
        return [marker, *([one for one in file if one[1] is not None] for file in files)]

    def _log(self, number: int) -> Any:
        replica = self._replicas.get(str(number))
        if replica is None:
            return None
        log, storage = replica.log, self._storage(replica)
        directory = self._directories.directory_of(replica.name)
        assert directory is not None
        place = self._directories.all.index(directory)
        epochs = [[epoch, start] for epoch, start in replica.epochs.entries]
        batches = [[batch.base_offset, batch.last_offset, batch.leader_epoch] for batch in log.batches]
        kept = [one for one in batches if one[1] >= log.log_start]
        newest = [producer_state_manager.latest_batches(log, producer)[:1] for producer in range(PRODUCERS)]
        producers = [[batch.producer_id, batch.base_sequence + batch.count - 1] for found in newest for batch in found]
        return [place, storage.recovery_point, log.log_start, log.leo, replica.hw, epochs, kept, producers]

    # Damage.

    def _note_entries(self) -> None:
        """Note the entries of each file, and those before its last change."""
        for number, directory in enumerate(self._directories.all):
            if directory.failed:
                continue
            found: dict[tuple[int, str, str], Any] = {}
            for file in CHECKPOINTS:
                contents = {name: getattr(one, CHECKPOINTS[file]).content for name, one in directory.storages.items()}
                found[number, file, ""] = {name: content for name, content in contents.items() if content is not None}
            for name in map(str, range(PARTITIONS)):
                storage = directory.storages.get(name)
                found[number, EPOCHS, name] = list(storage.epoch_checkpoint.entries) if storage else []
            for key, entries in found.items():
                known, former = self._former.get(key, (None, None))
                self._former[key] = (entries, former if entries == known or not (entries or known) else known)

    def _damage(self, file: str, how: str, partition: int) -> None:
        """Damage a file; one that is old is as it was before an operation changed it."""
        if self._runs:
            return
        self._is_damaged = True
        name = str(partition)
        directory = self._directories.directory_of(name)
        if directory is None or directory.failed:
            return
        number = self._directories.all.index(directory)
        if number in self._unreadable or (file == MARKER and how == OLD and not directory.clean_shutdown):
            return
        if how == OLD and file in CHECKPOINTS:
            _, former = self._former.get((number, file, ""), (None, None))
            for each, storage in directory.storages.items():
                getattr(storage, CHECKPOINTS[file]).before = (former or {}).get(each)
        elif how == OLD and file == EPOCHS:
            _, former = self._former.get((number, file, name), (None, None))
            directory.storages[name].epoch_checkpoint.before = former or []
        if name in self._stray and file in (EPOCHS, PARTITION_METADATA, SNAPSHOTS):
            return
        if how == HALF_WRITTEN and file not in (SNAPSHOTS, MARKER) and self._stray & directory.storages.keys():
            return
        if file == PARTITION_METADATA and how == LOST:
            self._stray.add(name)
        damage = FileDamage(file, how, name, None)
        if damage_file(directory, damage, Decisions(self._rules)).fails:
            self._unreadable[number] = damage

    def _start(self) -> int | str | None:
        """As `ReplicaManager.load`."""
        if self._runs or not self._directories.online:
            return None
        self._is_damaged = False
        self._loaded_us = self._now_us
        for number, damage in sorted(self._unreadable.items()):
            if damage.file == PARTITION_METADATA:
                return self._not_started(number, damage)
        for number in self._unreadable:
            self._directories.all[number].failed = True
        epoch = self._directories.clean_broker_epoch
        self._directories.forget_epochs_before_failure()
        if not self._directories.online:
            return epoch
        self._runs = True
        self._stray.clear()
        for directory in self._directories.online:
            clean = directory.take_marker()
            for name, storage in directory.storages.items():
                self._use(name, storage, clean=clean)
        return epoch

    def _not_started(self, number: int, damage: FileDamage) -> str:
        """The process has taken the markers; an operator mends the file."""
        self._is_damaged = True
        for directory in self._directories.online:
            if directory is not self._directories.all[number]:
                load_in_vain(directory, Decisions(self._rules))
        repair_file(self._directories.all[number], damage, Decisions(self._rules))
        del self._unreadable[number]
        return "fails"

    def _use(self, name: str, storage: Storage, *, clean: bool) -> None:
        log, epochs, hw = storage.recover(Decisions(self._rules), clean=clean)
        self._replicas[name] = Replica(name, log, epochs, hw, Decisions(self._rules), self)
        storage.log_manager_started(self._now_us, self._loaded_us)
        storage.begin_hw_checkpoints(self._loaded_us + INITIAL_DELAY_US, self._now_us)

    def _stop(self, broker_epoch: int) -> None:
        if self._runs:
            for replica in self._replicas.values():
                self._storage(replica).process_ended(replica.hw, self._now_us)
                self._storage(replica).close_cleanly(replica.hw)
            for directory in self._directories.online:
                directory.mark_clean(broker_epoch)
            self._end()

    def _crash(self) -> None:
        for replica in self._replicas.values():
            self._storage(replica).process_ended(replica.hw, self._now_us)
        self._end()

    def _end(self) -> None:
        self._runs = False
        self._replicas.clear()

    def _fail(self, number: int) -> None:
        directory = self._directories.all[number]
        if number in self._unreadable and not directory.failed:
            return
        if directory.failed or (self._runs and len(self._directories.online) < DIRECTORIES):
            return
        for name in directory.storages:
            if name in self._replicas:
                self._storage(self._replicas[name]).process_ended(self._replicas[name].hw, self._now_us)
                del self._replicas[name]
        directory.failed = True

    def _mend(self, number: int) -> None:
        directory, other = self._directories.all[number], self._directories.all[1 - number]
        if self._runs or not directory.failed:
            return
        directory.failed = False
        if number in self._unreadable:
            repair_file(directory, self._unreadable.pop(number), Decisions(self._rules))
        if directory.storages.keys() & other.storages.keys():
            self._directories.all[number] = directory.new_empty_disk(DIRECTORIES, keeps_names=False)
            self._former = {key: entries for key, entries in self._former.items() if key[0] != number}

    def _change(self, name: str, *values: Any) -> None:
        if name == "checkpoint":
            self._now_us += INTERVAL_US
            for replica in self._replicas.values():
                self._storage(replica).catch_up(replica.hw, self._now_us)
            return
        partition = str(values[0])
        if name == "create":
            directory = self._directories.all[values[1]]
            if not directory.failed and partition not in self._replicas:
                self._use(partition, directory.add(partition), clean=True)
        elif partition in self._replicas:
            self._change_log(name, self._replicas[partition], *values[1:])

    def _change_log(self, name: str, replica: Replica, *values: Any) -> None:
        match name:
            case "append":
                count, epoch, rolls, producer, sequence = values
                log = replica.log
                self._rolls = rolls and log.data_end > log.segments[-1]
                which = (producer, 0, sequence) if producer >= 0 else NO_SEQUENCE
                replica.append_fetched(Batch(log.leo, log.leo + count - 1, epoch, 0, which))
            case "hw":
                replica.set_hw(values[0])
            case "begin":
                replica.advance_log_start(values[0])
            case "truncate" if replica.log.leo > replica.log.log_start:
                is_truncated = values[0] < replica.log.leo
                replica.truncate_to(values[0])
                if is_truncated:  # Even if no batch is gone, because data ended below.
                    self._write_all(replica.name)
            case "truncate-fully" if replica.log.leo > replica.log.log_start:
                replica.truncate_fully(values[0])
                self._write_all(replica.name)
            case "truncate" | "truncate-fully":
                pass
            case "delete":
                self._write_all(replica.name, log_starts=True)
                self._write_hws()
                del self._replicas[replica.name]
                self._directories.remove(replica.name)
            case _:
                raise ValueError(f"unknown operation {name!r}")


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    driver = Driver(rules, imitated)
    return [driver.do(operation) for operation in case]


class Drawing:
    """Draws a case, tracking roughly its state."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._epochs = [0] * PARTITIONS
        self._ends: list[list[int]] = [[0] for _ in range(PARTITIONS)]
        self._epoch = 0
        self._damaging = Random(rng.getstate()[1][1])
        """A stream of its own."""
        self._damages = self._damaging.random() < 0.6
        self._sequences: dict[tuple[int, int], int] = {}
        self.case: Case = []

    def draw(self) -> Case:
        """Successive processes."""
        rng = self._rng
        for number in range(rng.randint(2, 4)):
            self.case.append(["start"])
            for partition in range(PARTITIONS):
                if rng.random() < (0.8 if number == 0 else 0.3):
                    self.case.append(["create", partition, rng.randrange(DIRECTORIES)])
            for _ in range(rng.randint(0, 10)):
                self._step()
            self._between()
        self.case.append(["start"])
        return self.case

    def _between(self) -> None:
        """The process ends; a directory may fail, or work again."""
        rng = self._rng
        self._epoch += rng.choice((0, 1))
        self.case.append(["stop", self._epoch] if rng.random() < 0.5 else ["crash"])
        for directory in range(DIRECTORIES):
            if rng.random() < 0.1:
                self.case.append(["fail", directory])
            if rng.random() < 0.5:
                self.case.append(["mend", directory])
        while self._damages and self._damaging.random() < 0.5:
            how = self._damaging.choice((LOST, OLD, HALF_WRITTEN))
            self.case.append(["damage", self._damaging.choice(FILES), how, self._damaging.randrange(PARTITIONS)])

    def _step(self) -> None:
        rng = self._rng
        partition = rng.randrange(PARTITIONS)
        ends = self._ends[partition]
        roll = rng.random()
        if roll < 0.5:
            self._epochs[partition] += rng.choice((0, 0, 1))
            count = rng.choice((1, 2, 3))
            ends.append(ends[-1] + count)
            append = ["append", partition, count, self._epochs[partition], rng.random() < 0.3]
            self.case.append([*append, *self._sequence(partition, count)])
        elif roll < 0.62:
            self.case.append(["checkpoint"])
        elif roll < 0.72:
            self.case.append(["hw", partition, ends[-1]])
            self.case.append(["begin", partition, rng.choice(ends)])
        elif roll < 0.84:
            del ends[rng.randint(1, len(ends)) :]
            self.case.append(["truncate", partition, ends[-1]])
        elif roll < 0.88:
            ends[:] = [ends[-1] + rng.choice((0, 1, 3))]
            self.case.append(["truncate-fully", partition, ends[-1]])
        elif roll < 0.94:
            ends[:] = [0]
            self.case.append(["delete", partition])
            if rng.random() < 0.7:
                self.case.append(["create", partition, rng.randrange(DIRECTORIES)])
        else:
            self.case.append(["fail", rng.randrange(DIRECTORIES)])

    def _sequence(self, partition: int, count: int) -> tuple[int, int]:
        """A producer and its next sequence, or none."""
        producer = self._damaging.randrange(-1, PRODUCERS)
        if producer < 0:
            return -1, -1
        sequence = self._sequences.get((partition, producer), 0)
        self._sequences[partition, producer] = sequence + count
        return producer, sequence


def draw(rng: Random, release: str) -> Case:
    """See `Subject.draw`."""
    return Drawing(rng).draw()


SUBJECT: Final = Subject(
    "log-directories",
    "highwater.LogDirectoriesSubject",
    since("3.9.0"),
    draw,
    run,
    quick=30,
    usual=200,
    deep=2_000,
    uses=("batches", "logs"),
    names_brokers=True,
    recorded=25_000,
)
