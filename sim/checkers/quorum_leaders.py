"""Quorum leaders: no two controllers of a replicated quorum lead in one epoch.

Verifies: each controller that becomes leader does so in an epoch of its own (RaftEventSimulationTest: SingleLeader).

With two leaders in an epoch, logs may part without any member noticing. That is outside the promise if a controller had
lost its disk or its file quorum-state, and with it its vote, while fewer than a majority of the others had all
committed metadata on disk.

Does not verify: that a leader becomes active, which takes a commit in its epoch.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import ALWAYS, NOT_PROMISED, Checker, Finding
from sim.history import steps
from sim.history.history import History


class QuorumLeaders(Checker):
    """Keeps the leader of each epoch."""

    FINDINGS: ClassVar = (Finding("quorum-leaders", ALWAYS),)
    of_cluster: ClassVar[bool] = True

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._leaders: dict[int, int] = {}
        self._is_excused = False

    def on_controller_process(self, step: steps.ControllerProcess) -> None:
        self._is_excused |= step.excuses

    def on_raft_leader(self, step: steps.RaftLeader) -> None:
        if self._leaders:
            self.decided = True
        known = self._leaders.setdefault(step.epoch, step.node)
        if known != step.node:
            detail = f"controllers {known} and {step.node} both lead in epoch {step.epoch}"
            promised = NOT_PROMISED if self._is_excused else ""
            self._violates("quorum-leaders", step.at_us, detail, promised=promised)
