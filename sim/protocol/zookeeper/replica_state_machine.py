"""Replicas that come online or go offline: changes of the partition, and requests to brokers."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final

from sim.protocol.decisions import Decisions
from sim.protocol.zookeeper.controller_broker_request_batch import ControllerBrokerRequestBatch
from sim.protocol.zookeeper.controller_context import ControllerContext
from sim.protocol.zookeeper.partition_state_machine import PartitionStateMachine
from sim.protocol.zookeeper.zk_operations import RaiseEpoch, RemoveReplica, Steps

ONLINE: Final = "OnlineReplica"
OFFLINE: Final = "OfflineReplica"
DELETION_STARTED: Final = "ReplicaDeletionStarted"
DELETION_SUCCESSFUL: Final = "ReplicaDeletionSuccessful"
DELETION_INELIGIBLE: Final = "ReplicaDeletionIneligible"
_PREVIOUS: Final = {
    ONLINE: (ONLINE, OFFLINE, DELETION_INELIGIBLE),
    OFFLINE: (ONLINE, OFFLINE, DELETION_INELIGIBLE),
    DELETION_STARTED: (OFFLINE,),
    DELETION_SUCCESSFUL: (DELETION_STARTED,),
    DELETION_INELIGIBLE: (OFFLINE, DELETION_STARTED),
}
"""State of a replica -> the states from which it may be reached. Kafka: ReplicaState#validPreviousStates (1.1-3.9).
"""

TopicReplica = tuple[str, int]
"""A replica of a topic to be deleted: (partition, broker). Kafka: PartitionAndReplica."""


class ReplicaStateMachine:
    """Changes of replicas' states by one controller, under ``registration_epoch``.

    Only replicas of topics to be deleted have states that it remembers, because only for them some changes are invalid.
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
            if context.is_queued(name):
                replicas = [broker for _, broker in self._move([(name, broker) for broker in replicas], ONLINE)]
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
        existing = tuple([name for name in names if context.exists(name)])
        if existing:
            yield from self._partitions.update_states(
                RemoveReplica(context.epoch, existing, broker, tuple(context.live), unclean=unclean)
            )
        if assigned:
            context.states[names[0]] = context.states[names[0]].assigned(assigned)
        refused = self._partitions.refused
        self._move([(name, broker) for name in names if context.is_queued(name) and name not in refused], OFFLINE)
        # Kafka resends those that did not change, too; they would be ignored.
        self._requests.send_to_replicas(context.without_queued(context.raised(before)), besides=(broker,))

    # Topics to be deleted.

    def initialize(self, topic: str, *, dead: str) -> None:
        """Note the states of a topic's replicas; `dead` is that of replicas on dead brokers.

        Kafka: ReplicaStateMachine#initializeReplicaState.
        """
        context = self._context
        for name, broker in context.replicas_of(topic):
            stops = broker in context.shutting_down and context.states[name].leader != broker
            is_online = broker in context.live and not stops
            context.replica_states[name, broker] = ONLINE if is_online else OFFLINE if stops else dead

    def _valid(self, replicas: Iterable[TopicReplica], state: str) -> list[TopicReplica]:
        """Those of these replicas whose change to a state is valid.

        Kafka: ControllerContext#checkValidReplicaStateChange (2.6-3.9), ReplicaStateMachine#isValidTransition
        (1.1-2.0).
        """
        states = self._context.replica_states
        return [replica for replica in replicas if states.get(replica, ONLINE) in _PREVIOUS[state]]

    def _move(self, replicas: Iterable[TopicReplica], state: str) -> list[TopicReplica]:
        """Note a state where that is valid; returns these replicas."""
        valid = self._valid(replicas, state)
        for replica in valid:
            self._context.replica_states[replica] = state
        return valid

    def in_state(self, topic: str, state: str) -> list[TopicReplica]:
        """The replicas of a topic in a state. Kafka: ControllerContext#replicasInState (2.6-3.9)."""
        context = self._context
        return [replica for replica in context.replicas_of(topic) if context.replica_states.get(replica) == state]

    def fail_deletion(self, replicas: Iterable[TopicReplica]) -> None:
        """Note that replicas could not be deleted, or that their brokers are dead."""
        self._move(replicas, DELETION_INELIGIBLE)

    def complete_deletion(self, replicas: Iterable[TopicReplica]) -> None:
        """Note that replicas are deleted."""
        self._move(replicas, DELETION_SUCCESSFUL)

    def take_offline_for_deletion(self, replicas: Iterable[TopicReplica]) -> Steps:
        """Take replicas offline, which leave the ISR; the other replicas are not notified."""
        for broker, names in _by_broker(self._valid(replicas, OFFLINE)).items():
            yield from self.take_offline(broker, names)

    def start_deletion(self, replicas: Iterable[TopicReplica]) -> None:
        """Send StopReplica with deletion to the brokers of replicas that are offline."""
        for broker, names in _by_broker(self._move(replicas, DELETION_STARTED)).items():
            self._requests.stop(broker, names, delete=True)


def _by_broker(replicas: Iterable[TopicReplica]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for name, broker in replicas:
        found.setdefault(broker, []).append(name)
    return found
