"""What some records of the metadata log change, as a broker publishes it."""

from __future__ import annotations

from collections.abc import Iterable

from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import (
    ConfigRecord,
    NoOpRecord,
    PartitionRegistration,
    Record,
    TopicRemoval,
    Value,
)


class MetadataDelta:
    """See the module. Kafka: MetadataDelta, TopicsDelta, ConfigurationsDelta.

    Attributes:
        partitions: the new states of partitions, by name.
        deleted: the partitions of deleted topics.
        configs: the new values of the configuration, by key.
        registrations: the records of brokers.
    """

    __slots__ = ("configs", "deleted", "partitions", "registrations")

    def __init__(self, records: Iterable[Record]) -> None:
        self.partitions: dict[str, PartitionRegistration] = {}
        self.deleted: list[str] = []
        self.configs: dict[str, Value] = {}
        self.registrations: list[Record] = []
        for record in records:
            if isinstance(record, PartitionRegistration):
                self.partitions[record.name] = record
            elif isinstance(record, TopicRemoval):
                for name in record.names:
                    self.partitions.pop(name, None)
                    self.deleted.append(name)
            elif isinstance(record, ConfigRecord):
                self.configs[record.key] = record.value
            elif not isinstance(record, NoOpRecord):
                self.registrations.append(record)

    def applies_configs_last(self, decide: Decisions, *, begins: bool) -> bool:
        """Whether the configuration applies after the new states of partitions (rule ``config_replay``), or before. The
        first records that a broker replays have its configuration at the start.

        Kafka: BrokerMetadataPublisher#onMetadataUpdate.
        """
        if begins or not self.configs:
            return False
        if not self.partitions:  # A deletion reads no configuration, so the order decides nothing.
            return bool(self.deleted) and decide.applies_configs_last.answer
        return decide.applies_configs_last.yes()
