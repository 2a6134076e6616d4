from __future__ import annotations

import pytest

from sim.checkers.controller_crashes import ControllerCrashes
from sim.history import steps
from sim.history.history import History
from tests.sim.checkers.histories import kinds


def crashes(*happened: steps.Step | str) -> list[str]:
    """Kinds that are found after exceptions of the controller, and other steps."""
    history = History()
    checker = ControllerCrashes(history)
    for one in happened:
        step = steps.ControllerCrashed(one) if isinstance(one, str) else one
        step.at_us = 5
        step.tell([checker])
    return kinds(history)


def test_two_controllers_that_resign_by_one_exception_are_found() -> None:
    assert crashes("a", "a", "a") == ["controller-crashes"]


def test_one_exception_or_two_different_ones_are_not() -> None:
    assert crashes("a") == crashes("a", "b") == []


@pytest.mark.parametrize(
    "fault",
    [
        steps.End(1, steps.KILL, []),
        steps.Pause(steps.PAUSE, 1),
        steps.LinkChange(steps.CUT, 1, 2),
        steps.MetadataDelay(1, 1_000),
    ],
)
def test_a_fault_in_between_starts_the_count_anew(fault: steps.Step) -> None:
    assert crashes("a", fault, "a") == []
    assert crashes("a", fault, "a", "a") == ["controller-crashes"]
