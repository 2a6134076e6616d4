"""What the producer sends: drawn bursts with intended times that are the same in every mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from scenarios.format.scenario import Bursts
from sim.config import NEVER
from sim.kernel.scheduler import BudgetError
from sim.kernel.streams import Streams, integer
from sim.protocol.client.sender import ProducerBatch

NEAR_US: Final = (-1_000_000, 25_000_000)
"""When a burst near the begin of a fault begins: before, during, or when somebody else was elected."""


def draw_sends(
    streams: Streams,
    bursts: Bursts,
    window_us: tuple[int, int],
    acks: int,
    moments: Sequence[int] = (),
    record_budget: int = NEVER,
    state_budget: int = NEVER,
) -> list[ProducerBatch]:
    """Draw all batches of a run.

    Args:
        streams: the stream ``workload`` is used.
        bursts: what to draw.
        window_us: when bursts begin.
        acks: acks of batches that are not turned to acks=1.
        moments: when faults begin, in us.
        record_budget: records that may be sent.
        state_budget: batches that may be sent, and bursts.

    Returns:
        Batches in order of their times; record ids are given in that order, from 0.

    Raises:
        BudgetError: more than a budget was drawn; what is drawn never takes up more memory than that.
    """
    stream = streams("workload")
    batches: list[tuple[int, int]] = []
    number = integer(stream, *bursts.bursts)
    records = 0
    if number > state_budget:
        raise _too_many(state_budget)
    for _ in range(number):
        at_us = integer(stream, *window_us)
        near_us = integer(stream, *NEAR_US)
        near = stream.random() * 100 < bursts.near_percent
        moment = stream.random()
        if near and moments:
            at_us = max(window_us[0], moments[int(moment * len(moments))] + near_us)
        slowest_ms = integer(stream, *bursts.gap_ms)
        largest = integer(stream, *bursts.records)
        length = integer(stream, *bursts.batches)
        if records + length * bursts.records[0] > record_budget:
            raise _too_much(record_budget)
        if len(batches) + length > state_budget:
            raise _too_many(state_budget)
        for _ in range(length):
            count = integer(stream, bursts.records[0], largest)
            records += count
            if records > record_budget:
                raise _too_much(record_budget)
            batches.append((at_us, count))
            at_us += 1_000 * integer(stream, bursts.gap_ms[0], slowest_ms)
    sends: list[ProducerBatch] = []
    next_id = 0
    for at_us, count in sorted(batches):
        rare = bursts.acks_one_every > 0 and stream.random() * bursts.acks_one_every < 1
        sends.append(ProducerBatch(next_id, count, 1 if rare else acks, at_us))
        next_id += count
    return sends


def _too_much(budget: int) -> BudgetError:
    return BudgetError("sim.record.budget", budget, "records", _WHEN)


def _too_many(budget: int) -> BudgetError:
    return BudgetError("sim.state.budget", budget, "objects", _WHEN)


_WHEN: Final = "0 s, while it was drawn what is sent"
