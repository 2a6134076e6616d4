"""Drawing the story that KIP-966 begins with: the ISR shrinks to one replica, which is struck before anybody is back.

The other replicas leave the ISR one after the other, mostly without an end of their processes; then who is left loses
its machine, its disk, its process or nothing but its session; and the others are back before it, or after it.
Sometimes a disk is replaced while its broker is down, min ISR is another, metadata is late, the controllers change,
replicas are moved, or an operator has no patience.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from faults.bounds import Limits
from faults.kind import Role
from faults.kinds.registry import KINDS, LINKS, joining
from faults.plan import AGAIN, FOLLOWERS, ISR_MEMBER, LAST, LEADER, OUTSIDER, Fault, Trigger
from sim.kernel.streams import Stream, choice, integer

LEAVE_ISR: Final = (
    *("zombie", "zombie", "pause", "disk-stall", "controlled-restart", "controlled-restart", "kill"),
    *joining(Role.LEAVE_ISR),
)
"""Kinds by which followers leave the ISR, repeated by weight; only the last one is an unclean end."""
STRIKE_LAST: Final = (
    *("power-loss",) * 5,
    *("disk-replaced",) * 2,
    *("kill", "zombie", "controlled-restart"),
    *joining(Role.STRIKE_LAST),
)
"""Kinds that strike the last member of the ISR, repeated by weight."""
WHILE_DOWN: Final = "disk-replaced"
"""Strikes that broker once more, before it registers again."""
BACKGROUND: Final = (
    "controller-failover",
    "metadata-lag",
    "min-isr-change",
    "reassignment",
    "admin-election",
    "preferred-election",
    "session-expiry",
    "cut",
    "kill",
    *joining(Role.BACKGROUND),
)
"""Kinds that strike meanwhile."""
GAPS_US: Final = (0, 3_000_000, 10_000_000)
"""Longest times between two followers that leave."""
AWAY_US: Final = (12_000_000, 45_000_000)
"""How long they are gone: longer than it takes until that is noticed under KRaft."""
WAIT_US: Final = (15_000_000, 40_000_000)
"""How long the blow waits for the ISR to shrink."""
AFTER_US: Final = (0, 1_000, 2_000_000)
BACK_US: Final = ((1_000_000, 8_000_000), (1_000_000, 30_000_000), (20_000_000, 60_000_000))
"""Until who was struck is back: before the others, about then, after them."""
MOMENTS: Final = ("isr", "elected", "registered", "session-end", "lead", "follow", "ack")


def draw(stream: Stream, faults: int, allowed: Sequence[str], limits: Limits, at_us: int, last_us: int) -> list[Fault]:
    """Draw one such story.

    Args:
        stream: of this story.
        faults: how many, at least 2.
        allowed: the kinds that the scenario has, not only those of links.
        limits: what faults are drawn within; stories last as long as they need.
        at_us: when it begins.
        last_us: until when its faults may wait for their steps, or strike later than it begins.
    """
    others = len(limits.brokers) - 1
    of_brokers = [kind for kind in allowed if kind not in LINKS]
    leaves = _draw(stream, _of(stream, LEAVE_ISR, of_brokers), limits, at_us, FOLLOWERS, AWAY_US)
    gap_us = choice(stream, GAPS_US)
    delays_us = [integer(stream, 0, gap_us) for _ in range(others)]
    plan = [replace(leaves, targets=(FOLLOWERS,), delays_us=(0, *sorted(delays_us[1:])))]
    # Who leaves a large ISR of five need not be the last but one.
    alone = Trigger(
        "isr",
        max(1, others - (stream.random() * 4 < 1)),
        integer(stream, 0, choice(stream, AFTER_US)),
        min(at_us + integer(stream, *WAIT_US), last_us),
    )
    blow = _draw(stream, _of(stream, STRIKE_LAST, of_brokers), limits, at_us, LAST, choice(stream, BACK_US))
    plan.append(replace(blow, targets=(LAST,), delays_us=()).waiting(alone))
    for _ in range(faults - 2):
        later_us = min(at_us + integer(stream, 0, AWAY_US[1]), last_us)
        if WHILE_DOWN in allowed and stream.random() * 6 < 1:
            empties = _draw(stream, WHILE_DOWN, limits, at_us, AGAIN, BACK_US[1])
            plan.append(empties.waiting(Trigger("session-end", others + 1, 0, later_us)))
            continue
        target = choice(stream, (LEADER, ISR_MEMBER, OUTSIDER, LAST))
        kind = _of(stream, BACKGROUND, allowed)
        also = _draw(
            stream, kind, limits, at_us, target, limits.bounds.cut_us if kind in ("cut", "metadata-lag") else AWAY_US
        )
        if stream.getrandbits(1):
            plan.append(replace(also, at_us=later_us))
        else:
            trigger = Trigger(choice(stream, MOMENTS), integer(stream, 1, 2 * others), 0, later_us)
            plan.append(also.waiting(trigger))
    return plan


def _of(stream: Stream, kinds: Sequence[str], allowed: Sequence[str]) -> str:
    """One of the kinds that are allowed; if none is, any that is."""
    return choice(stream, [kind for kind in kinds if kind in allowed] or list(allowed))


def _draw(stream: Stream, kind: str, limits: Limits, at_us: int, target: int, lasts_us: tuple[int, int]) -> Fault:
    bounds = replace(limits.bounds, restart_us=lasts_us, pause_us=lasts_us, cut_us=lasts_us)
    own = Limits(bounds, limits.brokers, limits.all_brokers, (at_us, at_us), target, LEADER)
    return KINDS[kind].draw(stream, own)
