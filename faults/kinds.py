"""All kinds of faults, in the order of the bits of the coverage column: a new kind comes last."""

from __future__ import annotations

from typing import Final

from faults.admin_election import AdminElection
from faults.controlled_restart import ControlledRestart
from faults.controller_failover import ControllerFailover
from faults.controller_pause import ControllerPause
from faults.corrupt_tail import CorruptTail
from faults.cut import Cut
from faults.disk_replaced import DiskReplaced
from faults.disk_stall import DiskStall
from faults.duplicate import Duplicate
from faults.kill import Kill
from faults.kind import LINK, Kind, Role
from faults.lossy import Lossy
from faults.metadata_lag import MetadataLag
from faults.min_isr_change import MinIsrChange
from faults.pause import Pause
from faults.power_loss import PowerLoss
from faults.preferred_election import PreferredElection
from faults.reassignment import Reassignment
from faults.reassignment_cancel import ReassignmentCancel
from faults.retention import Retention
from faults.session_expiry import SessionExpiry
from faults.slow import Slow
from faults.zombie import Zombie

KINDS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kill(),
        PowerLoss(),
        ControlledRestart(),
        DiskReplaced(),
        CorruptTail(),
        Pause(),
        DiskStall(),
        Cut(),
        Slow(),
        Lossy(),
        Duplicate(),
        Retention(),
        SessionExpiry(),
        Zombie(),
        ControllerFailover(),
        ControllerPause(),
        PreferredElection(),
        Reassignment(),
        MetadataLag(),
        MinIsrChange(),
        AdminElection(),
        ReassignmentCancel(),
    )
}
"""By name."""
LINKS: Final = tuple([kind.name for kind in KINDS.values() if kind.strikes is LINK])
"""Kinds of which one fault strikes both ends of a link."""


def joining(role: Role) -> tuple[str, ...]:
    """Names of the kinds that declare a role."""
    return tuple([kind.name for kind in KINDS.values() if role in kind.joins])
