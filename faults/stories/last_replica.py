"""Draws incidents of a last replica standing, the motivation of KIP-966.

The other replicas leave the ISR one after the other, mostly while their processes keep running. Then the last member
loses its machine, disk, process or session, and the others return before or after it. Sometimes another fault is
added: a replaced disk while the broker is down, another min ISR, late metadata, a controller failover, a reassignment,
an administrator's election.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from faults.bounds import Limits
from faults.kind import Role
from faults.kinds.registry import KINDS, LINKS, kinds_with
from faults.plan import FOLLOWERS, ISR_MEMBER, LAST_MEMBER, LAST_TARGET, LEADER, OUTSIDER, Fault, Trigger
from sim.kernel.streams import Stream, choice, integer

LEAVE_ISR: Final = (
    *("zombie", "zombie", "pause", "disk-stall", "controlled-restart", "controlled-restart", "kill"),
    *kinds_with(Role.LEAVE_ISR),
)
"""Kinds by which followers leave the ISR, repeated by weight; only `kill` is an unclean end."""
STRIKE_LAST: Final = (
    *("power-loss",) * 5,
    *("disk-replaced",) * 2,
    *("kill", "zombie", "controlled-restart"),
    *kinds_with(Role.STRIKE_LAST),
)
"""Kinds that strike the last member of the ISR, repeated by weight."""
WHILE_DOWN: Final = "disk-replaced"
"""Strikes the last member once more, before it registers again."""
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
    *kinds_with(Role.BACKGROUND),
)
"""Kinds that strike at any time during the incident."""
GAPS_US: Final = (0, 3_000_000, 10_000_000)
"""Longest times between two followers leaving."""
AWAY_US: Final = (12_000_000, 45_000_000)
"""How long followers are away: longer than KRaft takes to notice."""
WAIT_US: Final = (15_000_000, 40_000_000)
"""How long the strike on the last member waits for the ISR to shrink."""
AFTER_US: Final = (0, 1_000, 2_000_000)
BACK_US: Final = ((1_000_000, 8_000_000), (1_000_000, 30_000_000), (20_000_000, 60_000_000))
"""Time until the last member is back: before the others, at about the same time, after them."""
MOMENTS: Final = ("isr", "elected", "registered", "session-end", "lead", "follow", "ack")


def draw(stream: Stream, faults: int, allowed: Sequence[str], limits: Limits, at_us: int, last_us: int) -> list[Fault]:
    """Draw one incident of at least 2 faults, from its own stream.

    Not all `allowed` kinds strike links alone. The limits hold except for durations. No fault waits or strikes after
    `last_us`.
    """
    others = len(limits.brokers) - 1
    of_brokers = [kind for kind in allowed if kind not in LINKS]
    leaving = _draw(stream, _of(stream, LEAVE_ISR, of_brokers), limits, at_us, FOLLOWERS, AWAY_US)
    gap_us = choice(stream, GAPS_US)
    delays_us = [integer(stream, 0, gap_us) for _ in range(others)]
    plan = [leaving.with_targets((FOLLOWERS,), (0, *sorted(delays_us[1:])))]
    # In a large ISR of five, strike sometimes one follower early.
    alone = Trigger(
        "isr",
        max(1, others - (stream.random() * 4 < 1)),
        integer(stream, 0, choice(stream, AFTER_US)),
        min(at_us + integer(stream, *WAIT_US), last_us),
    )
    strike = _draw(stream, _of(stream, STRIKE_LAST, of_brokers), limits, at_us, LAST_MEMBER, choice(stream, BACK_US))
    plan.append(strike.with_targets((LAST_MEMBER,), ()).with_trigger(alone))
    for _ in range(faults - 2):
        later_us = min(at_us + integer(stream, 0, AWAY_US[1]), last_us)
        if WHILE_DOWN in allowed and stream.random() * 6 < 1:
            empties = _draw(stream, WHILE_DOWN, limits, at_us, LAST_TARGET, BACK_US[1])
            plan.append(empties.with_trigger(Trigger("session-end", others + 1, 0, later_us)))
            continue
        target = choice(stream, (LEADER, ISR_MEMBER, OUTSIDER, LAST_MEMBER))
        kind = _of(stream, BACKGROUND, allowed)
        also = _draw(
            stream, kind, limits, at_us, target, limits.bounds.cut_us if kind in ("cut", "metadata-lag") else AWAY_US
        )
        if stream.getrandbits(1):
            plan.append(also.at(later_us))
        else:
            trigger = Trigger(choice(stream, MOMENTS), integer(stream, 1, 2 * others), 0, later_us)
            plan.append(also.with_trigger(trigger))
    return plan


def _of(stream: Stream, kinds: Sequence[str], allowed: Sequence[str]) -> str:
    """Draw one of the kinds that are allowed; if none is, any allowed kind."""
    return choice(stream, [kind for kind in kinds if kind in allowed] or list(allowed))


def _draw(stream: Stream, kind: str, limits: Limits, at_us: int, target: int, lasts_us: tuple[int, int]) -> Fault:
    bounds = limits.bounds.within(lasts_us, lasts_us, lasts_us)
    own = Limits(bounds, limits.brokers, limits.all_brokers, (at_us, at_us), target, LEADER)
    return KINDS[kind].draw(stream, own)
