"""Leader election: the four algorithms of the ZooKeeper controller, and the resulting ISR.

Kafka: PartitionLeaderElectionAlgorithms (1.1-3.9), controller.Election (2.6-3.9), PartitionLeaderSelector (0.10.2).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from sim.protocol.messages import LeaderAndIsr

ElectionResult = tuple[int, tuple[int, ...]] | None
"""(leader, ISR), None if no leader can be elected."""


class BrokerInfo:
    """A broker's registration in ZooKeeper.

    No release registers these fields; rule ``missed_bounce`` uses them.
    Kafka: zk.BrokerInfo (1.1-3.9).

    Attributes:
        incarnation: of its process.
        log_ends: leader epoch of the last record (-1: none) and LEO of each partition that it has.
    """

    __slots__ = ("incarnation", "log_ends")

    def __init__(self, incarnation: int, log_ends: Mapping[str, tuple[int, int]]) -> None:
        self.incarnation: Final = incarnation
        self.log_ends: Final = log_ends

    def log_end(self, name: str) -> tuple[int, int]:
        """Leader epoch of a partition's last record and LEO; of an empty log if it has none."""
        return self.log_ends.get(name, (-1, 0))


Registry = Mapping[int, BrokerInfo]
"""The latest registration of each broker, including brokers that are gone."""


def restarted(member: int, state: LeaderAndIsr, registry: Registry) -> bool:
    """Whether a member restarted since it joined the ISR, so that it may have lost records committed since.

    Before the first leader no member has joined.
    """
    return member in state.joined and registry[member].incarnation != state.joined[member]


def eligible_members(state: LeaderAndIsr, registry: Registry, live: Collection[int]) -> tuple[int, ...]:
    """ISR members that may lead, according to registrations (no release; rule ``missed_bounce``).

    A member that has run since it joined the ISR lacks nothing. If none of these is live, wait. Once all members are
    back, all restarted, elect the longest log: a log that lost its tail is shorter than one that did not. A member that
    a reassignment has removed deletes its log, so nobody waits for it.
    """
    members = [member for member in state.isr if member in state.replicas]
    alive = [member for member in members if member in live]
    kept = tuple(member for member in alive if not restarted(member, state, registry))
    if kept or not alive or len(alive) < len(members):
        return kept
    return (max(alive, key=lambda member: registry[member].log_end(state.name)),)


def offline(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: Collection[int], *, unclean: bool = False
) -> ElectionResult:
    """Without a leader: the first live ISR member in assignment order; otherwise, if allowed, the first live replica.

    Dead replicas leave the ISR at the same time. After an unclean election the ISR is only the new leader.
    Kafka: PartitionLeaderElectionAlgorithms#offlinePartitionLeaderElection (1.1-3.9),
    OfflinePartitionLeaderSelector#selectLeader (0.10.2).
    """
    for broker in assignment:
        if broker in isr and broker in live:
            return broker, tuple(member for member in isr if member in live)
    if unclean:
        for broker in assignment:
            if broker in live:
                return broker, (broker,)
    return None


def preferred(assignment: tuple[int, ...], isr: tuple[int, ...], live: Collection[int]) -> ElectionResult:
    """The head of the assignment, if it is live and in the ISR; the ISR is unchanged.

    Kafka: PartitionLeaderElectionAlgorithms#preferredReplicaPartitionLeaderElection (1.1-3.9),
    PreferredReplicaPartitionLeaderSelector#selectLeader (0.10.2).
    """
    head = assignment[0]
    return (head, isr) if head in isr and head in live else None


def reassigned(target: tuple[int, ...], isr: tuple[int, ...], live: Collection[int]) -> ElectionResult:
    """The first replica of a new assignment that is live and in the ISR; the ISR is unchanged.

    Kafka: PartitionLeaderElectionAlgorithms#reassignPartitionLeaderElection (1.1-3.9),
    ReassignedPartitionLeaderSelector#selectLeader (0.10.2).
    """
    return next(((broker, isr) for broker in target if broker in isr and broker in live), None)


def controlled_shutdown(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: Collection[int], shutting_down: Collection[int]
) -> ElectionResult:
    """The first live ISR member in assignment order that is not shutting down; members shutting down leave the ISR.

    Kafka: PartitionLeaderElectionAlgorithms#controlledShutdownPartitionLeaderElection (1.1-3.9),
    ControlledShutdownLeaderSelector#selectLeader (0.10.2).
    """
    for broker in assignment:
        if broker in isr and broker in live and broker not in shutting_down:
            return broker, tuple(member for member in isr if member not in shutting_down)
    return None


def without(
    replica: int, leader: int, isr: tuple[int, ...], *, to_the_last: bool = False
) -> tuple[int, tuple[int, ...]]:
    """Leader and ISR when a replica goes offline.

    It loses leadership, and leaves the ISR unless it is the last member, which has to come back. With `to_the_last` (up
    to 1.0, if unclean election is allowed) the last member leaves too.
    Kafka: ReplicaStateMachine#doRemoveReplicasFromIsr (1.1-2.0), ZkReplicaStateMachine#doRemoveReplicasFromIsr
    (2.6-3.9), KafkaController#removeReplicaFromIsr (0.10.2).
    """
    isr = isr if len(isr) == 1 and not to_the_last else tuple(member for member in isr if member != replica)
    return (0 if replica == leader else leader), isr


def in_set_order(brokers: tuple[int, ...]) -> tuple[int, ...]:
    """Brokers in the order of a Scala set, which changed assignments pass through (up to 2.3).

    Up to four keep their order; more are sorted by their hashes, five bits at a time (immutable.HashSet).
    """
    return brokers if len(brokers) <= _SMALL_SET else tuple(sorted(brokers, key=_set_place))


_SMALL_SET: Final = 4


def _set_place(broker: int) -> tuple[int, ...]:
    number = (broker + ~(broker << 9)) & _INT
    number ^= number >> 14
    number = (number + (number << 4)) & _INT
    number ^= number >> 10
    return tuple((number >> bits) & 31 for bits in range(0, 32, 5))


_INT: Final = (1 << 32) - 1
