"""Reports of the log directories of a broker's replicas to the controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sim.hosts.broker_node import BrokerNode
from sim.protocol.kraft.metadata import PartitionRegistration
from sim.protocol.kraft.quorum_messages import AssignReplicasToDirsRequest
from sim.protocol.messages import LeaderAndIsr

ASSIGN_DELAY_US: Final = 100_000
"""Time for which AssignmentsManager collects assignments before it sends them; here of replicas whose copy is held back
by a quota, because records may be appended meanwhile.
"""
FIRST_RETRY_US: Final = 100_000
LONGEST_RETRY_US: Final = 10_000_000
"""Longest back-off between retries of AssignReplicasToDirs, which doubles each time."""


class AssignmentsManager:
    """See the module. Kafka: AssignmentsManager.

    Args:
        broker: the broker.
        known: the partitions' states in its metadata.

    Attributes:
        pending: partition -> id of its log directory, while that is being reported.
    """

    __slots__ = ("_broker", "_known", "pending")

    def __init__(self, broker: BrokerNode, known: Mapping[str, LeaderAndIsr]) -> None:
        self._broker = broker
        self._known = known
        self.pending: dict[str, int] = {}

    def assign(self, name: str, directory: int, delay_us: int = 0) -> None:
        """Report the log directory of a replica, in place of an earlier one that the metadata does not have yet.

        Kafka: AssignmentsManager#onAssignment, AssignmentsManagerDeadlineFunction.
        """
        self.pending[name] = directory
        entry = name, directory, FIRST_RETRY_US
        if delay_us:
            kernel = self._broker.kernel
            kernel.call_at(kernel.now_us + delay_us, self._broker.life, self._report, entry)
        else:
            self._report(entry)

    def send(self, name: str, directory: int) -> None:
        """Send a report once."""
        broker = self._broker
        broker.to_control(AssignReplicasToDirsRequest(broker.node, broker.broker_epoch, name, directory))

    def _report(self, entry: tuple[str, int, int]) -> None:
        """Report the log directory of a replica until the metadata has it, also after it has failed; the entry has the
        partition, the id of the directory, and the time until the report is repeated.

        Kafka: AssignmentsManager#onAssignment.
        """
        name, directory, retry_us = entry
        if self.pending.get(name) != directory:
            return
        broker, state = self._broker, self._known.get(name)
        if (
            not isinstance(state, PartitionRegistration)
            or broker.node not in state.replicas
            or state.directory(broker.node) == directory
        ):
            del self.pending[name]
            return
        self.send(name, directory)
        later = name, directory, min(2 * retry_us, LONGEST_RETRY_US)
        broker.kernel.call_at(broker.kernel.now_us + retry_us, broker.life, self._report, later)
