"""Draws incidents of reassignments: replicas are moved, and moved again, while some of them are away.

Some replicas are away for a while, mostly by controlled restarts. An operator submits another assignment, which keeps,
drops and adds any replicas. Before or after it completes, the operator submits another request: back to the first
assignment, another one, the same again, or a cancellation. Sometimes an added or dropped replica cannot fetch for a
while. In the end the leader stops, cleanly or not, alone or with another ISR member, and all brokers return.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from faults.bounds import Limits
from faults.kind import CLUSTER, Role
from faults.kinds.registry import KINDS, LINKS, kinds_with
from faults.plan import FOLLOWERS, ISR_MEMBER, LAST_MEMBER, LEADER, OUTSIDER, Fault, Trigger
from sim.kernel.streams import Stream, choice, integer, sample

MOVES: Final = "reassignment"
CANCELS: Final = "reassignment-cancel"
LEAVE_ISR: Final = (*("controlled-restart",) * 4, "kill", "pause", "zombie", *kinds_with(Role.LEAVE_ISR))
"""Kinds by which replicas are away, repeated by weight."""
STRIKE_LAST: Final = (
    *("controlled-restart",) * 3,
    *("power-loss",) * 3,
    "kill",
    "zombie",
    *kinds_with(Role.STRIKE_LAST),
)
"""Kinds that strike the leader in the end, repeated by weight."""
HOLDS: Final = ("cut", "cut", "disk-stall", "pause")
"""Kinds that keep a replica from fetching, repeated by weight."""
CHANGES: Final = ((1, 1), (1, 1), (1, 1), (2, 2), (2, 1), (2, 1), (1, 0), (0, 1), (0, 1), (0, 0))
"""Numbers of replicas that an assignment drops and adds, repeated by weight."""
THEN: Final = ("back", "back", "again", "again", "other", "same", "cancel", "cancel", "cancel")
"""Requests after the first assignment, repeated by weight: back to the original one; again or other, a change of the
last or of the original one; the same; or a cancellation.
"""
AWAY_US: Final = (15_000_000, 60_000_000)
LEAVE_US: Final = ((0, 0), (0, 3_000_000), (0, 15_000_000))
"""Time until the first request."""
GAPS_US: Final = ((0, 2_000_000), (500_000, 8_000_000), (5_000_000, 20_000_000))
"""Time between requests, and until the final strike."""
HOLD_US: Final = (2_000_000, 25_000_000)
BACK_US: Final = ((1_000_000, 8_000_000), (5_000_000, 40_000_000))
"""Time until the struck broker is back."""
MOMENTS: Final = ("isr", "isr", "ack", "elected", "registered")
WAIT_US: Final = (2_000_000, 25_000_000)
"""How long the final strike waits for one of `MOMENTS`."""
LEAST: Final = 4
"""Fewest faults of an incident: one replica away, two requests, the final strike."""


def draw(stream: Stream, faults: int, allowed: Sequence[str], limits: Limits, at_us: int, last_us: int) -> list[Fault]:
    """Draw one incident of at least `LEAST` faults, from its own stream.

    The `allowed` kinds include `MOVES`. The limits hold except for durations. No fault strikes after `last_us`.
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
    wanted = other_assignment(stream, first, limits.all_brokers)
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
            wanted = other_assignment(stream, wanted if then == "again" else first, limits.all_brokers)
        plan.append(_move(wanted, now_us))
    now_us += integer(stream, *choice(stream, GAPS_US))
    struck = choice(stream, ((LEADER,), (LEADER,), (LAST_MEMBER,), (LEADER, ISR_MEMBER)))
    final = _strike(stream, _of(stream, STRIKE_LAST, of_brokers), limits, now_us, struck, choice(stream, BACK_US))
    if stream.getrandbits(1):
        until_us = min(now_us + integer(stream, *WAIT_US), last_us)
        final = final.with_trigger(Trigger(choice(stream, MOMENTS), 1, integer(stream, 0, 2_000_000), until_us))
    plan.append(final)
    return [fault if fault.at_us <= last_us else fault.at(last_us) for fault in plan]


def other_assignment(stream: Stream, replicas: Sequence[int], brokers: Sequence[int]) -> tuple[int, ...]:
    """Draw another assignment with at least one replica."""
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
    """Draw one of the kinds that are allowed; if none is, any allowed kind."""
    return choice(stream, [kind for kind in kinds if kind in allowed] or list(allowed))


def _strike(
    stream: Stream, kind: str, limits: Limits, at_us: int, targets: tuple[int, ...], lasts_us: tuple[int, int]
) -> Fault:
    bounds = limits.bounds.within(lasts_us, lasts_us, lasts_us)
    own = Limits(bounds, limits.brokers, limits.all_brokers, (at_us, at_us), targets[0], LEADER)
    drawn = KINDS[kind].draw(stream, own)
    return drawn.with_targets(targets) if drawn.targets != (CLUSTER.implied,) else drawn
