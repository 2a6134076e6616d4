"""The topics of a scenario on real brokers: how they are created, and the log directories of their replicas."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm import wire
from highwater.lab.confirm.partitions import TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from highwater.lab.confirm.clients import KafkaAdminClient
    from highwater.lab.confirm.cluster import KafkaCluster, KafkaNode
    from scenarios.format.scenario import Topic

_RETRY_S: Final = 0.1
_ANSWER_S: Final = 6.0
_PLACED_S: Final = 15.0


def create_topics(cluster: KafkaCluster, administrator: KafkaAdminClient, topics: Sequence[Topic]) -> None:
    """Create the topics of the cluster's partitions, in the log directories that the scenario's `topics` say.

    Raises:
        TimeoutError: the cluster rejected one, or a broker has no such directory.
    """
    for place, topic in enumerate(topics):
        if topic.directory is not None:
            # Each broker keeps in mind where it is to create replicas of a topic that does not exist yet.
            for node in cluster.brokers.values():
                name = topic.name if place else TOPIC
                alter_log_directory(node, topic.directory or 1, name, range(topic.partitions))
    replicas: dict[str, list[list[int]]] = {}
    for partition in cluster.partitions:
        replicas.setdefault(partition.topic, []).append(list(partition.replicas))
    for topic_name, assigned in replicas.items():
        administrator.create_topic(assigned, cluster.history.controller, topic_name)


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
