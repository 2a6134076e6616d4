"""Shrinking removes topics and partitions that do not matter."""

from __future__ import annotations

import re
from functools import cache

from faults.kinds.topic_changes import OF_TOPICS
from faults.plan import Fault
from scenarios.format import catalogue
from scenarios.format.schema import read
from scenarios.shrinking import passes
from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import Trials, symptom
from scenarios.shrinking.script_export import to_toml
from scenarios.shrinking.shrink import ShrunkCase, shrink
from scenarios.single import recording
from sim.protocol.modes import MODES

ELR = MODES["elr-4.3"]
TOPICS = """
[[topics]]
name = "orders"

[[topics]]
name = "audit"
replication_factor = 1

[[topics]]
name = "idle"
partitions = 3
idle = true
"""


@cache
def losing(topics: str = TOPICS, where: str = "audit-0") -> Case:
    """The first run in which only this partition loses records, by a replaced disk."""
    text = catalogue.template("drawn", "mine").partition("[expect]")[0]
    text = re.sub(r"kinds = \[.*\]", 'kinds = ["disk-replaced"]', text)
    scenario = read(f'{text}[expect]\n"elr-4.3" = "may-violate"\n{topics}', "mine.toml")
    for seed in range(60):
        result = Case(scenario, ELR, seed).run()
        if {entry["partition"] for entry in result.violations} == {where}:
            return Case(recording.of_run(scenario, result).scenario, ELR, seed)
    raise AssertionError("no such run")


def shrunk(case: Case) -> ShrunkCase:
    trials = Trials()
    return shrink(case, symptom(trials.row(case), "committed-loss"), trials)


def test_the_partition_that_fails_is_left_alone() -> None:
    found = shrunk(losing())
    assert found.case.scenario.topics == ()
    assert found.case.recorded.further_sends == {}
    assert found.case.scenario.brokers == found.case.scenario.config["default.replication.factor"] == 1
    assert (found.after.faults, found.after.batches) == (1, 1)
    assert 'violates:committed-loss"' in to_toml(found.case, found.symptom)


def test_a_topic_that_matters_stays_and_is_in_the_script() -> None:
    case = losing()
    loss = symptom(case.row(), "committed-loss")
    proposals = list(passes.fewer_partitions(case))
    without = next(
        proposal for proposal in proposals if [topic.name for topic in proposal.scenario.topics] == ["orders", "audit"]
    )
    assert loss.shown_by(without.row())
    assert set(without.recorded.further_sends) == {"audit-0"}
    fewer = next(
        proposal for proposal in proposals if [topic.partitions for topic in proposal.scenario.topics] == [1, 1, 2]
    )
    assert "idle-2" not in fewer.recorded.further_sends
    last_us = without.recorded.further_sends["audit-0"][-1][3]
    struck = Fault("disk-replaced", last_us + 5_000_000, (2,), 2_000_000)
    script = to_toml(without.with_faults((struck,)), loss)
    assert 'partition = "audit-0"' in script
    assert 'name = "audit"' in script


def test_changes_of_a_topic_that_is_removed_are_removed() -> None:
    drawn = catalogue.load("topics")
    seed = next(seed for seed in range(40) if len(Case(drawn, ELR, seed).run().topics) == 3)
    case = Case(recording.of_run(drawn, Case(drawn, ELR, seed).run()).scenario, ELR, seed)
    named = [fault.about("audit") if fault.kind in OF_TOPICS else fault.about("audit-0") for fault in case.faults]
    without = next(
        partition
        for partition in passes.fewer_partitions(case.with_faults(tuple(named)))
        if [topic.name for topic in partition.scenario.topics] == ["orders", "late"]
    )
    assert all(fault.kind not in OF_TOPICS and fault.partition == "" for fault in without.faults)
    assert not any(name.startswith("audit") for name in without.recorded.further_sends)
    assert without.row()["error"] == ""
