from __future__ import annotations

from itertools import islice
from typing import Final

from scenarios.format.catalogue import load
from sim.protocol.modes import mode
from tests.verification.hunt.marks import CASES, RANGES, Found, hunt, table

UNCLEAN: Final = "unclean registration ignored"


def test_every_case_can_be_run() -> None:
    assert len({case.about for case in CASES}) == len(CASES)
    for case in CASES:
        assert all(load(name).drawn for name in case.bug.scenarios)
        assert mode(case.bug.mode).override(case.broken) != mode(case.bug.mode).override(case.bug.rules)


def test_a_median_counts_missed_ranges_as_the_longest() -> None:
    assert Found([1.0, None, 3.0, 2.0, 9.0]).median == 3.0
    assert Found([1.0, None, 3.0, None, None]).median is None
    assert [Found([None] * missed).is_decided for missed in range(RANGES)] == [False, False, False, True, True]


def test_cases_are_found_and_shown() -> None:
    case = next(case for case in CASES if case.about == UNCLEAN)
    seconds, runs, command = hunt([case], islice(iter(range(60_000_000, 61_000_000)), 100), 60.0)[UNCLEAN]
    assert seconds is not None
    assert 0 < seconds < 60
    assert 0 < runs <= 100
    assert command.startswith("highwater run elr-chaos --mode elr-repaired --seed 6")
    assert command.endswith(" --rule mutant=unclean-registration-taken-for-clean")
    shown = table([(case, Found([seconds] * 5, runs))], 60)
    assert (
        f"| {UNCLEAN} | `elr-chaos`, `elr-repaired` with `unclean-registration-taken-for-clean` | 33 | 0.5 |" in shown
    )


def test_a_range_that_ends_before_the_mark_leaves_it_open() -> None:
    case = next(case for case in CASES if case.about == UNCLEAN)
    assert "| 0 of 3 | 0 | open after 0.1 s |" in table([(case, Found([None] * 3))], 0.1)
    assert "| 0 of 3 | 0 | **no** |" in table([(case, Found([None] * 3))], 60)
