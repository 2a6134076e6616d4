from __future__ import annotations

import pytest

from highwater.lab.explore.modes.subject import subject_of
from highwater.lab.zoo.bugs import bugs
from highwater.lab.zoo.targets import MARKS, measured, names, target
from highwater.lab.zoo.walks import all_walks
from scenarios.format.catalogue import load
from scenarios.format.findings import recognised
from sim.errors import InputError
from sim.protocol.mutants import MUTANTS
from tests.places import ROOT
from tests.plain import needs_sources


def test_every_mutant_and_bug_has_a_name_of_its_own() -> None:
    assert names() == [*MUTANTS, *bugs()]
    assert not MUTANTS.keys() & bugs().keys()
    assert {*MARKS, *all_walks()} <= set(names())
    assert set(recognised()) <= set(bugs())


def test_every_mutant_and_bug_was_measured() -> None:
    found = measured()
    assert sorted([*found["hunts"], *found["harmless"]]) == sorted(names())
    assert found.keys() - {"about"} == found["about"].keys() - {"measured"}
    assert all(0 <= hunt["found"][0] <= hunt["found"][1] for hunt in found["hunts"].values())


def test_the_page_counts_what_was_found() -> None:
    """By any of the hunts that keep marks, with short or longer ranges."""
    measured_of = measured()
    hunted = [measured_of["hunts"], measured_of["longer"]]
    found = {name for table in hunted for name, hunt in table.items() if hunt["found"][0]}
    page = (ROOT / "highwater" / "lab" / "zoo" / "README.md").read_text(encoding="utf-8")
    assert f"{len(found & {*MUTANTS})} of {len(MUTANTS)} mutants are found" in page
    assert f"{len(found & {*bugs()})} of {len(bugs())} bugs are found" in page


@pytest.mark.parametrize("name", names())
def test_a_target_is_hunted_in_a_random_scenario_against_another_mode(name: str) -> None:
    one = target(name)
    assert one.runs.load().drawn
    wrong, right = one.runs.modes
    assert wrong.rules != right.rules
    assert one.sentence.endswith(".")
    assert one.source
    assert one.budget in (10_000, 1_000_000)


@pytest.mark.parametrize("name", bugs())
def test_each_rule_value_that_tells_a_bug_apart_changes_its_mode(name: str) -> None:
    runs = target(name).runs
    base = runs.modes[0]
    for rule, value in (*runs.also_by, *runs.not_by):
        assert base.override({rule: value}).rules != base.rules


def test_a_finding_is_hunted_with_its_repair_and_called_as_its_scenario() -> None:
    one = target("reassignment-back")
    assert one.runs.right == (recognised()["reassignment-back"].repair,)
    assert one.sentence == f"{load('reassignment-back').title}."
    assert one.runs.lossy_ends == 0


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown mutant or bug 'reassignment-bak'; did you mean 'reassignment-back'"):
        target("reassignment-bak")


@needs_sources
@pytest.mark.parametrize("name", all_walks())
def test_bounds_of_walks_fit_the_mode_and_allow_less_without_the_bug(name: str) -> None:
    walks = all_walks()[name]
    assert walks.wrong
    assert walks.subject().first() == walks.subject(repaired=True).first()
    command = walks.command(7, 3)
    assert command.startswith(f"highwater explore --mode {walks.mode} ")
    assert command.endswith(" --walks 7 --seed 3")
    assert subject_of(walks.mode, dict(walks.wrong), dict(walks.bounds)).decide.rules.mutant in ("none", name)
