from __future__ import annotations

from typing import Any

import pytest

from scenarios.shrinking.case import Case
from scenarios.shrinking.cause import NO_REPAIRS, Repair, later_values, repairs
from scenarios.shrinking.criterion import Criterion, OutOfTimeError, Symptom, Trials, has_effect, symptom
from scenarios.single.rows import Row
from sim.errors import InputError
from sim.protocol.modes import MODES
from tests.scenarios.shrinking.failing import failing


def row(violations: str = "", inside: str = "", verdict: str = "violation") -> dict[str, Any]:
    return {
        "scenario": "power",
        "mode": "hw",
        "seed": 3,
        "verdict": verdict,
        "violations": violations,
        "violations_inside": inside,
        "error": "",
    }


def test_the_first_kind_inside_the_promise_is_kept() -> None:
    assert symptom(row("committed-loss,divergence", "divergence")) == Symptom("divergence", inside=True)
    assert symptom(row("committed-loss,divergence")) == Symptom("committed-loss", inside=False)
    assert symptom(row("committed-loss,divergence", "divergence"), "committed-loss").inside is False


def test_a_run_that_does_not_fail_so_is_refused() -> None:
    with pytest.raises(InputError, match=r"power, mode hw, seed 3 violates nothing \(verdict ok\)"):
        symptom(row(verdict="ok"))
    with pytest.raises(InputError, match="no violation 'divergenc'; did you mean 'divergence'"):
        symptom(row("divergence"), "divergenc")
    with pytest.raises(InputError, match="ends with an error: KeyError: 1"):
        symptom({**row(verdict="error"), "error": "KeyError: 1\nat x"})


def test_a_symptom_has_its_side_of_the_promise() -> None:
    inside, outside = Symptom("divergence", inside=True), Symptom("divergence", inside=False)
    assert inside.shown_by(row("divergence", "divergence"))
    assert not inside.shown_by(row("divergence"))
    assert outside.shown_by(row("divergence"))
    assert not outside.shown_by(row("divergence", "divergence"))
    assert not outside.shown_by(row("committed-loss"))


def test_what_did_not_end_is_not_cured() -> None:
    kind = Symptom("divergence", inside=True)
    assert kind.cured_in(row("divergence"))
    assert not Symptom("divergence", inside=False).cured_in(row("divergence", "divergence"))
    assert kind.cured_in(row(verdict="ok"))
    assert not kind.cured_in(row(verdict="exhausted"))
    assert not kind.cured_in(row(verdict="error"))


def test_a_case_is_run_once_and_not_when_the_time_is_over() -> None:
    over = False
    trials = Trials(lambda: over)
    case = failing("power", "hw")
    first = trials.row(case)
    over = True
    assert trials.row(case.with_faults(case.faults)) is first
    assert trials.runs == 1
    with pytest.raises(OutOfTimeError):
        trials.row(case.with_faults(()))


def test_what_goes_round_is_given_up_early() -> None:
    case = failing("power", "hw")
    trials = Trials()
    trials.row(case)
    busy = case.with_sends(tuple((number, 1, -1, 1_000_000 + number) for number in range(20_000)))
    assert trials.row(busy)["verdict"] == "exhausted"


@pytest.mark.parametrize("mode", MODES)
def test_repairs_of_rules_are_later_values(mode: str) -> None:
    case = failing("power", "hw")
    known = later_values(MODES[mode])
    found = [(repair.name, repair.value) for repair in repairs(Case(case.scenario, MODES[mode], 0)) if repair.is_rule]
    assert set(found) <= set(known)
    assert not {name for name, _ in known} & set(NO_REPAIRS)


def test_a_rule_that_is_overridden_is_repaired_from_there() -> None:
    case = failing("power", "hw").with_rule("isr_join", "leader-epoch-start")
    assert "isr_join" not in [repair.name for repair in repairs(case)]


def test_settings_are_repaired_where_they_are_not_as_told() -> None:
    case = failing("power", "hw").with_sends(((0, 1, 1, 5_000_000),))
    bad = {"min.insync.replicas": 1, "default.replication.factor": 3, "unclean.leader.election.enable": True}
    bad |= {"log.flush.interval.messages": 10}
    found = {str(repair): repair for repair in repairs(case.with_settings(bad)) if not repair.is_rule}
    words = ("acks=all", "min.insync.replicas=2", "log.flush.interval.messages=1")
    assert [*found] == [*words, "unclean.leader.election.enable=false"]
    assert found["acks=all"].apply(case).sends == ((0, 1, -1, 5_000_000),)
    good = {"min.insync.replicas": 3, "unclean.leader.election.enable": False, "log.flush.interval.messages": 1}
    safe = case.with_sends(()).with_settings({**bad, **good})
    assert not [repair for repair in repairs(safe) if not repair.is_rule]


@pytest.mark.world
def test_the_cause_is_each_single_repair_without_which_it_stays() -> None:
    case = failing("power", "hw", 50_087, "divergence")
    trials = Trials()
    criterion = Criterion(trials, case, symptom(trials.row(case), "divergence"))
    soon = {"sim.event.budget": 100_000}  # One of them goes round (KAFKA-10706), and has diverged before that.
    rows = {repair: repair.apply(case).with_settings(soon).row() for repair in repairs(case)}
    cured = [repair for repair, row in rows.items() if "divergence" not in row["violations_inside"]]
    assert sorted(cured) == list(criterion.cause) == list(criterion.cause_of(case))
    assert Repair("follower_truncation", "leader-epoch", is_rule=True) in criterion.cause
    assert len(criterion.cause) < criterion.asked < len(list(repairs(case)))


def test_more_min_isr_than_replicas_cures_nothing() -> None:
    case = failing("sessions", "kip320", 50_090).with_settings({"default.replication.factor": 2})
    assert Repair("min.insync.replicas", 2, is_rule=False).is_possible(case)
    assert not Repair("min.insync.replicas", 3, is_rule=False).is_possible(case)


def test_another_bug_of_the_same_kind_is_not_kept() -> None:
    case = failing("power", "hw", 50_087, "divergence")
    trials = Trials()
    kept = Criterion(trials, case, symptom(trials.row(case), "divergence"))
    assert kept.holds(case)
    assert kept.confirms(case)
    kept.cause = (*kept.cause, Repair("isr_join", "leader-epoch-start", is_rule=True))
    assert not kept.holds(case)
    kept.cause = kept.cause[:1]
    assert kept.holds(case)
    assert not kept.confirms(case)
    kept.is_strict = True
    assert not kept.holds(case)


class _EachTrial(Trials):
    def changed_row(self, case: Case, changed: Case) -> Row:
        return self.row(changed)


def test_repairs_that_decide_nothing_are_not_run() -> None:
    case = failing("chaos", "kip320", 11)
    kept = symptom(case.row())
    saving, each = Trials(), _EachTrial()
    one, other = Criterion(saving, case, kept), Criterion(each, case, kept)
    assert (one.cause, one.asked) == (other.cause, other.asked)
    assert saving.runs < each.runs / 2


def test_repair_of_what_is_no_step_cures_a_run_whose_digest_stays() -> None:
    """The log start that a process finds in its file is no step; `files` with seed 2240 shows it in mode `kraft`."""
    case = failing("files", "kraft", 2_240, "deleted-records-back")
    kept = Symptom("deleted-records-back", inside=True)
    repaired = case.with_rule("log_start_checkpoint", "at-once")
    assert repaired.row()["digest"] == case.row()["digest"]
    assert has_effect(repaired.row(), case.row())
    assert Repair("log_start_checkpoint", "at-once", is_rule=True) in Criterion(Trials(), case, kept).cause
