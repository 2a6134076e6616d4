from __future__ import annotations

from collections import Counter
from math import exp
from random import Random

import pytest

from highwater.lab.hunt.estimate import discovery, poisson_interval


@pytest.mark.parametrize(
    ("count", "low", "high"), [(0, 0.0, 3.689), (1, 0.025, 5.572), (10, 4.795, 18.39), (50, 37.11, 65.92)]
)
def test_the_exact_interval_is_that_of_tables(count: int, low: float, high: float) -> None:
    assert poisson_interval(count) == pytest.approx((low, high), rel=2e-3, abs=1e-3)


def test_no_time_tells_nothing() -> None:
    assert discovery([1, 1], 0.0) is None


def test_causes_seen_often_leave_only_the_bound() -> None:
    found = discovery([40, 7, 3], 2.0)
    assert found is not None
    assert (found.once, found.probability, found.low) == (0, 0.0, 0.0)
    assert found.high == pytest.approx(1 - exp(-3.689 / 2), rel=1e-3)


def test_causes_seen_once_are_the_rate() -> None:
    found = discovery([1, 1, 2, 9], 4.0)
    assert found is not None
    assert found.probability == pytest.approx(1 - exp(-0.5))
    assert found.low < found.probability < found.high


def test_the_interval_covers_what_is_left_to_find() -> None:
    rng = Random(7)
    shares = [0.5, 0.2, 0.1, *[0.2 / 40] * 40]
    size, covered, hunts = 60, 0, 400
    for _ in range(hunts):
        seen = Counter(rng.choices(range(len(shares)), shares, k=size))
        left = sum(share for place, share in enumerate(shares) if place not in seen)
        found = discovery(seen.values(), size / 1.0)  # An hour for each failure.
        assert found is not None
        covered += found.low <= 1 - exp(-left) <= found.high
    assert covered >= 0.93 * hunts
