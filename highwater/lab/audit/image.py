"""The state of a cluster that results from its metadata records.

Kafka: MetadataImage; unlike `sim.protocol.kraft.metadata.MetadataImage`, of any number of topics, with their own
settings, and with log directories by id. Of the configuration, only the modelled keys are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from typing import TYPE_CHECKING, Final

from highwater.lab.audit.records import LEADER_UNCHANGED
from sim.protocol.kraft.metadata import ELR_FEATURE, MIN_ISR
from sim.protocol.kraft.replication_control_manager import UNCLEAN_ELECTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from highwater.lab.audit.records import Fields, MetadataRecord

CLUSTER_KEYS: Final = (MIN_ISR, UNCLEAN_ELECTION)
"""Configuration keys that are kept, of topics, brokers and the cluster."""
METADATA_VERSION: Final = "metadata.version"
FEATURES: Final = (METADATA_VERSION, ELR_FEATURE)
TOPIC: Final = 2
BROKER: Final = 4
"""Types of configuration resources. Kafka: ConfigResource.Type."""
UNASSIGNED: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
LOST: Final = "AAAAAAAAAAAAAAAAAAAAAg"
MIGRATING: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""Reserved ids of log directories. Kafka: DirectoryId."""

Replicas = tuple[int, ...]
Key = tuple[str, int]
"""Topic id and number of a partition."""


@dataclass(frozen=True, slots=True)
class RegisteredPartition:
    """A partition's registration. Kafka: PartitionRegistration.

    Attributes:
        replicas: brokers in the order of the assignment; likewise `isr`, `removing`, `adding`, `elr`, `last_known_elr`.
        leader: `highwater.lab.audit.records.NO_LEADER` for none.
        recovering: the leader was elected uncleanly and has not confirmed its recovery.
        directories: ids of log directories, parallel to `replicas`; empty if the records have none.
        offset: of the last record that changed it; -1 if a snapshot or a description states it.
    """

    replicas: Replicas
    isr: Replicas
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    removing: Replicas = ()
    adding: Replicas = ()
    recovering: bool = False
    elr: Replicas = ()
    last_known_elr: Replicas = ()
    directories: tuple[str, ...] = ()
    offset: int = -1

    @property
    def is_reassigned(self) -> bool:
        """Whether a reassignment of it is in progress."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> Replicas:
        """The assignment after the reassignment in progress; `replicas` without one."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


@dataclass(frozen=True, slots=True)
class BrokerState:
    """A broker's registration. Kafka: BrokerRegistration."""

    broker_epoch: int
    incarnation: str
    fenced: bool
    shutting_down: bool
    directories: tuple[str, ...]

    @property
    def is_active(self) -> bool:
        """Whether it may lead and join ISRs. Kafka: ClusterControlManager#isActive."""
        return not (self.fenced or self.shutting_down)

    def has_online(self, directory: str) -> bool:
        """Whether one of its log directories is online. Kafka: DirectoryId#isOnline."""
        if directory in (UNASSIGNED, MIGRATING):
            return True
        return directory != LOST and (not self.directories or directory in self.directories)


_Kept = tuple[
    dict[str, str],
    dict[Key, RegisteredPartition],
    dict[int, BrokerState],
    dict[tuple[int, str], dict[str, str]],
    dict[str, int],
]


@dataclass(slots=True)
class ClusterImage:
    """Topics, partitions, brokers and settings.

    Attributes:
        topics: topic id -> name.
        partitions: by topic id and number.
        brokers: registrations by broker.
        settings: (type of resource, its name) -> key -> value; the name of the cluster's own resource is "".
        static: settings of server properties.
        least_min_isr: topic id -> the least ``min.insync.replicas`` that the ELRs of a description permit, since an ELR
            has members only while the ISR is smaller. Kafka: PartitionChangeBuilder#maybePopulateTargetElr.
        features: name -> level.
        counts: (type, version) of records that are not modelled -> their number.
        next_offset: offset after the last record.
        time_ms: time of the last batch.
        before_transaction: topics, partitions, brokers, settings and features when the metadata transaction in
            progress began; None without one.
    """

    topics: dict[str, str] = field(default_factory=dict)
    partitions: dict[Key, RegisteredPartition] = field(default_factory=dict)
    brokers: dict[int, BrokerState] = field(default_factory=dict)
    settings: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    least_min_isr: dict[str, int] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    counts: dict[tuple[str, int], int] = field(default_factory=dict)
    next_offset: int = 0
    time_ms: int = -1
    before_transaction: _Kept | None = None

    def name(self, key: Key) -> str:
        """A partition's name, such as ``orders-0``."""
        return f"{self.topics.get(key[0], key[0])}-{key[1]}"

    def order(self, key: Key) -> tuple[str, int]:
        """By which partitions are sorted, the same in each form of a log: name of the topic, and number."""
        return self.topics.get(key[0], key[0]), key[1]

    def of_topic(self, name: str) -> Iterator[Key]:
        """The partitions of a topic; of all topics if the name is empty."""
        return (key for key in self.partitions if name in ("", self.topics.get(key[0])))

    def numbered(self, topic: str) -> list[Key]:
        """The partitions of a topic id, which Kafka numbers from 0 on."""
        return list(takewhile(self.partitions.__contains__, ((topic, number) for number in count())))

    def setting(self, key: Key, name: str) -> str | None:
        """A setting of a partition's topic, of the cluster, or of the server properties; None if none sets it.

        Kafka: ConfigurationControlManager#getTopicConfig.
        """
        for resource in ((TOPIC, self.topics.get(key[0], "")), (BROKER, "")):
            if name in (found := self.settings.get(resource, {})):
                return found[name]
        return self.static.get(name)

    def min_isr_setting(self, key: Key) -> int:
        """``min.insync.replicas``; if it is unknown, 1, or the least value that is possible."""
        return int(self.setting(key, MIN_ISR) or self.least_min_isr.get(key[0], 1))

    def knows_min_isr(self, key: Key) -> bool:
        """Whether ``min.insync.replicas`` is set by what was read, or given."""
        return self.setting(key, MIN_ISR) is not None

    def min_isr(self, key: Key) -> int:
        """The effective ``min.insync.replicas``, capped by replicas.

        Kafka: ReplicationControlManager#getTopicEffectiveMinIsr.
        """
        return min(self.min_isr_setting(key), len(self.partitions[key].replicas))

    def unclean_enabled(self, key: Key) -> bool:
        """``unclean.leader.election.enable``."""
        return self.setting(key, UNCLEAN_ELECTION) == "true"

    @property
    def elr_enabled(self) -> bool:
        """Whether feature ``eligible.leader.replicas.version`` is on."""
        return bool(self.features.get(ELR_FEATURE, 0))

    def is_active(self, broker: int) -> bool:
        """Whether a broker is registered, unfenced and not shutting down."""
        known = self.brokers.get(broker)
        return known is not None and known.is_active

    # Records.

    def replay(self, record: MetadataRecord) -> None:
        """Apply a record. Kafka: ReplicationControlManager#replay, ClusterControlManager#replay."""
        self.next_offset = record.offset + 1
        apply = _APPLY.get(record.type) if record.is_known else None
        if apply is not None:
            apply(self, record.fields, record.offset)
        elif not record.is_known:
            key = record.type, record.version
            self.counts[key] = self.counts.get(key, 0) + 1

    def _begin(self, _: Fields, __: int) -> None:
        """A metadata transaction begins (KIP-868), which may be aborted."""
        settings = {resource: dict(values) for resource, values in self.settings.items()}
        kept = dict(self.topics), dict(self.partitions), dict(self.brokers), settings, dict(self.features)
        self.before_transaction = kept

    def _end(self, _: Fields, __: int) -> None:
        self.before_transaction = None

    def _abort(self, _: Fields, __: int) -> None:
        if self.before_transaction is not None:
            self.topics, self.partitions, self.brokers, self.settings, self.features = self.before_transaction
            self.before_transaction = None

    def _topic(self, fields: Fields, _: int) -> None:
        self.topics[fields["topicId"]] = fields["name"]

    def _remove_topic(self, fields: Fields, _: int) -> None:
        topic = fields["topicId"]
        self.settings.pop((TOPIC, self.topics.pop(topic, "")), None)
        for key in self.numbered(topic):
            del self.partitions[key]

    def _partition(self, fields: Fields, offset: int) -> None:
        self.partitions[fields["topicId"], fields["partitionId"]] = RegisteredPartition(
            tuple(fields["replicas"]),
            tuple(fields["isr"]),
            fields["leader"],
            fields["leaderEpoch"],
            fields["partitionEpoch"],
            tuple(fields["removingReplicas"] or ()),
            tuple(fields["addingReplicas"] or ()),
            fields["leaderRecoveryState"] == 1,
            tuple(fields["eligibleLeaderReplicas"] or ()),
            tuple(fields["lastKnownElr"] or ()),
            tuple(fields["directories"] or ()),
            offset,
        )

    def _change(self, fields: Fields, offset: int) -> None:
        key = fields["topicId"], fields["partitionId"]
        before = self.partitions.get(key)
        if before is not None:
            self.partitions[key] = changed(before, fields, offset)

    def _register(self, fields: Fields, _: int) -> None:
        self.brokers[fields["brokerId"]] = BrokerState(
            fields["brokerEpoch"],
            fields["incarnationId"],
            fields["fenced"],
            fields["inControlledShutdown"],
            tuple(fields["logDirs"] or ()),
        )

    def _unregister(self, fields: Fields, _: int) -> None:
        self.brokers.pop(fields["brokerId"], None)

    def _fence(self, fields: Fields, _: int) -> None:
        self._alter(fields["id"], fenced=True)

    def _unfence(self, fields: Fields, _: int) -> None:
        self._alter(fields["id"], fenced=False)

    def _alter_registration(self, fields: Fields, _: int) -> None:
        broker = fields["brokerId"]
        if fields["fenced"]:
            self._alter(broker, fenced=fields["fenced"] > 0)
        if fields["inControlledShutdown"]:
            self._alter(broker, shutting_down=fields["inControlledShutdown"] > 0)
        if fields["logDirs"]:
            self._alter(broker, directories=tuple(fields["logDirs"]))

    def _alter(self, broker: int, **values: object) -> None:
        if broker in self.brokers:
            self.brokers[broker] = replace(self.brokers[broker], **values)  # type: ignore[arg-type]

    def _config(self, fields: Fields, _: int) -> None:
        key, value = fields["name"], fields["value"]
        if key not in CLUSTER_KEYS:
            return
        resource = self.settings.setdefault((fields["resourceType"], fields["resourceName"]), {})
        if value is None:
            resource.pop(key, None)
        else:
            resource[key] = value

    def _feature(self, fields: Fields, _: int) -> None:
        if fields["name"] in FEATURES:
            self.features[fields["name"]] = fields["featureLevel"]

    def _clear_elr(self, fields: Fields, offset: int) -> None:
        for key in list(self.of_topic(fields["topicName"])):
            before = self.partitions[key]
            if before.elr or before.last_known_elr:
                epoch = before.partition_epoch + 1
                self.partitions[key] = replace(before, elr=(), last_known_elr=(), partition_epoch=epoch, offset=offset)


def changed(before: RegisteredPartition, fields: Fields, offset: int) -> RegisteredPartition:
    """A partition's state after a PartitionChangeRecord. Kafka: PartitionRegistration#merge."""
    leads = fields["leader"] != LEADER_UNCHANGED

    def of(name: str, old: tuple[object, ...]) -> tuple[object, ...]:
        return old if fields[name] is None else tuple(fields[name])

    recovering = fields["leaderRecoveryState"]
    return RegisteredPartition(
        of("replicas", before.replicas),  # type: ignore[arg-type]
        of("isr", before.isr),  # type: ignore[arg-type]
        fields["leader"] if leads else before.leader,
        before.leader_epoch + leads,
        before.partition_epoch + 1,
        of("removingReplicas", before.removing),  # type: ignore[arg-type]
        of("addingReplicas", before.adding),  # type: ignore[arg-type]
        before.recovering if recovering < 0 else recovering == 1,
        of("eligibleLeaderReplicas", before.elr),  # type: ignore[arg-type]
        of("lastKnownElr", before.last_known_elr),  # type: ignore[arg-type]
        of("directories", before.directories),  # type: ignore[arg-type]
        offset,
    )


_APPLY: Final[dict[str, Callable[[ClusterImage, Fields, int], None]]] = {
    "BEGIN_TRANSACTION_RECORD": ClusterImage._begin,  # noqa: SLF001
    "END_TRANSACTION_RECORD": ClusterImage._end,  # noqa: SLF001
    "ABORT_TRANSACTION_RECORD": ClusterImage._abort,  # noqa: SLF001
    "TOPIC_RECORD": ClusterImage._topic,  # noqa: SLF001
    "REMOVE_TOPIC_RECORD": ClusterImage._remove_topic,  # noqa: SLF001
    "PARTITION_RECORD": ClusterImage._partition,  # noqa: SLF001
    "PARTITION_CHANGE_RECORD": ClusterImage._change,  # noqa: SLF001
    "REGISTER_BROKER_RECORD": ClusterImage._register,  # noqa: SLF001
    "UNREGISTER_BROKER_RECORD": ClusterImage._unregister,  # noqa: SLF001
    "FENCE_BROKER_RECORD": ClusterImage._fence,  # noqa: SLF001
    "UNFENCE_BROKER_RECORD": ClusterImage._unfence,  # noqa: SLF001
    "BROKER_REGISTRATION_CHANGE_RECORD": ClusterImage._alter_registration,  # noqa: SLF001
    "CONFIG_RECORD": ClusterImage._config,  # noqa: SLF001
    "FEATURE_LEVEL_RECORD": ClusterImage._feature,  # noqa: SLF001
    "CLEAR_ELR_RECORD": ClusterImage._clear_elr,  # noqa: SLF001
}
