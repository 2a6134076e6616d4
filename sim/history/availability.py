"""Availability: time without a leader, refused writes, and waiting for the HW.

All of it is counted from the end of warm-up until everything is healed. Nothing is polled: leadership seldom changes,
and figures about writes come from errors or are computed at the end of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sim.history import steps
from sim.protocol.messages import NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND
from sim.protocol.replica.partition import NO_LEADER

STANDS_STILL: Final = {steps.PAUSE: 1, steps.DISK_STALLED: 1, steps.RESUME: -1, steps.DISK_WORKS: -1}
"""Step -> change in the number of reasons why a process does not respond."""


@dataclass(init=False, slots=True)
class Waiting:
    """How long writes waited for the HW, in us: in total, and the longest time without an advance."""

    total_us: int
    longest_us: int

    # Written by hand: compiled, that of a dataclass takes ten times as long, and each partition has two.
    def __init__(self, total_us: int = 0, longest_us: int = 0) -> None:
        self.total_us = total_us
        self.longest_us = longest_us


class Availability(steps.Listener):
    """Records leadership and refused writes.

    The partition has a leader while the broker that the control plane elected last has become leader since, its process
    has not ended since, and it neither pauses nor has a stalled disk. Whether clients know of it does not matter. A
    deposed leader that does not know it does not count, though it may still accept writes; an elected one that is cut
    off from others counts until another is elected.

    Attributes:
        disturbed_us: time of the first election (of a leader or none) within the window; -1: none.
        refused: first ids of acks=all batches that got NOT_ENOUGH_REPLICAS, each once.
        refused_after_append: the same for NOT_ENOUGH_REPLICAS_AFTER_APPEND. Retries may succeed later.
        window_us: start and end of counting.
    """

    def __init__(self) -> None:
        self._counting = False
        self._leader = NO_LEADER
        self._epoch = -1
        self._leads: dict[int, int] = {}
        self._still: dict[int, int] = {}
        self._leaderless_since_us = 0
        self.leaderless_us = 0
        self.disturbed_us = -1
        self.refused: set[int] = set()
        self.refused_after_append: set[int] = set()
        self.window_us = (0, 0)

    def on_elected(self, step: steps.Elected) -> None:
        self._leader = step.broker
        self._epoch = step.epoch
        if self._counting and self.disturbed_us < 0:
            self.disturbed_us = step.at_us
        self._look(step.at_us)

    def on_lead(self, step: steps.Lead) -> None:
        self._leads[step.broker] = step.epoch
        self._look(step.at_us)

    def on_follow(self, step: steps.Follow) -> None:
        self._leads_no_more(step.broker, step.at_us)

    def on_deleted(self, step: steps.Deleted) -> None:
        self._leads_no_more(step.broker, step.at_us)

    def on_end(self, step: steps.End) -> None:
        if not step.was_down:
            self._still.pop(step.broker, None)
            self._leads_no_more(step.broker, step.at_us)

    def on_pause(self, step: steps.Pause) -> None:
        self._still[step.broker] = self._still.get(step.broker, 0) + STANDS_STILL[step.kind]
        self._look(step.at_us)

    def on_refused(self, step: steps.Refused) -> None:
        if self._counting:
            if step.error == NOT_ENOUGH_REPLICAS:
                self.refused.add(step.request.first_id)
            elif step.error == NOT_ENOUGH_REPLICAS_AFTER_APPEND:
                self.refused_after_append.add(step.request.first_id)

    def begin(self, now_us: int) -> None:
        """Start counting."""
        self._counting = True
        self.window_us = (now_us, now_us)
        if self._leaderless_since_us >= 0:
            self._leaderless_since_us = now_us

    def end(self, now_us: int) -> None:
        """Stop counting."""
        if self._counting:
            self._counting = False
            self.window_us = (self.window_us[0], now_us)
            if self._leaderless_since_us >= 0:
                self.leaderless_us += now_us - self._leaderless_since_us

    def _leads_no_more(self, broker: int, now_us: int) -> None:
        if self._leads.pop(broker, None) is not None:
            self._look(now_us)

    def _look(self, now_us: int) -> None:
        leader = self._leader
        served = self._leads.get(leader, -2) >= self._epoch and self._still.get(leader, 0) <= 0
        since_us = self._leaderless_since_us
        if not served:
            if since_us < 0:
                self._leaderless_since_us = now_us
        elif since_us >= 0:
            if self._counting:
                self.leaderless_us += now_us - since_us
            self._leaderless_since_us = -1


def waiting(writes: list[tuple[int, int]], advances: list[int], window_us: tuple[int, int]) -> Waiting:
    """How long writes waited for the HW, and the longest part of that without an advance.

    Args:
        writes: (due, passed) of each acks=all batch, ascending: `passed` is when a leader's HW first passed it or its
            producer gave it up.
        advances: times at which a leader's HW first passed some batch, ascending; a deposed leader that does not know
            it counts here, since its writers do not know either.
        window_us: the time that counts: from the first disturbance (an election, or a fault that took effect) until
            healing. Without a disturbance writes only wait for normal replication.
    """
    begin_us, end_us = window_us
    if not writes or begin_us >= end_us:
        return Waiting()
    starts: list[int] = []
    stops: list[int] = []
    for due_us, done_us in writes:
        start, stop = max(due_us, begin_us), min(done_us, end_us)
        if start >= stop:
            continue
        if not stops or start > stops[-1]:
            starts.append(start)
            stops.append(stop)
        elif stop > stops[-1]:
            stops[-1] = stop
    total = longest = place = 0
    for number, start in enumerate(starts):
        stop = stops[number]
        total += stop - start
        since = start
        while place < len(advances) and advances[place] < stop:
            advance = advances[place]
            if advance > start:
                longest = max(longest, advance - since)
                since = advance
            place += 1
        longest = max(longest, stop - since)
    return Waiting(total, longest)
