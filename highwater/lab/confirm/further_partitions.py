"""The partitions besides the first, on real brokers: where their replicas are, records in them, and what is observed.

Only what a script says of them is observed: acknowledgements, and batches that are appended to a log.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm import files, wire
from highwater.lab.confirm.cluster import TOPIC
from scenarios.single.execution import partitions
from sim.config import integer
from sim.history.steps import ACK, APPEND

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from highwater.lab.confirm.clients import KafkaAdminClient, KafkaClients
    from highwater.lab.confirm.cluster import KafkaCluster, KafkaNode
    from highwater.lab.confirm.observer import Observer
    from highwater.lab.confirm.producer import Send
    from scenarios.format.scenario import Topic
    from sim.config import Value

_RETRY_S: Final = 0.1
_ANSWER_S: Final = 6.0
_PLACED_S: Final = 15.0


class FurtherPartitions:
    """The partitions of the other topics, and those of the first topic but one, which is `TOPIC` here.

    Args:
        topics: those of the scenario; without any there is the first partition only.
        config: settings of the brokers.
    """

    def __init__(
        self, cluster: KafkaCluster, observer: Observer, topics: Sequence[Topic], config: Mapping[str, Value]
    ) -> None:
        self._cluster = cluster
        self._observer = observer
        self._config = config
        self._topics = topics
        self._first = topics[0].name if topics else ""
        further = partitions(topics, config)[1:]
        brokers = sorted(cluster.brokers)
        self.replicas: dict[str, list[int]] = {}
        """Partition -> its replicas, placed as in the simulation."""
        for place, partition in enumerate(further, 1):
            start = place % len(brokers)
            self.replicas[partition.name] = (brokers[start:] + brokers[:start])[: partition.replication_factor]
        self.sent: set[str] = set()
        """Names of the batches that were sent to these partitions."""
        self._ends: dict[tuple[str, int], int] = defaultdict(int)
        self._closed = threading.Event()

    def close(self) -> None:
        """End the attempts to produce."""
        self._closed.set()

    def log_of(self, name: str) -> str:
        """The name of a partition here, and of the folders of its logs."""
        topic, _, number = name.rpartition("-")
        return f"{TOPIC}-{number}" if topic == self._first else name

    # Creation.

    def make(self, administrator: KafkaAdminClient, first: Sequence[int]) -> None:
        """Create all topics, with the `first` partition's replicas, in the log directories that the scenario says.

        Raises:
            TimeoutError: the cluster rejected one, or a broker has no such directory.
        """
        for topic in self._topics:
            if topic.directory is not None:
                self._place(topic)
        replicas: dict[str, list[list[int]]] = {TOPIC: [list(first)]}
        for name, brokers in self.replicas.items():
            replicas.setdefault(self.log_of(name).rpartition("-")[0], []).append(brokers)
        for topic_name, assigned in replicas.items():
            administrator.create_topic(assigned, self._cluster.history.controller, topic_name)

    def _place(self, topic: Topic) -> None:
        """Tell each broker in which log directory it is to create replicas of a topic that does not exist yet."""
        name = TOPIC if topic.name == self._first else topic.name
        for node in self._cluster.brokers.values():
            alter_log_directory(node, topic.directory or 1, name, range(topic.partitions))

    # Records.

    def produce(self, clients: KafkaClients, send: Send) -> None:
        """Send a batch to whichever broker leads its partition, and retry until it is acknowledged or times out."""
        self.sent.add(send.name)
        threading.Thread(target=self._produce, args=(clients, send), daemon=True, name=f"produce-{send.name}").start()

    def _produce(self, clients: KafkaClients, send: Send) -> None:
        topic, _, number = self.log_of(send.partition).rpartition("-")
        request = clients.producer.request(send, topic, int(number))
        end_s = time.monotonic() + self._cluster.paced_ms(integer(self._config, "delivery.timeout.ms")) / 1000
        while time.monotonic() < end_s and not self._closed.is_set():
            for broker in self.replicas[send.partition]:
                node = self._cluster.node(broker)
                if node.alive and not node.paused and self._is_acked(node.client_port, request, send):
                    return
            self._closed.wait(_RETRY_S)

    def _is_acked(self, port: int, request: Any, send: Send) -> bool:
        try:
            answer = wire.ask(port, request, _ANSWER_S).responses[0].partition_responses[0]
        except wire.RETRIABLE:
            return False
        if answer.error_code:
            return False
        fields = {"record": send.first_id, "count": send.count, "offset": answer.base_offset, "acks": send.acks}
        self._observer.add_step(ACK.name, **fields, partition=send.partition)
        return True

    # Observation.

    def look(self) -> None:
        """Report the batches that were appended since the last look."""
        for name, brokers in self.replicas.items():
            for broker in brokers:
                self._look_at(name, broker, self._folder(name, broker))

    def _folder(self, name: str, broker: int) -> Path:
        node, log = self._cluster.node(broker), self.log_of(name)
        return node.contents(node.place_of(log)) / log

    def _look_at(self, name: str, broker: int, folder: Path) -> None:
        seen = self._ends[name, broker]
        for batch in files.read_log(folder):
            if batch.last_offset >= seen:
                self._ends[name, broker] = batch.last_offset + 1
                fields = {"offset": batch.base_offset, "last": batch.last_offset, "leader_epoch": batch.leader_epoch}
                self._observer.add_step(APPEND.name, broker=broker, **fields, record=batch.first_id, partition=name)


def alter_log_directory(node: KafkaNode, place: int, topic: str, partitions: Iterable[int]) -> None:
    """Ask a broker to move its replicas of partitions to a log directory, or to create them there.

    Kafka: ReplicaManager#alterReplicaLogDirs.

    Raises:
        TimeoutError: it does not answer.
    """
    from kafka.protocol.admin import AlterReplicaLogDirsRequest

    directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    wanted = directory.AlterReplicaLogDirTopic(name=topic, partitions=list(partitions))
    request = AlterReplicaLogDirsRequest(version=1, dirs=[directory(path=str(node.directory(place)), topics=[wanted])])
    end_s = time.monotonic() + _PLACED_S
    while not _is_taken(node.client_port, request):
        if time.monotonic() > end_s:
            raise TimeoutError(f"broker {node.id} took no log directory for {topic}")
        time.sleep(_RETRY_S)


def _is_taken(port: int, request: Any) -> bool:
    """Whether a broker answers a request; it says that it has no such replica yet."""
    try:
        wire.ask(port, request, _ANSWER_S)
    except wire.RETRIABLE:
        return False
    return True
