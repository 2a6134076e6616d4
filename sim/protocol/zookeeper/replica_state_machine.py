"""Replicas that come online or go offline: changes of the partition, and requests to brokers."""

from __future__ import annotations

from sim.protocol import probes
from sim.protocol.decisions import Decisions
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.zookeeper import election
from sim.protocol.zookeeper.controller_broker_request_batch import ControllerBrokerRequestBatch
from sim.protocol.zookeeper.controller_context import ControllerContext
from sim.protocol.zookeeper.controller_host import ControllerHost
from sim.protocol.zookeeper.kafka_zk_client import Change, Steps
from sim.protocol.zookeeper.partition_state_machine import PartitionStateMachine, with_new_epoch


class ReplicaStateMachine:
    """Changes of replicas' states by one controller, under ``registration_epoch``, ``missed_bounce`` and
    ``last_isr_member``.

    Kafka: ReplicaStateMachine, ZkReplicaStateMachine (2.6-3.9).
    """

    def __init__(
        self,
        context: ControllerContext,
        requests: ControllerBrokerRequestBatch,
        partitions: PartitionStateMachine,
        decide: Decisions,
        host: ControllerHost,
    ) -> None:
        self._context = context
        self._requests = requests
        self._partitions = partitions
        self._host = host
        self._decide = decide

    def bring_online(self, replicas: list[int]) -> Steps:
        """Bring replicas online: send them the state, or send a new leader epoch to all replicas.

        Without a leader the next election raises the leader epoch anyway.
        Kafka: ReplicaStateMachine#handleStateChange (0.10.2), ReplicaStateMachine#doHandleStateChanges (1.1-2.0),
        ZkReplicaStateMachine#doHandleStateChanges (2.6-3.9).
        """
        has_leader = not self._context.is_offline and self._context.state.leader in self._context.live
        if has_leader and self._decide.registration_bumps_epoch.yes():
            yield from self._partitions.update_state(with_new_epoch)
            self._requests.send_state(self._context.replicas())
        else:
            self._requests.send_state(replicas, update=False)

    def take_offline(self, replica: int, assigned: tuple[int, ...] = ()) -> Steps:
        """Take a replica offline: it stops following, leaves the ISR and loses leadership.

        `assigned`: the assignment sent to other replicas, if it differs from the one in ZooKeeper.
        Kafka: ReplicaStateMachine#removeReplicasFromIsr (1.1-2.0), ZkReplicaStateMachine#removeReplicasFromIsr
        (2.6-3.9), KafkaController#removeReplicaFromIsr (0.10.2).
        """

        def decide(state: LeaderAndIsr, registry: election.Registry) -> Change | None:
            if replica not in state.isr:
                return None
            if replica == state.leader:
                self._host.reached(probes.LEADER_REMOVED)
            may_leave = len(state.isr) == 1 and self._partitions.unclean_election
            to_the_last = may_leave and self._decide.last_member_leaves.yes()
            leader, isr = election.without(replica, state.leader, state.isr, to_the_last=to_the_last)
            relied = election.eligible_members(state, registry, set(self._context.live) - {replica})
            if not relied and isr != state.isr and self._decide.notices_missed_bounces.yes():
                isr = state.isr
            return leader, isr, state.replicas

        self._requests.stop(replica, delete=False)
        epoch = self._context.state.leader_epoch
        yield from self._partitions.update_state(decide)
        if assigned:
            self._context.state = self._context.state.assigned(assigned)
        if self._context.state.leader_epoch > epoch:  # Kafka resends it in any case; it would be ignored.
            self._requests.send_state([broker for broker in self._context.replicas() if broker != replica])
