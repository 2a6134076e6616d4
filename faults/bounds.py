"""Bounds for random faults: those of a scenario, and those of one fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from faults.plan import CONTROLLER, ISR_MEMBER, LAST_MEMBER, LEADER, OUTSIDER, STEP_BROKER, Fault
from sim.hosts.control_plane import CONTROL
from sim.kernel.streams import Stream, choice, integer


@dataclass(slots=True, unsafe_hash=True)
class FaultBounds:
    """The table ``[faults]`` of a random scenario, never changed. Pairs are inclusive bounds. (Neither this nor the
    settings of a run are frozen: compiled, it takes five times as long to create an object of a frozen dataclass.)

    Scenario files use ms where this has us. The endings ``_us``, ``_permille`` and ``_percent`` decide which values are
    valid.

    Attributes:
        horizon_us: no fault strikes after this time, at which everything is healed.
        count: number of faults.
        kinds: fault kinds that a seed may enable (`faults.kinds.registry.KINDS`).
        restart_us: time until a stopped broker is started again.
        cut_us: duration of cuts and other faults of links.
        pause_us: duration of pauses, disk stalls and unnoticed session ends.
        slow_us: latency that a slow link adds.
        loss_permille: share of messages that a lossy link loses.
        aimed_percent: share of lone faults and bursts that wait for a protocol step.
        burst_percent: share of incidents that strike several targets nearly at once.
        chain_percent: share of incidents whose faults wait for one step after another.
        rolling_percent: share of incidents that restart all brokers in turn; each counts as one fault.
        standing_percent: share of incidents that shrink the ISR to one replica (`faults.stories.last_replica`).
        moving_percent: share of incidents of reassignments (`faults.stories.reassignments`).
        operating_percent: share of incidents that mix requests of an administrator with stops and stalls of machines
            (`faults.stories.operations`).
        overtaking_percent: share of incidents in which single messages are outdated when they arrive
            (`faults.stories.overtaking`).
        window_percent: share of incidents in which a broker ends right after batches that were sent while a change was
            under way (`faults.stories.window`).
        others_percent: share of seeds whose faults strike by the roles of another partition than the first.
        copying_percent: share of incidents in which a broker ends while a quota holds back the copy of its log in
            another log directory (`faults.stories.copies`).
        one_directory_percent: share of the faults of a disk that strike one log directory alone.
        controllers_percent: share of faults of processes, machines and links that strike controllers of a replicated
            quorum instead (`faults.stories.controllers`).
    """

    horizon_us: int
    count: tuple[int, int]
    kinds: tuple[str, ...]
    restart_us: tuple[int, int] = (2_000_000, 60_000_000)
    cut_us: tuple[int, int] = (1_000_000, 40_000_000)
    pause_us: tuple[int, int] = (1_000_000, 40_000_000)
    slow_us: tuple[int, int] = (10_000, 2_000_000)
    loss_permille: tuple[int, int] = (20, 500)
    aimed_percent: int = 0
    burst_percent: int = 0
    chain_percent: int = 0
    rolling_percent: int = 0
    standing_percent: int = 0
    moving_percent: int = 0
    operating_percent: int = 0
    overtaking_percent: int = 0
    window_percent: int = 0
    others_percent: int = 0
    copying_percent: int = 0
    one_directory_percent: int = 0
    controllers_percent: int = 0

    def within(self, restart_us: tuple[int, int], cut_us: tuple[int, int], pause_us: tuple[int, int]) -> FaultBounds:
        """A copy with other durations. (Compiled, `dataclasses.replace` costs ten times as much.)"""
        return FaultBounds(
            self.horizon_us,
            self.count,
            self.kinds,
            restart_us,
            cut_us,
            pause_us,
            self.slow_us,
            self.loss_permille,
            self.aimed_percent,
            self.burst_percent,
            self.chain_percent,
            self.rolling_percent,
            self.standing_percent,
            self.moving_percent,
            self.operating_percent,
            self.overtaking_percent,
            self.window_percent,
            self.others_percent,
            self.copying_percent,
            self.one_directory_percent,
            self.controllers_percent,
        )


SHARES: Final = (
    "burst_percent",
    "chain_percent",
    "rolling_percent",
    "standing_percent",
    "moving_percent",
    "operating_percent",
    "overtaking_percent",
    "window_percent",
    "copying_percent",
)
"""Shares of incidents, which add up to at most 100."""


@dataclass(init=False, slots=True, unsafe_hash=True)
class Limits:
    """Limits for drawing one fault. (The constructor is explicit, like that of `Fault`.)

    Attributes:
        bounds: durations and amounts, perhaps narrower than those of the scenario.
        brokers: the brokers with a replica, which may be struck.
        all_brokers: the brokers that may get a replica.
        window_us: inclusive bounds of its time.
        target: its target; 0: draw one.
        peer: the other end of a link, a broker or a role; None: draw one.
        triggered: whether the fault waits for a step, so that it can strike the broker of that step.
    """

    bounds: FaultBounds
    brokers: tuple[int, ...]
    all_brokers: tuple[int, ...]
    window_us: tuple[int, int]
    target: int = 0
    peer: int | None = None
    triggered: bool = False

    def __init__(
        self,
        bounds: FaultBounds,
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

    def with_bounds(self, bounds: FaultBounds) -> Limits:
        """A copy with other bounds."""
        return Limits(bounds, self.brokers, self.all_brokers, self.window_us, self.target, self.peer, self.triggered)


_AIMS: Final = (LEADER,) * 5 + (ISR_MEMBER, ISR_MEMBER, OUTSIDER, LAST_MEMBER, CONTROLLER)
"""Roles as targets, repeated by weight."""

_PEERS: Final = {LEADER: (ISR_MEMBER, OUTSIDER), ISR_MEMBER: (LEADER, OUTSIDER), OUTSIDER: (LEADER, ISR_MEMBER)}
"""Target of a link -> roles for its other end."""


def aim(stream: Stream, limits: Limits) -> int:
    """Draw a target: a broker, or twice as often a role, mostly the leader.

    If the fault waits for a step, every third role is the broker of that step.
    """
    named = stream.random() * 3 < 2
    there = stream.random() * 3 < 1
    name = choice(stream, _AIMS)
    broker = choice(stream, limits.brokers)
    if limits.target:
        return limits.target
    if not named:
        return broker
    return STEP_BROKER if there and limits.triggered else name


def aim_link(kind: str, stream: Stream, limits: Limits) -> Fault:
    """Draw a fault of a link, one way or both: between two brokers (roles as in `aim`), or a broker and the control
    plane. A single replica has a link to the control plane only.
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
