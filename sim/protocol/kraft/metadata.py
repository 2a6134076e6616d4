"""The metadata of a KRaft quorum: committed records, and the image that results from replaying them.

Records are those of Kafka's metadata/src/main/resources/common/metadata. Brokers replay the log in order, each with its
own lag; their image is the result. A partition's record has its whole state, so of several changes that arrive together
only the last matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.protocol.messages import LeaderAndIsr

Value = int | str | bool
MIN_ISR: Final = "min.insync.replicas"
ELR_FEATURE: Final = "eligible.leader.replicas.version"


FIRST_DIRECTORY: Final = 0
"""A broker's only log directory before its disk was ever replaced."""
UNASSIGNED: Final = -1
"""In place of the directory of a new replica, until a broker with several has reported it. Kafka: DirectoryId."""
ONLY_FIRST: Final = (FIRST_DIRECTORY,)
_ALL_FIRST: Final[Mapping[int, int]] = {}


class PartitionRegistration(LeaderAndIsr):
    """A partition's state; immutable. Kafka: PartitionRegistration.

    Attributes:
        elr: eligible leader replicas: not in the ISR, but with all records below the HW (KIP-966).
        last_known_elr: fallback candidates when ISR and ELR are empty: the last leader, and with rule
            ``last_known_elr=ejected-members`` also former members of the ELR.
        adding: replicas that a reassignment adds.
        removing: replicas that it removes.
        recovering: the leader was elected uncleanly and has not confirmed its recovery (LeaderRecoveryState).
        directories: broker -> log directory of its replica, if not `FIRST_DIRECTORY` (KIP-858); `UNASSIGNED` until it
            is reported.
        clears_elr: whether the state results from a ClearElrRecord.
    """

    __slots__ = ("adding", "clears_elr", "directories", "elr", "last_known_elr", "recovering", "removing")

    def __init__(
        self,
        name: str,
        leader: int,
        leader_epoch: int,
        isr: tuple[int, ...],
        partition_epoch: int,
        replicas: tuple[int, ...],
        *,
        elr: tuple[int, ...] = (),
        last_known_elr: tuple[int, ...] = (),
        adding: tuple[int, ...] = (),
        removing: tuple[int, ...] = (),
        recovering: bool = False,
        directories: Mapping[int, int] = _ALL_FIRST,
        clears_elr: bool = False,
    ) -> None:
        super().__init__(name, leader, leader_epoch, isr, partition_epoch, replicas)
        self.elr = elr
        self.last_known_elr = last_known_elr
        self.adding = adding
        self.removing = removing
        self.recovering = recovering
        self.directories = directories
        self.clears_elr = clears_elr

    def directory(self, broker: int) -> int:
        """The log directory of a broker's replica."""
        directories = self.directories
        return directories.get(broker, FIRST_DIRECTORY) if directories else FIRST_DIRECTORY

    @property
    def target(self) -> tuple[int, ...]:
        """The target assignment of the reassignment in progress; empty without one."""
        if not (self.adding or self.removing):
            return ()
        return tuple([replica for replica in self.replicas if replica not in self.removing])

    def cleared(self) -> PartitionRegistration:
        """State after a ClearElrRecord (KAFKA-16540). Kafka: ReplicationControlManager#removeTopicElrs (4.1-4.4)."""
        after = self.relisted(self.isr, (), ())
        after.clears_elr = True
        return after

    def repeated(self, before: PartitionRegistration) -> PartitionRegistration:
        """The state after replaying its record twice, where the record was built from `before`.

        Kafka: PartitionRegistration#merge.
        """
        leader_epoch = 2 * self.leader_epoch - before.leader_epoch
        return self.relisted(self.isr, self.elr, self.last_known_elr, leader_epoch)

    def merged(self, before: PartitionRegistration, earlier: PartitionRegistration) -> PartitionRegistration:
        """The state after replaying an earlier record and then this one, where both were built from `before`: the later
        record has only the fields that it changes.

        Kafka: PartitionRegistration#merge.
        """
        bumps = self.leader_epoch > before.leader_epoch
        return PartitionRegistration(
            self.name,
            self.leader if bumps else earlier.leader,
            earlier.leader_epoch + self.leader_epoch - before.leader_epoch,
            earlier.isr if self.isr == before.isr else self.isr,
            earlier.partition_epoch + 1,
            earlier.replicas if self.replicas == before.replicas else self.replicas,
            elr=earlier.elr if self.elr == before.elr else self.elr,
            last_known_elr=earlier.last_known_elr
            if self.last_known_elr == before.last_known_elr
            else self.last_known_elr,
            adding=earlier.adding if self.adding == before.adding else self.adding,
            removing=earlier.removing if self.removing == before.removing else self.removing,
            recovering=earlier.recovering if self.recovering == before.recovering else self.recovering,
            directories=self._merged_directories(before, earlier),
        )

    def _merged_directories(self, before: PartitionRegistration, earlier: PartitionRegistration) -> Mapping[int, int]:
        """See `merged`. Records have a list of directories, one for each replica, and only if it changes. So a list of
        another length replaces an earlier one, and where it stays the same, an earlier one is kept by place.

        Kafka: PartitionChangeBuilder#setAssignmentChanges.
        """
        if self._directory_list() != before._directory_list():
            return self.directories
        if self.replicas == before.replicas:
            return earlier.directories
        listed = zip(self.replicas, earlier._directory_list(), strict=False)
        return {broker: place for broker, place in listed if place != FIRST_DIRECTORY}

    def _directory_list(self) -> list[int]:
        return [self.directory(broker) for broker in self.replicas]

    def relisted(
        self,
        isr: tuple[int, ...],
        elr: tuple[int, ...],
        last_known_elr: tuple[int, ...],
        leader_epoch: int | None = None,
    ) -> PartitionRegistration:
        """The partition with other replica lists and the next partition epoch; the leader epoch changes if given."""
        return PartitionRegistration(
            self.name,
            self.leader,
            self.leader_epoch if leader_epoch is None else leader_epoch,
            isr,
            self.partition_epoch + 1,
            self.replicas,
            elr=elr,
            last_known_elr=last_known_elr,
            adding=self.adding,
            removing=self.removing,
            recovering=self.recovering,
            directories=self.directories,
        )


@dataclass(init=False, slots=True, unsafe_hash=True)
class BrokerRegistration:
    """A broker as the quorum knows it. Kafka: BrokerRegistration.

    Attributes:
        incarnation: of its process (incarnation id).
        broker_epoch: offset of the record of its registration.
        fenced: whether it is fenced: it may neither lead nor be in an ISR.
        directories: ids of its log directories that work (KIP-858).
        registered_offset: offset of its latest registration record: later than `broker_epoch` if the same process
            registered again.
        cordoned: ids of its log directories in which it creates no new replicas (KIP-1066); none before it tells.
    """

    broker: int
    incarnation: int
    broker_epoch: int
    fenced: bool = True
    shutting_down: bool = False
    directories: tuple[int, ...] = ONLY_FIRST
    registered_offset: int = -1
    cordoned: tuple[int, ...] = ()

    # Written by hand: that of a frozen dataclass takes ten times as long in a compiled build.
    def __init__(
        self,
        broker: int,
        incarnation: int,
        broker_epoch: int,
        fenced: bool = True,
        shutting_down: bool = False,
        directories: tuple[int, ...] = ONLY_FIRST,
        registered_offset: int = -1,
        cordoned: tuple[int, ...] = (),
    ) -> None:
        self.cordoned = cordoned
        self.registered_offset = max(broker_epoch, registered_offset)
        self.broker = broker
        self.incarnation = incarnation
        self.broker_epoch = broker_epoch
        self.fenced = fenced
        self.shutting_down = shutting_down
        self.directories = directories

    def in_state(self, *, fenced: bool, shutting_down: bool) -> BrokerRegistration:
        """The same registration, in another state."""
        return self._changed(fenced, shutting_down, self.directories, self.cordoned)

    def with_directories(self, directories: tuple[int, ...]) -> BrokerRegistration:
        """The same registration, after log directories failed. Kafka: BrokerRegistrationChangeRecord."""
        return self._changed(self.fenced, self.shutting_down, directories, self.cordoned)

    def with_cordoned(self, cordoned: tuple[int, ...]) -> BrokerRegistration:
        """The same registration with other cordoned directories. Kafka: BrokerRegistrationChangeRecord."""
        return self._changed(self.fenced, self.shutting_down, self.directories, cordoned)

    def _changed(
        self, fenced: bool, shutting_down: bool, directories: tuple[int, ...], cordoned: tuple[int, ...]
    ) -> BrokerRegistration:
        return BrokerRegistration(
            self.broker,
            self.incarnation,
            self.broker_epoch,
            fenced,
            shutting_down,
            directories,
            self.registered_offset,
            cordoned,
        )

    @property
    def takes_replicas(self) -> bool:
        """Whether one of its directories is not cordoned. Kafka: BrokerRegistration#hasUncordonedDirs (4.3-4.4)."""
        return not self.cordoned or any(directory not in self.cordoned for directory in self.directories)

    @property
    def default_directory(self) -> int:
        """The directory of a new replica: the only one, or `UNASSIGNED`. Kafka: ClusterControlManager#defaultDir."""
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED

    def has_online_directory(self, directory: int) -> bool:
        """Whether a directory is not known to have failed. Kafka: BrokerRegistration#hasOnlineDir."""
        return directory in self.directories or directory == UNASSIGNED


@dataclass(frozen=True, slots=True)
class BrokerUnregistration:
    """The end of a broker's registration. Kafka: UnregisterBrokerRecord."""

    broker: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """A dynamic configuration value, or a feature's level. Kafka: ConfigRecord, FeatureLevelRecord."""

    key: str
    value: Value


@dataclass(frozen=True, slots=True)
class TopicRemoval:
    """The end of a topic with these partitions. Kafka: RemoveTopicRecord."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoOpRecord:
    """A record without contents, which only has an offset; it also stands for a control record. Kafka: NoOpRecord."""


NO_OP: Final = NoOpRecord()
"""The record that keeps the log of a replicated quorum moving."""
Record = PartitionRegistration | BrokerRegistration | BrokerUnregistration | ConfigRecord | TopicRemoval | NoOpRecord


class MetadataImage:
    """The state that results from replaying the log. Kafka: MetadataImage.

    Attributes:
        offset: number of replayed records.
        brokers: registrations by broker.
        partitions: states by name.
        cleared_elr: by name, the ELR members at each ClearElrRecord that emptied it. Kafka keeps counting them as
            members when it looks up the partitions of a broker (BrokersToElrs, 4.0 to 4.3).
        settings: dynamic configuration and feature levels.
    """

    __slots__ = ("brokers", "cleared_elr", "offset", "partitions", "settings")

    def __init__(self) -> None:
        self.offset = 0
        self.brokers: dict[int, BrokerRegistration] = {}
        self.partitions: dict[str, PartitionRegistration] = {}
        self.cleared_elr: dict[str, tuple[int, ...]] = {}
        self.settings: dict[str, Value] = {}

    def copy(self) -> MetadataImage:
        """The same image, which changes on its own."""
        image = MetadataImage()
        image.offset = self.offset
        image.brokers = dict(self.brokers)
        image.partitions = dict(self.partitions)
        image.cleared_elr = dict(self.cleared_elr)
        image.settings = dict(self.settings)
        return image

    def changes_to(self, other: MetadataImage) -> list[Record]:
        """Records that lead from this image to another one. What that lacks is deleted, but no values of keys.

        Kafka: MetadataDelta#finishSnapshot.
        """
        changes: list[Record] = [
            BrokerUnregistration(broker, entry.broker_epoch)
            for broker, entry in self.brokers.items()
            if broker not in other.brokers
        ]
        changes += [entry for broker, entry in other.brokers.items() if self.brokers.get(broker) is not entry]
        changes += [
            ConfigRecord(key, value) for key, value in other.settings.items() if self.settings.get(key) != value
        ]
        deleted = [name for name in self.partitions if name not in other.partitions]
        if deleted:
            changes.append(TopicRemoval(tuple(deleted)))
        changes += [state for name, state in other.partitions.items() if self.partitions.get(name) is not state]
        return changes

    def replay(self, record: Record) -> None:
        """Replay the next record. Kafka: ReplicationControlManager#replay, ClusterControlManager#replay."""
        self.offset += 1
        if record is NO_OP:
            return
        if isinstance(record, PartitionRegistration):
            if record.clears_elr:
                known = self.partitions.get(record.name)
                elr = () if known is None else known.elr
                self.cleared_elr[record.name] = self.cleared_elr.get(record.name, ()) + elr
            self.partitions[record.name] = record
        elif isinstance(record, BrokerRegistration):
            self.brokers[record.broker] = record
        elif isinstance(record, BrokerUnregistration):
            del self.brokers[record.broker]
        elif isinstance(record, TopicRemoval):
            for name in record.names:
                del self.partitions[name]
                self.cleared_elr.pop(name, None)
        elif isinstance(record, ConfigRecord):
            self.settings[record.key] = record.value

    def is_active(self, broker: int) -> bool:
        """Whether a broker is registered, not fenced and not shutting down. Kafka: ClusterControlManager#isActive."""
        entry = self.brokers.get(broker)
        return entry is not None and not entry.fenced and not entry.shutting_down

    def has_online_directory(self, state: PartitionRegistration, broker: int) -> bool:
        """Whether the assigned directory is one that the broker has. Kafka: ClusterControlManager#hasOnlineDir."""
        entry = self.brokers.get(broker)
        return entry is not None and entry.has_online_directory(state.directory(broker))
