"""Draws the faults and batches of a random run.

They do not depend on the mode, so that runs can be paired.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from faults.bounds import FaultBounds, Limits
from faults.kinds.power_loss import SPREAD_US
from faults.plan import Plan
from faults.stories.swarm import draw_incidents, draw_plan
from scenarios.format.scenario import Bursts, PlannedSend
from scenarios.single.workload import draw_sends
from sim.kernel.streams import Streams

FIRST_FAULT_US: Final = 5_000_000
FIRST_BURST_US: Final = 1_000_000


@lru_cache(maxsize=1)  # A sweep runs all modes of a seed one after the other.
def draw(
    seed: int,
    faults: FaultBounds,
    workload: Bursts | None,
    brokers: tuple[int, ...],
    all_brokers: tuple[int, ...],
    acks: int,
    event_budget: int,
    record_budget: int,
    state_budget: int,
) -> tuple[Plan, tuple[PlannedSend, ...]]:
    """Draw the faults and batches of a run, ordered by time; no batches without a workload.

    Among `all_brokers`, `brokers` have a replica. Batches have these acks, unless they are changed to acks=1. The
    budgets are those of the settings.

    Raises:
        BudgetError: the draw exceeds a budget.
    """
    streams = Streams(seed)
    window_us = (FIRST_FAULT_US, faults.horizon_us - SPREAD_US)
    incidents = draw_incidents(streams, faults, window_us, event_budget)
    plan = draw_plan(streams, Limits(faults, brokers, all_brokers, window_us), incidents, state_budget)
    if workload is None:
        return plan, ()
    moments = [incident.at_us for incident in incidents]
    bursts_us = (FIRST_BURST_US, faults.horizon_us)
    sends = draw_sends(streams, workload, bursts_us, acks, moments, record_budget, state_budget)
    return plan, tuple([(send.first_id, send.count, send.acks, send.due_us) for send in sends])
