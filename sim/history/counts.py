"""How often the protocol did what: elections and truncations."""

from __future__ import annotations

from sim.history.steps import ELECTED, SETTLED, TRUNCATE, Elected, Hear, Settled, Truncate


class Counts:
    """Counts of a run.

    Attributes:
        elections: leaders chosen by the control plane.
        truncations: truncations that removed records.
        rounds: completed truncations that took one, two, and more answers about epochs.
    """

    __slots__ = ("elections", "rounds", "truncations")

    def __init__(self) -> None:
        self.elections = 0
        self.truncations = 0
        self.rounds = [0, 0, 0]

    def attach(self, hear: Hear) -> None:
        """Ask for the steps that it counts."""
        hear(ELECTED, self._elected)
        hear(TRUNCATE, self._truncated)
        hear(SETTLED, self._settled)

    def _elected(self, step: Elected) -> None:
        self.elections += step.broker > 0

    def _truncated(self, step: Truncate) -> None:
        self.truncations += bool(step.removed)

    def _settled(self, step: Settled) -> None:
        if step.rounds:
            self.rounds[min(step.rounds, 3) - 1] += 1
