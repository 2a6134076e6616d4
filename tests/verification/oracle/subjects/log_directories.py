"""Two log directories of a broker: Kafka's LogManager against `LogDirectories`, `LogDirectory` and `Storage`.

Operations: ``start`` (a process loads the logs of the directories that work), ``stop broker-epoch`` (in order),
``crash``, ``checkpoint`` (recovery points and log starts are written), ``fail directory``, ``mend directory`` (it works
for the next process; empty if the other one has one of its logs), ``create partition directory``, ``append partition
count epoch rolls`` (a follower's), ``hw partition offset``, ``begin partition offset`` (the log start moves up, as far
as the HW), ``truncate partition offset`` and ``truncate-fully partition offset`` (unless it is empty), ``delete
partition``. To be seen are the broker epoch that a process finds in the markers, of each directory its marker and its
checkpoint files, and of each log its directory, recovery point, log start, LEO, HW, leader epochs and batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.environment.log_directories import LogDirectories
from sim.environment.storage import LogDirectory, Storage, StorageSettings
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.replica.partition_host import PartitionHost
from sim.protocol.replica.replica import Replica
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Operation, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.protocol.rules import Rules

NEVER: Final = 1 << 60
INTERVAL_US: Final = 60_000_000
SETTINGS: Final = StorageSettings(NEVER, NEVER, NEVER, NEVER, 1, NEVER, NEVER, NEVER, INTERVAL_US, INTERVAL_US)
DIRECTORIES: Final = 2
PARTITIONS: Final = 3


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
        if removed:
            self._write_all(replica.name)

    def _write_all(self, name: str, *, log_starts: bool = False) -> None:
        """Write the files of the directory of a replica, if Kafka is imitated: recovery points, and log starts."""
        directory = self._directories.directory_of(name)
        if self._writes_all and directory is not None:
            for storage in directory.storages.values():
                storage.recovery_point_file.content = storage.recovery_point
                start = storage.log.log_start
                if log_starts:
                    storage.log_start_file.content = start if start > storage.log.segments[0] else None

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
        elif name in ("stop", "crash", "fail", "mend"):
            getattr(self, f"_{name}")(*values)
        elif self._runs:
            self._change(name, *values)
        return [answer, self._runs, *map(self._files, self._directories.all), *map(self._log, range(PARTITIONS))]

    def _files(self, directory: LogDirectory) -> Any:
        if directory.failed:
            return "failed"
        marker = directory.clean_broker_epoch if directory.clean_shutdown else None
        known = sorted((int(name), storage) for name, storage in directory.storages.items())
        recovery_points = [[name, storage.recovery_point_file.content] for name, storage in known]
        log_starts = [[name, storage.log_start_file.content] for name, storage in known]
        return [marker, *([one for one in file if one[1] is not None] for file in (recovery_points, log_starts))]

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
        return [place, storage.recovery_point, log.log_start, log.leo, replica.hw, epochs, kept]

    def _start(self) -> int | None:
        """As `ReplicaManager.load`."""
        if self._runs or not self._directories.online:
            return None
        self._runs = True
        self._loaded_us = self._now_us
        epoch = self._directories.clean_broker_epoch
        for directory in self._directories.online:
            clean = directory.take_marker()
            for name, storage in directory.storages.items():
                self._use(name, storage, clean=clean)
        return epoch

    def _use(self, name: str, storage: Storage, *, clean: bool) -> None:
        """A log has no HW before one is loaded."""
        log, epochs, _ = storage.recover(Decisions(self._rules), clean=clean)
        self._replicas[name] = Replica(name, log, epochs, 0, Decisions(self._rules), self)
        storage.log_manager_started(self._now_us, self._loaded_us)

    def _stop(self, broker_epoch: int) -> None:
        if self._runs:
            for replica in self._replicas.values():
                self._storage(replica).process_ended(replica.hw, self._now_us)
                self._storage(replica).close_cleanly(None)
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
        if directory.storages.keys() & other.storages.keys():
            self._directories.all[number] = directory.new_empty_disk(DIRECTORIES, keeps_names=False)

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
                count, epoch, rolls = values
                log = replica.log
                self._rolls = rolls and log.data_end > log.segments[-1]
                replica.append_fetched(Batch(log.leo, log.leo + count - 1, epoch, 0))
            case "hw":
                replica.set_hw(values[0])
            case "begin":
                replica.advance_log_start(values[0])
            case "truncate" if replica.log.leo > replica.log.log_start:
                replica.truncate_to(values[0])
            case "truncate-fully" if replica.log.leo > replica.log.log_start:
                replica.truncate_fully(values[0])
            case "truncate" | "truncate-fully":
                pass
            case "delete":
                self._write_all(replica.name, log_starts=True)
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

    def _step(self) -> None:
        rng = self._rng
        partition = rng.randrange(PARTITIONS)
        ends = self._ends[partition]
        roll = rng.random()
        if roll < 0.5:
            self._epochs[partition] += rng.choice((0, 0, 1))
            count = rng.choice((1, 2, 3))
            ends.append(ends[-1] + count)
            self.case.append(["append", partition, count, self._epochs[partition], rng.random() < 0.3])
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
