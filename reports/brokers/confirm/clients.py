"""Producer, consumer and admin client of the partition."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reports.brokers.confirm import files, wire
from reports.brokers.confirm.cluster import TOPIC
from sim.config import integer
from sim.history.steps import ACK, END_OFFSET, READ, REFUSED
from sim.protocol.batch import NO_SEQUENCE
from sim.protocol.client.producer_sequences import ProducerSequences
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import ELR_FEATURE
from sim.protocol.messages import INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reports.brokers.confirm.cluster import KafkaCluster
    from reports.brokers.confirm.observer import Observer
    from sim.config import Value
    from sim.protocol.batch import Sequence
    from sim.protocol.rules import Rules

CONSUMER: Final = 1002
_FETCH_BYTES: Final = 1 << 20
_RETRY_S: Final = 0.1
_ANSWER_S: Final = 6.0
_OUT_OF_RANGE: Final = 1
_GZIP: Final = 1
_ADMIN_S: Final = 15.0
_FEATURE_UPGRADE: Final = 1
_FEATURE_DOWNGRADE: Final = 2
"""Type of the change of a feature's level; the second is a safe downgrade."""
_OF_TOPIC: Final = 2
_OF_BROKER: Final = 4
"""Type of the resource that has settings."""
_SEQUENCE_ERRORS: Final = {45: OUT_OF_ORDER_SEQUENCE_NUMBER, 47: INVALID_PRODUCER_EPOCH, 59: UNKNOWN_PRODUCER_ID}
"""Error codes that concern an idempotent producer's sequence numbers."""
_ELECTION_MS: Final = 1_000
"""Timeout of an election request: a broker that is unaware of the new leader answers only after it (seen with 2.6.0).
Followers' fetches are held meanwhile, so it is less than `proxy.UNSEEN_S`.
"""


@dataclass(slots=True)
class Send:
    """A batch that the script sends: `count` records from `first_id` on.

    Attributes:
        offset: offset at which it was acknowledged; None: not yet.
        by: broker that acknowledged it.
        sequence: its sequence number, from an idempotent producer.
        partition: its partition; "" for the first.
        rewritten, is_retry: see `sim.protocol.client.producer_sequences.Sequenced`.
    """

    name: str
    first_id: int
    count: int
    acks: int
    offset: int | None = None
    by: int = 0
    sequence: Sequence = NO_SEQUENCE
    partition: str = ""
    rewritten: bool = False
    is_retry: bool = False


class KafkaClients:
    """Producer and consumer; `rules` say how an idempotent producer reacts to responses."""

    def __init__(self, cluster: KafkaCluster, observer: Observer, config: Mapping[str, Value], rules: Rules) -> None:
        self._cluster = cluster
        self._observer = observer
        self._config = config
        self._rules = rules
        self._sequences: ProducerSequences | None = None
        self._closed = threading.Event()
        self._reading = threading.Event()
        self._leader = 0
        self._turn = threading.Lock()
        self._turn_end_s = 0.0
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

    # Producer.

    def produce(self, send: Send) -> None:
        """Send a batch, and retry until it is acknowledged or times out."""
        self.sends.append(send)
        threading.Thread(target=self._produce, args=(send,), daemon=True, name=f"produce-{send.name}").start()

    def _produce(self, send: Send) -> None:
        deadline_s = time.monotonic() + self._cluster.paced_ms(integer(self._config, "delivery.timeout.ms")) / 1000
        while time.monotonic() < deadline_s and not self._closed.is_set():
            leader = self._leader or self._cluster.leader
            if leader:
                self._leader = leader
                with self._in_turn():
                    if self._is_over(send, leader):
                        return
            self._closed.wait(_RETRY_S)
        if self._sequences is not None and send.sequence != NO_SEQUENCE:
            with self._turn:
                self._sequences.expired(send)

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        """Keep batches in order: each waits for the answer to the one before; without sequences no longer than
        `_ANSWER_S` after that one was sent.
        """
        wait_s = _RETRY_S if not self._config["enable.idempotence"] else -1
        while not (taken := self._turn.acquire(timeout=wait_s)) and time.monotonic() < self._turn_end_s:
            pass
        self._turn_end_s = time.monotonic() + _ANSWER_S
        try:
            yield
        finally:
            if taken:
                self._turn.release()

    def _is_over(self, send: Send, leader: int) -> bool:
        """Send a batch to a leader if its sequence is next; return whether it needs no retry."""
        sequences = None
        try:
            if self._config["enable.idempotence"]:
                sequences = self._sequences = self._sequences or ProducerSequences(
                    Decisions(self._rules), self._new_producer_id, lambda _id, _epoch: None
                )
                sequences.resolve()
                if sequences.is_dead:
                    return True
                if not sequences.may_send(send):
                    return False
                if send.acks:
                    sequences.assign(send)
            told = wire.ask(self._cluster.node(leader).client_port, self.request(send), self._timeout_s + 1)
        except wire.RETRIABLE as failure:
            self._refused(send, str(failure))
            return False
        if told is None:
            return True  # With acks=0 there is no response.
        answer = told.responses[0].partition_responses[0]
        if answer.error_code:
            self._refused(send, f"error {answer.error_code}")
            if sequences is None:
                return False
            error = _SEQUENCE_ERRORS.get(answer.error_code, "")
            if sequences.may_retry(send, error, answer.log_start_offset):
                return False
            sequences.failed(send, error)
            return True
        send.offset, send.by = answer.base_offset, leader
        if sequences is not None:
            sequences.completed(send, answer.base_offset)
        fields = {"record": send.first_id, "count": send.count, "offset": answer.base_offset}
        self._observer.add_step(ACK.name, **fields, acks=send.acks)
        return True

    @property
    def _timeout_s(self) -> float:
        """How long a leader may wait for followers before it answers a producer."""
        return max(_ANSWER_S - 1, self._cluster.paced_ms(integer(self._config, "request.timeout.ms")) / 1000)

    def _refused(self, send: Send, problem: str) -> None:
        send.is_retry = True
        self._observer.add_step(REFUSED.name, record=send.first_id, by=self._leader, problem=problem)
        self._leader = 0

    def _new_producer_id(self) -> int:
        """Get a new producer id; its epoch is 0.

        Raises:
            OSError: the broker returns none at present.
        """
        from kafka.protocol.producer import InitProducerIdRequest

        request = InitProducerIdRequest(version=0, transactional_id=None, transaction_timeout_ms=60_000)
        told = wire.ask(self._cluster.node(self._leader).client_port, request, _ANSWER_S)
        if told.error_code:
            raise OSError(f"error {told.error_code}")
        return int(told.producer_id)

    def request(self, send: Send, name: str = TOPIC, number: int = 0) -> Any:
        """The request that produces a batch to a partition of a topic."""
        from kafka.protocol.producer import ProduceRequest
        from kafka.record import MemoryRecordsBuilder

        # Without batches in the format, compressed records are what is appended as a whole.
        whole = _GZIP if self._old and send.count > 1 else 0
        producer_id, producer_epoch, base_sequence = send.sequence
        builder = MemoryRecordsBuilder(
            magic=1 if self._old else 2,
            compression_type=whole,
            batch_size=1 << 20,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
        size = min(64, integer(self._config, "sim.record.bytes"))
        for record in range(send.first_id, send.first_id + send.count):
            builder.append(
                timestamp=_NOW_MS, key=files.key_of(send.name), value=files.value_of(record, size), headers=[]
            )
        builder.close()
        topic = ProduceRequest.TopicProduceData
        partition = topic.PartitionProduceData(index=number, records=bytes(builder.buffer()))
        return ProduceRequest(
            version=2 if self._old else 3 if send.sequence == NO_SEQUENCE else 5,
            transactional_id=None,
            acks=send.acks,
            timeout_ms=int(self._timeout_s * 1000),
            topic_data=[topic(name=name, partition_data=[partition])],
        )

    # Consumer.

    def pause(self) -> None:
        """Suspend the consumer's fetches."""
        self._reading.clear()

    def resume(self) -> None:
        """Resume the consumer's fetches."""
        self._reading.set()

    def _consume(self) -> None:
        position, leader, connection = 0, 0, None
        while not self._closed.is_set():
            self._reading.wait()
            try:
                if connection is None:
                    leader = self._cluster.leader
                    if not leader:
                        self._closed.wait(_RETRY_S)
                        continue
                    connection = wire.Connection(self._cluster.node(leader).client_port, 3.0, "highwater-consumer")
                answer = connection.ask(self._fetch(position)).responses[0].partitions[0]
                if not self._reading.is_set():
                    continue
                if answer.error_code == _OUT_OF_RANGE:
                    position = self.end_offset(leader) if self._config["auto.offset.reset"] == "latest" else 0
                elif answer.error_code:
                    connection.close()
                    connection = None
                    self._closed.wait(_RETRY_S)
                else:
                    self._observer.add_step("leader-hw", broker=leader, offset=answer.high_watermark)
                    position = self._show(bytes(answer.records or b""), position)
            except wire.RETRIABLE:
                if connection is not None:
                    connection.close()
                connection = None
                self._closed.wait(_RETRY_S)

    def _show(self, data: bytes, position: int) -> int:
        for batch in files.batches_in(data):
            if batch.last_offset < position:
                continue
            first = max(position, batch.base_offset)
            self.shown += [
                (offset, batch.first_id + offset - batch.base_offset) for offset in range(first, batch.last_offset + 1)
            ]
            position = batch.last_offset + 1
            self._observer.add_step(READ.name, offset=first, last=batch.last_offset, record=batch.first_id)
        return position

    def _fetch(self, position: int) -> Any:
        from kafka.protocol.consumer import FetchRequest

        topic = FetchRequest.FetchTopic
        partition = topic.FetchPartition(partition=0, fetch_offset=position, partition_max_bytes=_FETCH_BYTES)
        return FetchRequest(
            version=3 if self._old else 4,
            replica_id=-1,
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            isolation_level=0,
            topics=[topic(topic=TOPIC, partitions=[partition])],
        )

    def ask_end_offset(self) -> None:
        """Request the end offset as the consumer, and report the answer."""

        def ask() -> None:
            while not self._closed.is_set():
                if leader := self._cluster.leader:
                    try:
                        offset = self.end_offset(leader)
                    except wire.RETRIABLE:
                        offset = -1
                    if offset >= 0:
                        self.end_offsets.append(offset)
                        self._observer.add_step(END_OFFSET.name, offset=offset)
                        return
                self._closed.wait(_RETRY_S)

        threading.Thread(target=ask, daemon=True, name="end-offset").start()

    def end_offset(self, leader: int) -> int:
        """The end offset that a leader returns; -1 if it returns none."""
        from kafka.protocol.consumer import ListOffsetsRequest

        topic = ListOffsetsRequest.ListOffsetsTopic
        partition = topic.ListOffsetsPartition(partition_index=0, timestamp=-1)
        request = ListOffsetsRequest(version=1, replica_id=-1, topics=[topic(name=TOPIC, partitions=[partition])])
        told = wire.ask(self._cluster.node(leader).client_port, request, _ANSWER_S).topics[0].partitions[0]
        return int(told.offset) if told.error_code == 0 else -1


_NOW_MS: Final = int(time.time() * 1000)


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
                        return wire.ask(node.client_port, request, _ANSWER_S)
                    except wire.RETRIABLE:
                        continue
            time.sleep(_RETRY_S)
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
            time.sleep(_RETRY_S)

    def set_config(self, values: Mapping[str, Value]) -> None:
        """Change settings of the topic, or the level of a feature."""
        of_topic = dict(values)
        level = of_topic.pop(ELR_FEATURE, None)
        if level is not None:
            self._update_feature(ELR_FEATURE, int(level))
        if of_topic:
            self._set_config(_OF_TOPIC, TOPIC, of_topic)

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

    def elect(self, kind: int) -> None:
        """Request an election: 0 preferred, 1 unclean."""
        from kafka.protocol.admin import ElectLeadersRequest

        topic = ElectLeadersRequest.TopicPartitions(topic=TOPIC, partitions=[0])
        request = ElectLeadersRequest(version=1, election_type=kind, topic_partitions=[topic], timeout_ms=_ELECTION_MS)
        self.ask(request, first=self._cluster.history.controller)

    def reassign(self, replicas: Iterable[int] | None) -> None:
        """Reassign the partition to other replicas; None cancels the reassignment under way."""
        from kafka.protocol.admin import AlterPartitionReassignmentsRequest

        topic = AlterPartitionReassignmentsRequest.ReassignableTopic
        wanted = list(replicas) if replicas is not None else None
        partition = topic.ReassignablePartition(partition_index=0, replicas=wanted)
        topics = [topic(name=TOPIC, partitions=[partition])]
        request = AlterPartitionReassignmentsRequest(version=0, timeout_ms=5_000, topics=topics)
        self.ask(request, first=self._cluster.history.controller)

    def delete_records(self, offset: int) -> None:
        """Move the log start."""
        from kafka.protocol.admin import DeleteRecordsRequest

        topic = DeleteRecordsRequest.DeleteRecordsTopic
        partition = topic.DeleteRecordsPartition(partition_index=0, offset=offset)
        request = DeleteRecordsRequest(version=0, topics=[topic(name=TOPIC, partitions=[partition])], timeout_ms=5_000)
        self.ask(request, first=self._cluster.leader)
