from __future__ import annotations

from dataclasses import replace

from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import Symptom, Trials, symptom
from scenarios.shrinking.prevention import remedies
from sim.protocol.modes import MODES
from tests.scenarios.shrinking.failing import failing


def tried(case: Case) -> tuple[Symptom, dict[str, tuple[bool, bool]]]:
    trials = Trials()
    found = symptom(trials.row(case))
    return found, {remedy.change: (remedy.keeps, remedy.decides) for remedy in remedies(case, found, trials)}


def test_each_change_is_tried_by_itself_on_the_same_plan() -> None:
    case = failing("sessions", "kip320", 50_090)
    found, changes = tried(case)
    assert changes["log.flush.interval.messages=1"] == (True, True)
    assert "log.flush.interval.messages=1" in changes
    for mode in ("kraft", "elr"):
        row = replace(case, mode=MODES[mode]).row()
        assert changes[mode] == (found.kind not in row["violations"], row["digest"] != case.row()["digest"])
    assert not {"hw", "kip101", "kip320", "elr-recovery"} & changes.keys()  # Older, the same, or no release.


def test_one_more_replica_gets_a_broker() -> None:
    case = failing("sessions", "kip320", 50_090)
    factor = int(case.scenario.config["default.replication.factor"])
    assert f"default.replication.factor={factor + 1}" in tried(case.with_scenario(brokers=factor))[1]


def test_brokers_of_another_control_plane_rule_a_mode_out() -> None:
    _, changes = tried(failing("sessions", "kip320", 50_090).with_older({1: "kip320"}))
    assert "kraft" not in changes
