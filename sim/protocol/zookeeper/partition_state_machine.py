"""Changes of the partition's state: creation and elections, and writing them.

The decisions are in `sim.protocol.zookeeper.zk_operations`, the election algorithms in
`sim.protocol.zookeeper.election`.
"""

from __future__ import annotations

from sim.protocol.zookeeper.controller_broker_request_batch import ControllerBrokerRequestBatch
from sim.protocol.zookeeper.controller_context import ControllerContext
from sim.protocol.zookeeper.zk_operations import (
    Assign,
    CreatePartition,
    ElectForShutdown,
    ElectOffline,
    ElectPreferred,
    ElectReassigned,
    RaiseEpoch,
    Steps,
    UpdateState,
)


class PartitionStateMachine:
    """Changes of the partition's state by one controller.

    Kafka: PartitionStateMachine, ZkPartitionStateMachine (2.6-3.9).

    Attributes:
        unclean_election: ``unclean.leader.election.enable``; may change.
    """

    def __init__(
        self,
        context: ControllerContext,
        requests: ControllerBrokerRequestBatch,
        *,
        unclean_election: bool,
    ) -> None:
        self.unclean_election = unclean_election
        self._context = context
        self._requests = requests

    def create(self) -> Steps:
        """Create a partition: all live replicas are in sync, and the first of them leads.

        Without a live replica it stays new until one is live.
        Kafka: PartitionStateMachine#initializeLeaderAndIsrForPartition (0.10.2),
        PartitionStateMachine#initializeLeaderAndIsrForPartitions (1.1-2.0),
        ZkPartitionStateMachine#initializeLeaderAndIsrForPartitions (2.6-3.9).
        """
        yield from self.update_state(CreatePartition(self._context.epoch, tuple(self._context.willing())))
        if self._context.exists:
            self._requests.send_state(self._context.replicas())

    def elect_offline(self) -> Steps:
        """Elect a leader if the partition is offline.

        A partition whose leader died stays offline until the next election, even if that leader returns earlier.
        Kafka: PartitionStateMachine#triggerOnlinePartitionStateChange.
        """
        if self._context.is_new:
            yield from self.create()
        if not self._context.exists or not self._context.is_offline:
            return
        context = self._context
        yield from self.elect_and_send(
            ElectOffline(
                context.epoch, tuple(context.live), tuple(context.shutting_down), unclean=self.unclean_election
            )
        )

    def elect_preferred(self) -> Steps:
        """Elect the first replica, if possible. Kafka: PreferredReplicaPartitionLeaderElectionStrategy (1.1-3.9)."""
        context = self._context
        if context.exists:
            yield from self.elect_and_send(
                ElectPreferred(context.epoch, tuple(context.live), tuple(context.shutting_down))
            )

    def elect_for_shutdown(self) -> Steps:
        """Elect another ISR member. Kafka: ControlledShutdownPartitionLeaderElectionStrategy (1.1-3.9)."""
        context = self._context
        yield from self.elect_and_send(
            ElectForShutdown(context.epoch, tuple(context.live), tuple(context.shutting_down))
        )

    def elect_reassigned(self, target: tuple[int, ...]) -> Steps:
        """Elect a replica of the new assignment.

        If one already leads, it gets a new leader epoch, unless it is shutting down.
        Kafka: ReassignPartitionLeaderElectionStrategy (1.1-3.9),
        KafkaController#moveReassignedPartitionLeaderIfRequired.
        """
        context = self._context
        if context.state.leader in target and context.state.leader in context.willing():
            yield from self.update_state(RaiseEpoch(context.epoch))
            return
        yield from self._elect(
            ElectReassigned(context.epoch, tuple(context.live), tuple(context.shutting_down), target)
        )

    def update_state(self, update: UpdateState) -> Steps:
        """Decide on the state in ZooKeeper, and write the decision, if any.

        Kafka: PartitionStateMachine#doElectLeaderForPartitions (1.1-2.0),
        ZkPartitionStateMachine#doElectLeaderForPartitions (2.6-3.9), ZkReplicaStateMachine#doRemoveReplicasFromIsr
        (2.6-3.9).
        """
        self._context.state = yield update

    def assign(self, replicas: tuple[int, ...]) -> Steps:
        """Write only another assignment.

        Kafka: KafkaController#updateAssignedReplicasForPartition (0.10.2-2.0),
        KafkaController#updateReplicaAssignmentForPartition (2.6-3.9).
        """
        self._context.state = yield Assign(self._context.epoch, replicas)

    def _elect(self, update: UpdateState) -> Steps:
        """Run an election; if it elects a leader, the partition is online.

        Kafka: PartitionStateMachine#electLeaderForPartition (0.10.2), PartitionStateMachine#electLeaderForPartitions
        (1.1-2.0), ZkPartitionStateMachine#electLeaderForPartitions (2.6-3.9).
        """
        before = self._context.state.leader_epoch
        yield from self.update_state(update)
        if self._context.state.leader_epoch > before:
            self._context.is_offline = False

    def elect_and_send(self, update: UpdateState) -> Steps:
        """`_elect`, and send a new leader epoch to replicas. Kafka: PartitionStateMachine#handleStateChanges."""
        epoch = self._context.state.leader_epoch
        yield from self._elect(update)
        if self._context.state.leader_epoch > epoch:
            self._requests.send_state(self._context.replicas())
