from __future__ import annotations

from dataclasses import replace

from scenarios.format import catalogue
from scenarios.format.findings import all_findings
from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import Symptom, Trials, symptom
from scenarios.shrinking.prevention import Remedy, declared_repairs, newer_modes, remedies
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


def test_a_setting_of_the_run_before_it_was_shrunk_is_no_remedy() -> None:
    case = failing("sessions", "kip320", 50_090)
    found = symptom(Trials().row(case))
    factor = int(case.scenario.config["default.replication.factor"])
    before = {"log.flush.interval.messages": 1, "default.replication.factor": factor + 1}
    changes = {remedy.change for remedy in remedies(case, found, Trials(), before)}
    assert not {"log.flush.interval.messages=1", f"default.replication.factor={factor + 1}"} & changes
    assert f"default.replication.factor={factor + 2}" in changes


def test_brokers_of_another_control_plane_rule_a_mode_out() -> None:
    _, changes = tried(failing("sessions", "kip320", 50_090).with_older({1: "kip320"}))
    assert "kraft" not in changes


def scripted(name: str, mode: str) -> tuple[dict[str, bool], dict[str, bool]]:
    """What keeps the records of a scripted scenario: newer releases' modes, and declared repairs."""

    def kept(found: list[Remedy]) -> dict[str, bool]:
        return {remedy.change: remedy.keeps for remedy in found}

    case = Case(catalogue.load(name), MODES[mode], 0)
    shown = symptom(case.row())
    return kept(newer_modes(case, shown)), kept(declared_repairs(case, shown))


def test_each_newer_release_is_tried_on_a_script() -> None:
    modes, _ = scripted("kip101-scenario-1", "hw")
    assert "elr-4.3" not in catalogue.load("kip101-scenario-1").expect
    zookeeper = ["kip101", "kip279", "kip320-2.1", "kip320", "kip320-2.6.1"]
    assert list(modes) == [*zookeeper, "kraft-3.5", "kraft", "kraft-3.9.1", "elr", "elr-4.3"]
    assert all(modes.values())


def test_a_mode_in_which_a_script_waits_in_vain_says_nothing() -> None:
    case = Case(catalogue.load("duplicates-across-epochs"), MODES["kip320"], 0)
    assert "waited in vain" in replace(case, mode=MODES["elr"]).row()["error"]
    modes, _ = scripted("duplicates-across-epochs", "kip320")
    assert "elr" not in modes
    assert modes["kraft"] is False


def test_the_declared_repair_of_each_finding_prevents_it() -> None:
    for name, finding in all_findings().items():
        newest, kinds = finding.shown_in
        case = Case(catalogue.load(name), MODES[newest], 0)
        shown = symptom(case.row(), kinds[0])
        rule, *_ = declared_repairs(case, shown)
        assert (rule.change, rule.keeps, rule.decides) == ("=".join(finding.repair), True, True)


def test_a_value_that_repairs_nothing_does_not_count() -> None:
    case = Case(catalogue.load("leo-of-skipped-epoch"), MODES["elr-4.3"], 0)
    other = case.with_scenario(name="mine", broken_by={"elr-repaired": {"recreated_reply": "processed"}})
    rule, *_ = declared_repairs(other, symptom(case.row()))
    assert (rule.change, rule.keeps, rule.decides) == ("recreated_reply=dropped", False, False)
