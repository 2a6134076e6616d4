"""Counts of elections, truncations, and ends of incarnations that lost records."""

from __future__ import annotations

from sim.history.steps import Elected, End, Listener, Settled, Truncate


class Counts(Listener):
    """Counts of a run.

    Attributes:
        elections: leaders elected by the control plane.
        truncations: truncations that removed records.
        lossy_ends: incarnations that lost records at their end or while their machine was down.
        rounds: completed truncations that took one, two, or more OffsetsForLeaderEpoch responses.
    """

    def __init__(self) -> None:
        self.elections = 0
        self.truncations = 0
        self.rounds = [0, 0, 0]
        self.lossy_ends = 0
        self._was_lossy: dict[int, bool] = {}
        """Broker -> whether its last end lost records."""

    def on_elected(self, step: Elected) -> None:
        self.elections += step.broker > 0

    def on_truncate(self, step: Truncate) -> None:
        self.truncations += bool(step.removed)

    def on_settled(self, step: Settled) -> None:
        if step.rounds:
            self.rounds[min(step.rounds, 3) - 1] += 1

    def on_end(self, step: End) -> None:
        before = self._was_lossy.get(step.broker, True) if step.was_down else False
        if step.lost and not before:
            self.lossy_ends += 1
        self._was_lossy[step.broker] = before or bool(step.lost)
