from __future__ import annotations

from itertools import takewhile
from typing import Any, Final

import pytest

from scenarios.format.catalogue import load
from scenarios.single.run import run, run_at_differences, run_compared, run_mutated, run_row
from sim.protocol.modes import mode

WINDOWS: Final = load("windows")
REPAIRED: Final = mode("elr-repaired")
DIFFERS: Final = 30_000_008
"""A seed of `windows` in which a follower is about to join below the start of the leader epoch."""
CHAOS: Final = load("chaos").with_settings({"default.replication.factor": 3})


def mutated(name: str) -> Any:
    return REPAIRED.override({"mutant": name})


def until(steps: list[Any] | None, at_us: int) -> list[Any]:
    return list(takewhile(lambda step: step["t"] < at_us, steps or []))


@pytest.mark.parametrize(
    "name", ["join-below-epoch-start", "leo-from-earlier-leadership", "hw-without-joining-members"]
)
def test_up_to_its_first_difference_a_mutant_changes_nothing(name: str) -> None:
    row, seen = run_mutated(WINDOWS, mutated(name), DIFFERS)
    first = seen.differences[0]
    assert name in seen.differed
    assert [difference.at_us for difference in seen.differences] == sorted(
        difference.at_us for difference in seen.differences
    )
    broken = run(WINDOWS, mutated(name), DIFFERS, trace=True)
    right = run(WINDOWS, REPAIRED, DIFFERS, trace=True)
    assert until(broken.trace, first.at_us) == until(right.trace, first.at_us) != []
    assert row["digest"] == broken.row["digest"]


def test_a_run_that_is_watched_has_the_digest_of_one_that_is_not() -> None:
    broken = mutated("join-below-epoch-start")
    row, seen = run_mutated(WINDOWS, broken, DIFFERS)
    assert seen.differences
    assert row == run_row(WINDOWS, broken, DIFFERS)
    compared, _ = run_compared(WINDOWS, REPAIRED, mode("elr-4.3"), DIFFERS)
    assert compared == run_row(WINDOWS, REPAIRED, DIFFERS)


def test_a_difference_names_the_broker_that_lacks_records() -> None:
    _, seen = run_mutated(WINDOWS, mutated("join-below-epoch-start"), DIFFERS)
    assert all(difference.matters and len(difference.brokers) == 1 for difference in seen.differences)


def test_a_mutant_that_is_off_notes_nothing() -> None:
    _, seen = run_mutated(WINDOWS, REPAIRED, DIFFERS)
    assert "join-below-epoch-start" in seen.differed
    assert not seen.differences


def test_two_modes_are_equal_up_to_the_first_query_of_a_rule_that_they_answer_otherwise() -> None:
    wrong, right = mode("kip279"), mode("kip279").override({"isr_join": "leader-epoch-start"})
    seed = 31_000_614
    _, found = run_compared(CHAOS, wrong, right, seed)
    one, two = (run(CHAOS, other, seed, trace=True).trace or [] for other in (wrong, right))
    assert until(one, found[0].at_us) == until(two, found[0].at_us) != []
    assert one != two
    assert all(len(difference.brokers) == 1 for difference in found)
    assert run_compared(CHAOS, wrong, wrong, seed)[1] == []
    alike = next(other for other in range(20) if not run_compared(CHAOS, wrong, right, other)[1])
    assert run_row(CHAOS, wrong, alike)["digest"] == run_row(CHAOS, right, alike)["digest"]


def test_each_run_at_a_difference_is_named_by_its_blows() -> None:
    broken = mutated("join-below-epoch-start")
    _, seen = run_mutated(WINDOWS, broken, DIFFERS)
    rows = list(run_at_differences(WINDOWS, broken, DIFFERS, seen.differences, 3))
    assert [row["blow"] for row in rows] == [
        row["blow"] for row in run_at_differences(WINDOWS, broken, DIFFERS, seen.differences, 3)
    ]
    assert len({row["blow"].partition("+")[0] for row in rows}) == 3
    times = {difference.at_us for difference in seen.differences}
    assert {int(row["blow"].partition("@")[2].partition(".")[0]) for row in rows} <= times
    assert not any(row["error"] for row in rows)
    assert list(run_at_differences(WINDOWS, broken, DIFFERS, [], 3)) == []
