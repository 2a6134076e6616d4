"""Scenarios with several log directories: what a file may say of them, and what the random one reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scenarios.format.catalogue import load
from scenarios.format.schema import read
from scenarios.single import recording
from scenarios.single.execution import Execution
from sim.errors import InputError
from sim.protocol import probes
from sim.protocol.modes import mode

if TYPE_CHECKING:
    from scenarios.format.scenario import Scenario

FILE = """
schema = 1
name = "mine"
title = "Two directories"
brokers.count = 3
control = "real"

[config]
default.replication.factor = 3
sim.log.dirs = 2

[[topics]]
name = "orders"
directory = 2

[[script]]
do = "produce"
batch = "m1"
after_ms = 2000

[[script]]
do = "directory-failure"
broker = 1
directory = 1
repair_ms = 5000

[expect]
kraft = "clean:committed-loss"
"""


def scenario(old: str = "", new: str = "") -> Scenario:
    return read(FILE.replace(old, new), "mine.toml")


def executed(what: Scenario, name: str, seed: int) -> Execution:
    one = Execution(what, mode(name), seed, {}, None)
    one.execute()
    return one


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("sim.log.dirs = 2", "sim.log.dirs = 17", "sim.log.dirs = 17 is not valid: a whole number of at least 1 and"),
        ("sim.log.dirs = 2", "sim.log.dirs = 0", "sim.log.dirs = 0 is not valid: a whole number of at least 1 and"),
        ("\ndirectory = 2", "\ndirectory = 3", "directory = 3: the log directories of a broker are 1 to 2"),
        ("\ndirectory = 1", "\ndirectory = 0", "directory = 0: the log directories of a broker are 1 to 2"),
        ("sim.log.dirs = 2", "", "directory = 2: the log directories of a broker are 1 (sim.log.dirs)"),
        (
            "\n[config]",
            "\nbrokers.3.sim.log.dirs = 1\n[config]",
            "directory = 2: the log directories of a broker are 1",
        ),
        ("repair_ms", "restart_ms", "repair_ms"),
    ],
)
def test_bad_input_is_one_line(old: str, new: str, problem: str) -> None:
    with pytest.raises(InputError) as refused:
        scenario(old, new)
    assert [problem in line for line in refused.value.problems] == [True]


def test_a_topic_keeps_its_directory_in_files_and_recordings() -> None:
    what = scenario()
    assert what.topics[0].directory == 2
    assert what.to_json()["topics"][0]["directory"] == 2
    assert "directory" not in scenario("\ndirectory = 2", "").to_json()["topics"][0]
    assert recording._topic(what.topics[0], ["orders"])["directory"] == 2
    one = executed(what, "kraft", 1)
    places = [list(directory.storages) for directory in one.cluster.machines.directories[2].all]
    assert places == [[], ["orders-0"]]
    one.dispose()


REACHED = {
    2: ("DIRECTORY_OFFLINE", "DIRECTORY_FAILS", "REPLICA_OFFLINE", "DIRECTORY_ASSIGNED"),
    4: ("STARTS_WITHOUT_DIRECTORY",),
    5: ("DIRECTORY_LOST", "DIRECTORY_UNREPORTED"),
    9: ("LAST_DIRECTORY",),
}


@pytest.mark.parametrize("seed", REACHED)
def test_the_random_scenario_reaches_what_several_directories_are_for(seed: int) -> None:
    one = executed(load("disks"), "elr-repaired", seed)
    seen, last = one.cluster.recorder.coverage.seen, len(probes.PROBES) - 1
    one.dispose()
    assert [name for name in REACHED[seed] if not seen >> (last - getattr(probes, name)) & 1] == []
