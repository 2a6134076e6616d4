"""Changes of the partition's state: its creation, elections, and how they are written.

Kafka class: PartitionStateMachine (ZkPartitionStateMachine). Who is elected: `sim.protocol.zookeeper.election`.
"""

from __future__ import annotations

from sim.protocol import probes
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.rules import Rules
from sim.protocol.zookeeper import election
from sim.protocol.zookeeper.context import ControllerContext
from sim.protocol.zookeeper.controller_host import ControllerHost
from sim.protocol.zookeeper.coordination import Change, Decide, Steps
from sim.protocol.zookeeper.request_batch import ControllerBrokerRequestBatch


class PartitionStateMachine:
    """Changes of the partition's state by one controller.

    Args:
        context: what the controller knows.
        requests: tells brokers.
        rules: the controller's, of which ``controller_writes`` and ``missed_bounce`` decide.
        host: its broker.
        unclean_election: ``unclean.leader.election.enable``.

    Attributes:
        unclean_election: see above; may change.
    """

    def __init__(
        self,
        context: ControllerContext,
        requests: ControllerBrokerRequestBatch,
        rules: Rules,
        host: ControllerHost,
        *,
        unclean_election: bool,
    ) -> None:
        self.unclean_election = unclean_election
        self._context = context
        self._requests = requests
        self._host = host
        self._notices_missed = rules.missed_bounce == "noticed"
        self._fenced = rules.controller_writes == "fenced"

    def create(self) -> Steps:
        """A new partition: all live replicas are in sync, the first of them leads."""

        def decide(state: LeaderAndIsr, _: election.Registry) -> Change | None:
            isr = tuple(broker for broker in state.replicas if broker in self._context.live)
            created = state.partition_epoch >= 0 > state.leader_epoch
            if not (isr and created):
                return None
            self._host.reached(probes.ELECTED_FIRST)
            return isr[0], isr, state.replicas

        yield from self.amend(decide)
        if self._context.exists:
            self._requests.tell(self._context.replicas())

    def elect_offline(self) -> Steps:
        """Elect a leader if there is none that lives (PartitionStateMachine.triggerOnlinePartitionStateChange).

        A partition whose leader died is offline until the next election, also when that leader is back before.
        """
        if not self._context.exists:
            return
        self._context.is_offline |= self._context.state.leader not in self._context.live
        if not self._context.is_offline:
            return

        def decide(state: LeaderAndIsr, registry: election.Registry) -> Change | None:
            choice = election.offline(state.replicas, state.isr, self.electable(state, registry))
            if choice is None and self.unclean_election:
                choice = election.offline(state.replicas, (), self._context.willing(), unclean=True)
            self._host.reached(_outcome(state, choice))
            return choice and (*choice, state.replicas)

        yield from self.amend_and_tell(decide)

    def elect_preferred(self) -> Steps:
        """The first replica is to lead, if it may (PreferredReplicaPartitionLeaderElectionStrategy)."""

        def decide(state: LeaderAndIsr, registry: election.Registry) -> Change | None:
            choice = election.preferred(state.replicas, state.isr, self.electable(state, registry))
            if choice is None or choice[0] == state.leader:
                self._host.reached(probes.PREFERRED_UNFIT)
                return None
            self._host.reached(probes.ELECTED_PREFERRED)
            return *choice, state.replicas

        if self._context.exists:
            yield from self.amend_and_tell(decide)

    def elect_for_shutdown(self) -> Steps:
        """The leader shuts down: another ISR member is to lead (ControlledShutdownPartitionLeaderElectionStrategy)."""
        yield from self.amend_and_tell(self._move_leader)

    def _move_leader(self, state: LeaderAndIsr, registry: election.Registry) -> Change | None:
        electable = self.electable(state, registry)
        choice = election.controlled_shutdown(state.replicas, state.isr, electable, self._context.shutting_down)
        self._host.reached(probes.SHUTDOWN_NOBODY if choice is None else probes.ELECTED_SHUTDOWN)
        return choice and (*choice, state.replicas)

    def elect_reassigned(self, target: tuple[int, ...]) -> Steps:
        """A replica of the new assignment is to lead (ReassignPartitionLeaderElectionStrategy).

        One that leads already does so with a new leader epoch.
        """

        def decide(state: LeaderAndIsr, registry: election.Registry) -> Change | None:
            if state.leader in target and state.leader in self._context.live:
                return state.leader, state.isr, state.replicas
            choice = election.reassigned(target, state.isr, self.electable(state, registry))
            if choice is not None:
                self._host.reached(probes.ELECTED_REASSIGNED)
            return choice and (*choice, state.replicas)

        yield from self.amend(decide)

    def amend(self, decide: Decide) -> Steps:
        """Decide on the state as ZooKeeper has it, and write what was decided, if anything was.

        ZkPartitionStateMachine.doElectLeaderForPartitions, ZkReplicaStateMachine.doRemoveReplicasFromIsr.
        """
        epoch, fenced, before = self._context.epoch, self._fenced, self._context.state.leader_epoch
        self._context.state = yield lambda zookeeper: zookeeper.amend(epoch, decide, fenced=fenced)
        if self._context.state.leader_epoch > before and self._context.state.leader in self._context.live:
            self._context.is_offline = False

    def amend_and_tell(self, decide: Decide) -> Steps:
        """The same; replicas hear of a new leader epoch."""
        epoch = self._context.state.leader_epoch
        yield from self.amend(decide)
        if self._context.state.leader_epoch > epoch:
            self._requests.tell(self._context.replicas())

    def electable(self, state: LeaderAndIsr, registry: election.Registry) -> list[int]:
        """Brokers that may lead: live ones that do not shut down.

        With rule ``missed_bounce=noticed`` (no release) ISR members only that are relied upon.
        """
        willing = self._context.willing()
        if not self._notices_missed:
            return willing
        relied = election.eligible_members(state, registry, self._context.live)
        return [broker for broker in willing if broker in relied]


def _outcome(state: LeaderAndIsr, choice: election.ElectionResult) -> int:
    """What an election for an offline partition has come to."""
    if choice is None:
        return probes.ELECTED_NOBODY
    leader = choice[0]
    if leader not in state.isr:
        return probes.ELECTED_UNCLEAN
    return probes.ELECTED_AGAIN if leader == state.leader else probes.ELECTED_OFFLINE
