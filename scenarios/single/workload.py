"""Draws the batches of the producer: bursts with send times that are the same in every mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from scenarios.format.scenario import Bursts
from sim.config import NEVER
from sim.kernel.scheduler import BudgetError
from sim.kernel.streams import Streams, integer
from sim.protocol.client.sender import ProducerBatch

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
) -> list[ProducerBatch]:
    """Draw all batches of a run, from the stream ``workload``: ordered by time, their record ids ascend in that order
    from 0.

    Bursts start within the window, some of them near `moments`, the times of incidents. Batches have these acks, unless
    they are changed to acks=1.

    Raises:
        BudgetError: the draw exceeds a budget, of records or of bursts and batches; memory stays below it.
    """
    stream = streams("workload")
    batches: list[tuple[int, int]] = []
    fewest, most = bursts.bursts
    shortest, longest = bursts.batches
    least_ms, most_ms = bursts.gap_ms
    smallest, greatest = bursts.records
    near_percent, acks_one_every = bursts.near_percent, bursts.acks_one_every
    earliest_us, latest_us = window_us
    before_us, after_us = NEAR_US
    number = integer(stream, fewest, most)
    records = 0
    if number > state_budget:
        raise _too_many(state_budget)
    for _ in range(number):
        at_us = integer(stream, earliest_us, latest_us)
        near_us = integer(stream, before_us, after_us)
        near = stream.random() * 100 < near_percent
        moment = stream.random()
        if near and moments:
            at_us = max(earliest_us, moments[int(moment * len(moments))] + near_us)
        slowest_ms = integer(stream, least_ms, most_ms)
        largest = integer(stream, smallest, greatest)
        length = integer(stream, shortest, longest)
        if records + length * smallest > record_budget:
            raise _too_much(record_budget)
        if len(batches) + length > state_budget:
            raise _too_many(state_budget)
        for _ in range(length):
            count = integer(stream, smallest, largest)
            records += count
            if records > record_budget:
                raise _too_much(record_budget)
            batches.append((at_us, count))
            at_us += 1_000 * integer(stream, least_ms, slowest_ms)
    sends: list[ProducerBatch] = []
    next_id = 0
    for at_us, count in sorted(batches):
        rare = acks_one_every > 0 and stream.random() * acks_one_every < 1
        sends.append(ProducerBatch(next_id, count, 1 if rare else acks, at_us))
        next_id += count
    return sends


def _too_much(budget: int) -> BudgetError:
    return BudgetError("sim.record.budget", budget, "records", _WHEN)


def _too_many(budget: int) -> BudgetError:
    return BudgetError("sim.state.budget", budget, "objects", _WHEN)


_WHEN: Final = "0 s, while batches were drawn"
