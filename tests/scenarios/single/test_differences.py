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
    assert [one.at_us for one in seen.differences] == sorted(one.at_us for one in seen.differences)
    broken = run(WINDOWS, mutated(name), DIFFERS, trace=True)
    right = run(WINDOWS, REPAIRED, DIFFERS, trace=True)
    assert until(broken.trace, first.at_us) == until(right.trace, first.at_us) != []
    assert row["digest"] == broken.row["digest"]


def test_a_run_that_is_watched_has_the_digest_of_one_that_is_not() -> None:
    broken = mutated("join-below-epoch-start")
    row, seen = run_mutated(WINDOWS, broken, DIFFERS)
    assert seen.differences
    assert row == run_row(WINDOWS, broken, DIFFERS)
    compared, _ = run_compared(WINDOWS, (broken, REPAIRED), DIFFERS)
    assert compared == row


def test_a_difference_names_the_broker_that_lacks_records() -> None:
    _, seen = run_mutated(WINDOWS, mutated("join-below-epoch-start"), DIFFERS)
    assert all(one.matters and len(one.brokers) == 1 for one in seen.differences)


def test_a_mutant_that_is_off_notes_nothing() -> None:
    _, seen = run_mutated(WINDOWS, REPAIRED, DIFFERS)
    assert "join-below-epoch-start" in seen.differed
    assert not seen.differences


def test_two_modes_differ_from_the_first_step_that_one_of_them_lacks() -> None:
    modes = mode("kip279"), mode("kip279").override({"isr_join": "leader-epoch-start"})
    places = {seed: run_compared(CHAOS, modes, seed)[1] for seed in range(31_000_600, 31_000_616)}
    ((seed, (difference,)),) = [(seed, found) for seed, found in places.items() if found]
    one, two = (run(CHAOS, other, seed, trace=True).trace or [] for other in modes)
    assert until(one, difference.at_us) == until(two, difference.at_us) != []
    now = difference.at_us + 1
    assert until(one, now) != until(two, now)
    assert difference.brokers
    assert run_compared(CHAOS, (modes[0], modes[0]), seed)[1] == ()


def test_each_run_at_a_difference_is_named_by_its_blows() -> None:
    broken = mutated("join-below-epoch-start")
    _, seen = run_mutated(WINDOWS, broken, DIFFERS)
    rows = list(run_at_differences(WINDOWS, broken, DIFFERS, seen.differences, 3))
    assert [row["blow"] for row in rows] == [
        row["blow"] for row in run_at_differences(WINDOWS, broken, DIFFERS, seen.differences, 3)
    ]
    assert len({row["blow"].partition("+")[0] for row in rows}) == 3
    times = {one.at_us for one in seen.differences}
    assert {int(row["blow"].partition("@")[2].partition(".")[0]) for row in rows} <= times
    assert not any(row["error"] for row in rows)
    assert list(run_at_differences(WINDOWS, broken, DIFFERS, [], 3)) == []
