"""Parts of cases for drivers: rules, logs and epoch caches as given, and a host that records calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sim.config import resolve
from sim.environment.storage import LogDirectory, Storage
from sim.hosts.settings import broker_settings
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochCheckpointFile, LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import (
    NO_EPOCH,
    Ask,
    FetchRequest,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    Position,
    ProduceRequest,
)
from sim.protocol.modes import MODES
from sim.protocol.replica.isr import UNREGISTERED
from sim.protocol.replica.partition import Partition
from sim.protocol.replica.partition_host import PartitionHost
from sim.protocol.replica.replica import Replica
from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread
from sim.protocol.rules import Rules
from tests.verification.conformance.cases import TableError

KIP101: Final = MODES["kip101"].rules
LATEST: Final = MODES["kip320"].rules.override({"truncate_at_leo": "drops-epochs"})
"""The newest ZooKeeper rules, with the one fix of a later release that the tables show (KAFKA-10706)."""
ALTER_PARTITION: Final = LATEST.override(
    {"isr_update": "alter-partition", "isr_eligibility": "alive", "hw_needs_min_isr": "yes"}
)
"""What later releases made of leaders, whose ISR changes go to the controller."""
KRAFT: Final = MODES["kraft"].rules
LEADER: Final = 1
FOLLOWER: Final = 2

Entry = tuple[int, int]


SYMBOLIC_EPOCH: Final = 5
"""Stands for a table's ``E``."""


def epoch_of(value: int | str | None) -> int:
    """A number, nothing, or ``E`` with something added.

    Raises:
        TableError: it is something else.
    """
    if value is None:
        return NO_EPOCH
    if isinstance(value, int):
        return value
    symbol, change = value.split()[0][:1], value.split()[0][1:]
    if symbol != "E" or change.lstrip("+-") != change[1:]:
        raise TableError(f"epoch {value!r} is not understood")
    return SYMBOLIC_EPOCH + int(change or 0)


def record_id(offset: int, epoch: int) -> int:
    """Records are equal if offset and leader epoch are: tables name no content."""
    return epoch * 1_000_000 + offset


def batches_of(log: Iterable[Iterable[int]]) -> list[Batch]:
    """From a table's [[base offset, last offset, leader epoch], ...]."""
    return [Batch(base, last, epoch, record_id(base, epoch)) for base, last, epoch in log]


def records(count: int, epoch: int) -> list[Batch]:
    """So many batches of one record each."""
    return batches_of((offset, offset, epoch) for offset in range(count))


def shown(batches: Iterable[Batch]) -> list[list[int]]:
    """Batches as tables write them."""
    return [[batch.base_offset, batch.last_offset, batch.leader_epoch] for batch in batches]


def make_log(batches: list[Batch], *, start: int | None = None, leo: int | None = None, log: Log | None = None) -> Log:
    """A log as given. Its start defaults to its first record's offset, its LEO to the end of its data."""
    log = log or Log()
    log.batches = list(batches)
    log.lasts = [batch.last_offset for batch in batches]
    log.log_start = (batches[0].base_offset if batches else 0) if start is None else start
    log.reload()
    log.leo = log.leo if leo is None else leo
    return log


def entries_of(batches: Iterable[Batch]) -> list[Entry]:
    """Epoch entries of a log written in order."""
    starts: dict[int, int] = {}
    for batch in batches:
        starts.setdefault(batch.leader_epoch, batch.base_offset)
    return list(starts.items())


def make_cache(entries: Iterable[Iterable[int]], *, strict: bool = True) -> LeaderEpochFileCache:
    """A cache that was loaded from a checkpoint file with these entries."""
    checkpoint = LeaderEpochCheckpointFile()
    checkpoint.write([(epoch, start) for epoch, start in entries])
    return LeaderEpochFileCache(checkpoint, strict=strict)


def entries_answering(answers: Mapping[str, Any], asked: int, latest: int, leo: int) -> tuple[list[Entry], bool]:
    """Entries of a cache, and whether it is strict, that give one of a test double's canned answers.

    Test doubles answer look-ups from a table that no one cache could give as a whole (`own_end_offset_for`), so a
    cache is made for the one look-up that the reply under test leads to. Only the older cache has no answer below its
    first entry.

    Raises:
        TableError: no cache gives that answer.
    """
    answer = answers.get(str(asked), [asked, leo] if asked == latest else _MISSING)
    if answer is None:
        return [(latest, 0)], asked > latest
    if answer is _MISSING:
        raise TableError(f"nothing says how the follower answers for epoch {asked}")
    found, end = answer
    if found == latest and end == leo:
        return [(latest, 0)], True
    if found <= asked and 0 < end <= leo:
        # A test double's latest epoch may contradict its answers; then a later one ends the epoch that was found.
        return [(found, 0), (max(latest, asked + 1), end)], True
    raise TableError(f"no epoch cache with latest epoch {latest} answers {asked} with {answer}")


_MISSING: Final = object()


def make_directory() -> LogDirectory:
    """A machine's empty log directory, with default settings and one replica."""
    return LogDirectory(broker_settings(resolve()).storage, ("0",))


def make_storage() -> Storage:
    """The files of a replica in an empty log directory, with default settings."""
    (storage,) = make_directory().storages.values()
    return storage


def fill(storage: Storage, batches: list[Batch]) -> None:
    """Write batches to a disk's page cache."""
    storage.log = make_log(batches)
    for batch in batches:
        storage.appended(batch, 0)


class RecordingHost(PartitionHost):
    """Stands in for the broker: does nothing, and records calls.

    Attributes:
        truncations: (partition, LEO after it) of each truncation, also of those that removed nothing.
        settlements: partitions whose truncation was completed.
        hw_moves: (partition, new HW).
        answers: errors and offsets that producers were answered.
        halted: why the broker exited.
    """

    def __init__(self) -> None:
        self.truncations: list[tuple[str, int]] = []
        self.settlements: list[str] = []
        self.hw_moves: list[tuple[str, int]] = []
        self.answers: list[tuple[str, int]] = []
        self.halted: str | None = None

    def appended(self, replica: Replica, batch: Batch) -> None:
        """See `PartitionHost`."""

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """See `PartitionHost`."""
        self.truncations.append((replica.name, replica.log.leo))

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """See `PartitionHost`."""
        self.hw_moves.append((replica.name, replica.hw))

    def log_start_moved(self, replica: Replica) -> None:
        """See `PartitionHost`."""

    def replicated(self, partition: Partition, follower: int, leo: int) -> None:
        """See `PartitionHost`."""

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """See `PartitionHost`."""

    def is_alive(self, broker: int) -> bool:
        """See `PartitionHost`."""
        return True

    def registered_epoch(self, broker: int) -> int:
        """See `PartitionHost`."""
        return UNREGISTERED

    def answer_produce(self, request: ProduceRequest, error: str, base_offset: int) -> None:
        """See `PartitionHost`."""
        self.answers.append((error, base_offset))

    def send_fetch(
        self, fetcher: ReplicaFetcherThread, positions: list[Position], leader_epochs: list[int]
    ) -> FetchRequest:
        """See `FetcherHost`."""
        return FetchRequest(FOLLOWER, LEADER, FOLLOWER, 1, positions, leader_epochs)

    def send_epoch_end(
        self, fetcher: ReplicaFetcherThread, asks: list[Ask], leader_epochs: list[int], *, with_epoch: bool
    ) -> OffsetsForLeaderEpochRequest:
        """See `FetcherHost`."""
        return OffsetsForLeaderEpochRequest(FOLLOWER, asks, leader_epochs, with_epoch=with_epoch)

    def send_list_offsets(
        self, fetcher: ReplicaFetcherThread, name: str, timestamp: int, leader_epoch: int
    ) -> ListOffsetsRequest:
        """See `FetcherHost`."""
        return ListOffsetsRequest(FOLLOWER, FOLLOWER, name, timestamp, leader_epoch)

    def wake_fetcher(self, fetcher: ReplicaFetcherThread, at_us: int) -> None:
        """See `FetcherHost`; drivers read the back-off from the fetch states."""

    def truncation_completed(self, replica: Replica, leader_epoch: int, rounds: int) -> None:
        """See `FetcherHost`."""
        self.settlements.append(replica.name)

    def reached(self, probe: int) -> None:
        """See `PartitionHost`."""

    def halt(self, reason: str) -> None:
        """See `FetcherHost`."""
        self.halted = reason


def make_partition(
    log: Log,
    epochs: LeaderEpochFileCache,
    rules: Rules,
    *,
    name: str = "0",
    hw: int = 0,
    leader_epoch: int = -1,
    leads: bool = False,
    host: RecordingHost | None = None,
    broker: int = LEADER,
    min_isr: int = 1,
    lag_us: int = 30_000_000,
) -> Partition:
    """A partition whose leadership is as given, without the steps that led there."""
    partition = Partition(
        broker,
        name,
        log,
        epochs,
        hw,
        Decisions(rules),
        host or RecordingHost(),
        min_insync_replicas=min_isr,
        lag_us=lag_us,
    )
    partition.leader_epoch = leader_epoch
    partition.is_leader = leads
    return partition
