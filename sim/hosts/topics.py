"""The partitions of a cluster with their clients; topics that are created, enlarged and deleted while it runs.

A topic that is created again under the name of a deleted one is another topic: its partitions have a history, files and
clients of their own, and a number after their names in place of Kafka's topic id (`sim.protocol.messages.TOPIC_ID`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from sim.environment.log_directories import LogDirectories
from sim.history import steps
from sim.hosts.client import CLIENTS_EACH, CONSUMER, PRODUCER, VALIDATOR, ClientSetup
from sim.hosts.consumer import Consumer
from sim.hosts.control_plane import ControlPlane, PartitionSetup
from sim.hosts.links import Links
from sim.hosts.producer import Producer
from sim.hosts.shared_producer import PartitionProducer, SharedProducer
from sim.protocol.batch import Batch
from sim.protocol.client.consumer_position import FetchPosition
from sim.protocol.messages import NO_EPOCH, TOPIC_ID

MOST_PARTITIONS: Final = 400
"""Most partitions that a run may create, including deleted ones."""


@dataclass(frozen=True, slots=True)
class TopicPartition:
    """A partition of a cluster.

    Attributes:
        name: topic and number.
        replication_factor: number of its replicas.
        min_isr: ``min.insync.replicas`` of its topic; None: that of the cluster.
        idle: whether nothing is written to it, or read, before everything is healed.
    """

    name: str
    replication_factor: int
    min_isr: int | None = None
    idle: bool = False


@dataclass(frozen=True, slots=True)
class ClusterTopic:
    """A topic that may be created, enlarged or deleted while the cluster runs.

    Attributes:
        name: its name.
        partitions: number of its partitions when it is created.
        created: whether it exists from the start.
        spared: whether no random plan deletes it, because faults that name no partition are about its first one.
        replication_factor: see `TopicPartition`; so `min_isr` and `idle`.
    """

    name: str
    partitions: int
    replication_factor: int
    min_isr: int | None = None
    idle: bool = False
    created: bool = True
    spared: bool = False


class ClusterPartition:
    """A partition with its clients.

    Attributes:
        place: its place among the cluster's partitions.
        idle: see `TopicPartition`.
        recorder: records its steps.
        setup: arguments of its clients.
        shared: the producers that send to it and to all other partitions; none: it has producers of its own.
        deleted: whether its topic was deleted.
    """

    def __init__(
        self, name: str, place: int, setup: ClientSetup, *, idle: bool, shared: Sequence[SharedProducer] = ()
    ) -> None:
        self.name = name
        self.place = place
        self.idle = idle
        self.recorder = setup.recorder
        self.setup = setup
        self.shared = shared
        self.deleted = False
        self._producers: list[Producer] = []
        self._consumer: Consumer | None = None

    @property
    def producers(self) -> list[Producer]:
        """Its producers, which an idle partition gets when they are needed."""
        if not self._producers and self.shared:
            nodes = zip(self.producer_nodes, self.shared, strict=True)
            self._producers = [PartitionProducer(node, self.setup, shared) for node, shared in nodes]
        elif not self._producers:
            ids = count(1)
            self._producers = [Producer(node, self.setup, ids) for node in self.producer_nodes]
        return self._producers

    @property
    def producer(self) -> Producer:
        """The first of its producers."""
        return self.producers[0]

    @property
    def consumer(self) -> Consumer:
        """Its consumer, which an idle partition gets when it is needed."""
        if self._consumer is None:
            self._consumer = Consumer(CONSUMER + CLIENTS_EACH * self.place, self.setup)
        return self._consumer

    @property
    def has_clients(self) -> bool:
        """Whether its clients were needed so far."""
        return len(self._producers) > 0

    @property
    def size(self) -> int:
        """Number of objects that its producers keep."""
        return sum([producer.size for producer in self._producers])

    @property
    def writes_answered(self) -> bool:
        """Whether no producer waits to send a batch, or for an answer."""
        return all(producer.idle for producer in self._producers)

    @property
    def producer_node(self) -> int:
        """The node of its first producer."""
        return PRODUCER + CLIENTS_EACH * self.place

    @property
    def producer_nodes(self) -> list[int]:
        """The nodes of its producers; those of further ones are beyond all first ones (`like_first`)."""
        each = CLIENTS_EACH * MOST_PARTITIONS
        return [self.producer_node + each * number for number in range(self.setup.producers)]

    def join(self) -> None:
        """Connect producers and consumer, unless they are."""
        network = self.setup.network
        if self.producer_node not in network.nodes:
            for producer in self.producers:
                network.join(producer)
            network.join(self.consumer)

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        for producer in self._producers:
            producer.dispose()
        if self._consumer is not None:
            self._consumer.dispose()

    def validator(self, position: int, observe: Callable[[Sequence[Batch]], None]) -> Consumer:
        """A new consumer that reads from an offset on and passes each read to a callback."""
        node = VALIDATOR + CLIENTS_EACH * self.place
        consumer = Consumer(node, self.setup, position=position, observe=observe)
        consumer.leader = self.producer.leader
        consumer.leader_epoch = self.producer.leader_epoch
        consumer.cursor.seek_validated(FetchPosition(position, NO_EPOCH, consumer.leader, consumer.leader_epoch))
        self.recorder.record(steps.Position(steps.SEEK, node, position))
        network = self.setup.network
        earlier = network.nodes.get(node)
        if earlier is not None:
            network.leave(earlier, silently=True)
        network.join(consumer)
        return consumer


class Topics:
    """Creates and deletes topics, and adds partitions, as an administrator does.

    Args:
        topics: the topics, which exist or may be created; none of a cluster whose partitions stay.
        partitions: the cluster's partitions, to which new ones are added; deleted ones stay in the list.
        control: the control plane.
        min_isrs: ``min.insync.replicas`` by partition, for brokers and controllers.
        links: the cluster's links: faults of those between brokers and producers are also those of new producers.
        directories: broker -> its log directories.

    Attributes:
        added: called with each new partition, before anything is recorded of it.
        removed: called with each partition of a topic that was deleted.
    """

    def __init__(
        self,
        topics: Sequence[ClusterTopic],
        partitions: list[ClusterPartition],
        control: ControlPlane,
        min_isrs: dict[str, int],
        links: Links,
        directories: Mapping[int, LogDirectories],
    ) -> None:
        self._links = links
        self._directories = directories
        self._topics = {topic.name: topic for topic in topics}
        self._partitions = partitions
        self._control = control
        self._setup = partitions[0].setup
        self._recorder = self._setup.recorder
        self._min_isrs = min_isrs
        self._ids = {topic.name: int(topic.created) for topic in topics}
        self._names: dict[str, list[str]] = {
            topic.name: [f"{topic.name}-{number}" for number in range(topic.partitions)] if topic.created else []
            for topic in topics
        }
        self._deleted_by: list[tuple[object, str]] = []
        self._awaited: list[str] = []
        """Topics to be created once those of their names are gone."""
        control.gone = self._gone
        self.added: Callable[[ClusterPartition], None] | None = None
        self.removed: Callable[[ClusterPartition], None] | None = None

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        self.added = self.removed = None
        self._control.gone = None
        self._partitions = []
        self._directories = {}

    @property
    def existing(self) -> list[str]:
        """The topics that exist and that a random plan may delete."""
        return [name for name, topic in self._topics.items() if self._names[name] and not topic.spared]

    @property
    def all_existing(self) -> list[str]:
        """The topics that exist."""
        return [name for name, names in self._names.items() if names]

    @property
    def missing(self) -> list[str]:
        """The topics that do not exist, and can be created."""
        deletions = self._control.deletions
        return [name for name in self._topics if not self._names[name] and name not in deletions]

    def names(self, topic: str) -> tuple[str, ...]:
        """The names of a topic's partitions; none if there is no such topic."""
        return tuple(self._names.get(topic, ()))

    def create(self, topic: str) -> bool:
        """Create a topic; False if it exists, under ZooKeeper also while it is being deleted, or if the controller does
        not create it.

        Kafka: ReplicationControlManager#createTopics, AdminZkClient#createTopicWithAssignment (2.6-3.9).
        """
        about = self._topics.get(topic)
        if about is None or self._names[topic] or topic in self._control.deletions:
            return False
        number = self._ids[topic] + 1
        suffix = f"{TOPIC_ID}{number}" if number > 1 else ""
        names = [f"{topic}-{place}{suffix}" for place in range(about.partitions)]
        if not self._create(about, names, about.replication_factor):
            return False
        self._ids[topic] = number
        return True

    def enlarge(self, topic: str) -> bool:
        """Add a partition to a topic, with as many replicas as its first one has now; False if the controller does
        not. Kafka: ReplicationControlManager#createPartitions.
        """
        names = self._names.get(topic)
        if not names:
            return False
        number = self._ids[topic]
        suffix = f"{TOPIC_ID}{number}" if number > 1 else ""
        factor = len(self._control.state_of(names[0]).replicas)
        return self._create(self._topics[topic], [f"{topic}-{len(names)}{suffix}"], factor)

    def _create(self, topic: ClusterTopic, names: list[str], replication_factor: int) -> bool:
        if len(self._partitions) + len(names) > MOST_PARTITIONS:
            return False
        control = self._control
        placed = control.place(len(self._partitions), len(names), replication_factor)
        if not placed:
            takers = [broker for broker, own in self._directories.items() if not all(one.cordoned for one in own.all)]
            self._recorder.record(steps.TopicRefused(replication_factor, takers))
            return False
        found = []
        for name, replicas in zip(names, placed, strict=True):
            recorder = self._recorder.add_partition(name)
            partition = ClusterPartition(
                name,
                len(self._partitions),
                replace(self._setup, topic=name, recorder=recorder),
                idle=topic.idle,
                shared=self._partitions[0].shared,
            )
            self._partitions.append(partition)
            for node in partition.producer_nodes:
                self._links.include(node, PRODUCER)
            if self.added is not None:
                self.added(partition)
            self._recorder.catch_up(recorder)
            if topic.min_isr is not None:
                self._min_isrs[name] = topic.min_isr
            found.append(PartitionSetup(name, replicas, topic.min_isr, recorder))
            if not partition.idle:
                partition.join()
        self._recorder.record(steps.TopicChange(steps.TOPIC_CREATED, tuple(names)))
        control.create_partitions(found)
        self._names[topic.name] += names
        return True

    def delete(self, topic: str, by: object = None) -> bool:
        """Delete a topic; False if there is none or no other one, or the controller does not delete it. See `restore`
        for `by`. Under ZooKeeper, the topic is there until all its replicas are deleted.

        Kafka: ReplicationControlManager#deleteTopics, AdminZkClient#deleteTopic (1.1-3.9).
        """
        names = self.names(topic)
        if not names or len(self.all_existing) < 2 or not self._control.delete_topic(names):
            return False
        self._names[topic] = []
        for partition in self._partitions:
            if partition.name in names:
                partition.deleted = True
                if self.removed is not None:
                    self.removed(partition)
        self._deleted_by.append((by, topic))
        return True

    def restore(self, by: object) -> bool:
        """Create another topic of the name of the one that was deleted with this `by`; False if there is one.

        Under ZooKeeper, an administrator repeats the request until the deletion is complete.
        """
        topic = next((topic for cause, topic in self._deleted_by if cause == by), "")
        self._deleted_by = [entry for entry in self._deleted_by if entry[0] != by]
        if topic in self._control.deletions:
            self._awaited.append(topic)
        return self.create(topic)

    def _gone(self, topic: str) -> None:
        """Create a topic that was to be created before; see `restore`."""
        if topic in self._awaited:
            self._awaited.remove(topic)
            self.create(topic)
