"""Replicas that come online or go offline: changes of the partition, and requests to brokers."""

from __future__ import annotations

from collections.abc import Container, Sequence

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

    def bring_online(self, brokers: Container[int]) -> Steps:
        """Bring the replicas on these live brokers online: send them the states, or raise the leader epochs of their
        partitions and send these to all replicas.

        Without a leader the next election raises the leader epoch anyway.
        Kafka: ReplicaStateMachine#handleStateChange (0.10.2), ReplicaStateMachine#doHandleStateChanges (1.1-2.0),
        ZkReplicaStateMachine#doHandleStateChanges (2.6-3.9).
        """
        context, bumped, sent = self._context, [], {}
        for name in context.existing:
            replicas = [broker for broker in context.replicas(name) if broker in brokers]
            if not replicas:
                continue
            has_leader = name not in context.offline and context.states[name].leader in context.live
            if has_leader and self._decide.registration_bumps_epoch.yes():
                bumped.append(name)
            else:
                sent[name] = replicas
        if sent:
            self._requests.send_states(sent, update=False)
        if bumped:
            yield from self._partitions.update_states(RaiseEpoch(context.epoch, tuple(bumped)))
            self._requests.send_to_replicas(bumped)

    def take_offline(self, broker: int, names: Sequence[str], assigned: tuple[int, ...] = ()) -> Steps:
        """Take a broker's replicas of partitions offline: they stop following, leave the ISR and lose leadership.

        `assigned`: the assignment of the one partition that is sent to other replicas, if it differs from the one in
        ZooKeeper.
        Kafka: ReplicaStateMachine#removeReplicasFromIsr (1.1-2.0), ZkReplicaStateMachine#removeReplicasFromIsr
        (2.6-3.9), KafkaController#removeReplicaFromIsr (0.10.2).
        """
        if not names:
            return
        context, unclean = self._context, self._partitions.unclean_election
        self._requests.stop(broker, names, delete=False)
        before = context.leader_epochs(names)
        yield from self._partitions.update_states(
            RemoveReplica(context.epoch, tuple(names), broker, tuple(context.live), unclean=unclean)
        )
        if assigned:
            context.states[names[0]] = context.states[names[0]].assigned(assigned)
        # Kafka resends those that did not change, too; they would be ignored.
        self._requests.send_to_replicas(context.raised(before), besides=broker)
