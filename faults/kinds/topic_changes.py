"""Changes of topics while the cluster runs: creation, deletion, and another partition.

An administrator requests them. The topic is named, or the plan's number picks one of those that exist or are missing
when the fault strikes; a number never picks the first topic for deletion. The only topic cannot be deleted. Under
ZooKeeper a deletion is complete, and the name free, only when all replicas are deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from faults.bounds import Limits
from faults.kind import CLUSTER, DISTURBED, MS, Duration, FaultKind, Param, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import Stream, integer
from sim.native import mypyc_attr

_MANY: Final = 1 << 16
"""Numbers of plans are below this."""


OF_TOPICS: Final = ("topic-creation", "topic-deletion", "partition-creation")
"""Names of the kinds: their `Fault.partition` is a topic."""


def _picked(fault: Fault, topics: Sequence[str]) -> str:
    """The topic that a fault names, or the one that its number picks; empty if there is none."""
    if fault.partition:
        return fault.partition
    return topics[fault.value % len(topics)] if topics else ""


@mypyc_attr(allow_interpreted_subclasses=True)
class TopicChangeFault(FaultKind):
    """A change of one topic."""

    targets: ClassVar[Targets] = CLUSTER
    named: ClassVar[str] = "topic"
    """Kind of the script's parameter ``topic``."""

    def draw(self, stream: Stream, limits: Limits) -> Fault:
        """Draw time, number and duration."""
        at_us = integer(stream, *limits.window_us)
        value = integer(stream, 0, _MANY - 1)
        return Fault(self.name, at_us, (self.targets.implied,), self.draw_lasts_us(stream, limits), value=value)

    def params(self) -> dict[str, Param]:
        """The topic, and for how long it is gone."""
        found = {"topic": Param(self.named, required=True)}
        if self.duration is not None:
            found[self.duration.param] = MS
        return found

    def scripted(self, params: Mapping[str, Any], at_us: int) -> Fault:
        duration = self.duration
        lasts_ms = -1 if duration is None else params.get(duration.param, -1)
        lasts_us = 1_000 * lasts_ms if lasts_ms >= 0 else -1
        return Fault(self.name, at_us, (self.targets.implied,), lasts_us, partition=params["topic"])


class TopicCreation(TopicChangeFault):
    """Kafka: ReplicationControlManager#createTopics, KafkaController#processTopicChange (2.6-3.9)."""

    name: ClassVar[str] = "topic-creation"
    meaning: ClassVar[str] = "create a topic that does not exist"
    remains: ClassVar[str] = "the topic stays"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Create it; False if it exists, or the controller refuses."""
        return cluster.topics.create(_picked(fault, cluster.topics.missing))


class TopicDeletion(TopicChangeFault):
    """Kafka: ReplicationControlManager#deleteTopics, TopicDeletionManager."""

    name: ClassVar[str] = "topic-deletion"
    meaning: ClassVar[str] = "delete a topic; after the duration another topic of that name is created"
    duration: ClassVar[Duration | None] = DISTURBED
    named: ClassVar[str] = "deletable-topic"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Delete it; False if there is none or no other one, or no controller is active."""
        return cluster.topics.delete(_picked(fault, cluster.topics.existing), by=fault)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Create another topic of that name, unless there is one."""
        cluster.topics.restore(by=fault)


class PartitionCreation(TopicChangeFault):
    """Kafka: ReplicationControlManager#createPartitions, KafkaController#processPartitionModifications (2.6-3.9)."""

    name: ClassVar[str] = "partition-creation"
    meaning: ClassVar[str] = "add a partition to a topic"
    remains: ClassVar[str] = "the partition stays"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Add it; False if there is no such topic, or the controller refuses."""
        return cluster.topics.enlarge(_picked(fault, cluster.topics.all_existing))
