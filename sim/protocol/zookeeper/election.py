"""Who is elected: the four algorithms of the ZooKeeper controller, and what becomes of the ISR.

Kafka: PartitionLeaderElectionAlgorithms (1.1-3.9), controller.Election (2.6-3.9), PartitionLeaderSelector (0.10.2).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from sim.protocol.messages import LeaderAndIsr

ElectionResult = tuple[int, tuple[int, ...]] | None
"""(leader, ISR), None if nobody can be elected."""


class BrokerInfo:
    """What a broker tells of itself when it registers in ZooKeeper.

    No release tells this; rule ``missed_bounce`` goes by it.
    Kafka: zk.BrokerInfo (1.1-3.9).

    Attributes:
        incarnation: of its process.
        log_end: leader epoch of its last record (-1: none) and LEO.
    """

    __slots__ = ("incarnation", "log_end")

    def __init__(self, incarnation: int, log_end: tuple[int, int]) -> None:
        self.incarnation: Final = incarnation
        self.log_end: Final = log_end


Registry = Mapping[int, BrokerInfo]
"""The latest registration of each broker, also of those that are gone."""


def restarted(member: int, state: LeaderAndIsr, registry: Registry) -> bool:
    """Whether a member's process is not the one that joined the ISR: it may have lost what was committed since.

    Before there was a leader nobody has joined.
    """
    return member in state.joined and registry[member].incarnation != state.joined[member]


def eligible_members(state: LeaderAndIsr, registry: Registry, live: Collection[int]) -> tuple[int, ...]:
    """ISR members that may lead, as far as registrations tell (no release; rule ``missed_bounce``).

    Whoever has run since it joined the ISR lacks nothing. If nobody of these is live, one is waited for, until all
    members are live again, all restarted: then the longest log stands, since one that lost its tail is shorter than one
    that did not.
    """
    alive = [member for member in state.isr if member in live]
    kept = tuple(member for member in alive if not restarted(member, state, registry))
    if kept or not alive or len(alive) < len(state.isr):
        return kept
    return (max(alive, key=lambda member: registry[member].log_end),)


def offline(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: Collection[int], *, unclean: bool = False
) -> ElectionResult:
    """The leader is gone: the first live ISR member in assignment order; else, if allowed, the first live replica.

    Dead replicas leave the ISR with the same decision. After an unclean election the ISR is the new leader alone.
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
    """The head of the assignment, if it is live and in the ISR, which stays as it is.

    Kafka: PartitionLeaderElectionAlgorithms#preferredReplicaPartitionLeaderElection (1.1-3.9),
    PreferredReplicaPartitionLeaderSelector#selectLeader (0.10.2).
    """
    head = assignment[0]
    return (head, isr) if head in isr and head in live else None


def reassigned(target: tuple[int, ...], isr: tuple[int, ...], live: Collection[int]) -> ElectionResult:
    """The first replica of a new assignment that is live and in the ISR, which stays as it is.

    Kafka: PartitionLeaderElectionAlgorithms#reassignPartitionLeaderElection (1.1-3.9),
    ReassignedPartitionLeaderSelector#selectLeader (0.10.2).
    """
    return next(((broker, isr) for broker in target if broker in isr and broker in live), None)


def controlled_shutdown(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: Collection[int], shutting_down: Collection[int]
) -> ElectionResult:
    """The first live ISR member in assignment order that is not shutting down; those that are leave the ISR.

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

    It leads no more, and leaves the ISR unless it is the last member: that one is waited for, but with `to_the_last`
    (to 1.0, where unclean election is allowed).
    Kafka: ReplicaStateMachine#doRemoveReplicasFromIsr (1.1-2.0), ZkReplicaStateMachine#doRemoveReplicasFromIsr
    (2.6-3.9), KafkaController#removeReplicaFromIsr (0.10.2).
    """
    isr = isr if len(isr) == 1 and not to_the_last else tuple(member for member in isr if member != replica)
    return (0 if replica == leader else leader), isr


def in_set_order(brokers: tuple[int, ...]) -> tuple[int, ...]:
    """Brokers as a Scala set has them, which assignments pass through while they are changed (to 2.3).

    Up to four stay in their order; more are sorted by a hash of theirs, five bits at a time (immutable.HashSet).
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
