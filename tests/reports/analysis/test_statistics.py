from __future__ import annotations

import random
import sys
from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest

from reports.analysis import statistics
from sim.errors import InputError


@pytest.mark.parametrize(("k", "n"), [(0, 7), (1, 1), (1, 10), (5, 10), (10, 10), (421, 100_000), (3, 10**7)])
def test_wilsons_interval_is_that_of_its_formula(k: int, n: int) -> None:
    z = NormalDist().inv_cdf(0.975)
    centre = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * sqrt(k * (n - k) / n + z * z / 4)
    low, high = statistics.wilson(k, n)
    assert low == pytest.approx(centre - half, rel=1e-12, abs=1e-15)
    assert high == pytest.approx(centre + half, rel=1e-12)


def test_no_hit_in_a_million_runs_bounds_the_rate() -> None:
    low, high = statistics.interval(0, 1_000_000)
    assert low == 0.0
    assert high == pytest.approx(3.69e-6, rel=1e-3)


def test_no_run_tells_nothing() -> None:
    assert statistics.interval(0, 0) == (0.0, 1.0)


def test_intervals_and_tests_are_scipys() -> None:
    from scipy import stats  # takes a second, which each process of the tests would spend

    for n in (1, 2, 3, 10, 57, 1_000, 123_457):
        for k in {0, 1, 2, n // 3, n // 2, n - 1, n} & set(range(n + 1)):
            test = stats.binomtest(k, n, 0.5)
            assert statistics.wilson(k, n) == pytest.approx(tuple(test.proportion_ci(method="wilson")), rel=1e-9)
            assert statistics.exact(k, n) == pytest.approx(tuple(test.proportion_ci(method="exact")), rel=1e-9)
            assert statistics.mcnemar(k, n - k) == pytest.approx(float(test.pvalue), rel=1e-9)
        assert statistics.upper_bound(n) == pytest.approx(stats.binomtest(0, n).proportion_ci().high, rel=1e-12)


@pytest.mark.parametrize("n", [1, 7, 1000])
def test_intervals_stay_within_0_and_1(n: int) -> None:
    low, high = statistics.interval(n, n)
    assert 0 < low < high == 1.0
    assert statistics.wilson(0, n)[0] == 0.0


@pytest.mark.parametrize(("only_a", "only_b", "p"), [(0, 0, 1.0), (5, 5, 1.0), (10, 0, 2 / 2**10), (3, 1, 10 / 16)])
def test_mcnemar_is_the_exact_binomial_test(only_a: int, only_b: int, p: float) -> None:
    assert statistics.mcnemar(only_a, only_b) == pytest.approx(p)
    assert statistics.mcnemar(only_b, only_a) == pytest.approx(p)


def test_a_mean_difference_has_students_interval() -> None:
    mean, low, high = statistics.mean_difference([1, 2, 3, 4, 10])
    assert mean == 4
    assert low == pytest.approx(4 - 2.776445 * 1.581139, rel=1e-6)  # 12.5 ** 0.5 / 5 ** 0.5
    assert high == pytest.approx(4 + 2.776445 * 1.581139, rel=1e-6)
    assert statistics.mean_difference([7] * 5) == (7, 7, 7)
    assert statistics.mean_difference([3]) == (3, None, None)


@pytest.mark.parametrize("size", [2, 3, 50, 5_000])
@pytest.mark.parametrize("largest", [1, 100, 10**7])
def test_the_interval_of_a_mean_difference_is_that_of_its_formula(size: int, largest: int) -> None:
    from scipy.stats import t  # takes a second, which each process of the tests would spend

    numbers = random.Random(size * largest)
    differences = [0, 1] + [numbers.choice((0, numbers.randint(-largest, largest))) for _ in range(size - 2)]
    # Whole numbers until the end.
    scatter = size * sum(difference * difference for difference in differences) - sum(differences) ** 2
    half = float(t.ppf(0.975, size - 1)) * sqrt(scatter / (size - 1)) / size
    mean, low, high = statistics.mean_difference(differences)
    assert low is not None
    assert high is not None
    scale = max(abs(mean - half), abs(mean + half))
    assert (low, high) == pytest.approx((mean - half, mean + half), abs=1e-12 * scale)


def test_missing_scipy_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(InputError, match="pip install scipy"):
        statistics.exact(1, 10)


def test_the_interval_of_one_share_is_exact() -> None:
    assert statistics.weighted_shares([(2.0, 10, 100)]) == pytest.approx((0.2, 2 * 0.0490047, 2 * 0.1762226), rel=1e-5)
    assert statistics.weighted_shares([(2.0, 0, 100)]) == pytest.approx((0, 0, 2 * statistics.upper_bound(100)))
    assert statistics.exact(100, 100) == pytest.approx((1 - statistics.upper_bound(100), 1))


@pytest.mark.parametrize("parts", [[(1.0, 100, 1000), (100.0, 1, 100_000)], [(5.0, 0, 2), (1.0, 9, 9), (9.0, 3, 99)]])
def test_the_ends_of_a_sum_are_not_below_those_of_a_part(parts: list[tuple[float, int, int]]) -> None:
    _, low, high = statistics.weighted_shares(parts)
    for weight, k, n in parts:
        of_part = statistics.exact(k, n)
        assert weight * of_part[0] <= low
        assert weight * of_part[1] <= high


@pytest.mark.parametrize("shares", [(0.001, 0.01, 0.3), (0.02, 0.9, 0.5), (0.0, 0.005, 1.0), (0.1, 0.1, 0.1)])
def test_weighted_sums_are_covered(shares: tuple[float, ...]) -> None:
    weights, runs = (100.0, 1.0, 0.04), (500, 100, 20)
    true = sum(weight * share for weight, share in zip(weights, shares, strict=True))
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(100):
        counts = [int(generator.binomial(number, share)) for number, share in zip(runs, shares, strict=True)]
        _, low, high = statistics.weighted_shares(list(zip(weights, counts, runs, strict=True)))
        covered += low <= true <= high
    assert covered >= 92
