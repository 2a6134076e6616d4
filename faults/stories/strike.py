"""Draws one fault of an incident that strikes a given target, with durations that the incident chooses."""

from __future__ import annotations

from collections.abc import Sequence

from faults.bounds import Limits
from faults.kinds.registry import KINDS, LINKS
from faults.plan import CONTROLLER, ISR_MEMBER, LAST_MEMBER, LEADER, Fault
from sim.hosts.control_plane import CONTROL
from sim.kernel.streams import Stream, choice


def draw_strike(
    stream: Stream,
    kind: str,
    limits: Limits,
    at_us: int,
    target: int,
    stalls_us: Sequence[tuple[int, int]],
    restarts_us: Sequence[tuple[int, int]],
) -> Fault:
    """Draw a fault that may wait for a step. A pause or a disturbed link lasts within one of `stalls_us`, and a stopped
    broker is started again within one of `restarts_us`. Links are cut between the target and the leader, or the control
    plane.
    """
    stall_us = choice(stream, stalls_us)
    bounds = limits.bounds.within(choice(stream, restarts_us), stall_us, stall_us)
    peer = choice(stream, (LEADER, CONTROL))
    if kind in LINKS and target in (LEADER, LAST_MEMBER, CONTROLLER):
        target = ISR_MEMBER
    return KINDS[kind].draw(
        stream, Limits(bounds, limits.brokers, limits.all_brokers, (at_us, at_us), target, peer, triggered=True)
    )
