"""Draws a fault plan from a seed by swarm testing: seeds differ in the faults that they enable.

Each seed enables some of the scenario's kinds, with weights, and draws whether cuts, pauses and stops are short, long
or mixed. Faults come in incidents, each at its own time: a lone fault, a burst that strikes several targets nearly at
once, a chain of faults that wait for one step after another (some in the order of a known failure), a rolling restart
of all brokers, or an incident pattern. Everything is drawn before the run: kinds and incidents from the plan's streams,
each fault from its own stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from faults.bounds import FaultBounds, Limits
from faults.kind import Role
from faults.kinds.controlled_restart import ControlledRestart
from faults.kinds.registry import KINDS, LINKS, kinds_with
from faults.plan import CONTROLLER, ISR_MEMBER, ITS_DIRECTORY, LAST_TARGET, LEADER, STEP_BROKER, Fault, Plan, Trigger
from faults.stories import copies, last_replica, operations, overtaking, reassignments, window
from sim.config import NEVER
from sim.hosts.control_plane import CONTROL
from sim.kernel.scheduler import BudgetError
from sim.kernel.streams import Stream, Streams, choice, integer, sample

LONE: Final = "lone"
BURST: Final = "burst"
CHAIN: Final = "chain"
ROLLING: Final = "rolling"
STANDING: Final = "standing"
MOVING: Final = "moving"
OPERATING: Final = "operating"
OVERTAKING: Final = "overtaking"
WINDOW: Final = "window"
COPYING: Final = "copying"
SIZES: Final = {
    BURST: (2, 3),
    CHAIN: (3, 5),
    STANDING: (2, 4),
    MOVING: (reassignments.LEAST, 7),
    OPERATING: (operations.LEAST, 8),
    OVERTAKING: (overtaking.LEAST, 5),
    WINDOW: (window.LEAST, window.MOST),
    COPYING: (copies.LEAST, copies.MOST),
}
"""Bounds of the number of faults of an incident."""
BURST_GAPS_US: Final = (0, 50_000, 3_000_000)
"""Longest times between the faults of a burst."""
CHAIN_GAPS_US: Final = (1_000_000, 10_000_000, 30_000_000)
"""Longest times between the starts of two faults of a chain: short, medium, or until a stopped broker is back."""
ROLLING_GAPS_US: Final = (2_000_000, 20_000_000, 40_000_000)
"""Longest times between two restarts of a rolling restart: without and with waiting for a full ISR."""
ROLLING_RESTART_US: Final = (500_000, 10_000_000)
WAIT_US: Final = (5_000_000, 60_000_000)
"""How long a fault waits for its step: enough for a session expiry and an election."""
STRUCK_DIRECTORIES: Final = (ITS_DIRECTORY, ITS_DIRECTORY, ITS_DIRECTORY, 1, 2, 3)
"""Log directories that faults of one directory strike, repeated by weight."""
OCCURRENCES: Final = (1, 1, 1, 2, 3, 6)
AFTER_US: Final = (0, 300, 300, 3_000, 1_000_000)
"""Longest delays between step and strike."""
WEIGHTS: Final = (1, 1, 2, 4)
"""Weights of enabled kinds."""
STABILITY: Final = ("short", "long", "any")
RESTART_STABILITY: Final = ("short", "long", "any", "long", "any")
SURE: Final = 2
"""Every second fault is of a kind that moves leadership, if the seed enables one, and the first of these strike the
leader: a run without elections would show nothing.
"""
MOMENTS: Final = {
    "append": 6,
    "replicated": 1,
    "commit": 2,
    "hw": 3,
    "acknowledges": 1,
    "ack": 3,
    "read": 1,
    "elected": 2,
    "lead": 3,
    "follow": 2,
    "truncate": 3,
    "settled": 2,
    "isr-sent": 2,
    "isr": 2,
    "joined": 1,
    "registered": 3,
    "session-end": 2,
    "controller": 1,
}
"""Moment that faults wait for (`sim.history.steps.MOMENTS`) -> weight; for ``message-late`` faults wait only in stories
that hold a message back, for ``directory-assigned`` only in those of copies.
"""


@dataclass(frozen=True, slots=True)
class Hazard:
    """A dangerous combination, known from failures of many protocols: one of these kinds strikes one of these targets
    at one of these moments.

    Attributes:
        targets: roles; 0: as the kind draws it.
        then: hazards that follow it in known failures.
        peer: the other end of a link; None: as the kind draws it.
    """

    moments: tuple[str, ...]
    targets: tuple[int, ...]
    kinds: tuple[str, ...]
    then: tuple[str, ...]
    peer: int | None = None


STOP_LEADER: Final = (
    "kill",
    "power-loss",
    "disk-replaced",
    "pause",
    "controlled-restart",
    *kinds_with(Role.STOP_LEADER),
)
SILENCE: Final = ("zombie", "session-expiry", "pause", *kinds_with(Role.SILENCE))
LOSSES: Final = tuple([found.name for found in KINDS.values() if found.loses_records])
HAZARDS: Final = {
    # A replica returns or is about to change its log, and the leader, which has all records, fails.
    "return": Hazard(
        ("registered", "follow", "settled", "truncate", "isr"),
        (LEADER,),
        (*STOP_LEADER, "session-expiry"),
        ("return", "promise", "new-member"),
    ),
    # A replica is about to join the ISR, and fails, perhaps unnoticed.
    "new-member": Hazard(
        ("registered", "follow", "settled", "isr-sent", "isr-sent"),
        (STEP_BROKER,),
        (*STOP_LEADER, *SILENCE, "zombie", "zombie"),
        ("loss", "return"),
    ),
    # Only the leader knows that a batch is about to be acknowledged or committed.
    "promise": Hazard(
        ("append", "replicated", "commit", "ack"), (LEADER,), (*STOP_LEADER, *SILENCE, *LINKS), ("return", "decision")
    ),
    # The only holder of an acknowledged record loses it.
    "loss": Hazard(
        ("ack", "hw", "isr", "append"), (LAST_TARGET, LAST_TARGET, LAST_TARGET, ISR_MEMBER, LEADER), LOSSES, ("return",)
    ),
    # A decision is on its way to the brokers.
    "decision": Hazard(
        ("elected", "lead", "controller", "session-end"),
        (LEADER, CONTROLLER, ISR_MEMBER),
        (*STOP_LEADER, *SILENCE, *LINKS, "controller-failover", "controller-pause"),
        ("new-member", "return", "promise"),
    ),
    # Leadership moves while all brokers are alive.
    "move": Hazard(
        ("ack", "append", "isr", "follow"), (0,), ("preferred-election", "controller-failover"), ("decision", "return")
    ),
    # An ISR or leadership change is delayed.
    "delayed-change": Hazard(
        ("isr-sent", "isr", "lead", "registered"), (LEADER, LAST_TARGET), tuple(LINKS), ("new-member", "loss", "return")
    ),
    # The leader loses a record that it has just acknowledged, and returns.
    "leader-loss": Hazard(
        ("ack", "commit", "replicated", "acknowledges"), (LEADER,), LOSSES, ("silent-member", "return")
    ),
    # A new leader waits for an ISR member that is silent but not yet fenced.
    "silent-member": Hazard(
        ("elected", "elected", "lead", "isr"),
        (ISR_MEMBER,),
        ("pause", "disk-stall", "kill", *LINKS),
        ("isr-expansion",),
        LEADER,
    ),
    # A replica has joined the ISR and has not fetched since.
    "isr-expansion": Hazard(("joined",), (LEADER,), STOP_LEADER, ("loss", "return")),
}
ORDERS: Final = (("leader-loss", "silent-member", "isr-expansion"),)
"""Known failures as sequences of hazards."""
ORDERED_PERCENT: Final = 20
"""Share of the chains of sufficient length that begin with one of `ORDERS`."""
FIRST: Final = ("new-member", "new-member", "return", "move")
"""Hazards after the first fault of a chain, which stops a broker."""
_MOMENTS: Final = tuple(moment for moment, weight in MOMENTS.items() for _ in range(weight))


EVENTS_OF_FAULT: Final = 20
"""Lower bound of the average events of a fault, its undoing and its effects (measured: 35 and more)."""
OBJECTS_OF_FAULT: Final = 50
"""Objects that a fault and its effects count as."""


@dataclass(init=False, slots=True, unsafe_hash=True)
class Incident:
    """Related faults, and their start."""

    at_us: int
    style: str
    faults: int

    def __init__(self, at_us: int, style: str, faults: int) -> None:
        self.at_us = at_us
        self.style = style
        self.faults = faults


def draw_incidents(
    streams: Streams, bounds: FaultBounds, window_us: tuple[int, int], budget: int = NEVER
) -> list[Incident]:
    """Draw times and styles of incidents, from the stream ``incidents``; workloads may be drawn around these times.

    Some seeds use the whole window, others a part of it. Incidents are ordered by time, and have as many faults in
    total as the plan.

    Raises:
        BudgetError: so many faults exceed the event budget.
    """
    stream = streams("incidents")
    left = integer(stream, *bounds.count)
    if left > budget // EVENTS_OF_FAULT:
        raise BudgetError("sim.event.budget", budget, "events", "0 s, while faults were drawn")
    low, high = window_us
    width = (high - low) * choice(stream, (1, 2, 3, 3)) // 3
    start = integer(stream, low, high - width)
    incidents = []
    while left:
        percent = stream.random() * 100
        at_us = integer(stream, start, start + width)
        style = LONE
        for other, share in (
            (BURST, bounds.burst_percent),
            (CHAIN, bounds.chain_percent),
            (ROLLING, bounds.rolling_percent),
            (STANDING, bounds.standing_percent),
            (MOVING, bounds.moving_percent),
            (OPERATING, bounds.operating_percent),
            (OVERTAKING, bounds.overtaking_percent),
            (WINDOW, bounds.window_percent),
            (COPYING, bounds.copying_percent),
        ):
            if 0 <= percent < share:
                style = other
            percent -= share
        size = min(left, integer(stream, *SIZES.get(style, (1, 1))))
        incident = Incident(at_us, style if size > 1 or style == ROLLING else LONE, size)
        incidents.append(incident)
        left -= incident.faults
    return sorted(incidents, key=lambda incident: incident.at_us)


def draw_plan(streams: Streams, limits: Limits, incidents: Sequence[Incident], budget: int = NEVER) -> Plan:
    """Draw the faults of each incident, from the stream ``plan`` and one for each fault; ordered by time, none if no
    kind is possible.

    Without another replica or broker, preferred elections, reassignments and links between replicas are not drawn, and
    incident patterns become lone faults. No fault waits beyond the end of the limits' window.

    Raises:
        BudgetError: so many faults (a rolling restart counts one for each broker) exceed the object budget.
    """
    alone = len(limits.brokers) == 1
    bounds = limits.bounds
    possible = [kind for kind in bounds.kinds if KINDS[kind].is_possible(limits)]
    if not possible:
        return Plan()
    stream = streams("plan")
    kinds = _enabled(stream, possible)
    allowed = [kind for kind in possible if KINDS[kind].moves_leader] or possible
    spare = choice(stream, allowed)
    movers = [kind for kind in kinds if KINDS[kind].moves_leader] or [spare]
    last_us = limits.window_us[1]
    limits = limits.with_bounds(_stable(stream, bounds))
    # An incident of a last replica waits at most until the time of the fault drawn before it. That time has mostly
    # passed, and then its strike does not wait for the ISR to shrink. Changing this changes all plans.
    story_us = last_us
    faults: list[Fault] = []
    moved = 0
    for incident in incidents:
        if len(faults) + incident.faults > budget // OBJECTS_OF_FAULT:
            raise BudgetError("sim.state.budget", budget, "objects", "0 s, while faults were drawn")
        if incident.style == ROLLING:
            faults += _draw_rolling(streams(f"rolling:{len(faults)}"), incident.at_us, limits, last_us)
            continue
        if incident.style == CHAIN:
            names = (LEADER,) if moved < SURE else (LEADER, LEADER, ISR_MEMBER, 0)
            begins = choice(stream, names)
            chain, latest_us = _draw_chain(streams, begins, incident, len(faults), movers, kinds, limits, last_us)
            story_us = story_us if latest_us < 0 else latest_us
            moved += chain[0].targets == (LEADER,)
            faults += chain
            continue
        if incident.style == STANDING and not alone:
            own = streams(f"standing:{len(faults)}")
            faults += last_replica.draw(own, incident.faults, possible, limits, incident.at_us, story_us)
            continue
        requests = _draw_requests(streams, incident, len(faults), possible, kinds, limits, last_us)
        if requests:
            faults += requests
            continue
        common = ""
        alike = incident.style == BURST and bool(stream.getrandbits(1))
        targets = _targets(stream, incident, limits)
        node = choice(stream, (LEADER, LEADER, ISR_MEMBER, *limits.brokers))
        ends = (CONTROL, *limits.brokers)
        peers = sample(stream, ends, min(len(ends), incident.faults))
        gap_us = choice(stream, BURST_GAPS_US)
        for position in range(incident.faults):
            other = choice(stream, kinds if len(faults) % 2 or incident.style == BURST else movers)
            kind = common if alike and position else other
            common = kind
            own = streams(f"fault:{len(faults)}")
            at_us = min(incident.at_us + position * integer(own, 0, gap_us), last_us)
            waits = own.random() * 100 < bounds.aimed_percent
            target = targets[position] if position < len(targets) else 0
            peer: int | None = None
            if incident.style == BURST and kind in LINKS:
                target, peer = node, peers[position % len(peers)]
            elif not target and KINDS[kind].moves_leader and (moved < SURE or own.random() * 3 < 2):
                target = LEADER
                moved += 1
            fault = _draw_fault(own, kind, limits, at_us, target=target, peer=peer, triggered=waits)
            story_us = at_us
            if waits:
                # After an append, only the leader has the batch: followers truncate it later.
                unread = target == LEADER and bool(own.getrandbits(1))
                moment = "append" if unread else choice(own, _MOMENTS)
                fault = fault.with_trigger(_draw_trigger(own, moment, at_us, last_us))
            faults.append(fault)
    faults = _within_directories(streams, faults, bounds.one_directory_percent)
    return Plan(tuple(sorted(faults, key=lambda fault: fault.at_us)))


def _within_directories(streams: Streams, faults: list[Fault], percent: int) -> list[Fault]:
    """Let a share of the faults that can strike one log directory alone do so, mostly that of their partition."""
    if not percent:
        return faults
    stream = streams("directories")
    found = []
    for fault in faults:
        if KINDS[fault.kind].of_directory and stream.random() * 100 < percent:
            found.append(fault.within(choice(stream, STRUCK_DIRECTORIES)))
        else:
            found.append(fault)
    return found


def _draw_requests(
    streams: Streams,
    incident: Incident,
    first: int,
    possible: Sequence[str],
    kinds: Sequence[str],
    limits: Limits,
    last_us: int,
) -> list[Fault]:
    """Draw an incident of reassignments, operations, overtaking, a window or copies; no faults if its style is
    another.
    """
    at_us = incident.at_us
    if incident.style == MOVING and incident.faults >= reassignments.LEAST and reassignments.MOVES in possible:
        return reassignments.draw(streams(f"moving:{first}"), incident.faults, possible, limits, at_us, last_us)
    if incident.style == OPERATING and incident.faults >= operations.LEAST and len(limits.brokers) > 1:
        return operations.draw(streams(f"operating:{first}"), incident.faults, kinds, limits, at_us, last_us)
    if incident.style == OVERTAKING and incident.faults >= overtaking.LEAST and len(limits.brokers) > 1:
        return overtaking.draw(streams(f"overtaking:{first}"), incident.faults, kinds, limits, at_us, last_us)
    if incident.style == WINDOW and incident.faults >= window.LEAST and len(limits.brokers) > 1:
        return window.draw(streams(f"window:{first}"), incident.faults, kinds, limits, at_us, last_us, first + 1)
    if incident.style == COPYING and incident.faults >= copies.LEAST:
        return copies.draw(streams(f"copying:{first}"), incident.faults, limits, at_us, last_us, first + 1)
    return []


def _draw_chain(
    streams: Streams,
    begins: int,
    incident: Incident,
    first: int,
    movers: Sequence[str],
    kinds: Sequence[str],
    limits: Limits,
    last_us: int,
) -> tuple[list[Fault], int]:
    """Draw a first fault, and others that wait for steps after it; most of them are known hazards.

    Every second broker that these stop returns soon, before its absence is noticed. Returns the faults, and the start
    of the last one without a short restart; -1 if all have one.
    """
    at_us = incident.at_us
    then: tuple[str, ...] = FIRST
    bounds = limits.bounds
    soon = limits.with_bounds(bounds.within(_band(bounds.restart_us, "short"), bounds.cut_us, bounds.pause_us))
    latest_us = -1
    order: tuple[str, ...] = ()
    faults: list[Fault] = []
    of_seed = frozenset(kinds)
    for position in range(incident.faults):
        own = streams(f"fault:{first + position}")
        if not position and own.random() * 100 < ORDERED_PERCENT:
            order = choice(own, [names for names in ORDERS if len(names) <= incident.faults] or [()])
        known = HAZARDS[order[position]] if position < len(order) else None
        if known is not None and not of_seed.isdisjoint(known.kinds):
            faults.append(_draw_ordered(own, known, kinds, limits if position else soon, at_us, last_us))
            latest_us = at_us if position else latest_us
            at_us = min(at_us + integer(own, 0, CHAIN_GAPS_US[0]), last_us)
            then = known.then
            continue
        moment = choice(own, _MOMENTS)
        target, peer = 0 if position else begins, None
        kind = choice(own, kinds if position else movers)
        name = choice(own, then if own.random() * 3 < 2 else tuple(HAZARDS))
        hazard = HAZARDS[name]
        fitting = [other for other in hazard.kinds if other in of_seed]
        if position and fitting and own.getrandbits(2):
            moment, target, kind = choice(own, hazard.moments), choice(own, hazard.targets), choice(own, fitting)
            peer, then = hazard.peer, hazard.then
        within = soon if position and own.getrandbits(1) else limits
        fault = _draw_fault(own, kind, within, at_us, target=target, peer=peer, triggered=position > 0)
        latest_us = at_us if within is limits else latest_us
        if position:
            fault = fault.with_trigger(_draw_trigger(own, moment, at_us, last_us))
        faults.append(fault)
        at_us = min(at_us + integer(own, 0, choice(own, CHAIN_GAPS_US)), last_us)
    return faults, latest_us


def _draw_ordered(own: Stream, hazard: Hazard, kinds: Sequence[str], limits: Limits, at_us: int, last_us: int) -> Fault:
    """Draw a fault that is exactly the hazard, at its first moment, of a kind that the seed enables."""
    kind = choice(own, [other for other in hazard.kinds if other in kinds])
    moment, target = choice(own, hazard.moments), choice(own, hazard.targets)
    fault = _draw_fault(own, kind, limits, at_us, target=target, peer=hazard.peer, triggered=True)
    trigger = _draw_trigger(own, moment, at_us, last_us)
    trigger.occurrence = 1
    return fault.with_trigger(trigger)


def _draw_fault(
    stream: Stream,
    kind: str,
    limits: Limits,
    at_us: int,
    *,
    target: int,
    peer: int | None = None,
    triggered: bool = False,
) -> Fault:
    own = Limits(limits.bounds, limits.brokers, limits.all_brokers, (at_us, at_us), target, peer, triggered)
    return KINDS[kind].draw(stream, own)


def _draw_rolling(stream: Stream, at_us: int, limits: Limits, last_us: int) -> list[Fault]:
    """Draw controlled restarts of all brokers, one after the other."""
    gap_us = choice(stream, ROLLING_GAPS_US)
    bounds = limits.bounds
    short = limits.with_bounds(bounds.within(ROLLING_RESTART_US, bounds.cut_us, bounds.pause_us))
    faults = []
    for broker in sample(stream, limits.all_brokers, len(limits.all_brokers)):
        faults.append(_draw_fault(stream, ControlledRestart.name, short, at_us, target=broker))
        at_us = min(at_us + integer(stream, gap_us // 2, gap_us), last_us)
    return faults


def _enabled(stream: Stream, kinds: Sequence[str]) -> list[str]:
    """Draw the kinds that a seed enables, repeated by weight."""
    enabled = sample(stream, kinds, integer(stream, min(2, len(kinds)), len(kinds)))
    return [kind for kind in enabled for _ in range(choice(stream, WEIGHTS))]


def _stable(stream: Stream, bounds: FaultBounds) -> FaultBounds:
    """Draw this seed's narrower bounds of durations."""
    restart_us = _band(bounds.restart_us, choice(stream, RESTART_STABILITY))
    cut_us = _band(bounds.cut_us, choice(stream, STABILITY))
    return bounds.within(restart_us, cut_us, _band(bounds.pause_us, choice(stream, STABILITY)))


def _band(bounds: tuple[int, int], word: str) -> tuple[int, int]:
    low, high = bounds
    if word == "short":
        return low, low + (high - low) // 8
    return (low + (high - low) // 2, high) if word == "long" else bounds


def _targets(stream: Stream, incident: Incident, limits: Limits) -> list[int]:
    """Draw the targets of a burst: different brokers, or different roles."""
    if incident.style != BURST:
        return []
    named = bool(stream.getrandbits(1))
    pool: Sequence[int] = (LEADER, ISR_MEMBER, CONTROLLER) if named else limits.brokers
    return sample(stream, pool, min(len(pool), incident.faults))


def _draw_trigger(stream: Stream, moment: str, at_us: int, latest_us: int) -> Trigger:
    occurrence = integer(stream, 1, choice(stream, OCCURRENCES))
    after_us = integer(stream, 0, choice(stream, AFTER_US))
    return Trigger(moment, occurrence, after_us, min(at_us + integer(stream, *WAIT_US), latest_us))
