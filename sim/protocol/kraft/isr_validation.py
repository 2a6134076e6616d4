"""The controller's validation of ISR changes.

Checks are in Kafka's order.
"""

from __future__ import annotations

from sim.protocol.decision_points import ISR_ACCEPTED, IsrAccepted
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem
from sim.protocol.kraft.metadata import MetadataImage, PartitionRegistration
from sim.protocol.messages import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NONE,
    NOT_CONTROLLER,
    UNKNOWN_TOPIC_OR_PARTITION,
)


class IsrValidation:
    """Validates ISR changes."""

    def __init__(self, image: MetadataImage, decide: Decisions) -> None:
        self._image = image
        self._decide = decide

    def refusal(self, broker: int, wanted: AlterPartitionItem) -> str:
        """The error with which a proposed ISR is refused, or `NONE`.

        A sender with newer epochs than the controller's knows a newer controller.
        Kafka: ReplicationControlManager#validateAlterPartitionData.
        """
        state = self._image.partitions.get(wanted.name)
        if state is None:
            return UNKNOWN_TOPIC_OR_PARTITION
        if wanted.leader_epoch > state.leader_epoch or wanted.partition_epoch > state.partition_epoch:
            return NOT_CONTROLLER
        if wanted.leader_epoch < state.leader_epoch:
            return FENCED_LEADER_EPOCH
        if broker != state.leader:
            return INVALID_REQUEST
        joining = next((member for member in wanted.isr if member not in state.isr), 0)
        is_old = wanted.partition_epoch < state.partition_epoch
        if self._decide.mutants.alter_partition_of_earlier_partition_epoch.keeps(is_old, joining):
            return INVALID_UPDATE_VERSION
        if not _is_possible(wanted, state):
            return INVALID_REQUEST
        return NONE if all(self._is_eligible(member, wanted, state) for member in wanted.isr) else INELIGIBLE_REPLICA

    def _is_eligible(self, member: int, wanted: AlterPartitionItem, state: PartitionRegistration) -> bool:
        """Whether a broker may be in the ISR (KIP-841, KIP-903); current members may stay.

        Kafka: ReplicationControlManager#ineligibleReplicasForIsr.
        """
        accepted = self._is_accepted(member, wanted, state)
        if accepted and member not in state.isr and self._is_offline(member, state):
            accepted = not self._decide.refuses_offline_replica.yes()
        return self._acceptance_by_plugins(member, wanted, state, accepted)

    def _acceptance_by_plugins(
        self, member: int, wanted: AlterPartitionItem, state: PartitionRegistration, accepted: bool
    ) -> bool:
        """`_is_eligible`, as rule values of plug-ins decide."""
        if not self._decide.plugged:
            return accepted
        registration = self._image.brokers.get(member)
        at = IsrAccepted(
            member,
            self._image.is_active(member),
            -1 if registration is None else registration.broker_epoch,
            wanted.broker_epochs.get(member, -1),
            state.isr,
            wanted.isr,
            state.leader,
        )
        return self._decide.by_plugins(ISR_ACCEPTED, accepted, at)

    def _is_offline(self, member: int, state: PartitionRegistration) -> bool:
        """Whether a replica's log directory is known to have failed."""
        return self._decide.knows_directories.answer and not self._image.has_online_directory(state, member)

    def _is_accepted(self, member: int, wanted: AlterPartitionItem, state: PartitionRegistration) -> bool:
        epoch = wanted.broker_epochs.get(member, -1)
        active = self._image.is_active(member)
        is_stale = active and epoch not in (-1, self._image.brokers[member].broker_epoch)
        is_stale = self._decide.mutants.alter_partition_of_earlier_registration.keeps(is_stale, member)
        if (active and not is_stale) or (member in state.isr and self._decide.holds_small_isr.yes()):
            return True
        return self._decide.admits_any_member.yes() or (active and self._decide.admits_live_members.yes())


def _is_possible(wanted: AlterPartitionItem, state: PartitionRegistration) -> bool:
    """Whether the ISR is well-formed, and only a recovering leader claims recovery. Kafka: Replicas#validateIsr."""
    isr = wanted.isr
    if len(set(isr)) < len(isr) or not set(isr) <= set(state.replicas) or state.leader not in isr:
        return False
    return not wanted.recovering or (state.recovering and len(isr) == 1)
