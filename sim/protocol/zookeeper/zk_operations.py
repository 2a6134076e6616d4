"""Operations at ZooKeeper: what controllers, leaders and other brokers request, as values.

An operation holds ids and data only, such as the live brokers that its controller knows. ZooKeeper's side executes it,
with the rules of the requesting broker. Reading the state, deciding on it, and writing the decision is one operation.
Kafka's controller decides between two round trips, on what it knows at that time; if the version has changed when it
writes, it starts over.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final

from sim.kernel.values import parts
from sim.native import mypyc_attr
from sim.protocol import probes
from sim.protocol.decision_points import LEADER, Election
from sim.protocol.decisions import Decisions
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.zookeeper import election
from sim.protocol.zookeeper.kafka_zk_client import Change, ControllerMovedError, KafkaZkClient

MOVED: Final = "CONTROLLER_MOVED"
"""Result of a write refused because the controller moved."""

StateAndTarget = tuple[LeaderAndIsr, tuple[int, ...]]
"""A partition's state, and the requested reassignment (empty: none)."""
Result = (
    None
    | int
    | str
    | LeaderAndIsr
    | Mapping[int, int]
    | Sequence[LeaderAndIsr]
    | Sequence[StateAndTarget]
    | tuple[str, LeaderAndIsr]
    | tuple[str, ...]
    | tuple[Mapping[int, int], election.Registry, Sequence[StateAndTarget], tuple[str, ...]]
)
"""What an operation returns."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Operation:
    """An operation; see the module."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operation) and parts(self) == parts(other)

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> Result:
        """Execute it at ZooKeeper with the rules of the requesting broker.

        Raises:
            ControllerMovedError: there is a newer controller.
        """
        raise NotImplementedError


Steps = Generator[Operation, Any, None]
"""A handler of a controller: it yields an operation and resumes with the result."""


# Requested by brokers.


class ElectController(Operation):
    """Create the controller node."""

    __slots__ = ("broker",)

    def __init__(self, broker: int) -> None:
        self.broker: Final = broker

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> Result:  # noqa: ARG002 - no rule
        """See `Operation.apply`."""
        return zookeeper.elect(self.broker)


class FindController(Operation):
    """Read the controller node."""

    __slots__ = ()

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> Result:  # noqa: ARG002 - no rule
        """See `Operation.apply`."""
        return zookeeper.controller


class WriteIsr(Operation):
    """Write an ISR, if the version is unchanged: see `KafkaZkClient.write_isr`."""

    __slots__ = ("isr", "known", "members")

    def __init__(self, known: LeaderAndIsr, isr: tuple[int, ...], members: Mapping[int, int]) -> None:
        self.known: Final = known
        self.isr: Final = isr
        self.members: Final = members

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> Result:
        """See `Operation.apply`."""
        mutant = decide.mutants.isr_written_over_newer_version
        return zookeeper.write_isr(self.known, self.isr, self.members, decide.admits_registered_members, mutant)


class NotifyIsrChange(Operation):
    """Create an ISR change notification node for partitions."""

    __slots__ = ("names",)

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names: Final = names

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> Result:  # noqa: ARG002 - no rule
        """See `Operation.apply`."""
        zookeeper.notify_isr_change(self.names)
        return None


# Requested by controllers.


class ReadAll(Operation):
    """Read what a new controller needs: registered brokers, registrations, states and targets of all partitions, and
    the requested deletions of topics.
    """

    __slots__ = ()

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> Result:  # noqa: ARG002 - no rule
        """See `Operation.apply`."""
        return zookeeper.brokers(), zookeeper.registry(), zookeeper.read(), zookeeper.topic_deletions()


class ReadBrokers(Operation):
    """Read the registered brokers, and set the watch again."""

    __slots__ = ()

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> Result:  # noqa: ARG002 - no rule
        """See `Operation.apply`."""
        return zookeeper.brokers()


class ReadStates(Operation):
    """Read the states of partitions, and the requested reassignments."""

    __slots__ = ("names",)

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names: Final = names

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> Result:  # noqa: ARG002 - no rule
        """See `Operation.apply`."""
        return zookeeper.read(self.names)


class ReadTopicDeletions(Operation):
    """Read the requested deletions of topics."""

    __slots__ = ()

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> Result:  # noqa: ARG002 - no rule
        """See `Operation.apply`."""
        return zookeeper.topic_deletions()


class DeleteTopic(Operation):
    """Delete a topic whose replicas are deleted, and the request to delete it."""

    __slots__ = ("controller_epoch", "names", "topic")

    def __init__(self, controller_epoch: int, topic: str, names: tuple[str, ...]) -> None:
        self.controller_epoch: Final = controller_epoch
        self.topic: Final = topic
        self.names: Final = names

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> Result:
        """See `Operation.apply`."""
        fenced = decide.fences_controller_writes
        zookeeper.delete_topic(self.controller_epoch, self.topic, self.names, fenced=fenced)
        return None


class DeleteReassignment(Operation):
    """Delete the reassignment request of a partition."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> Result:  # noqa: ARG002 - no rule
        """See `Operation.apply`."""
        zookeeper.delete_reassignment(self.name)
        return None


class Assign(Operation):
    """Write only another assignment of a partition."""

    __slots__ = ("controller_epoch", "name", "replicas")

    def __init__(self, controller_epoch: int, name: str, replicas: tuple[int, ...]) -> None:
        self.controller_epoch: Final = controller_epoch
        self.name: Final = name
        self.replicas: Final = replicas

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> Result:
        """See `Operation.apply`."""
        fenced = decide.fences_controller_writes
        return zookeeper.assign(self.controller_epoch, self.name, self.replicas, fenced=fenced)


@mypyc_attr(allow_interpreted_subclasses=True)
class UpdateState(Operation):
    """Read the states of partitions, decide on each, and write the decisions, if any, under ``controller_writes``.

    Attributes:
        controller_epoch: of the requesting controller.
        names: the partitions.
    """

    __slots__ = ("controller_epoch", "names")

    def __init__(self, controller_epoch: int, names: tuple[str, ...]) -> None:
        self.controller_epoch: Final = controller_epoch
        self.names: Final = names

    def apply(self, zookeeper: KafkaZkClient, decide: Decisions) -> Result:
        """See `Operation.apply`; returns the states afterwards.

        A version that has changed is read again, for that partition alone. Without fencing, a partition that a newer
        controller has written is refused alone, and is missing from the result; with fencing, or if each of them is
        refused, `ControllerMovedError` is raised. A partition whose topic was deleted meanwhile is missing, too.
        """

        def change(state: LeaderAndIsr, registry: election.Registry) -> Change | None:
            return self.change(state, registry, decide, zookeeper.reached)

        fenced = decide.fences_controller_writes
        found = []
        names = [name for name in self.names if zookeeper.exists(name)]
        for name in names:
            try:
                found.append(zookeeper.update_state(self.controller_epoch, name, change, fenced=fenced))
            except ControllerMovedError:
                if fenced.answer:
                    raise
        if not found and names:
            raise ControllerMovedError
        return found

    def change(
        self, state: LeaderAndIsr, registry: election.Registry, decide: Decisions, reached: Callable[[int], None]
    ) -> Change | None:
        """The decision; None: no change. `reached` is called with the probes that it reaches."""
        raise NotImplementedError


class RaiseEpoch(UpdateState):
    """Write the states with only new leader epochs. Kafka: KafkaController#updateLeaderEpoch."""

    __slots__ = ()

    def change(
        self,
        state: LeaderAndIsr,
        registry: election.Registry,  # noqa: ARG002 - decides nothing
        decide: Decisions,  # noqa: ARG002 - no rule
        reached: Callable[[int], None],  # noqa: ARG002 - no probe
    ) -> Change | None:
        """See `UpdateState.change`."""
        return state.leader, state.isr, state.replicas


class RemoveReplica(UpdateState):
    """A replica that goes offline leaves ISRs and loses leadership, under ``missed_bounce`` and ``last_isr_member``.

    Attributes:
        live: live brokers.
        unclean: whether an unclean election is allowed.
    """

    __slots__ = ("live", "replica", "unclean")

    def __init__(
        self, controller_epoch: int, names: tuple[str, ...], replica: int, live: tuple[int, ...], *, unclean: bool
    ) -> None:
        super().__init__(controller_epoch, names)
        self.replica: Final = replica
        self.live: Final = live
        self.unclean: Final = unclean

    def change(
        self, state: LeaderAndIsr, registry: election.Registry, decide: Decisions, reached: Callable[[int], None]
    ) -> Change | None:
        """See `UpdateState.change`."""
        replica = self.replica
        if replica not in state.isr:
            return None
        if replica == state.leader:
            reached(probes.LEADER_REMOVED)
        may_leave = len(state.isr) == 1 and self.unclean
        to_the_last = may_leave and decide.last_member_leaves.yes()
        leader, isr = election.without(replica, state.leader, state.isr, to_the_last=to_the_last)
        relied = election.eligible_members(state, registry, set(self.live) - {replica})
        if not relied and isr != state.isr and decide.notices_missed_bounces.yes():
            isr = state.isr
        return leader, isr, state.replicas


class CreatePartition(UpdateState):
    """All live replicas are in sync, and the first of them leads.

    Attributes:
        willing: live brokers that are not shutting down.
    """

    __slots__ = ("willing",)

    def __init__(self, controller_epoch: int, names: tuple[str, ...], willing: tuple[int, ...]) -> None:
        super().__init__(controller_epoch, names)
        self.willing: Final = willing

    def change(
        self,
        state: LeaderAndIsr,
        registry: election.Registry,  # noqa: ARG002 - decides nothing
        decide: Decisions,  # noqa: ARG002 - no rule
        reached: Callable[[int], None],
    ) -> Change | None:
        """See `UpdateState.change`."""
        isr = tuple([broker for broker in state.replicas if broker in self.willing])
        created = state.partition_epoch >= 0 > state.leader_epoch
        if not (isr and created):
            return None
        reached(probes.ELECTED_FIRST)
        return isr[0], isr, state.replicas


class ElectLeader(UpdateState):
    """An election, under ``missed_bounce``.

    Attributes:
        live: live brokers.
        shutting_down: live brokers in controlled shutdown.
    """

    __slots__ = ("live", "shutting_down")

    def __init__(
        self, controller_epoch: int, names: tuple[str, ...], live: tuple[int, ...], shutting_down: tuple[int, ...]
    ) -> None:
        super().__init__(controller_epoch, names)
        self.live: Final = live
        self.shutting_down: Final = shutting_down

    def willing(self) -> list[int]:
        """Live brokers that are not shutting down."""
        return [broker for broker in self.live if broker not in self.shutting_down]

    def electable(self, state: LeaderAndIsr, registry: election.Registry, decide: Decisions) -> list[int]:
        """Brokers that may lead: live ones that are not shutting down.

        With rule ``missed_bounce=noticed`` (no release) only eligible ISR members.
        """
        willing = self.willing()
        relied = election.eligible_members(state, registry, self.live)
        members = [broker for broker in willing if broker in state.isr]
        kept = [broker for broker in members if broker in relied]
        return kept if kept != members and decide.notices_missed_bounces.yes() else willing


class ElectOffline(ElectLeader):
    """Elect leaders of offline partitions.

    Attributes:
        unclean: whether an unclean election is allowed.
    """

    __slots__ = ("unclean",)

    def __init__(
        self,
        controller_epoch: int,
        names: tuple[str, ...],
        live: tuple[int, ...],
        shutting_down: tuple[int, ...],
        *,
        unclean: bool,
    ) -> None:
        super().__init__(controller_epoch, names, live, shutting_down)
        self.unclean: Final = unclean

    def change(
        self, state: LeaderAndIsr, registry: election.Registry, decide: Decisions, reached: Callable[[int], None]
    ) -> Change | None:
        """See `UpdateState.change`."""
        choice = election.offline(state.replicas, state.isr, self.electable(state, registry, decide))
        if choice is None and self.unclean:
            choice = election.offline(state.replicas, (), self.willing(), unclean=True)
        choice = self._election_by_plugins(state, choice, decide)
        reached(_outcome(state, choice))
        return choice and (*choice, state.replicas)

    def _election_by_plugins(
        self, state: LeaderAndIsr, choice: election.ElectionResult, decide: Decisions
    ) -> election.ElectionResult:
        """The result of an election for an offline partition, as rule values of plug-ins decide."""
        if not decide.plugged:
            return choice
        willing = tuple(self.willing())
        leader = 0 if choice is None else choice[0]
        candidates = tuple([broker for broker in state.replicas if broker in willing])
        at = Election(state.leader, state.replicas, candidates, state.isr, (), (), self.unclean, 0)
        elected = decide.by_plugins(LEADER, leader, at)
        if elected == leader:
            return choice
        if elected == 0:
            return None
        if elected not in state.isr:
            return elected, (elected,)
        return elected, tuple([member for member in state.isr if member in willing])


class ElectPreferred(ElectLeader):
    """Elect the first replica, if possible, under ``preferred_election``."""

    __slots__ = ()

    def change(
        self, state: LeaderAndIsr, registry: election.Registry, decide: Decisions, reached: Callable[[int], None]
    ) -> Change | None:
        """See `UpdateState.change`."""
        electable = self.electable(state, registry, decide)
        choice = election.preferred(state.replicas, state.isr, electable)
        head = state.replicas[0]
        is_outside = choice is None and head not in state.isr and head in self.willing()
        if decide.mutants.preferred_leader_outside_isr.when(is_outside):
            choice = head, state.isr
        if choice is None or (choice[0] == state.leader and not decide.elects_preferred_again.yes()):
            reached(probes.PREFERRED_UNFIT)
            return None
        reached(probes.ELECTED_PREFERRED)
        return *choice, state.replicas


class ElectForShutdown(ElectLeader):
    """Elect another ISR member."""

    __slots__ = ()

    def change(
        self, state: LeaderAndIsr, registry: election.Registry, decide: Decisions, reached: Callable[[int], None]
    ) -> Change | None:
        """See `UpdateState.change`."""
        electable = self.electable(state, registry, decide)
        choice = election.controlled_shutdown(state.replicas, state.isr, electable, self.shutting_down)
        reached(probes.SHUTDOWN_NOBODY if choice is None else probes.ELECTED_SHUTDOWN)
        return choice and (*choice, state.replicas)


class ElectReassigned(ElectLeader):
    """Elect a replica of the new assignment.

    Attributes:
        target: the new assignment.
    """

    __slots__ = ("target",)

    def __init__(
        self,
        controller_epoch: int,
        names: tuple[str, ...],
        live: tuple[int, ...],
        shutting_down: tuple[int, ...],
        target: tuple[int, ...],
    ) -> None:
        super().__init__(controller_epoch, names, live, shutting_down)
        self.target: Final = target

    def change(
        self, state: LeaderAndIsr, registry: election.Registry, decide: Decisions, reached: Callable[[int], None]
    ) -> Change | None:
        """See `UpdateState.change`."""
        choice = election.reassigned(self.target, state.isr, self.electable(state, registry, decide))
        if choice is not None:
            reached(probes.ELECTED_REASSIGNED)
        return choice and (*choice, state.replicas)


def _outcome(state: LeaderAndIsr, choice: election.ElectionResult) -> int:
    """The probe for the result of an election for an offline partition."""
    if choice is None:
        return probes.ELECTED_NOBODY
    leader = choice[0]
    if leader not in state.isr:
        return probes.ELECTED_UNCLEAN
    return probes.ELECTED_AGAIN if leader == state.leader else probes.ELECTED_OFFLINE
