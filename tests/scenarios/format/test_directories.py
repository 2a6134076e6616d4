"""Scenarios with several log directories: what a file may say of them, and what the random one reaches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import scenarios
from scenarios.format.catalogue import load
from scenarios.format.schema import read
from scenarios.single import recording
from scenarios.single.execution import Execution
from sim.errors import InputError
from sim.protocol import probes
from sim.protocol.modes import mode
from tests.named import run, run_row

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


STUCK = """do = "directory-unrepaired"
broker = 2
directory = 1

[[script]]
do = "disk-replaced"
broker = 2
directory = 2
after_ms = 1000

[[script]]
do = "start"
broker = 2
after_ms = 5000"""


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


REACHED: dict[tuple[str, int], tuple[str, ...]] = {
    ("disks", 1): ("DIRECTORY_OFFLINE", "DIRECTORY_FAILS", "REPLICA_OFFLINE", "DIRECTORY_ASSIGNED"),
    ("disks", 4): ("STARTS_WITHOUT_DIRECTORY", "LAST_DIRECTORY"),
    ("disks", 6): ("DIRECTORY_CORDONED",),
    ("disks", 15): ("DIRECTORY_LOST", "DIRECTORY_STALLS"),
    ("disks", 31): ("CRC_DROPS",),
    ("disks", 60): ("DIRECTORY_UNREPORTED",),
    ("directories", 0): ("ASSIGNED_BEHIND", "REPLICA_MOVED"),
    ("directories", 39): ("COPY_HELD_BACK", "COPY_BEHIND", "FUTURE_RECOVERED"),
    ("directories", 8): ("DIRECTORY_STALLS",),
}


@pytest.mark.parametrize(("name", "seed"), REACHED)
def test_the_random_scenarios_reach_what_several_directories_are_for(name: str, seed: int) -> None:
    one = executed(load(name), "elr-repaired" if name == "disks" else "elr-4.3", seed)
    seen, last = one.cluster.recorder.coverage.seen, len(probes.PROBES) - 1
    one.dispose()
    assert [probe for probe in REACHED[name, seed] if not seen >> (last - getattr(probes, probe)) & 1] == []


FOUND = {
    ("directories", 277): {"offline_directory": "ignored"},
    ("directories", 188): {"lagging_future_log": "keeps-log"},
    ("disks", 16): {"offline_directory": "ignored"},
}


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_random_runs_find_what_one_repair_prevents(name: str, seed: int) -> None:
    """What `offline-directory`, `throttled-move` and `throttled-move-killed` show."""
    lost = run_row(load(name), "elr-4.3", seed)
    assert "committed-loss" in lost["violations_inside"]
    assert run(load(name), "elr-4.3", seed, FOUND[name, seed]).row["violations_inside"] == ""


@pytest.mark.parametrize("missing", ["directory-move", "move-throttle", "next-batches"])
def test_incidents_of_copies_need_their_kinds(missing: str) -> None:
    text = (Path(scenarios.__file__).parent / "files" / "directories.toml").read_text(encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read(text.replace(f'"{missing}", ', ""), "mine.toml")
    assert refused.value.problems == (f"mine.toml: faults.copying_percent = 25: it needs the kind '{missing}'",)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('do = "disk-stall"\nbroker = 1\ndirectory = 3', "directory = 3: the log directories of a broker are 1 to 2"),
        ('do = "corrupt-tail"\nbroker = 1\ndirectory = 0', "directory = 0: the log directories of a broker are 1 to 2"),
        ('do = "disk-replaced"\nbroker = 1\ndirectry = 2', "unknown key 'directry'; did you mean 'directory'?"),
        ('do = "kill"\nbroker = 1\ndirectory = 2', "unknown key 'directory'"),
    ],
)
def test_a_line_names_a_directory_that_there_is(line: str, problem: str) -> None:
    before = 'do = "directory-failure"\nbroker = 1\ndirectory = 1\nrepair_ms = 5000'
    with pytest.raises(InputError) as refused:
        scenario(before, line)
    assert [problem in one for one in refused.value.problems] == [True]


def test_a_partition_with_too_few_replicas_in_working_directories_waits_for_an_operator() -> None:
    """A directory of broker 2 has failed for good; then the other one, with its replica, is replaced."""
    text = FILE.replace('do = "directory-failure"\nbroker = 1\ndirectory = 1\nrepair_ms = 5000', STUCK)
    text = text.replace("brokers.count = 3", "brokers.count = 2").replace(
        "replication.factor = 3", "replication.factor = 2"
    )
    result = run(read(text.replace("[config]", "[config]\nmin.insync.replicas = 2"), "mine.toml"), "kraft", 1)
    assert (result.row["verdict"], result.row["violations"], result.row["error"]) == ("stalled", "", "")
