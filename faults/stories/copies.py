"""Draws incidents in which a broker ends while a quota holds back the copy of its log in another log directory.

A replica is moved with a quota (`kafka-reassign-partitions --replica-alter-log-dirs-throttle`). Batches are sent once
the metadata has the other directory, and before the copy has replaced the log, because the broker learns that late or
has just learnt it. Then the broker ends, and starts with the copy; the other replicas are down meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from faults.bounds import Limits
from faults.kinds.directory_move import DirectoryMove
from faults.kinds.metadata_lag import MetadataLag
from faults.kinds.move_throttle import MoveThrottle
from faults.kinds.next_batches import NextBatches
from faults.plan import FOLLOWERS, ISR_MEMBER, LAST_TARGET, LEADER, STEP_BROKER, Fault, Trigger
from faults.stories.strike import draw_strike
from sim.kernel.streams import Stream, choice, integer

NEEDS: Final[tuple[str, ...]] = (MoveThrottle.name, DirectoryMove.name, NextBatches.name)
"""Kinds without which there is no such incident."""
STOPS: Final = ("kill", "kill", "controlled-restart", "power-loss", "pause", "zombie")
"""Kinds by which the other replicas are down, repeated by weight."""
ENDS: Final = ("controlled-restart", "controlled-restart", "kill", "kill", "power-loss")
"""Kinds that end the broker, repeated by weight."""
TARGETS: Final = (LEADER, LEADER, LEADER, ISR_MEMBER)
"""Whose replica is moved, repeated by weight."""
ASSIGNED: Final = "directory-assigned"
ENDED_AT: Final = ("session-end", "isr", "isr", "ack", "ack", "append", ASSIGNED)
"""Steps that the end of the broker waits for, repeated by weight."""
GAPS_US: Final = (0, 1_000, 50_000, 1_000_000)
"""Longest times between a step and what strikes after it."""
QUOTA_US: Final = (20_000_000, 60_000_000)
LATE_US: Final = ((300_000, 3_000_000), (3_000_000, 30_000_000))
"""How late the broker learns metadata."""
NOTICED_US: Final = 25_000_000
"""Longest time between the stop of the other replicas and the move: KRaft may have noticed the stop by then."""
OPEN_US: Final = (2_000_000, 6_000_000)
"""How long batches wait for the assignment."""
WAIT_US: Final = (2_000_000, 25_000_000)
"""How long other parts wait for their step: longer than KRaft takes to notice an end."""
AWAY_US: Final = ((25_000_000, 60_000_000),)
"""How long the other replicas are down."""
BACK_US: Final = ((3_000_000, 12_000_000), (10_000_000, 30_000_000))
"""Time until the broker starts again: mostly before the others."""
LEAST: Final = 5
MOST: Final = 6


def draw(stream: Stream, faults: int, limits: Limits, at_us: int, last_us: int, sequence: int) -> list[Fault]:
    """Draw one incident of at least `LEAST` faults, from its own stream, as the sequence of that number; none if the
    kinds that it needs are not possible.

    The limits hold except for durations. No fault strikes after `last_us`.
    """
    possible = limits.bounds.kinds
    if any(kind not in possible for kind in NEEDS) or not any(kind in possible for kind in ENDS):
        return []
    return _Incident(stream, limits, at_us, last_us, sequence).draw(faults)


class _Incident:
    """An incident that is being drawn."""

    def __init__(self, stream: Stream, limits: Limits, at_us: int, last_us: int, sequence: int) -> None:
        self._stream = stream
        self._limits = limits
        self._now_us = at_us
        self._until_us = at_us
        """The fallback time of the latest part that waits for a step."""
        self._last_us = last_us
        self._sequence = sequence
        self._plan: list[Fault] = []

    def draw(self, faults: int) -> list[Fault]:
        """Draw the parts in their order."""
        stream, possible = self._stream, self._limits.bounds.kinds
        target = choice(stream, TARGETS)
        stops, early, both = stream.getrandbits(1) == 1, stream.random() * 3 < 1, faults > LEAST
        stops = any(kind in possible for kind in STOPS) and (both or stops)
        lags = MetadataLag.name in possible and (both or not stops)
        if stops and early:
            self._plan.append(self._strike(STOPS, FOLLOWERS, AWAY_US))
            self._pass_time((0, NOTICED_US))
        self._plan.append(Fault(MoveThrottle.name, self._now_us, (target,), integer(stream, *QUOTA_US)))
        self._pass_time()
        if lags:
            lasts_us, late_us = integer(stream, *QUOTA_US), integer(stream, *choice(stream, LATE_US))
            self._plan.append(Fault(MetadataLag.name, self._now_us, (LAST_TARGET,), lasts_us, value=late_us))
            self._pass_time()
        self._plan.append(Fault(DirectoryMove.name, self._now_us, (LAST_TARGET,)))
        self._until_us = self._now_us
        ends = 1 + (stops and not early)
        while len(self._plan) < faults - ends:
            self._wait(self._batches(), (ASSIGNED,) if self._plan[-1].trigger is None else ("ack",), OPEN_US)
        if ends > 1:
            self._wait(self._strike(STOPS, FOLLOWERS, AWAY_US), ("ack",), WAIT_US)
        end = self._strike(ENDS, LEADER if target == LEADER else choice(stream, (LEADER, STEP_BROKER)), BACK_US)
        self._wait(end, ENDED_AT, WAIT_US)
        return self._plan

    def _batches(self) -> Fault:
        return Fault(NextBatches.name, self._now_us, (0,), value=1 + self._stream.getrandbits(1))

    def _pass_time(self, bounds_us: tuple[int, int] | None = None) -> None:
        """Pass some time between parts that do not wait for a step."""
        stream = self._stream
        low_us, high_us = bounds_us or (0, choice(stream, GAPS_US))
        self._now_us = min(self._now_us + integer(stream, low_us, high_us), self._last_us)

    def _wait(self, fault: Fault, moments: Sequence[str], wait_us: tuple[int, int]) -> None:
        """Add a part that waits for a step after the part before it."""
        stream = self._stream
        self._until_us = min(self._until_us + integer(stream, *wait_us), self._last_us)
        after_us = integer(stream, 0, choice(stream, GAPS_US))
        trigger = Trigger(choice(stream, moments), 1, after_us, self._until_us, self._sequence)
        self._plan.append(fault.with_trigger(trigger))

    def _strike(self, kinds: Sequence[str], target: int, lasts_us: Sequence[tuple[int, int]]) -> Fault:
        """Draw a fault of one of these kinds that is possible."""
        kind = choice(self._stream, [one for one in kinds if one in self._limits.bounds.kinds])
        fault = draw_strike(self._stream, kind, self._limits, self._now_us, target, lasts_us, lasts_us)
        return fault.with_targets((target,), ())
