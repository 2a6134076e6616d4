"""Early warning ``two-leaders-one-epoch``: two brokers led in the same leader epoch.

A leader epoch has one leader (KIP-101): fencing, truncation and log matching rely on that.

Verifies: whenever a broker begins to lead, no other broker has ever begun to lead in that leader epoch.

Does not verify: two leaders of different epochs at the same time, which epochs exist to handle; whether either wrote
anything.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import Checker, warning
from sim.history import steps
from sim.history.history import History


class EpochLeaders(Checker):
    """Records the leader of each epoch."""

    FINDINGS: ClassVar = (warning("two-leaders-one-epoch"),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._leaders: dict[int, int] = {}

    def on_lead(self, step: steps.Lead) -> None:
        # Only the first conflict of an epoch is reported.
        self.decided = True
        broker, epoch = step.broker, step.epoch
        first = self._leaders.setdefault(epoch, broker)
        if first not in (broker, 0):
            self._leaders[epoch] = 0
            detail = f"brokers {first} and {broker} both led in leader epoch {epoch}"
            self._warns("two-leaders-one-epoch", step.at_us, detail, weak=(broker,))
