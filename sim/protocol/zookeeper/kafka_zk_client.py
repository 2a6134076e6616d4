"""What brokers and controllers can do at ZooKeeper; they request it by the values in
`sim.protocol.zookeeper.zk_operations`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sim.protocol.decisions import Decision
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.mutations import Mutation
from sim.protocol.zookeeper import election

Change = tuple[int, tuple[int, ...], tuple[int, ...]]
"""The result of a decision: (leader, ISR, assignment)."""
Decide = Callable[[LeaderAndIsr, election.Registry], Change | None]
"""Decides on the state and registrations in ZooKeeper; None: no change."""


class ControllerMovedError(Exception):
    """ZooKeeper refused a write of an old controller. Kafka: errors.ControllerMovedException (0.10.2-4.4)."""


class KafkaZkClient(Protocol):
    """Operations at ZooKeeper. Kafka: KafkaZkClient (1.1-3.9)."""

    @property
    def controller(self) -> int:
        """The broker in the controller node, 0 without one. Kafka: KafkaZkClient#getControllerId (1.1-3.9)."""

    @property
    def reached(self) -> Callable[[int], None]:
        """Called with a probe that was reached (`sim.protocol.probes`)."""

    def elect(self, broker: int) -> int:
        """Create the controller node; returns the controller epoch, 0 if the node exists.

        Kafka: KafkaZkClient#registerControllerAndIncrementControllerEpoch (2.6-3.9).
        """

    def write_isr(
        self, known: LeaderAndIsr, isr: tuple[int, ...], members: Mapping[int, int], checks: Decision, mutant: Mutation
    ) -> tuple[str, LeaderAndIsr]:
        """Write an ISR, if the version is unchanged; returns an error, and the state afterwards.

        Kafka: ReplicationUtils#updateLeaderAndIsr.

        Args:
            known: partition epoch and controller epoch as the leader knows them.
            isr: the new ISR.
            members: broker epochs of new members, as the leader knows them.
            checks: whether members must still be registered.
            mutant: the mutant that ignores the version.
        """

    def notify_isr_change(self, names: tuple[str, ...]) -> None:
        """Create an ISR change notification node for partitions.

        Kafka: KafkaZkClient#propagateIsrChanges (1.1-3.9), ReplicationUtils#propagateIsrChanges (0.10.2).
        """

    def brokers(self) -> Mapping[int, int]:
        """Registered brokers and their broker epochs; sets the watch again.

        Kafka: KafkaZkClient#getAllBrokersInCluster (1.1-3.9), KafkaZkClient#getAllBrokerAndEpochsInCluster (2.6-3.9).
        """

    def read(self, names: tuple[str, ...] = ()) -> Sequence[tuple[LeaderAndIsr, tuple[int, ...]]]:
        """The states of partitions, by default of all, with their requested reassignments (empty: none).

        Kafka: KafkaZkClient#getTopicPartitionStates (1.1-3.9), KafkaZkClient#getPartitionReassignment (1.1-3.9).
        """

    def registry(self) -> election.Registry:
        """The latest registration of each broker, including those with ended sessions."""

    def update_state(self, controller_epoch: int, name: str, decide: Decide, *, fenced: Decision) -> LeaderAndIsr:
        """Read a partition's state, decide, and write it; if the version changed meanwhile, start over. Returns the
        state afterwards.

        Kafka: KafkaZkClient#getTopicPartitionStatesRaw (1.1-3.9), KafkaZkClient#updateLeaderAndIsr (1.1-3.9).

        Raises:
            ControllerMovedError: there is a newer controller.
        """

    def assign(self, controller_epoch: int, name: str, replicas: tuple[int, ...], *, fenced: Decision) -> LeaderAndIsr:
        """Write the assignment of a partition, which is stored separately from its state. Returns the state afterwards.

        Kafka: KafkaZkClient#setTopicAssignment (1.1-3.9).

        Raises:
            ControllerMovedError: there is a newer controller.
        """

    def delete_reassignment(self, name: str) -> None:
        """Delete the reassignment request of a partition.

        Kafka: KafkaZkClient#deletePartitionReassignment (1.1-3.9).
        """

    def exists(self, name: str) -> bool:
        """Whether there is a node of a partition."""

    def topic_deletions(self) -> tuple[str, ...]:
        """The topics whose deletion was requested. Kafka: KafkaZkClient#getTopicDeletions (1.1-3.9)."""

    def delete_topic(self, controller_epoch: int, topic: str, names: tuple[str, ...], *, fenced: Decision) -> None:
        """Delete a topic with these partitions, then the request.

        Kafka: KafkaZkClient#deleteTopicZNode (1.1-3.9), KafkaZkClient#deleteTopicDeletions (1.1-3.9).

        Raises:
            ControllerMovedError: there is a newer controller.
        """
