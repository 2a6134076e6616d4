"""How often the protocol did what: elections and truncations."""

from __future__ import annotations

from sim.history.steps import Elected, Listener, Settled, Truncate


class Counts(Listener):
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

    def on_elected(self, step: Elected) -> None:
        """See `Elected`."""
        self.elections += step.broker > 0

    def on_truncate(self, step: Truncate) -> None:
        """See `Truncate`."""
        self.truncations += bool(step.removed)

    def on_settled(self, step: Settled) -> None:
        """See `Settled`."""
        if step.rounds:
            self.rounds[min(step.rounds, 3) - 1] += 1
