"""Changes of partitions' states: creation and elections, and writing them.

The decisions are in `sim.protocol.zookeeper.zk_operations`, the election algorithms in
`sim.protocol.zookeeper.election`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from sim.protocol.decisions import Decisions
from sim.protocol.zookeeper.controller_broker_request_batch import ControllerBrokerRequestBatch
from sim.protocol.zookeeper.controller_context import ControllerContext
from sim.protocol.zookeeper.zk_operations import (
    Assign,
    CreatePartition,
    ElectForShutdown,
    ElectOffline,
    ElectPreferred,
    ElectReassigned,
    Operation,
    RaiseEpoch,
    Steps,
    UpdateState,
)


class PartitionStateMachine:
    """Changes of partitions' states by one controller, of several partitions at a time.

    Kafka: PartitionStateMachine, ZkPartitionStateMachine (2.6-3.9).

    Attributes:
        unclean_election: ``unclean.leader.election.enable``; may change.
        refused: the partitions whose last change was refused, because a newer controller has written their states.
    """

    def __init__(
        self,
        context: ControllerContext,
        requests: ControllerBrokerRequestBatch,
        decide: Decisions,
        *,
        unclean_election: bool,
    ) -> None:
        self.unclean_election = unclean_election
        self.refused: set[str] = set()
        self._context = context
        self._requests = requests
        self._decide = decide

    def create(self, names: Sequence[str]) -> Steps:
        """Create partitions: all live replicas are in sync, and the first of them leads. Brokers that shut down do not
        count as live, and get no LeaderAndIsr.

        Without a live replica a partition stays new until one is live.
        Kafka: PartitionStateMachine#initializeLeaderAndIsrForPartition (0.10.2),
        PartitionStateMachine#initializeLeaderAndIsrForPartitions (1.1-2.0),
        ZkPartitionStateMachine#initializeLeaderAndIsrForPartitions (2.6-3.9).
        """
        context = self._context
        if not names:
            return
        yield from self.update_states(CreatePartition(context.epoch, tuple(names), tuple(context.willing())))
        created = [name for name in names if context.exists(name)]
        self._requests.send_to_replicas(created, besides=context.shutting_down)

    def elect_offline(self) -> Steps:
        """Elect leaders of the partitions that are offline.

        A partition whose leader died stays offline until the next election, even if that leader returns earlier.
        Brokers that shut down get no LeaderAndIsr.
        Kafka: PartitionStateMachine#triggerOnlinePartitionStateChange,
        PartitionStateMachine#leaderForOffline (1.1-2.0).
        """
        context = self._context
        new = context.without_queued(context.new)
        if new:
            yield from self.create(new)
        offline = context.without_queued([name for name in context.existing if name in context.offline])
        if not offline:
            return
        live, shutting_down = tuple(context.live), tuple(context.shutting_down)
        elected = yield from self._elect(
            ElectOffline(context.epoch, tuple(offline), live, shutting_down, unclean=self.unclean_election)
        )
        self._requests.send_to_replicas(elected, besides=shutting_down)

    def elect_preferred(self, names: Sequence[str]) -> Steps:
        """Elect the first replicas of partitions, if possible.

        Kafka: PreferredReplicaPartitionLeaderElectionStrategy (1.1-3.9).
        """
        context = self._context
        existing = tuple(context.without_queued([name for name in names if context.exists(name)]))
        if existing:
            yield from self.elect_and_send(
                ElectPreferred(context.epoch, existing, tuple(context.live), tuple(context.shutting_down))
            )

    def elect_for_shutdown(self, names: Sequence[str]) -> Steps:
        """Elect other ISR members of partitions, and send the leader epochs, under ``shutdown_recipients``.

        Kafka: ControlledShutdownPartitionLeaderElectionStrategy (1.1-3.9),
        PartitionStateMachine#leaderForControlledShutdown (1.1-2.0).
        """
        context = self._context
        if not names:
            return
        shutting_down = tuple(context.shutting_down)
        elected = yield from self._elect(
            ElectForShutdown(context.epoch, tuple(names), tuple(context.live), shutting_down)
        )
        if elected:
            tells_all = self._decide.stopping_brokers_get_new_leaders.yes()
            self._requests.send_to_replicas(elected, besides=() if tells_all else shutting_down)

    def elect_reassigned(self, name: str, target: tuple[int, ...]) -> Steps:
        """Elect a replica of the new assignment.

        If one already leads, it gets a new leader epoch, unless it is shutting down.
        Kafka: ReassignPartitionLeaderElectionStrategy (1.1-3.9),
        KafkaController#moveReassignedPartitionLeaderIfRequired.
        """
        context = self._context
        leader = context.states[name].leader
        if leader in target and leader in context.willing():
            yield from self.update_states(RaiseEpoch(context.epoch, (name,)))
            return
        live, shutting_down = tuple(context.live), tuple(context.shutting_down)
        yield from self._elect(ElectReassigned(context.epoch, (name,), live, shutting_down, target))

    def update_states(self, update: UpdateState) -> Steps:
        """Decide on the states in ZooKeeper, and write the decisions, if any.

        Those that a newer controller has written already are `refused`.
        Kafka: PartitionStateMachine#doElectLeaderForPartitions (1.1-2.0),
        ZkPartitionStateMachine#doElectLeaderForPartitions (2.6-3.9), ZkReplicaStateMachine#doRemoveReplicasFromIsr
        (2.6-3.9).
        """
        self.refused.update(update.names)
        for state in (yield update):
            self._context.states[state.name] = state
            self.refused.discard(state.name)

    def assign(self, name: str, replicas: tuple[int, ...]) -> Steps:
        """Write only another assignment.

        Kafka: KafkaController#updateAssignedReplicasForPartition (0.10.2-2.0),
        KafkaController#updateReplicaAssignmentForPartition (2.6-3.9).
        """
        self._context.states[name] = yield Assign(self._context.epoch, name, replicas)

    def _elect(self, update: UpdateState) -> Generator[Operation, Any, list[str]]:
        """Run elections; a partition for which a leader is elected is online. Returns these partitions.

        Kafka: PartitionStateMachine#electLeaderForPartition (0.10.2), PartitionStateMachine#electLeaderForPartitions
        (1.1-2.0), ZkPartitionStateMachine#electLeaderForPartitions (2.6-3.9).
        """
        before = self._context.leader_epochs(update.names)
        yield from self.update_states(update)
        elected = self._context.raised(before)
        self._context.offline.difference_update(elected)
        return elected

    def elect_and_send(self, update: UpdateState) -> Steps:
        """`_elect`, and send new leader epochs to replicas. Kafka: PartitionStateMachine#handleStateChanges."""
        self._requests.send_to_replicas((yield from self._elect(update)))
