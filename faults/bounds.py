"""What faults are drawn from: a scenario's bounds and shares, and what one fault is drawn within."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from faults.plan import CONTROLLER, ISR_MEMBER, LAST, LEADER, OUTSIDER, THERE, Fault
from sim.hosts.control_plane import CONTROL
from sim.kernel.streams import Stream, choice, integer


@dataclass(frozen=True, slots=True)
class FaultDraw:
    """What a drawn scenario draws its fault plan from. Pairs are inclusive bounds.

    The table ``[faults]`` of scenario files has these fields, in ms where they are in us here. Names ending in ``_us``,
    ``_permille`` and ``_percent`` say what may be given.

    Attributes:
        horizon_us: faults happen before this time; then everything is healed.
        count: how many faults.
        kinds: fault kinds that a seed may enable (`faults.kinds.registry.KINDS`).
        restart_us: time until a broker that was stopped is started again.
        cut_us: how long a cut lasts, or whatever else is wrong with a link.
        pause_us: how long a process or a disk stands still, or a session is gone unnoticed.
        slow_us: what a slow link adds to its latency.
        loss_permille: of a thousand messages, those that a lossy link loses.
        aimed_percent: of lone faults and of bursts, those that wait for a step of the protocol.
        burst_percent: of incidents, those that strike several targets nearly at once.
        chain_percent: of incidents, those whose faults wait for steps one after the other.
        rolling_percent: of incidents, those that restart all brokers one after the other; each counts as one fault.
        standing_percent: of incidents, those that tell of a last replica standing (`faults.stories.last_replica`).
        moving_percent: of incidents, those that tell of reassignments (`faults.stories.reassignments`).
    """

    horizon_us: int
    count: tuple[int, int]
    kinds: tuple[str, ...]
    restart_us: tuple[int, int]
    cut_us: tuple[int, int]
    pause_us: tuple[int, int] = (1_000_000, 40_000_000)
    slow_us: tuple[int, int] = (10_000, 2_000_000)
    loss_permille: tuple[int, int] = (20, 500)
    aimed_percent: int = 0
    burst_percent: int = 0
    chain_percent: int = 0
    rolling_percent: int = 0
    standing_percent: int = 0
    moving_percent: int = 0


SHARES: Final = ("burst_percent", "chain_percent", "rolling_percent", "standing_percent", "moving_percent")
"""Shares of the same hundred incidents."""


@dataclass(init=False, slots=True, unsafe_hash=True)
class Limits:
    """What one fault is drawn within. (Its constructor is written out like that of `Fault`.)

    Attributes:
        bounds: how long things last and how bad they are; perhaps narrower than those of the scenario.
        brokers: the brokers that may be struck: those with a replica.
        all_brokers: the brokers that may get a replica.
        window_us: when it strikes, inclusive bounds.
        target: who is struck, 0 if that is to be drawn.
        peer: the other end of a link, a broker or a name, None if that is to be drawn.
        triggered: whether the fault waits for a step, so that it can be aimed at where that happens.
    """

    bounds: FaultDraw
    brokers: tuple[int, ...]
    all_brokers: tuple[int, ...]
    window_us: tuple[int, int]
    target: int = 0
    peer: int | None = None
    triggered: bool = False

    def __init__(
        self,
        bounds: FaultDraw,
        brokers: tuple[int, ...],
        all_brokers: tuple[int, ...],
        window_us: tuple[int, int],
        target: int = 0,
        peer: int | None = None,
        triggered: bool = False,
    ) -> None:
        self.bounds = bounds
        self.brokers = brokers
        self.all_brokers = all_brokers
        self.window_us = window_us
        self.target = target
        self.peer = peer
        self.triggered = triggered


_AIMS: Final = (LEADER,) * 5 + (ISR_MEMBER, ISR_MEMBER, OUTSIDER, LAST, CONTROLLER)
"""Names among the targets, as often as they are drawn."""


_PEERS: Final = {LEADER: (ISR_MEMBER, OUTSIDER), ISR_MEMBER: (LEADER, OUTSIDER), OUTSIDER: (LEADER, ISR_MEMBER)}
"""Names of the other end of a link."""


def aim(stream: Stream, limits: Limits) -> int:
    """A target: a broker, or twice as often a name, mostly that of whoever leads when the fault strikes.

    Of the names, every third is where the step happens that the fault waits for.
    """
    named = stream.random() * 3 < 2
    there = stream.random() * 3 < 1
    name = choice(stream, _AIMS)
    broker = choice(stream, limits.brokers)
    if limits.target:
        return limits.target
    if not named:
        return broker
    return THERE if there and limits.triggered else name


def aim_link(kind: str, stream: Stream, limits: Limits) -> Fault:
    """Two brokers (names as in `aim`), or a broker and the control plane; one way or both. A replica that has no other
    one has a link to the control plane only.
    """
    at_us = integer(stream, *limits.window_us)
    source = aim(stream, limits)
    ends = [CONTROL, *limits.brokers, *_PEERS.get(source, ())]
    target = choice(stream, [node for node in ends if node != source])
    if limits.peer is not None:
        target = limits.peer
    if len(limits.brokers) == 1:
        target = CONTROL
    turned = bool(stream.getrandbits(1))
    both_ways = bool(stream.getrandbits(1))
    targets = (target, source) if turned else (source, target)
    return Fault(kind, at_us, targets, integer(stream, *limits.bounds.cut_us), both_ways=both_ways)
