from __future__ import annotations

import re

from scenarios.zoo.hunt import NOT_FOUND, Hunt, Summary, ranges
from sim.protocol.mutants import MUTANTS
from tests.places import ROOT


def hunted(tried: int, seed: int = NOT_FOUND) -> Hunt:
    return Hunt("join-below-hw", "elr-chaos", 0, tried, tried / 100, tried, 3, 0, seed, ("committed-loss",))


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
