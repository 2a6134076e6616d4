from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from scenarios.format.blow import parse
from scenarios.single.run import run_row
from scenarios.zoo.hunt import NOT_FOUND, Hunt, Summary, caused, hunt, mutant, ranges, repaired, replay, same_plan
from sim.protocol.mutants import MUTANTS
from tests.places import ROOT


def hunted(tried: int, seed: int = NOT_FOUND) -> Hunt:
    target = mutant("join-below-hw")
    return Hunt(target, 0, tried, tried / 100, tried, 3, 0, seed, ("committed-loss",))


def test_ranges_are_disjoint_and_equally_long() -> None:
    assert ranges(range(10, 21), 3) == [range(10, 13), range(13, 16), range(16, 19)]


def test_ranges_without_a_find_count_as_the_longest() -> None:
    summary = Summary([hunted(500), hunted(40, 39), hunted(90, 89)])
    assert (summary.found, summary.seeds, summary.seconds) == (2, 90, 0.9)
    assert summary.within_budget is True
    assert Summary([hunted(500), hunted(40, 39)]).seeds is None


def test_a_budget_is_missed_only_when_it_is_used_up() -> None:
    assert Summary([hunted(500)]).within_budget is None
    assert Summary([hunted(10_000)]).within_budget is False
    assert Summary([hunted(10_001, 10_000)]).within_budget is False


def test_counts_are_those_of_all_ranges() -> None:
    summary = Summary([hunted(500), hunted(40, 39)])
    assert (summary.runs, summary.took, summary.differed, summary.errors) == (540, 540, 6, 0)
    assert summary.first_find == hunted(40, 39)


def test_the_page_has_a_row_for_every_mutant() -> None:
    page = (ROOT / "scenarios" / "zoo" / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE)) == sorted(MUTANTS)


EPOCH_START: Final = mutant("join-below-epoch-start", "windows")
FINDS: Final = range(30_000_006, 30_000_010)


def test_a_blow_at_the_difference_finds_what_the_plain_run_of_the_seed_does_not() -> None:
    assert not hunt(EPOCH_START, FINDS).found
    found = hunt(EPOCH_START, FINDS, at_difference=8)
    assert found.found
    assert found.continued > 0
    assert found.blow.startswith("difference:")
    assert replay(found).endswith(f"--seed {found.seed} --rule mutant=join-below-epoch-start --blow {found.blow}")


def test_a_find_is_repeated_from_its_blow_and_its_plan_is_clean_without_the_mutant() -> None:
    found = hunt(EPOCH_START, FINDS, at_difference=8)
    scenario, (wrong, right) = EPOCH_START.load(), EPOCH_START.modes
    row = run_row(replace(scenario, blows=parse(found.blow)), wrong, found.seed)
    assert set(found.kinds) <= set(row["violations_inside"].split(","))
    recorded = same_plan(scenario, wrong, row)
    assert not recorded.blows
    assert run_row(recorded, wrong, found.seed)["digest"] == row["digest"]
    assert set(found.kinds).isdisjoint(run_row(recorded, right, found.seed)["violations"].split(","))
    assert caused(scenario, row, wrong, wrong) == ()


def test_a_mutant_that_decides_nothing_otherwise_finds_nothing() -> None:
    found = hunt(mutant("fetch-response-at-another-offset"), range(20), at_difference=5)
    assert (found.differed, found.continued, found.found) == (0, 0, False)


def test_a_repair_is_hunted_where_the_repaired_run_differs() -> None:
    target = repaired("kip279", "isr_join", "leader-epoch-start", "chaos", {"default.replication.factor": 3})
    found = hunt(target, range(31_000_610, 31_000_616), at_difference=8)
    assert found.took == found.tried
    assert 0 < found.differed < found.tried
    assert found.continued >= 1
    assert target.modes[0].rules.isr_join != target.modes[1].rules.isr_join == "leader-epoch-start"
    alike = repaired("kip320", "isr_join", "leader-epoch-start", "chaos", {})
    assert hunt(alike, range(3), at_difference=8).continued == 0
