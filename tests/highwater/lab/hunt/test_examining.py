"""What the cause of a failure is called."""

from __future__ import annotations

import pytest

from highwater.lab.hunt import examining
from highwater.lab.zoo import findings
from scenarios.shrinking.cause import Repair
from scenarios.shrinking.criterion import Trials
from sim.protocol.modes import MODES
from tests.scenarios.shrinking.test_pairs import STUCK, masked


def rule(word: str) -> Repair:
    name, _, value = word.partition("=")
    return Repair(name, value, is_rule=True)


@pytest.mark.parametrize(
    ("mode", "rules", "name", "known"),
    [
        ("kip320", ["min_isr_cap=replicas"], "loss, cured by min_isr_cap=replicas, as of 3.9.0", "repaired"),
        (
            "hw",
            ["follower_truncation=leader-epoch"],
            "truncation to the high watermark (KAFKA-1211, KIP-101)",
            "repaired",
        ),
        ("elr", ["directory_assignment=keeps-elr"], "loss, cured by directory_assignment=keeps-elr", ""),
        (
            "elr-4.3",
            ["elr_outside_assignment=dropped", "isr_floor=min-isr"],
            "loss, cured by elr_outside_assignment=dropped",
            "",
        ),
        ("elr-4.3", ["isr_floor=min-isr"], "loss, cured by isr_floor=min-isr", ""),
        ("elr-4.3", [], "loss, cured by no single repair, after cut, kill", ""),
    ],
)
def test_a_cause_is_named_by_its_cures(mode: str, rules: list[str], name: str, known: str) -> None:
    cures = [rule(word) for word in rules]
    key, told, known_as = examining._named("loss", MODES[mode], cures, cures, ["kill", "cut", "kill"])
    assert (told, known_as) == (name, known)
    assert key.startswith("loss: ")


def test_settings_name_a_cause_that_no_rule_cures() -> None:
    cures = [Repair("log.flush.interval.messages", 1, is_rule=False)]
    _, told, _ = examining._named("loss", MODES["hw"], [], cures, ["kill"])
    assert told == "loss, cured by log.flush.interval.messages=1"


@pytest.mark.parametrize(("number", "shrunk"), [(1, True), (3, True), (4, True), (5, False), (7, False), (64, True)])
def test_the_first_and_each_power_of_two_are_shrunk(number: int, shrunk: bool) -> None:
    assert examining.is_shrunk(number) == shrunk


def test_losses_are_one_kind_of_failure() -> None:
    assert {examining.group(kind) for kind in ("committed-loss", "exposed-loss")} == {"loss"}
    assert examining.group("divergence") == "divergence"


FAULTS = ("reassignment", "reassignment", "power-loss")


def test_two_known_findings_in_one_run_are_recognised_behind_each_other() -> None:
    together, name = examining._pair(findings.known(), masked(), STUCK, FAULTS, Trials())
    assert name == "elr-outside-assignment and reassignment-stuck"
    assert len(together) == 2


def test_a_pair_of_which_one_finding_is_hidden_is_new_and_named_by_both_repairs() -> None:
    listed = findings.known(["reassignment-stuck"])
    together, name = examining._pair(listed, masked(), STUCK, FAULTS, Trials())
    assert not name
    key, told, known_as = examining._named("no-progress", MODES["elr-4.3"], [], [], FAULTS, together)
    assert (key, known_as) == (f"no-progress: by {together[0]} with {together[1]}", "")
    assert told == f"no-progress, cured only by {together[0]} with {together[1]}"
    assert not {repair.name for repair in together} & set(examining.WIDE)
