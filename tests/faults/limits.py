"""The limits within which the tests of drawing draw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from faults.bounds import FaultBounds, Limits
from faults.plan import Plan
from faults.stories.swarm import Incident, draw_incidents, draw_plan
from sim.kernel.streams import Streams
from tests.sim.world import SECOND_US

WINDOW_US: Final = (5 * SECOND_US, 290 * SECOND_US)
DRAW: Final = FaultBounds(
    horizon_us=WINDOW_US[1],
    count=(5, 8),
    kinds=(),
    restart_us=(2 * SECOND_US, 60 * SECOND_US),
    cut_us=(1 * SECOND_US, 90 * SECOND_US),
    pause_us=(1 * SECOND_US, 60 * SECOND_US),
    slow_us=(10_000, 2_000_000),
    loss_permille=(20, 500),
)
LIMITS: Final = Limits(DRAW, (1, 2, 3), (1, 2, 3, 4), WINDOW_US)


def mixed(kinds: tuple[str, ...], count: tuple[int, int], aimed_percent: int = 0, **percents: int) -> FaultBounds:
    """So many faults of these kinds, in these shares."""
    return replace(DRAW, kinds=kinds, count=count, aimed_percent=aimed_percent, **percents)  # type: ignore[arg-type]


def within(draw: FaultBounds, limits: Limits = LIMITS) -> Limits:
    """The limits of a plan that is drawn from that."""
    return replace(limits, bounds=draw)


def drawn_plans(draw: FaultBounds) -> Iterator[tuple[list[Incident], Plan]]:
    """Incidents and plans of 50 seeds, each of which is drawn twice."""
    for seed in range(50):
        streams, again = Streams(seed), Streams(seed)
        incidents = draw_incidents(streams, draw, WINDOW_US)
        plan = draw_plan(streams, within(draw), incidents)
        assert len(plan.faults) == sum(incident.faults for incident in incidents)
        assert draw_plan(again, within(draw), draw_incidents(again, draw, WINDOW_US)) == plan
        yield incidents, plan
