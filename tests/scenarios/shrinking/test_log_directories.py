"""Shrinking removes log directories, and places of brokers, that do not matter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from faults.plan import ALL_DIRECTORIES, ITS_DIRECTORY, Fault
from scenarios.format.catalogue import load
from scenarios.format.scenario import Topic
from scenarios.shrinking import passes
from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import STALLED, Trials, symptom
from scenarios.shrinking.shrink import ShrunkCase, shrink
from scenarios.single import recording
from sim.environment.topology import Topology
from sim.protocol.modes import MODES
from tests.scenarios.shrinking.failing import failing

SECOND = 1_000_000
FAILS = Fault("directory-failure", 6 * SECOND, (1,), SECOND)
MOVES = Fault("directory-move", 6 * SECOND, (1,), value=2)


def shrunk(seed: int, kind: str) -> ShrunkCase:
    drawn = load("directories")
    case = Case(drawn, MODES["elr-4.3"], seed)
    case = replace(case, scenario=recording.of_run(drawn, case.run()).scenario)
    assert (case.scenario.config["sim.log.dirs"], case.scenario.topology is None) == (2, False)
    trials = Trials()
    return shrink(case, symptom(trials.row(case), kind), trials)


def with_directories(count: int, *faults: Fault, topics: tuple[Topic, ...] = ()) -> Case:
    case = failing("power", "hw").with_faults(faults).with_settings({"sim.log.dirs": count})
    return case.with_scenario(topics=topics)


@pytest.mark.world
def test_a_loss_that_needs_one_directory_keeps_one() -> None:
    found = shrunk(184, "committed-loss").case
    assert found.scenario.config["sim.log.dirs"] == 1
    assert found.scenario.topology is None
    assert {fault.kind for fault in found.faults} == {"power-loss", "disk-replaced"}
    assert {fault.directory for fault in found.faults} == {ALL_DIRECTORIES}


def test_a_stall_that_needs_two_directories_keeps_both() -> None:
    found = shrunk(203, STALLED).case
    assert "directory-unrepaired" in {fault.kind for fault in found.faults}
    assert found.scenario.config["sim.log.dirs"] == 2  # A broker's last directory does not fail for good.
    assert found.scenario.topology is None


def test_faults_and_topics_do_not_name_a_directory_that_is_gone() -> None:
    topics = Topic("orders", directory=1), Topic("audit", directory=3)
    case = with_directories(3, replace(FAILS, value=3), replace(FAILS, value=1), MOVES, topics=topics)
    one, two = passes.fewer_directories(case)
    assert [small.scenario.config["sim.log.dirs"] for small in (one, two)] == [1, 2]
    assert [fault.value for fault in one.faults] == [0, 1, 0]
    assert [fault.value for fault in two.faults] == [0, 1, 2]
    assert [topic.directory for topic in two.scenario.topics] == [1, None]
    assert not list(passes.fewer_directories(one))
    stalls = [Fault("disk-stall", 6 * SECOND, (1,), SECOND, directory=number) for number in (ITS_DIRECTORY, 2)]
    (fewer,) = passes.fewer_directories(with_directories(2, *stalls))
    assert [fault.directory for fault in fewer.faults] == [ITS_DIRECTORY, ALL_DIRECTORIES]


def test_a_fault_chooses_its_directory_and_is_about_the_first_partition() -> None:
    named = replace(FAILS, value=2).about("audit-0")
    assert list(passes.simpler_faults(named, [])) == [replace(named, value=0), named.about("")]
    stall = Fault("disk-stall", 6 * SECOND, (1,), SECOND, directory=ITS_DIRECTORY)
    assert list(passes.simpler_faults(stall, [])) == [stall.within(number) for number in (0, 1, 2)]
    assert list(passes.simpler_faults(stall.within(2), [])) == [stall.within(0)]
    power = Fault("retention", SECOND, (0,), value=2)  # Its value is no directory.
    assert list(passes.simpler_faults(power, [])) == []


def test_a_topic_loses_what_it_has_of_its_own() -> None:
    own = Topic("audit", replication_factor=3, config={"min.insync.replicas": 2}, directory=2)
    case = with_directories(2, topics=(Topic("orders", idle=True), own)).with_settings(
        {"default.replication.factor": 3}
    )
    found = [
        partition.scenario.topics[1]
        for partition in passes.fewer_partitions(case)
        if len(partition.scenario.topics) == 2
    ]
    plainer = [replace(own, directory=None), replace(own, config={}), replace(own, replication_factor=None)]
    assert [topic for topic in found if topic != own] == plainer
    fewer = case.with_scenario(topics=(Topic("orders"), replace(own, replication_factor=2)))
    factors = [
        topic.replication_factor
        for partition in passes.fewer_partitions(fewer)
        for topic in partition.scenario.topics[1:]
    ]
    assert set(factors) == {2}  # More replicas are no smaller cluster.


def test_places_of_brokers_stay_for_a_fault_that_strikes_a_group() -> None:
    case = with_directories(1, FAILS)
    assert passes.without_topology(case) is None
    placed = case.with_scenario(topology=Topology(racks={"a": (1,), "b": (2, 3)}))
    without = passes.without_topology(placed)
    assert without is not None
    assert without.scenario.topology is None
    assert passes.without_topology(placed.with_faults((Fault("rack-cut", SECOND, (1,), SECOND),))) is None
