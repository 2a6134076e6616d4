"""Producer and consumer of a partition, and the admin client."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm import files, wire
from highwater.lab.confirm.partitions import FIRST, TOPIC, KafkaPartition
from highwater.lab.confirm.producer import ANSWER_S, RETRY_S, KafkaProducer
from sim.history.steps import END_OFFSET, OUT_OF_RANGE, READ, RESET, SEEK
from sim.protocol.kraft.metadata import ELR_FEATURE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from highwater.lab.confirm.cluster import KafkaCluster
    from highwater.lab.confirm.observer import Observer
    from highwater.lab.confirm.producer import Send
    from sim.config import Value
    from sim.protocol.rules import Rules

CONSUMER: Final = 1002
_FETCH_BYTES: Final = 1 << 20
_OUT_OF_RANGE: Final = 1
_TIMESTAMPS: Final = {"latest": -1, "earliest": -2}
"""What ListOffsets asks for, by ``auto.offset.reset``."""
_ADMIN_S: Final = 15.0
_FEATURE_UPGRADE: Final = 1
_FEATURE_DOWNGRADE: Final = 2
"""Type of the change of a feature's level; the second is a safe downgrade."""
_OF_TOPIC: Final = 2
_OF_BROKER: Final = 4
"""Type of the resource that has settings."""
_ELECTION_MS: Final = 1_000
"""Timeout of an election request: a broker that is unaware of the new leader answers only after it (seen with 2.6.0).
Followers' fetches are held meanwhile, so it is less than `proxy.UNSEEN_S`.
"""


class KafkaClients:
    """Producer and consumer of a partition; for `rules` see `KafkaProducer`."""

    def __init__(
        self,
        cluster: KafkaCluster,
        observer: Observer,
        config: Mapping[str, Value],
        rules: Rules,
        partition: KafkaPartition = FIRST,
    ) -> None:
        self._cluster = cluster
        self._observer = observer
        self._config = config
        self._partition = partition
        self.producer = KafkaProducer(cluster, observer, config, rules, partition)
        self._closed = threading.Event()
        self._reading = threading.Event()
        self._sought: int | None = None
        self.sends: list[Send] = []
        self.shown: list[tuple[int, int]] = []
        self.end_offsets: list[int] = []
        self._old = cluster.release.number < (1,)
        self._consumer = threading.Thread(target=self._consume, daemon=True, name="consumer")

    def begin(self) -> None:
        """Start the consumer."""
        self._reading.set()
        self._consumer.start()

    def close(self) -> None:
        """Stop producer and consumer."""
        self._closed.set()
        self._reading.set()
        self.producer.close()

    def produce(self, send: Send) -> None:
        """Send a batch, and retry until it is acknowledged or times out."""
        self.sends.append(send)
        self.producer.send(send)

    # Consumer.

    def pause(self) -> None:
        """Suspend the consumer's fetches."""
        self._reading.clear()

    def resume(self) -> None:
        """Resume the consumer's fetches."""
        self._reading.set()

    def seek(self, offset: int) -> None:
        """Read on from an offset, as the application wishes."""
        self._sought = offset
        self._tell(SEEK.name, consumer=CONSUMER, offset=offset)

    def _tell(self, step: str, **fields: Any) -> None:
        self._observer.add_step(step, **fields, **self._partition.tag)

    @property
    def _leader(self) -> int:
        return self._cluster.leader_of(self._partition)

    def _consume(self) -> None:
        position, leader, connection = 0, 0, None
        while not self._closed.is_set():
            self._reading.wait()
            try:
                if connection is None:
                    leader = self._leader
                    if not leader:
                        self._closed.wait(RETRY_S)
                        continue
                    connection = wire.Connection(self._cluster.node(leader).client_port, 3.0, "highwater-consumer")
                if self._sought is not None:
                    position, self._sought = self._sought, None
                answer = connection.ask(self._fetch(position)).responses[0].partitions[0]
                if not self._reading.is_set() or self._sought is not None:
                    continue
                if answer.error_code == _OUT_OF_RANGE:
                    position = self._reset(leader, position)
                elif answer.error_code:
                    connection.close()
                    connection = None
                    self._closed.wait(RETRY_S)
                else:
                    self._tell("leader-hw", broker=leader, offset=answer.high_watermark)
                    position = self._show(bytes(answer.records or b""), position)
            except wire.RETRIABLE:
                if connection is not None:
                    connection.close()
                connection = None
                self._closed.wait(RETRY_S)

    def _reset(self, leader: int, position: int) -> int:
        """Where a consumer continues whose position is out of range; with ``none`` its application gets an exception.

        Raises:
            OSError: the leader returns no offset.
        """
        self._tell(OUT_OF_RANGE.name, consumer=CONSUMER, offset=position)
        policy = str(self._config["auto.offset.reset"])
        if policy == "none":
            self._reading.clear()
            return position
        offset = self._list_offset(leader, _TIMESTAMPS[policy])
        if offset < 0:
            raise OSError("no offset")
        self._tell(RESET.name, consumer=CONSUMER, offset=offset, policy=policy)
        return offset

    def _show(self, data: bytes, position: int) -> int:
        for batch in files.batches_in(data):
            if batch.last_offset < position:
                continue
            first = max(position, batch.base_offset)
            self.shown += [
                (offset, batch.first_id + offset - batch.base_offset) for offset in range(first, batch.last_offset + 1)
            ]
            position = batch.last_offset + 1
            self._tell(READ.name, offset=first, last=batch.last_offset, record=batch.first_id)
        return position

    def _fetch(self, position: int) -> Any:
        from kafka.protocol.consumer import FetchRequest

        topic = FetchRequest.FetchTopic
        partition = topic.FetchPartition(
            partition=self._partition.number, fetch_offset=position, partition_max_bytes=_FETCH_BYTES
        )
        return FetchRequest(
            version=3 if self._old else 4,
            replica_id=-1,
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            isolation_level=0,
            topics=[topic(topic=self._partition.topic, partitions=[partition])],
        )

    def ask_end_offset(self) -> None:
        """Request the end offset as the consumer, and report the answer."""

        def ask() -> None:
            while not self._closed.is_set():
                if leader := self._leader:
                    try:
                        offset = self.end_offset(leader)
                    except wire.RETRIABLE:
                        offset = -1
                    if offset >= 0:
                        self.end_offsets.append(offset)
                        self._tell(END_OFFSET.name, offset=offset)
                        return
                self._closed.wait(RETRY_S)

        threading.Thread(target=ask, daemon=True, name="end-offset").start()

    def end_offset(self, leader: int) -> int:
        """The end offset that a leader returns; -1 if it returns none."""
        return self._list_offset(leader, _TIMESTAMPS["latest"])

    def _list_offset(self, leader: int, timestamp: int) -> int:
        from kafka.protocol.consumer import ListOffsetsRequest

        topic = ListOffsetsRequest.ListOffsetsTopic
        partition = topic.ListOffsetsPartition(partition_index=self._partition.number, timestamp=timestamp)
        topics = [topic(name=self._partition.topic, partitions=[partition])]
        request = ListOffsetsRequest(version=1, replica_id=-1, topics=topics)
        told = wire.ask(self._cluster.node(leader).client_port, request, ANSWER_S).topics[0].partitions[0]
        return int(told.offset) if told.error_code == 0 else -1


class KafkaAdminClient:
    """Sends an operator's requests to any broker that answers."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster

    def ask(self, request: Any, *, first: int = 0) -> Any:
        """Send a request to a running broker, trying `first` before others.

        Raises:
            TimeoutError: no broker answered.
        """
        deadline_s = time.monotonic() + _ADMIN_S
        while time.monotonic() < deadline_s:
            for node in sorted(self._cluster.brokers.values(), key=lambda one: one.id != first):
                if node.alive and not node.paused:
                    try:
                        return wire.ask(node.client_port, request, ANSWER_S)
                    except wire.RETRIABLE:
                        continue
            time.sleep(RETRY_S)
        raise TimeoutError(f"no broker answered {type(request).__name__}")

    def create_topic(self, replicas: Iterable[Iterable[int]], controller: int, name: str = TOPIC) -> None:
        """Create a topic, whose partitions have these replicas.

        Raises:
            TimeoutError: the cluster rejected it.
        """
        from kafka.protocol.admin import CreateTopicsRequest

        topic = CreateTopicsRequest.CreatableTopic
        assignments = [
            topic.CreatableReplicaAssignment(partition_index=number, broker_ids=list(brokers))
            for number, brokers in enumerate(replicas)
        ]
        request = CreateTopicsRequest(
            version=0 if not self._cluster.release.kraft else 2,
            topics=[topic(name=name, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=[])],
            timeout_ms=10_000,
            validate_only=False,
        )
        deadline_s = time.monotonic() + _ADMIN_S
        while True:
            told = self.ask(request, first=controller).topics[0]
            if told.error_code in (0, 36):
                return
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"the topic is not made: error {told.error_code}")
            time.sleep(RETRY_S)

    def set_config(self, values: Mapping[str, Value]) -> None:
        """Change settings of all topics, or the level of a feature."""
        of_topic = dict(values)
        level = of_topic.pop(ELR_FEATURE, None)
        if level is not None:
            self._update_feature(ELR_FEATURE, int(level))
        if of_topic:
            for topic in dict.fromkeys(partition.topic for partition in self._cluster.partitions):
                self._set_config(_OF_TOPIC, topic, of_topic)

    def _update_feature(self, feature: str, level: int) -> None:
        from kafka.protocol.admin import UpdateFeaturesRequest

        kind = _FEATURE_UPGRADE if level else _FEATURE_DOWNGRADE
        update = UpdateFeaturesRequest.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
        request = UpdateFeaturesRequest(version=1, feature_updates=[update], timeout_ms=5_000, validate_only=False)
        told = self.ask(request, first=self._cluster.history.controller)
        if told.error_code:
            raise TimeoutError(f"{type(request).__name__} was refused: error {told.error_code}")

    def set_broker_config(self, broker: int, values: Mapping[str, Value]) -> None:
        """Change settings of a broker, which takes only its own (ConfigAdminManager.preprocess)."""
        self._set_config(_OF_BROKER, str(broker), values)

    def _set_config(self, kind: int, name: str, values: Mapping[str, Value]) -> None:
        from kafka.protocol.admin import AlterConfigsRequest

        resource = AlterConfigsRequest.AlterConfigsResource
        configs = [resource.AlterableConfig(name=key, value=str(value).lower()) for key, value in values.items()]
        resources = [resource(resource_type=kind, resource_name=name, configs=configs)]
        request = AlterConfigsRequest(version=0, resources=resources, validate_only=False)
        first = int(name) if kind == _OF_BROKER else self._cluster.history.controller
        for answer in self.ask(request, first=first).responses:
            if answer.error_code:
                raise TimeoutError(f"{type(request).__name__} was refused: error {answer.error_code}")

    def elect(self, kind: int, partition: KafkaPartition = FIRST) -> None:
        """Request an election: 0 preferred, 1 unclean."""
        from kafka.protocol.admin import ElectLeadersRequest

        topic = ElectLeadersRequest.TopicPartitions(topic=partition.topic, partitions=[partition.number])
        request = ElectLeadersRequest(version=1, election_type=kind, topic_partitions=[topic], timeout_ms=_ELECTION_MS)
        self.ask(request, first=self._cluster.history.controller)

    def reassign(self, replicas: Iterable[int] | None, of: KafkaPartition = FIRST) -> None:
        """Reassign a partition to other replicas; None cancels the reassignment under way."""
        from kafka.protocol.admin import AlterPartitionReassignmentsRequest

        topic = AlterPartitionReassignmentsRequest.ReassignableTopic
        wanted = list(replicas) if replicas is not None else None
        partition = topic.ReassignablePartition(partition_index=of.number, replicas=wanted)
        topics = [topic(name=of.topic, partitions=[partition])]
        request = AlterPartitionReassignmentsRequest(version=0, timeout_ms=5_000, topics=topics)
        self.ask(request, first=self._cluster.history.controller)

    def delete_records(self, offset: int, of: KafkaPartition = FIRST) -> None:
        """Move the log start of a partition."""
        from kafka.protocol.admin import DeleteRecordsRequest

        topic = DeleteRecordsRequest.DeleteRecordsTopic
        partition = topic.DeleteRecordsPartition(partition_index=of.number, offset=offset)
        topics = [topic(name=of.topic, partitions=[partition])]
        request = DeleteRecordsRequest(version=0, topics=topics, timeout_ms=5_000)
        self.ask(request, first=self._cluster.leader_of(of))
