"""Draws the faults and batches of a random run. Batches come in bursts.

They do not depend on the mode, so that runs can be paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from faults.bounds import FaultBounds, Limits
from faults.kinds.power_loss import SPREAD_US
from faults.plan import Plan
from faults.stories.swarm import draw_incidents, draw_plan
from scenarios.format.scenario import Bursts, PlannedSend
from sim.config import NEVER
from sim.kernel.mixing import BITS, key_of, mixed
from sim.kernel.scheduler import BudgetError
from sim.kernel.streams import Streams, integer
from sim.protocol.client.sender import ProducerBatch

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


NEAR_US: Final = (-1_000_000, 25_000_000)
"""Start of a burst relative to a nearby incident: before, during, or after an election."""


def draw_sends(
    streams: Streams,
    bursts: Bursts,
    window_us: tuple[int, int],
    acks: int,
    moments: Sequence[int] = (),
    record_budget: int = NEVER,
    state_budget: int = NEVER,
    *,
    stream: str = "workload",
) -> list[ProducerBatch]:
    """Draw all batches for a partition, from the named stream: ordered by time, their record ids ascend in that order
    from 0.

    Bursts start within the window, some of them near `moments`, the times of incidents. Batches have these acks, unless
    they are changed to acks=1.

    Raises:
        BudgetError: the draw exceeds a budget, of records or of bursts and batches; memory stays below it.
    """
    source = streams(stream)
    batches: list[tuple[int, int]] = []
    fewest, most = bursts.bursts
    shortest, longest = bursts.batches
    least_ms, most_ms = bursts.gap_ms
    smallest, greatest = bursts.records
    near_percent, acks_one_every = bursts.near_percent, bursts.acks_one_every
    earliest_us, latest_us = window_us
    before_us, after_us = NEAR_US
    number = integer(source, fewest, most)
    records = 0
    if number > state_budget:
        raise _too_many(state_budget)
    for _ in range(number):
        at_us = integer(source, earliest_us, latest_us)
        near_us = integer(source, before_us, after_us)
        near = source.random() * 100 < near_percent
        moment = source.random()
        if near and moments:
            at_us = max(earliest_us, moments[int(moment * len(moments))] + near_us)
        slowest_ms = integer(source, least_ms, most_ms)
        largest = integer(source, smallest, greatest)
        length = integer(source, shortest, longest)
        if records + length * smallest > record_budget:
            raise _too_much(record_budget)
        if len(batches) + length > state_budget:
            raise _too_many(state_budget)
        for _ in range(length):
            count = integer(source, smallest, largest)
            records += count
            if records > record_budget:
                raise _too_much(record_budget)
            batches.append((at_us, count))
            at_us += 1_000 * integer(source, least_ms, slowest_ms)
    sends: list[ProducerBatch] = []
    next_id = 0
    for at_us, count in sorted(batches):
        rare = acks_one_every > 0 and source.random() * acks_one_every < 1
        sends.append(ProducerBatch(next_id, count, 1 if rare else acks, at_us))
        next_id += count
    return sends


_BY_PRODUCER: Final = key_of("producers")


def producer_of(first_id: int, producers: int) -> int:
    """The number of the producer, from 1, that sends the batch with this first record. It depends on nothing else, so
    that it stays the same when other batches are left out.
    """
    return 1 + (mixed(_BY_PRODUCER, first_id) * producers >> BITS)


def _too_much(budget: int) -> BudgetError:
    return BudgetError("sim.record.budget", budget, "records", _WHEN)


def _too_many(budget: int) -> BudgetError:
    return BudgetError("sim.state.budget", budget, "objects", _WHEN)


_WHEN: Final = "0 s, while batches were drawn"
