"""Controller crashes: the active controller does not throw the same exception again and again.

Verifies: the active controller does not resign twice by the same exception, unless a process ended or paused, a link
changed or metadata was delayed in between. The next controller meets the same metadata, so that controllers may follow
one another without end while the partition waits.

Does not verify: an exception that a controller throws once; ZooKeeper's controllers.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import ALWAYS, Checker, Finding
from sim.history import steps
from sim.history.history import History


class ControllerCrashes(Checker):
    """Remembers the last exception since a fault."""

    FINDINGS: ClassVar = (Finding("controller-crashes", ALWAYS),)
    of_cluster: ClassVar[bool] = True

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._cause = ""
        self._found = False

    def on_controller_crashed(self, step: steps.ControllerCrashed) -> None:
        self.decided = True
        if step.cause == self._cause and not self._found:
            self._found = True
            detail = f"the active controller resigned twice by the same exception: {step.cause}"
            self._violates("controller-crashes", step.at_us, detail)
        self._cause = step.cause

    def on_end(self, step: steps.End) -> None:  # noqa: ARG002
        self._cause = ""

    def on_pause(self, step: steps.Pause) -> None:  # noqa: ARG002
        self._cause = ""

    def on_link(self, step: steps.LinkChange) -> None:  # noqa: ARG002
        self._cause = ""

    def on_metadata_delay(self, step: steps.MetadataDelay) -> None:  # noqa: ARG002
        self._cause = ""
