"""Changes of the partition's state: creation and elections, and writing them.

The election algorithms are in `sim.protocol.zookeeper.election`.
"""

from __future__ import annotations

from sim.protocol import probes
from sim.protocol.decision_points import LEADER, Election
from sim.protocol.decisions import Decisions
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.zookeeper import election
from sim.protocol.zookeeper.controller_broker_request_batch import ControllerBrokerRequestBatch
from sim.protocol.zookeeper.controller_context import ControllerContext
from sim.protocol.zookeeper.controller_host import ControllerHost
from sim.protocol.zookeeper.kafka_zk_client import Change, Decide, Steps


class PartitionStateMachine:
    """Changes of the partition's state by one controller, under ``controller_writes``, ``preferred_election`` and
    ``missed_bounce``.

    Kafka: PartitionStateMachine, ZkPartitionStateMachine (2.6-3.9).

    Attributes:
        unclean_election: ``unclean.leader.election.enable``; may change.
    """

    def __init__(
        self,
        context: ControllerContext,
        requests: ControllerBrokerRequestBatch,
        decide: Decisions,
        host: ControllerHost,
        *,
        unclean_election: bool,
    ) -> None:
        self.unclean_election = unclean_election
        self._context = context
        self._requests = requests
        self._host = host
        self._decide = decide

    def create(self) -> Steps:
        """Create a partition: all live replicas are in sync, and the first of them leads.

        Without a live replica it stays new until one is live.
        Kafka: PartitionStateMachine#initializeLeaderAndIsrForPartition (0.10.2),
        PartitionStateMachine#initializeLeaderAndIsrForPartitions (1.1-2.0),
        ZkPartitionStateMachine#initializeLeaderAndIsrForPartitions (2.6-3.9).
        """

        def decide(state: LeaderAndIsr, _: election.Registry) -> Change | None:
            willing = self._context.willing()
            isr = tuple(broker for broker in state.replicas if broker in willing)
            created = state.partition_epoch >= 0 > state.leader_epoch
            if not (isr and created):
                return None
            self._host.reached(probes.ELECTED_FIRST)
            return isr[0], isr, state.replicas

        yield from self.update_state(decide)
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

        def decide(state: LeaderAndIsr, registry: election.Registry) -> Change | None:
            choice = election.offline(state.replicas, state.isr, self.electable(state, registry))
            if choice is None and self.unclean_election:
                choice = election.offline(state.replicas, (), self._context.willing(), unclean=True)
            if self._decide.plugged:
                choice = self._by_plugins(state, choice)
            self._host.reached(_outcome(state, choice))
            return choice and (*choice, state.replicas)

        yield from self.elect_and_send(decide)

    def _by_plugins(self, state: LeaderAndIsr, choice: election.ElectionResult) -> election.ElectionResult:
        """The result of an election for an offline partition, as rule values of plug-ins decide."""
        willing = tuple(self._context.willing())
        leader = 0 if choice is None else choice[0]
        candidates = tuple([broker for broker in state.replicas if broker in willing])
        at = Election(state.leader, state.replicas, candidates, state.isr, (), (), self.unclean_election, 0)
        elected = self._decide.by_plugins(LEADER, leader, at)
        if elected == leader:
            return choice
        if elected == 0:
            return None
        if elected not in state.isr:
            return elected, (elected,)
        return elected, tuple([member for member in state.isr if member in willing])

    def elect_preferred(self) -> Steps:
        """Elect the first replica, if possible. Kafka: PreferredReplicaPartitionLeaderElectionStrategy (1.1-3.9)."""

        def decide(state: LeaderAndIsr, registry: election.Registry) -> Change | None:
            electable = self.electable(state, registry)
            choice = election.preferred(state.replicas, state.isr, electable)
            mutant = self._decide.mutants.preferred_leader_outside_isr
            mutant.took = True
            head = state.replicas[0]
            if choice is None and head not in state.isr and head in self._context.willing() and mutant.differs():
                choice = head, state.isr
            if choice is None or (choice[0] == state.leader and not self._decide.elects_preferred_again.yes()):
                self._host.reached(probes.PREFERRED_UNFIT)
                return None
            self._host.reached(probes.ELECTED_PREFERRED)
            return *choice, state.replicas

        if self._context.exists:
            yield from self.elect_and_send(decide)

    def elect_for_shutdown(self) -> Steps:
        """Elect another ISR member. Kafka: ControlledShutdownPartitionLeaderElectionStrategy (1.1-3.9)."""
        yield from self.elect_and_send(self._move_leader)

    def _move_leader(self, state: LeaderAndIsr, registry: election.Registry) -> Change | None:
        electable = self.electable(state, registry)
        choice = election.controlled_shutdown(state.replicas, state.isr, electable, self._context.shutting_down)
        self._host.reached(probes.SHUTDOWN_NOBODY if choice is None else probes.ELECTED_SHUTDOWN)
        return choice and (*choice, state.replicas)

    def elect_reassigned(self, target: tuple[int, ...]) -> Steps:
        """Elect a replica of the new assignment.

        If one already leads, it gets a new leader epoch, unless it is shutting down.
        Kafka: ReassignPartitionLeaderElectionStrategy (1.1-3.9),
        KafkaController#moveReassignedPartitionLeaderIfRequired.
        """
        if self._context.state.leader in target and self._context.state.leader in self._context.willing():
            yield from self.update_state(with_new_epoch)
            return

        def decide(state: LeaderAndIsr, registry: election.Registry) -> Change | None:
            choice = election.reassigned(target, state.isr, self.electable(state, registry))
            if choice is not None:
                self._host.reached(probes.ELECTED_REASSIGNED)
            return choice and (*choice, state.replicas)

        yield from self._elect(decide)

    def update_state(self, decide: Decide) -> Steps:
        """Decide on the state in ZooKeeper, and write the decision, if any.

        Kafka: PartitionStateMachine#doElectLeaderForPartitions (1.1-2.0),
        ZkPartitionStateMachine#doElectLeaderForPartitions (2.6-3.9), ZkReplicaStateMachine#doRemoveReplicasFromIsr
        (2.6-3.9).
        """
        epoch, fenced = self._context.epoch, self._decide.fences_controller_writes
        self._context.state = yield lambda zookeeper: zookeeper.update_state(epoch, decide, fenced=fenced)

    def assign(self, replicas: tuple[int, ...]) -> Steps:
        """Write only another assignment.

        Kafka: KafkaController#updateAssignedReplicasForPartition (0.10.2-2.0),
        KafkaController#updateReplicaAssignmentForPartition (2.6-3.9).
        """
        epoch, fenced = self._context.epoch, self._decide.fences_controller_writes
        self._context.state = yield lambda zookeeper: zookeeper.assign(epoch, replicas, fenced=fenced)

    def _elect(self, decide: Decide) -> Steps:
        """Run an election; if it elects a leader, the partition is online.

        Kafka: PartitionStateMachine#electLeaderForPartition (0.10.2), PartitionStateMachine#electLeaderForPartitions
        (1.1-2.0), ZkPartitionStateMachine#electLeaderForPartitions (2.6-3.9).
        """
        before = self._context.state.leader_epoch
        yield from self.update_state(decide)
        if self._context.state.leader_epoch > before:
            self._context.is_offline = False

    def elect_and_send(self, decide: Decide) -> Steps:
        """`_elect`, and send a new leader epoch to replicas. Kafka: PartitionStateMachine#handleStateChanges."""
        epoch = self._context.state.leader_epoch
        yield from self._elect(decide)
        if self._context.state.leader_epoch > epoch:
            self._requests.send_state(self._context.replicas())

    def electable(self, state: LeaderAndIsr, registry: election.Registry) -> list[int]:
        """Brokers that may lead: live ones that are not shutting down.

        With rule ``missed_bounce=noticed`` (no release) only eligible ISR members.
        """
        willing = self._context.willing()
        relied = election.eligible_members(state, registry, self._context.live)
        members = [broker for broker in willing if broker in state.isr]
        kept = [broker for broker in members if broker in relied]
        return kept if kept != members and self._decide.notices_missed_bounces.yes() else willing


def with_new_epoch(state: LeaderAndIsr, _: election.Registry) -> Change:
    """The state with only a new leader epoch. Kafka: KafkaController#updateLeaderEpoch."""
    return state.leader, state.isr, state.replicas


def _outcome(state: LeaderAndIsr, choice: election.ElectionResult) -> int:
    """The probe for the result of an election for an offline partition."""
    if choice is None:
        return probes.ELECTED_NOBODY
    leader = choice[0]
    if leader not in state.isr:
        return probes.ELECTED_UNCLEAN
    return probes.ELECTED_AGAIN if leader == state.leader else probes.ELECTED_OFFLINE
