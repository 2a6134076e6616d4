from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from faults.plan import ITS_DIRECTORY, LEADER, Fault, Trigger
from scenarios.format.schema import read
from scenarios.shrinking.criterion import Symptom
from scenarios.shrinking.script_export import NotScriptedError, _lines, to_toml
from sim.config import resolve
from sim.protocol.modes import MODES
from tests.named import run
from tests.scenarios.shrinking.failing import failing

if TYPE_CHECKING:
    from scenarios.shrinking.case import Case

SECOND = 1_000_000
LOSS = Symptom("committed-loss", inside=False)
POWER = Fault("power-loss", 10 * SECOND, (1,), SECOND)


def small(*faults: Fault, mode: str = "kip320") -> Case:
    """One broker, one batch, and these faults."""
    case = failing("sessions", mode, 50_090).with_horizon(20 * SECOND).with_sends(((0, 1, -1, 2 * SECOND),))
    settings = resolve({"default.replication.factor": 1, "sim.spare.brokers": 0})
    return case.with_scenario(brokers=2, first=1, config=settings).with_faults(faults)


def test_a_power_loss_becomes_a_script_that_loses_the_same() -> None:
    scenario = read(to_toml(small(POWER), LOSS), "here")
    assert scenario.name == f"sessions-{failing('sessions', 'kip320', 50_090).seed}-kip320"
    assert [step.do for step in scenario.script] == ["produce", "power-loss", "wait"]
    assert [step.after_us for step in scenario.script] == [2 * SECOND, 8 * SECOND, 9 * SECOND]
    assert scenario.expect["kip320"].kinds == ("committed-loss",)
    assert [probe.pattern.step for probe in scenario.story[:2]] == ["ack", "power-loss"]
    for seed in range(3):
        result = run(scenario, "kip320", seed)
        assert result.row["expected"]
        assert not result.row["error"]


def test_a_mode_with_a_point_in_its_name_is_expected() -> None:
    scenario = read(to_toml(replace(small(POWER), mode=MODES["elr-4.3"]), LOSS), "here")
    assert scenario.expect["elr-4.3"].kinds == ("committed-loss",)


def test_what_violates_something_else_as_a_script_is_refused() -> None:
    with pytest.raises(NotScriptedError, match="as a script it ends with ok"):
        to_toml(small(), LOSS)
    with pytest.raises(NotScriptedError, match="as a script it ends with committed-loss"):
        to_toml(small(POWER), Symptom("divergence", inside=True))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (replace(POWER, trigger=Trigger("ack", 1, 0, 12 * SECOND)), "a power-loss waits for a step"),
        (replace(POWER, targets=(LEADER,)), "broker"),
        (replace(POWER, lasts_us=1_500), "no script line can express this power-loss"),
        (
            Fault("disk-replaced", 5, (1,), directory=ITS_DIRECTORY),
            "no script line can express this disk-replaced",
        ),
    ],
)
def test_what_no_line_can_say_is_refused(fault: Fault, said: str) -> None:
    with pytest.raises(NotScriptedError, match=said):
        to_toml(small(fault), LOSS)


def test_rules_and_upgrades_are_no_part_of_scenarios() -> None:
    with pytest.raises(NotScriptedError, match="rules"):
        to_toml(small(POWER).with_rule("isr_join", "high-watermark"), LOSS)
    with pytest.raises(NotScriptedError, match="upgraded"):
        to_toml(small(POWER).with_older({1: "kip101"}), LOSS)


@pytest.mark.parametrize(
    ("fault", "lines"),
    [
        (Fault("directory-unrepaired", 5, (1,)), [(5, {"broker": 1})]),
        (Fault("directory-unrepaired", 5, (1,), value=2), [(5, {"broker": 1, "directory": 2})]),
        (Fault("corrupt-tail", 5, (1,), value=2, directory=2), [(5, {"broker": 1, "batches": 2, "directory": 2})]),
        (Fault("disk-replaced", 5, (1,)), [(5, {"broker": 1})]),
        (Fault("kill", 5, (1, 2), -1, (0, 7)), [(5, {"broker": 1}), (12, {"broker": 2})]),
        (Fault("kill", 5, (1, 2), -1, (7,)), [(12, {"broker": 1}), (12, {"broker": 2})]),
        (
            Fault("cut", 5, (0, 2), 9_000, both_ways=True),
            [(5, {"from": "control", "to": 2, "both_ways": True, "for_ms": 9})],
        ),
        (
            Fault("slow", 5, (1, 2), 9_000, value=3_000),
            [(5, {"from": 1, "to": 2, "both_ways": False, "by_ms": 3, "for_ms": 9})],
        ),
        (Fault("reassignment", 5, (0,), replicas=(2, 1)), [(5, {"replicas": [2, 1]})]),
    ],
)
def test_faults_become_lines(fault: Fault, lines: list[tuple[int, dict[str, object]]]) -> None:
    found = list(_lines(small(fault).with_sends(())))
    assert found == [(at_us, {"do": fault.kind, **params}) for at_us, params in lines]
