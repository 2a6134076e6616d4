"""Drawing stories of reassignments: replicas are moved, and moved again, while some of them are away.

Some replicas are away for a while, mostly by controlled stops. An operator asks for another assignment, which keeps,
drops and adds any replicas; then, before or after it has completed, for something else: back to the first assignment,
another one, the same again, or a cancellation. Sometimes who is added or dropped can fetch from nobody for a while. In
the end who leads stops, cleanly or not, alone or with another member of the ISR, and is back, as who was away is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from faults.bounds import Limits
from faults.kind import CLUSTER, Role
from faults.kinds.registry import KINDS, LINKS, joining
from faults.plan import FOLLOWERS, ISR_MEMBER, LAST, LEADER, OUTSIDER, Fault, Trigger
from sim.kernel.streams import Stream, choice, integer, sample

MOVES: Final = "reassignment"
CANCELS: Final = "reassignment-cancel"
LEAVE_ISR: Final = (*("controlled-restart",) * 4, "kill", "pause", "zombie", *joining(Role.LEAVE_ISR))
"""How replicas are away, as often as that is drawn."""
STRIKE_LAST: Final = (*("controlled-restart",) * 3, *("power-loss",) * 3, "kill", "zombie", *joining(Role.STRIKE_LAST))
"""What strikes who leads then."""
HOLDS: Final = ("cut", "cut", "disk-stall", "pause")
"""What keeps a replica from fetching."""
CHANGES: Final = ((1, 1), (1, 1), (1, 1), (2, 2), (2, 1), (2, 1), (1, 0), (0, 1), (0, 1), (0, 0))
"""How many replicas another assignment drops, and how many it adds, as often as that is drawn."""
THEN: Final = ("back", "back", "again", "again", "other", "same", "cancel", "cancel", "cancel")
"""What is asked for after the first assignment: that before it; another one, with what was last or with what was first
in mind; the same; or a cancellation.
"""
AWAY_US: Final = (15_000_000, 60_000_000)
LEAVE_US: Final = ((0, 0), (0, 3_000_000), (0, 15_000_000))
"""Until the first assignment is asked for."""
GAPS_US: Final = ((0, 2_000_000), (500_000, 8_000_000), (5_000_000, 20_000_000))
"""Between what an operator asks for, and until the blow."""
HOLD_US: Final = (2_000_000, 25_000_000)
BACK_US: Final = ((1_000_000, 8_000_000), (5_000_000, 40_000_000))
"""Until who was struck is back."""
MOMENTS: Final = ("isr", "isr", "ack", "elected", "registered")
WAIT_US: Final = (2_000_000, 25_000_000)
"""How long the blow waits for such a step."""
LEAST: Final = 4
"""Faults of a story: who is away, two demands, a blow."""


def draw(stream: Stream, faults: int, allowed: Sequence[str], limits: Limits, at_us: int, last_us: int) -> list[Fault]:
    """Draw one such story.

    Args:
        stream: of this story.
        faults: how many, at least `LEAST`.
        allowed: the kinds that the scenario has, `MOVES` among them.
        limits: what faults are drawn within; stories last as long as they need.
        at_us: when it begins.
        last_us: until when its faults may strike.
    """
    of_brokers = [kind for kind in allowed if kind not in LINKS and not kind.startswith(MOVES)] or [MOVES]
    away = choice(stream, (FOLLOWERS, ISR_MEMBER, ISR_MEMBER, OUTSIDER, *limits.brokers[1:]))
    plan = [_strike(stream, _of(stream, LEAVE_ISR, of_brokers), limits, at_us, (away,), AWAY_US)]
    more = faults - LEAST
    spare = [broker for broker in limits.all_brokers if broker not in limits.brokers]
    if more and spare and stream.random() * 4 < 1:
        more -= 1
        plan.append(
            _strike(stream, _of(stream, LEAVE_ISR, of_brokers), limits, at_us, (choice(stream, spare),), BACK_US[1])
        )
    now_us = at_us + integer(stream, *choice(stream, LEAVE_US))
    first = limits.brokers
    wanted = _other(stream, first, limits.all_brokers)
    plan.append(_move(wanted, now_us))
    holds = more > 0 and stream.random() * 3 < 2
    for number in range(1 + more - holds):
        now_us += integer(stream, *choice(stream, GAPS_US))
        if holds and not number:
            concerned = sorted({*first, *wanted}.difference({*first} & {*wanted}) or {*wanted})
            plan.append(_hold(stream, allowed, limits, max(at_us, now_us - 200_000), choice(stream, concerned)))
        then = choice(stream, THEN)
        if then == "cancel" and CANCELS in allowed:
            plan.append(Fault(CANCELS, now_us, (CLUSTER.implied,)))
            continue
        if then == "back":
            wanted = first
        elif then != "same":
            wanted = _other(stream, wanted if then == "again" else first, limits.all_brokers)
        plan.append(_move(wanted, now_us))
    now_us += integer(stream, *choice(stream, GAPS_US))
    struck = choice(stream, ((LEADER,), (LEADER,), (LAST,), (LEADER, ISR_MEMBER)))
    blow = _strike(stream, _of(stream, STRIKE_LAST, of_brokers), limits, now_us, struck, choice(stream, BACK_US))
    if stream.getrandbits(1):
        until_us = min(now_us + integer(stream, *WAIT_US), last_us)
        blow = blow.waiting(Trigger(choice(stream, MOMENTS), 1, integer(stream, 0, 2_000_000), until_us))
    plan.append(blow)
    return [fault if fault.at_us <= last_us else replace(fault, at_us=last_us) for fault in plan]


def _other(stream: Stream, replicas: Sequence[int], brokers: Sequence[int]) -> tuple[int, ...]:
    """Another assignment; at least one replica is left."""
    outside = [broker for broker in brokers if broker not in replicas]
    drops, adds = choice(stream, CHANGES)
    adds = min(adds, len(outside))
    drops = min(drops, len(replicas) + adds - 1)
    kept = sample(stream, replicas, len(replicas) - min(drops, len(replicas)))
    wanted = [*kept, *sample(stream, outside, adds)]
    return tuple(sample(stream, wanted, len(wanted)))


def _move(replicas: tuple[int, ...], at_us: int) -> Fault:
    return Fault(MOVES, at_us, (CLUSTER.implied,), replicas=replicas)


def _hold(stream: Stream, allowed: Sequence[str], limits: Limits, at_us: int, broker: int) -> Fault:
    kind = _of(stream, HOLDS, allowed)
    if kind in LINKS:
        return replace(_strike(stream, kind, limits, at_us, (LEADER, broker), HOLD_US), both_ways=True)
    return _strike(stream, kind, limits, at_us, (broker,), HOLD_US)


def _of(stream: Stream, kinds: Sequence[str], allowed: Sequence[str]) -> str:
    """One of the kinds that are allowed; if none is, any that is."""
    return choice(stream, [kind for kind in kinds if kind in allowed] or list(allowed))


def _strike(
    stream: Stream, kind: str, limits: Limits, at_us: int, targets: tuple[int, ...], lasts_us: tuple[int, int]
) -> Fault:
    bounds = replace(limits.bounds, restart_us=lasts_us, pause_us=lasts_us, cut_us=lasts_us)
    own = Limits(bounds, limits.brokers, limits.all_brokers, (at_us, at_us), targets[0], LEADER)
    drawn = KINDS[kind].draw(stream, own)
    return replace(drawn, targets=targets) if drawn.targets != (CLUSTER.implied,) else drawn
