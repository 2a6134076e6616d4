"""The limits within which the tests of drawing draw."""

from __future__ import annotations

from typing import Final

from faults.plan import Limits
from tests.sim.world import SECOND_US

WINDOW_US: Final = (5 * SECOND_US, 290 * SECOND_US)
LIMITS: Final = Limits(
    brokers=(1, 2, 3),
    window_us=WINDOW_US,
    restart_us=(2 * SECOND_US, 60 * SECOND_US),
    cut_us=(1 * SECOND_US, 90 * SECOND_US),
    pause_us=(1 * SECOND_US, 60 * SECOND_US),
    slow_us=(10_000, 2_000_000),
    loss_permille=(20, 500),
    all_brokers=(1, 2, 3, 4),
)
