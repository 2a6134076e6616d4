"""Replicas that come online or go offline: changes of the partition, and requests to brokers."""

from __future__ import annotations

from sim.protocol.decisions import Decisions
from sim.protocol.zookeeper.controller_broker_request_batch import ControllerBrokerRequestBatch
from sim.protocol.zookeeper.controller_context import ControllerContext
from sim.protocol.zookeeper.partition_state_machine import PartitionStateMachine
from sim.protocol.zookeeper.zk_operations import RaiseEpoch, RemoveReplica, Steps


class ReplicaStateMachine:
    """Changes of replicas' states by one controller, under ``registration_epoch``.

    Kafka: ReplicaStateMachine, ZkReplicaStateMachine (2.6-3.9).
    """

    def __init__(
        self,
        context: ControllerContext,
        requests: ControllerBrokerRequestBatch,
        partitions: PartitionStateMachine,
        decide: Decisions,
    ) -> None:
        self._context = context
        self._requests = requests
        self._partitions = partitions
        self._decide = decide

    def bring_online(self, replicas: list[int]) -> Steps:
        """Bring replicas online: send them the state, or send a new leader epoch to all replicas.

        Without a leader the next election raises the leader epoch anyway.
        Kafka: ReplicaStateMachine#handleStateChange (0.10.2), ReplicaStateMachine#doHandleStateChanges (1.1-2.0),
        ZkReplicaStateMachine#doHandleStateChanges (2.6-3.9).
        """
        has_leader = not self._context.is_offline and self._context.state.leader in self._context.live
        if has_leader and self._decide.registration_bumps_epoch.yes():
            yield from self._partitions.update_state(RaiseEpoch(self._context.epoch))
            self._requests.send_state(self._context.replicas())
        else:
            self._requests.send_state(replicas, update=False)

    def take_offline(self, replica: int, assigned: tuple[int, ...] = ()) -> Steps:
        """Take a replica offline: it stops following, leaves the ISR and loses leadership.

        `assigned`: the assignment sent to other replicas, if it differs from the one in ZooKeeper.
        Kafka: ReplicaStateMachine#removeReplicasFromIsr (1.1-2.0), ZkReplicaStateMachine#removeReplicasFromIsr
        (2.6-3.9), KafkaController#removeReplicaFromIsr (0.10.2).
        """
        self._requests.stop(replica, delete=False)
        epoch = self._context.state.leader_epoch
        context, unclean = self._context, self._partitions.unclean_election
        yield from self._partitions.update_state(
            RemoveReplica(context.epoch, replica, tuple(context.live), unclean=unclean)
        )
        if assigned:
            self._context.state = self._context.state.assigned(assigned)
        if self._context.state.leader_epoch > epoch:  # Kafka resends it in any case; it would be ignored.
            self._requests.send_state([broker for broker in self._context.replicas() if broker != replica])
