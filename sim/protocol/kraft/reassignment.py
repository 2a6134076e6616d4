"""Beginning and cancelling a reassignment; `sim.protocol.kraft.partition_change_builder` completes it."""

from __future__ import annotations

from sim.protocol.kraft.partition_change_builder import ONLINE, PartitionChangeBuilder, PartitionChangeRules, without
from sim.protocol.messages import INVALID_REPLICA_ASSIGNMENT, NONE


def begin(change: PartitionChangeBuilder, replicas: tuple[int, ...], rules: PartitionChangeRules) -> None:
    """Add the replicas of the new assignment, and mark those to be removed.

    Replicas that an earlier reassignment adds or removes stay marked unless this one marks some itself, as in Kafka, or
    as rule ``resubmitted_reassignment`` says.
    Kafka: ReplicationControlManager#changePartitionReassignment, PartitionReassignmentReplicas.
    """
    state = change.state
    adding = tuple(sorted(set(replicas) - set(state.replicas)))
    removing = tuple(sorted(set(state.replicas) - set(replicas)))
    change.election = ONLINE
    change.replicas = (*replicas, *removing)
    replaces = rules.decide.replaces_reassignment_marks
    if adding or (state.adding and replaces.yes()):
        change.adding = adding
    if removing or (state.removing and replaces.yes()):
        change.removing = removing


def revert(change: PartitionChangeBuilder, *, unclean: bool) -> str:
    """Restore the former assignment; returns an error.

    If only added replicas are in the ISR, reverting needs an unclean election of the first of the others.
    Kafka: PartitionReassignmentRevert.
    """
    change.replicas = without(change.replicas, change.adding)
    change.isr = without(change.isr, change.adding)
    change.adding = change.removing = ()
    if not change.isr:
        if not unclean:
            return INVALID_REPLICA_ASSIGNMENT
        change.isr = change.replicas[:1]
    return NONE
