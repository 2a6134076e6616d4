"""An elected controller's state: brokers and partitions."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

from sim.protocol.messages import LeaderAndIsr, topic_of
from sim.protocol.replica.partition import NO_LEADER

NO_STATE: Final = LeaderAndIsr("", NO_LEADER, -1, (), -1, ())
"""The first partition's state before a controller has read any."""


class ControllerContext:
    """A controller's state. Kafka: ControllerContext.

    Attributes:
        epoch: its controller epoch, -1 while it is not elected.
        live: registered brokers with their broker epochs.
        shutting_down: live brokers in controlled shutdown.
        states: the cached states of partitions by name, that of the first partition first; leader epoch -1 before the
            partition exists.
        targets: the requested reassignments by partition.
        offline: partitions that wait for an election (OfflinePartition).
        topics_to_be_deleted: topics whose deletion was requested, in the order of the requests.
        topics_with_deletion_started: those of them whose replicas the controller has begun to delete.
        topics_ineligible_for_deletion: topics that are not to be deleted at present: a replica is not online or could
            not be deleted, or a partition is being reassigned.
        replica_states: (partition, broker) -> its state, of the topics to be deleted only.
    """

    def __init__(self) -> None:
        self.epoch = -1
        self.live: dict[int, int] = {}
        self.shutting_down: dict[int, None] = {}
        self.states: dict[str, LeaderAndIsr] = {}
        self.targets: dict[str, tuple[int, ...]] = {}
        self.offline: set[str] = set()
        self.topics_to_be_deleted: dict[str, None] = {}
        self.topics_with_deletion_started: set[str] = set()
        self.topics_ineligible_for_deletion: set[str] = set()
        self.replica_states: dict[tuple[str, int], str] = {}

    def reset(self) -> None:
        """Reset, because the controller resigned.

        Kafka: ControllerContext#resetContext (2.0-3.9), KafkaController#resetControllerContext (1.1).
        """
        self.epoch = -1
        self.live.clear()
        self.shutting_down.clear()
        self.states.clear()
        self.targets.clear()
        self.offline.clear()
        self.topics_to_be_deleted.clear()
        self.topics_with_deletion_started.clear()
        self.topics_ineligible_for_deletion.clear()
        self.replica_states.clear()

    @property
    def first(self) -> LeaderAndIsr:
        """The state of the first partition."""
        for state in self.states.values():
            return state
        return NO_STATE

    def exists(self, name: str) -> bool:
        """Whether a partition exists."""
        state = self.states.get(name)
        return state is not None and state.leader_epoch >= 0

    @property
    def existing(self) -> list[str]:
        """The partitions that exist."""
        return [name for name, state in self.states.items() if state.leader_epoch >= 0]

    @property
    def new(self) -> list[str]:
        """The partitions whose topic exists and none of whose replicas has been live so far. Kafka: NewPartition."""
        return [name for name, state in self.states.items() if state.partition_epoch >= 0 > state.leader_epoch]

    def willing(self) -> list[int]:
        """Live brokers that are not shutting down. Kafka: ControllerContext#liveBrokerIds."""
        return [broker for broker in self.live if broker not in self.shutting_down]

    def replicas(self, name: str) -> list[int]:
        """Live replicas of a partition, including those that shut down.

        Kafka: ControllerContext#liveOrShuttingDownBrokerIds.
        """
        return [broker for broker in self.states[name].replicas if broker in self.live]

    def partitions_on(self, broker: int) -> list[str]:
        """The existing partitions with a replica on a broker. Kafka: ControllerContext#partitionsOnBroker."""
        return [name for name in self.existing if broker in self.states[name].replicas]

    def leader_epochs(self, names: Iterable[str]) -> dict[str, int]:
        """The leader epochs of partitions."""
        return {name: self.states[name].leader_epoch if name in self.states else -1 for name in names}

    def raised(self, before: dict[str, int]) -> list[str]:
        """The partitions whose leader epoch is higher than `before`."""
        after = self.leader_epochs(before)
        return [name for name, epoch in before.items() if after[name] > epoch]

    # Topics to be deleted.

    def is_queued(self, name: str) -> bool:
        """Whether the topic of a partition is to be deleted.

        Kafka: ControllerContext#isTopicQueuedUpForDeletion (2.6-3.9), TopicDeletionManager#isTopicQueuedUpForDeletion.
        """
        return len(self.topics_to_be_deleted) > 0 and topic_of(name) in self.topics_to_be_deleted

    def without_queued(self, names: list[str]) -> list[str]:
        """Those of these partitions whose topics are not to be deleted."""
        return [name for name in names if not self.is_queued(name)] if self.topics_to_be_deleted else names

    def partitions_of(self, topic: str) -> list[str]:
        """The partitions of a topic. Kafka: ControllerContext#partitionsForTopic."""
        return [name for name in self.states if topic_of(name) == topic]

    def replicas_of(self, topic: str) -> list[tuple[str, int]]:
        """The replicas of a topic, as (partition, broker). Kafka: ControllerContext#replicasForTopic."""
        return [(name, broker) for name in self.partitions_of(topic) for broker in self.states[name].replicas]

    def replicas_to_be_deleted(self, brokers: Container[int]) -> list[tuple[str, int]]:
        """The replicas on these brokers of the topics to be deleted."""
        topics = self.topics_to_be_deleted
        return [replica for topic in topics for replica in self.replicas_of(topic) if replica[1] in brokers]

    def remove_topic(self, topic: str) -> None:
        """Forget a topic that is deleted. If it is ineligible for deletion, so is the next one of that name.

        Kafka: ControllerContext#removeTopic, TopicDeletionManager#completeDeleteTopic.
        """
        for replica in self.replicas_of(topic):
            self.replica_states.pop(replica, None)
        for name in self.partitions_of(topic):
            del self.states[name]
            self.targets.pop(name, None)
            self.offline.discard(name)
        self.topics_with_deletion_started.discard(topic)
        self.topics_to_be_deleted.pop(topic, None)
