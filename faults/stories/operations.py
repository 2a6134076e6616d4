"""Draws incidents of operations: requests of an administrator, mixed with stops and stalls of machines.

An incident is a sequence of requests (assignments, settings, elections, deletions), of faults of brokers (stops,
stalls, late metadata), and of machines that are stopped and then struck while they are down. Each element is drawn
independently, with a pause before the next one, so no known failure is spelt out. Assignments follow from earlier ones,
as in `faults.stories.reassignments`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from faults.bounds import Limits
from faults.kind import CLUSTER, Role
from faults.kinds.registry import KINDS, LINKS, kinds_with
from faults.plan import FOLLOWERS, ISR_MEMBER, LAST_MEMBER, LAST_TARGET, LEADER, OUTSIDER, Fault, Trigger
from faults.stories.reassignments import MOVES, other_assignment
from sim.hosts.control_plane import CONTROL
from sim.kernel.streams import Stream, choice, integer

REQUESTS: Final = (
    MOVES,
    "reassignment-cancel",
    "min-isr-change",
    "retention",
    "preferred-election",
    "admin-election",
    *kinds_with(Role.REQUEST),
)
"""Kinds that an administrator requests. `MOVES` and a cancellation have half of them."""
STOPS: Final = ("controlled-restart", "controlled-restart", "controlled-restart", "kill")
"""Kinds by which a machine is down before it is struck again, repeated by weight."""
WHILE_DOWN: Final = ("power-loss", "power-loss", "disk-replaced", *kinds_with(Role.WHILE_DOWN))
"""Kinds that strike a machine that is down, repeated by weight."""
TARGETS: Final = (LEADER, LEADER, LEADER, ISR_MEMBER, ISR_MEMBER, OUTSIDER, LAST_MEMBER, LAST_TARGET, FOLLOWERS)
"""Roles as targets, repeated by weight; every third target is a broker, with or without a replica."""
ASSIGNMENTS: Final = ("again", "again", "other", "back", "back", "same")
"""The next assignment: a change of the last one, or of the original one; the original one; the last one. Repeated by
weight.
"""
GAPS_US: Final = ((0, 500_000), (0, 3_000_000), (500_000, 8_000_000), (5_000_000, 20_000_000))
"""Pauses between elements: several at once, while the last one is under way, and after it."""
LASTS_US: Final = ((500_000, 8_000_000), (500_000, 8_000_000), (10_000_000, 60_000_000))
"""Durations: shorter than the timeouts, or longer than a session and replica.lag.time.max.ms."""
DOWN_US: Final = (10_000_000, 60_000_000)
STRUCK_US: Final = ((500_000, 4_000_000), (3_000_000, 15_000_000))
"""Time between the stop of a machine and what strikes it while it is down."""
MOMENTS: Final = ("isr", "isr", "isr-sent", "joined", "ack", "append", "elected", "registered", "session-end", "hw")
AFTER_US: Final = (0, 1_000, 1_000_000)
WAIT_US: Final = (2_000_000, 25_000_000)
"""How long a fault waits for one of `MOMENTS`."""
LEAST: Final = 3


def draw(stream: Stream, faults: int, kinds: Sequence[str], limits: Limits, at_us: int, last_us: int) -> list[Fault]:
    """Draw one incident of at least `LEAST` faults, from its own stream.

    The `kinds` are repeated by the seed's weights. The limits hold except for durations. No fault strikes after
    `last_us`.
    """
    requests = [kind for kind in kinds if kind in REQUESTS]
    moves = [kind for kind in requests if kind.startswith(MOVES)]
    lives = [kind for kind in kinds if kind not in REQUESTS]
    possible = limits.bounds.kinds
    if not any(KINDS[kind].moves_leader for kind in lives):
        lives += [kind for kind in possible if kind not in REQUESTS and KINDS[kind].moves_leader]
    if moves and MOVES not in moves and MOVES in possible:  # A cancellation alone has nothing to cancel.
        moves.append(MOVES)
    strikes = [kind for kind in WHILE_DOWN if kind in kinds]
    wanted = limits.brokers
    now_us = at_us
    plan: list[Fault] = []
    while len(plan) < faults:
        word = stream.random()
        if word < 0.2 and strikes and faults - len(plan) > 1:
            plan += _stopped(stream, choice(stream, STOPS), choice(stream, strikes), limits, now_us, last_us)
        elif requests and (word < 0.6 or not lives):
            kind = choice(stream, moves) if moves and stream.getrandbits(1) else choice(stream, requests)
            if kind == MOVES:
                wanted = _assignment(stream, wanted, limits)
                request = Fault(MOVES, now_us, (CLUSTER.implied,), replicas=wanted)
            else:
                request = _strike(stream, kind, limits, now_us, _target(stream, limits), choice(stream, LASTS_US))
            plan.append(_aimed(stream, request, limits, last_us))
        else:
            kind = choice(stream, lives)
            strike = _strike(stream, kind, limits, now_us, _target(stream, limits), choice(stream, LASTS_US))
            plan.append(_aimed(stream, strike, limits, last_us))
        now_us = min(now_us + integer(stream, *choice(stream, GAPS_US)), last_us)
    return _with_election(plan)


def _with_election(plan: list[Fault]) -> list[Fault]:
    """The faults, of which one that moves leadership strikes the leader: the first one, if none does."""
    moving = [
        place for place, fault in enumerate(plan) if KINDS[fault.kind].moves_leader and fault.kind not in REQUESTS
    ]
    if moving and not any(plan[place].targets == (LEADER,) for place in moving):
        plan[moving[0]] = plan[moving[0]].with_targets((LEADER,))
    return plan


def _stopped(stream: Stream, stop: str, kind: str, limits: Limits, at_us: int, last_us: int) -> list[Fault]:
    """Draw the stop of a machine, and a fault that strikes it while it is down."""
    target = choice(stream, (LEADER, ISR_MEMBER, LAST_MEMBER, *limits.all_brokers))
    later_us = min(at_us + integer(stream, *choice(stream, STRUCK_US)), last_us)
    first = _strike(stream, stop, limits, at_us, target, DOWN_US)
    return [first, _strike(stream, kind, limits, later_us, LAST_TARGET, DOWN_US)]


def _assignment(stream: Stream, last: tuple[int, ...], limits: Limits) -> tuple[int, ...]:
    word = choice(stream, ASSIGNMENTS)
    if word in ("back", "same"):
        return limits.brokers if word == "back" else last
    return other_assignment(stream, last if word == "again" else limits.brokers, limits.all_brokers)


def _target(stream: Stream, limits: Limits) -> int:
    return choice(stream, limits.all_brokers) if stream.random() * 3 < 1 else choice(stream, TARGETS)


def _strike(stream: Stream, kind: str, limits: Limits, at_us: int, target: int, lasts_us: tuple[int, int]) -> Fault:
    """Draw a fault of a kind; links are cut between the target and the leader, or the control plane."""
    low, high = limits.bounds.slow_us
    late_us = choice(stream, ((low, low + (high - low) // 8), (low, high)))
    bounds = replace(limits.bounds, restart_us=lasts_us, pause_us=lasts_us, cut_us=lasts_us, slow_us=late_us)
    peer = choice(stream, (LEADER, LEADER, CONTROL))
    if kind in LINKS and target in (LEADER, LAST_MEMBER, FOLLOWERS):
        target = ISR_MEMBER
    return KINDS[kind].draw(stream, Limits(bounds, limits.brokers, limits.all_brokers, (at_us, at_us), target, peer))


def _aimed(stream: Stream, fault: Fault, limits: Limits, last_us: int) -> Fault:
    """Let some faults wait for a step."""
    if stream.random() * 100 >= limits.bounds.aimed_percent:
        return fault
    until_us = min(fault.at_us + integer(stream, *WAIT_US), last_us)
    after_us = integer(stream, 0, choice(stream, AFTER_US))
    return fault.with_trigger(Trigger(choice(stream, MOMENTS), integer(stream, 1, 2), after_us, until_us))
