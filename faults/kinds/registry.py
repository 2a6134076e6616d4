"""All kinds of fault, in the order of the bits of the coverage column: add a new kind at the end."""

from __future__ import annotations

from typing import Any, Final

from faults.kind import LINK, FaultKind, Role
from faults.kinds.admin_election import AdminElection
from faults.kinds.consumer_restart import ConsumerRestart
from faults.kinds.controlled_restart import ControlledRestart
from faults.kinds.controller_failover import ControllerFailover
from faults.kinds.controller_pause import ControllerPause
from faults.kinds.controller_voters import AddController, RemoveController
from faults.kinds.corrupt_tail import CorruptTail
from faults.kinds.cut import Cut
from faults.kinds.directory_added import DirectoryAdded
from faults.kinds.directory_cordoned import DirectoryCordoned
from faults.kinds.directory_failures import DirectoryFailure, DirectoryReplaced, DirectoryUnrepaired
from faults.kinds.directory_move import DirectoryMove
from faults.kinds.directory_removed import DirectoryRemoved
from faults.kinds.disk_full import DiskFull
from faults.kinds.disk_replaced import DiskReplaced
from faults.kinds.disk_stall import DiskStall
from faults.kinds.duplicate import Duplicate
from faults.kinds.feature_change import FeatureChange
from faults.kinds.file_damage import FileHalfWritten, FileLost, FileOld
from faults.kinds.groups import HostLoss, PowerDomainLoss, RackCut
from faults.kinds.kill import Kill
from faults.kinds.lossy import Lossy
from faults.kinds.message_faults import MessageCopy, MessageHold, MessageLoss
from faults.kinds.metadata_lag import MetadataLag
from faults.kinds.min_isr_change import MinIsrChange
from faults.kinds.move_throttle import MoveThrottle
from faults.kinds.next_batches import NextBatches
from faults.kinds.pause import PauseFault
from faults.kinds.power_loss import PowerLoss
from faults.kinds.preferred_election import PreferredElection
from faults.kinds.quorum_state_lost import QuorumStateLost
from faults.kinds.reassignment import ReassignmentFault
from faults.kinds.reassignment_cancel import ReassignmentCancel
from faults.kinds.record_deletion import RecordDeletion
from faults.kinds.retention import RetentionFault
from faults.kinds.session_expiry import SessionExpiry
from faults.kinds.slow import Slow
from faults.kinds.snapshots_lost import SnapshotsLost
from faults.kinds.topic_changes import PartitionCreation, TopicCreation, TopicDeletion
from faults.kinds.unclean_election_change import UncleanElectionChange
from faults.kinds.unregistration import Unregistration
from faults.kinds.zombie import Zombie
from faults.plan import Fault

KINDS: Final[dict[str, FaultKind]] = {
    kind.name: kind
    for kind in (
        Kill(),
        PowerLoss(),
        ControlledRestart(),
        DiskReplaced(),
        CorruptTail(),
        PauseFault(),
        DiskStall(),
        Cut(),
        Slow(),
        Lossy(),
        Duplicate(),
        RetentionFault(),
        SessionExpiry(),
        Zombie(),
        ControllerFailover(),
        ControllerPause(),
        PreferredElection(),
        ReassignmentFault(),
        MetadataLag(),
        MinIsrChange(),
        AdminElection(),
        ReassignmentCancel(),
        RecordDeletion(),
        FeatureChange(),
        UncleanElectionChange(),
        Unregistration(),
        MessageLoss(),
        MessageHold(),
        MessageCopy(),
        PowerDomainLoss(),
        HostLoss(),
        RackCut(),
        TopicCreation(),
        TopicDeletion(),
        PartitionCreation(),
        DirectoryFailure(),
        DirectoryReplaced(),
        DirectoryUnrepaired(),
        DirectoryMove(),
        NextBatches(),
        DirectoryRemoved(),
        MoveThrottle(),
        DirectoryAdded(),
        DirectoryCordoned(),
        QuorumStateLost(),
        FileLost(),
        FileOld(),
        FileHalfWritten(),
        ConsumerRestart(),
        DiskFull(),
        SnapshotsLost(),
        RemoveController(),
        AddController(),
    )
}
"""Name -> kind; those of plug-ins last."""
LINKS: Final = [kind.name for kind in KINDS.values() if kind.targets is LINK]
"""Names of the kinds that strike links."""
ADDED: Final[set[str]] = set()
"""Names of the kinds of plug-ins, which are last in `KINDS`."""


def kinds_with(role: Role) -> tuple[str, ...]:
    """Names of the kinds that declare a role."""
    return tuple([kind.name for kind in KINDS.values() if role in kind.roles])


def details(fault: Fault) -> dict[str, Any]:
    """What a fault does beyond its kind and targets: amount, by the name of the script's parameter, and replicas and
    partition, if it has any.
    """
    kind, found = KINDS[fault.kind], dict[str, Any]()
    if kind.amount is not None and fault.value:
        found[kind.amount.param] = kind.param_of(fault.value)
    if fault.replicas:
        found["replicas"] = list(fault.replicas)
    if fault.partition:
        found["partition"] = fault.partition
    return found
