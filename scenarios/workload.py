"""What the producer sends: drawn bursts with intended times that are the same in every mode."""

from __future__ import annotations

from scenarios.scenario import Bursts
from sim.producer import Send
from sim.streams import Streams, integer


def draw_sends(streams: Streams, bursts: Bursts, window_us: tuple[int, int], acks: int) -> list[Send]:
    """Draw all batches of a run.

    Args:
        streams: the stream ``workload`` is used.
        bursts: what to draw.
        window_us: when bursts begin.
        acks: acks of batches that are not turned to acks=1.

    Returns:
        Batches in order of their times; record ids are given in that order, from 0.
    """
    stream = streams("workload")
    times: list[int] = []
    for _ in range(integer(stream, *bursts.bursts)):
        at_us = integer(stream, *window_us)
        for _ in range(integer(stream, *bursts.batches)):
            times.append(at_us)
            at_us += 1_000 * integer(stream, *bursts.gap_ms)
    sends: list[Send] = []
    next_id = 0
    for at_us in sorted(times):
        count = integer(stream, *bursts.records)
        rare = bursts.acks_one_every > 0 and stream.random() * bursts.acks_one_every < 1
        sends.append(Send(next_id, count, 1 if rare else acks, at_us))
        next_id += count
    return sends
