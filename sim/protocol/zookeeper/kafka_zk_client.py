"""A controller's operations at ZooKeeper, and how its handlers request them.

A handler is a generator: it yields a request and resumes with the result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Protocol

from sim.protocol.decisions import Decision
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.zookeeper import election

Change = tuple[int, tuple[int, ...], tuple[int, ...]]
"""The result of a decision: (leader, ISR, assignment)."""
Decide = Callable[[LeaderAndIsr, election.Registry], Change | None]
"""Decides on the state and registrations in ZooKeeper; None: no change."""


class ControllerMovedError(Exception):
    """ZooKeeper refused a write of an old controller. Kafka: errors.ControllerMovedException (0.10.2-4.4)."""


class KafkaZkClient(Protocol):
    """A controller's operations at ZooKeeper; each call is a round trip. Kafka: KafkaZkClient (1.1-3.9)."""

    def brokers(self) -> Mapping[int, int]:
        """Registered brokers and their broker epochs; sets the watch again.

        Kafka: KafkaZkClient#getAllBrokersInCluster (1.1-3.9), KafkaZkClient#getAllBrokerAndEpochsInCluster (2.6-3.9).
        """

    def read(self) -> tuple[LeaderAndIsr, tuple[int, ...]]:
        """The partition's state, and the requested reassignment (empty: none).

        Kafka: KafkaZkClient#getTopicPartitionStates (1.1-3.9), KafkaZkClient#getPartitionReassignment (1.1-3.9).
        """

    def registry(self) -> election.Registry:
        """The latest registration of each broker, including those with ended sessions."""

    def update_state(self, controller_epoch: int, decide: Decide, *, fenced: Decision) -> LeaderAndIsr:
        """Read the state, decide, and write it; if the version changed meanwhile, start over. Returns the state
        afterwards.

        Kafka: KafkaZkClient#getTopicPartitionStatesRaw (1.1-3.9), KafkaZkClient#updateLeaderAndIsr (1.1-3.9).

        Raises:
            ControllerMovedError: there is a newer controller.
        """

    def assign(self, controller_epoch: int, replicas: tuple[int, ...], *, fenced: Decision) -> LeaderAndIsr:
        """Write the assignment, which is stored separately from the partition's state. Returns the state afterwards.

        Kafka: KafkaZkClient#setTopicAssignment (1.1-3.9).

        Raises:
            ControllerMovedError: there is a newer controller.
        """

    def delete_reassignment(self) -> None:
        """Delete the reassignment request. Kafka: KafkaZkClient#deletePartitionReassignment (1.1-3.9)."""


Operation = Callable[[KafkaZkClient], Any]
Steps = Generator[Operation, Any, None]
