from __future__ import annotations

import pytest

from highwater.lab.hunt.arms import REPAIRED, WITHOUT_FAULTS, arms
from sim.errors import InputError
from sim.protocol.modes import mode


def test_control_arms_are_repaired_or_without_faults() -> None:
    found = arms(mode("kip320"), ["chaos"])
    assert list(found) == ["chaos/kip320", *(f"chaos/{name}" for name in REPAIRED), f"chaos/kip320/{WITHOUT_FAULTS}"]
    assert [arm.control for arm in found.values()] == [False, True, True, True]


def test_brokers_of_older_releases_run_in_no_repaired_arm() -> None:
    found = arms(mode("kip320"))
    rolling = [name for name, arm in found.items() if arm.scenario.upgraded_from]
    assert rolling == ["rolling/kip320", f"rolling/kip320/{WITHOUT_FAULTS}"]


def test_an_unknown_scenario_is_refused() -> None:
    with pytest.raises(InputError, match=r"--scenarios choas: kip320 runs no such random scenario.*'chaos'"):
        arms(mode("kip320"), ["choas"])
