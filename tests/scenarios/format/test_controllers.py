"""Scenario files with controllers that are processes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from scenarios.format import catalogue
from scenarios.format.schema import read
from scenarios.single import recording
from scenarios.single.run import run
from sim.errors import InputError
from sim.protocol.modes import mode

if TYPE_CHECKING:
    from pathlib import Path

HEAD = 'schema = 1\nname = "a"\ntitle = "A"\nbrokers.count = 3\n'
REST = """
[[script]]
do = "produce"
batch = "m1"

[[script]]
do = "kill"
broker = {broker}

[expect]
{mode} = "clean:committed-loss"
"""


def text(above: str, *, broker: int = 100, of: str = "kraft") -> str:
    return f"{HEAD}{above}\n{REST.format(broker=broker, mode=of)}"


def test_there_are_three_controllers_unless_the_file_says_otherwise() -> None:
    assert read(text('control = "quorum"'), "a.toml").controller_count == 3
    assert read(text('control = "quorum"\ncontrollers.count = 5', broker=104), "a.toml").controller_count == 5
    assert read(text('control = "real"', broker=1), "a.toml").controller_count == 0


@pytest.mark.parametrize(
    ("above", "broker", "of", "message"),
    [
        ('control = "quorom"', 1, "kraft", "control = 'quorom': no such control plane; did you mean 'quorum'?"),
        (
            'control = "quorum"\ncontrollers.count = 2',
            100,
            "kraft",
            "controllers.count = 2: a quorum has 1, 3 or 5 controllers here (nearest: 3)",
        ),
        (
            'control = "quorum"\ncontrollers.count = 0',
            100,
            "kraft",
            "controllers.count = 0: a quorum has 1, 3 or 5 controllers here (nearest: 1)",
        ),
        (
            'control = "real"\ncontrollers.count = 3',
            1,
            "kraft",
            'controllers needs control = "quorum", in which controllers are processes',
        ),
        (
            'control = "quorum"',
            103,
            "kraft",
            "script 2 (kill): broker = 103: the controllers are 100 to 102",
        ),
        (
            'control = "real"',
            100,
            "kraft",
            'script 2 (kill): broker = 100: controllers have ids only with control = "quorum"',
        ),
    ],
)
def test_a_wrong_control_plane_is_one_message(above: str, broker: int, of: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read(text(above, broker=broker, of=of), "a.toml")
    assert [problem.removeprefix("a.toml: ") for problem in error.value.problems] == [message]


def test_controllers_are_those_of_kraft() -> None:
    with pytest.raises(InputError, match=r'control = "quorum" is that of KRaft; modes under KRaft: kraft, elr'):
        read(text('control = "quorum"', of="kip320"), "a.toml")


def test_a_recorded_run_has_its_controllers(tmp_path: Path) -> None:
    scenario = catalogue.load("quorum")
    result = run(scenario, mode("kraft"), 1)
    data = recording.to_json(scenario, result)
    assert data["controllers"] == 3
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    found = recording.read(file)
    assert found.scenario.controller_count == 3
    assert run(found.scenario, mode("kraft"), 1).row["digest"] == result.row["digest"]
