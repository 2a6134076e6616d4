"""Aims faults of a random plan at the controllers of a replicated quorum.

A plan is drawn for brokers, as in any cluster. Then a stream of its own decides for each fault of a process, machine or
link whether it strikes a controller instead: so a seed has the same other faults, however many controllers there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from faults.kinds.controller_voters import AddController, RemoveController
from faults.kinds.cut import Cut
from faults.kinds.disk_replaced import DiskReplaced
from faults.kinds.kill import Kill
from faults.kinds.pause import PauseFault
from faults.kinds.power_loss import PowerLoss
from faults.kinds.quorum_state_lost import QuorumStateLost
from faults.kinds.registry import LINKS
from faults.kinds.snapshots_lost import SnapshotsLost
from faults.plan import CONTROLLER, FOLLOWERS, Fault, Plan
from sim.hosts.control_plane import CONTROL
from sim.kernel.streams import Stream, choice, integer, sample

ONLY: Final = (QuorumStateLost.name, SnapshotsLost.name, RemoveController.name, AddController.name)
"""The kinds that strike nothing but controllers."""
KINDS: Final = (Kill.name, PowerLoss.name, PauseFault.name, DiskReplaced.name)
"""Kinds of fault that strike a process or a machine, of a controller as well."""
ACTIVE_PERCENT: Final = 50
"""Share of these that strike the active controller."""
TOGETHER_PERCENT: Final = 50
"""Share of power losses that strike several controllers, perhaps all, at the same instant."""
ISOLATED_PERCENT: Final = 40
"""Share of cuts that separate a controller from all others."""


def aim_at_controllers(plan: Plan, stream: Stream, percent: int, controllers: Sequence[int]) -> Plan:
    """The plan, with this share of its faults that can strike controllers aimed at them."""
    faults = []
    for fault in plan.faults:
        chance = integer(stream, 0, 99)
        aimed = fault.kind in ONLY or (chance < percent and fault.targets != (FOLLOWERS,))
        if aimed and (fault.kind in ONLY or fault.kind in KINDS):
            together = fault.kind == PowerLoss.name and integer(stream, 0, 99) < TOGETHER_PERCENT
            targets = _several(stream, controllers) if together else (_controller(stream, controllers),)
            faults.append(fault.with_targets(targets, fault.delays_us[:1]))
        elif aimed and fault.kind in LINKS:
            faults.append(fault.with_targets(_link(stream, fault, controllers), fault.delays_us[:1]))
        else:
            faults.append(fault)
    return Plan(tuple(faults))


def _controller(stream: Stream, controllers: Sequence[int]) -> int:
    active = integer(stream, 0, 99) < ACTIVE_PERCENT
    other = choice(stream, controllers)
    return CONTROLLER if active else other


def _several(stream: Stream, controllers: Sequence[int]) -> tuple[int, ...]:
    count = integer(stream, 1, len(controllers))
    return tuple(sample(stream, controllers, count))


def _link(stream: Stream, fault: Fault, controllers: Sequence[int]) -> tuple[int, ...]:
    """A link between two controllers, or of one to all others (0), or to one end of the link that was drawn."""
    controller = _controller(stream, controllers)
    isolates = integer(stream, 0, 99) < ISOLATED_PERCENT
    peer = choice(stream, [*controllers, *fault.targets])
    if fault.kind == Cut.name and isolates:
        peer = CONTROL
    return (controller, peer) if stream.getrandbits(1) else (peer, controller)
