"""All kinds of fault, in the order of the bits of the coverage column: add a new kind at the end."""

from __future__ import annotations

from typing import Final

from faults.kind import LINK, FaultKind, Role
from faults.kinds import links, operations, stalls, stops

KINDS: Final[dict[str, FaultKind]] = {
    kind.name: kind
    for kind in (
        stops.Kill(),
        stops.PowerLoss(),
        stops.ControlledRestart(),
        stops.DiskReplaced(),
        stops.CorruptTail(),
        stalls.PauseFault(),
        stalls.DiskStall(),
        links.Cut(),
        links.Slow(),
        links.Lossy(),
        links.Duplicate(),
        operations.RetentionFault(),
        stalls.SessionExpiry(),
        stalls.Zombie(),
        stalls.ControllerFailover(),
        stalls.ControllerPause(),
        operations.PreferredElection(),
        operations.Reassignment(),
        stalls.MetadataLag(),
        operations.MinIsrChange(),
        operations.AdminElection(),
        operations.ReassignmentCancel(),
    )
}
"""Name -> kind."""
LINKS: Final = tuple([kind.name for kind in KINDS.values() if kind.targets is LINK])
"""Names of the kinds that strike links."""


def kinds_with(role: Role) -> tuple[str, ...]:
    """Names of the kinds that declare a role."""
    return tuple([kind.name for kind in KINDS.values() if role in kind.roles])
