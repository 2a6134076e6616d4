from __future__ import annotations

from itertools import count

import pytest

from highwater.lab.zoo.hunt import NOT_FOUND, hunt_walking, replay
from highwater.lab.zoo.targets import target
from highwater.lab.zoo.walks import Walks, all_walks
from tests.plain import needs_sources

pytestmark = needs_sources
QUICK = ("hw-ignores-min-isr", "hw-truncation", "kip101-divergence", "log-start-above-hw", "leo-of-skipped-epoch")


@pytest.mark.world
@pytest.mark.parametrize("name", QUICK)
def test_walks_find_it_and_nothing_without_it(name: str) -> None:
    found = all_walks()[name].hunt(1000, 100)
    assert found.stopped
    assert found.paths
    repaired = all_walks()[name].hunt(found.walks + 20, 100, repaired=True)
    assert (repaired.stopped, repaired.walks) == (False, found.walks + 20)


def test_what_the_cluster_shows_without_the_bug_as_well_is_no_find() -> None:
    bounds = (("losses", 0), ("fences", 0), ("isr", 3), ("elections", 2))
    of_another = Walks("elr-4.3", (("mutant", "hw-kept-at-full-truncation"),), bounds)
    found = of_another.hunt(2000, 100)
    assert (found.stopped, found.paths) == (False, {})
    assert found.walks < 2000


def test_a_hunt_counts_walks_as_seeds_and_names_the_command_that_repeats_it() -> None:
    one = target("hw-ignores-min-isr")
    found = hunt_walking(one, range(100, 1100))
    assert (found.walked, found.first, found.seed) == (True, 100, 100)
    assert found.kinds == ("candidate-incomplete",)
    again = hunt_walking(one, range(100, 100 + found.tried))
    assert (again.tried, again.kinds) == (found.tried, found.kinds)
    missed = hunt_walking(one, range(100, 100 + found.tried - 1))
    assert (missed.seed, missed.tried, missed.kinds) == (NOT_FOUND, found.tried - 1, ())
    bounds = "--mode elr-repaired --rule mutant=hw-ignores-min-isr --losses 0 --strict"
    assert replay(found) == f"highwater explore {bounds} --walks {found.tried} --seed 100"


def test_a_hunt_has_its_cpu_time_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others run for an hour whenever the clock is read."""
    hours = count(0, 3600)
    monkeypatch.setattr("time.monotonic", lambda: float(next(hours)))
    assert all_walks()["hw-ignores-min-isr"].hunt(1000, 100, seconds=20.0).stopped
    assert all_walks()["hw-ignores-min-isr"].hunt(1000, 100, seconds=0.0).walks == 0
