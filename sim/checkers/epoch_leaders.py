"""Early warning ``two-leaders-one-epoch``: two brokers led in the same leader epoch.

A leader epoch names one leader (KIP-101): fencing, truncation and log matching all rest on that.

Verifies: whenever a broker begins to lead, that no other one began to lead in that leader epoch before, at whatever
time.

Does not verify: two leaders of different epochs at the same time, which is what epochs are for; whether either of them
wrote anything.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import Checker, warning
from sim.history import steps
from sim.history.history import History


class EpochLeaders(Checker):
    """Remembers who led in each epoch.

    Args:
        history: where warnings go.
    """

    __slots__ = ("_leaders",)

    FINDINGS: ClassVar = (warning("two-leaders-one-epoch"),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._leaders: dict[int, int] = {}

    def on_lead(self, step: steps.Lead) -> None:
        """See `Lead`."""
        self.lead(step.broker, step.epoch, step.at_us)

    def lead(self, broker: int, epoch: int, now_us: int) -> None:
        """A broker begins to lead; only the first other one in an epoch is reported."""
        first = self._leaders.setdefault(epoch, broker)
        if first not in (broker, 0):
            self._leaders[epoch] = 0
            detail = f"brokers {first} and {broker} both led in leader epoch {epoch}"
            self._warns("two-leaders-one-epoch", now_us, detail)
