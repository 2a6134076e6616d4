"""The unit of speed: CPU time of one bare event of SimPy. This file does not change, or figures could not be compared.

A bare event is `env.schedule(Call, 1, delay)`: Call has slots and one callback to an empty function; 100 are pending,
delays are integers drawn beforehand, 200,000 events are processed with the garbage collector frozen.
"""

from __future__ import annotations

import gc
import random
import time
from typing import Any, Final

import simpy

EVENTS: Final = 200_000
PENDING: Final = 100


class Call:
    """An event with one callback."""

    __slots__ = ("_ok", "_value", "callbacks", "defused")

    def __init__(self, callback: Any) -> None:
        self.callbacks: list[Any] | None = [callback]
        self._ok = True
        self._value = None


def _empty(_: Any) -> None:
    pass


def bare_event_seconds() -> float:
    """CPU seconds of one bare event, from one measurement of `EVENTS` events."""
    stream = random.Random(1)
    delays = [1 + int(stream.random() * 1_000) for _ in range(EVENTS)]
    env = simpy.Environment()
    schedule: Any = env.schedule
    for delay in delays[:PENDING]:
        schedule(Call(_empty), 1, delay)
    gc.collect()
    gc.freeze()
    gc.disable()
    begin = time.process_time()
    for delay in delays[PENDING:]:
        env.step()
        schedule(Call(_empty), 1, delay)
    while env._queue:
        env.step()
    seconds = time.process_time() - begin
    gc.enable()
    gc.unfreeze()
    return seconds / EVENTS
