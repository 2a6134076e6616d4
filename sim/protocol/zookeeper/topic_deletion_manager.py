"""The deletion of topics by a controller: it waits until each replica is deleted.

A topic is deleted in ZooKeeper, and in the controller's context, only when the brokers of all its replicas have
answered that they deleted them. So a replica on a broker that is not alive delays the deletion until that broker is
back, and no topic of that name can be created meanwhile. The requests to delete topics are nodes in ZooKeeper, which
the next controller reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sim.protocol.messages import NONE, topic_of
from sim.protocol.zookeeper.controller_broker_request_batch import ControllerBrokerRequestBatch
from sim.protocol.zookeeper.controller_context import ControllerContext
from sim.protocol.zookeeper.replica_state_machine import (
    DELETION_INELIGIBLE,
    DELETION_STARTED,
    DELETION_SUCCESSFUL,
    OFFLINE,
    ReplicaStateMachine,
    TopicReplica,
)
from sim.protocol.zookeeper.zk_operations import DeleteTopic, Steps


class TopicDeletionManager:
    """Deletes topics; see the module. Kafka: TopicDeletionManager."""

    def __init__(
        self,
        context: ControllerContext,
        requests: ControllerBrokerRequestBatch,
        replicas: ReplicaStateMachine,
    ) -> None:
        self._context = context
        self._requests = requests
        self._replicas = replicas

    def init(self, topics: Iterable[str]) -> None:
        """Note the topics whose deletion a new controller continues; `resume_deletions` follows.

        Kafka: TopicDeletionManager#init (1.1-3.9), KafkaController#fetchTopicDeletionsInProgress (1.1-3.9).
        """
        context = self._context
        reassigned = {topic_of(name) for name in context.targets}
        for topic in topics:
            context.topics_to_be_deleted[topic] = None
            self._replicas.initialize(topic, dead=DELETION_INELIGIBLE)
            dead = [broker for _, broker in context.replicas_of(topic) if broker not in context.live]
            if dead or topic in reassigned:
                self.mark_ineligible(topic)

    def enqueue(self, topics: Iterable[str]) -> Steps:
        """Delete topics, once they are eligible. Kafka: TopicDeletionManager#enqueueTopicsForDeletion."""
        context = self._context
        reassigned = {topic_of(name) for name in context.targets}
        for topic in topics:
            if topic not in context.topics_to_be_deleted:
                context.topics_to_be_deleted[topic] = None
                self._replicas.initialize(topic, dead=OFFLINE)
            if topic in reassigned:
                self.mark_ineligible(topic)
        yield from self.resume_deletions()

    def mark_ineligible(self, topic: str) -> None:
        """Halt the deletion of a topic, if it is to be deleted.

        Kafka: TopicDeletionManager#markTopicIneligibleForDeletion.
        """
        if topic in self._context.topics_to_be_deleted:
            self._context.topics_ineligible_for_deletion.add(topic)

    def resume_deletion_for(self, topics: Iterable[str]) -> Steps:
        """Continue to delete those of these topics that are to be deleted: a broker with one of their replicas has
        started, or a reassignment is complete.

        Kafka: TopicDeletionManager#resumeDeletionForTopics.
        """
        context = self._context
        resumed = [topic for topic in topics if topic in context.topics_to_be_deleted]
        if resumed:
            context.topics_ineligible_for_deletion.difference_update(resumed)
            yield from self.resume_deletions()

    def fail_deletion(self, replicas: list[TopicReplica]) -> Steps:
        """Halt the deletion of the topics of these replicas, which could not be deleted.

        Kafka: TopicDeletionManager#failReplicaDeletion.
        """
        failed = [(name, broker) for name, broker in replicas if self._context.is_queued(name)]
        if failed:
            self._replicas.fail_deletion(failed)
            for topic in dict.fromkeys([topic_of(name) for name, _ in failed]):
                self.mark_ineligible(topic)
            yield from self.resume_deletions()

    def stop_replica_answered(self, broker: int, errors: Mapping[str, str]) -> Steps:
        """Handle a broker's errors, by partition, to StopReplica with deletion.

        Kafka: KafkaController#processTopicDeletionStopReplicaResponseReceived (2.6-3.9),
        TopicDeletionManager#completeReplicaDeletion.
        """
        yield from self.fail_deletion([(name, broker) for name, error in errors.items() if error != NONE])
        deleted = [(name, broker) for name, error in errors.items() if error == NONE and self._context.is_queued(name)]
        if deleted:
            self._replicas.complete_deletion(deleted)
            yield from self.resume_deletions()

    def resume_deletions(self) -> Steps:
        """Complete deletions, and begin or repeat others.

        Kafka: TopicDeletionManager#resumeDeletions (1.1-3.9), TopicDeletionManager.DeleteTopicsThread#doWork (0.10.2).
        """
        context, replicas = self._context, self._replicas
        repeated: list[TopicReplica] = []
        begun: list[str] = []
        for topic in list(context.topics_to_be_deleted):
            if len(replicas.in_state(topic, DELETION_SUCCESSFUL)) == len(context.replicas_of(topic)):
                yield from self._complete(topic)
            elif not replicas.in_state(topic, DELETION_STARTED):
                repeated += replicas.in_state(topic, DELETION_INELIGIBLE)
                if topic not in context.topics_ineligible_for_deletion:
                    begun.append(topic)
        yield from replicas.take_offline_for_deletion(repeated)
        if begun:
            yield from self._delete_replicas(begun)

    def _complete(self, topic: str) -> Steps:
        """Kafka: TopicDeletionManager#completeDeleteTopic."""
        context = self._context
        yield DeleteTopic(context.epoch, topic, tuple(context.partitions_of(topic)))
        context.remove_topic(topic)

    def _delete_replicas(self, topics: list[str]) -> Steps:
        """Delete the replicas on live brokers. If one is not online, its topic becomes ineligible.

        Brokers first learn that the topics are deleted, then the replicas go offline, then they are deleted.
        Kafka: TopicDeletionManager#onTopicDeletion, TopicDeletionManager#onPartitionDeletion.
        """
        context, replicas = self._context, self._replicas
        partitions = [name for topic in topics for name in context.partitions_of(topic)]
        context.offline.difference_update(partitions)
        context.topics_with_deletion_started.update(topics)
        self._requests.update_metadata(partitions)
        willing = context.willing()
        alive, dead = [], []
        for topic in topics:
            deleted = replicas.in_state(topic, DELETION_SUCCESSFUL)
            for replica in context.replicas_of(topic):
                if replica[1] not in willing:
                    dead.append(replica)
                elif replica not in deleted:
                    alive.append(replica)
        replicas.fail_deletion(dead)
        yield from replicas.take_offline_for_deletion(alive)
        replicas.start_deletion(alive)
        for topic in dict.fromkeys([topic_of(name) for name, _ in dead]):
            self.mark_ineligible(topic)
