"""Who is elected: the four algorithms of the ZooKeeper controller, and what becomes of the ISR.

Kafka classes: PartitionLeaderElectionAlgorithms, Election (before 1.1: PartitionLeaderSelector).
"""

from __future__ import annotations

from collections.abc import Collection

Choice = tuple[int, tuple[int, ...]] | None
"""(leader, ISR), None if nobody can be elected."""


def offline(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: Collection[int], *, unclean: bool = False
) -> Choice:
    """The leader is gone: the first live ISR member in assignment order; else, if allowed, the first live replica.

    Dead replicas leave the ISR with the same decision. After an unclean election the ISR is the new leader alone.
    """
    for broker in assignment:
        if broker in isr and broker in live:
            return broker, tuple(member for member in isr if member in live)
    if unclean:
        for broker in assignment:
            if broker in live:
                return broker, (broker,)
    return None


def preferred(assignment: tuple[int, ...], isr: tuple[int, ...], live: Collection[int]) -> Choice:
    """The head of the assignment, if it is live and in the ISR, which stays as it is."""
    head = assignment[0]
    return (head, isr) if head in isr and head in live else None


def reassigned(target: tuple[int, ...], isr: tuple[int, ...], live: Collection[int]) -> Choice:
    """The first replica of a new assignment that is live and in the ISR, which stays as it is."""
    return next(((broker, isr) for broker in target if broker in isr and broker in live), None)


def controlled_shutdown(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: Collection[int], shutting_down: Collection[int]
) -> Choice:
    """The first live ISR member in assignment order that is not shutting down; those that are leave the ISR."""
    for broker in assignment:
        if broker in isr and broker in live and broker not in shutting_down:
            return broker, tuple(member for member in isr if member not in shutting_down)
    return None


def without(replica: int, leader: int, isr: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Leader and ISR when a replica goes offline (ReplicaStateMachine.doRemoveReplicasFromIsr).

    It leads no more, and leaves the ISR unless it is the last member: that one is waited for.
    """
    isr = isr if len(isr) == 1 else tuple(member for member in isr if member != replica)
    return (0 if replica == leader else leader), isr
