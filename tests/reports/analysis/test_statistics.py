from __future__ import annotations

import sys

import pytest
from scipy.stats import binomtest

from reports.analysis import statistics
from sim.errors import InputError


@pytest.mark.parametrize(("k", "n"), [(1, 1), (1, 10), (5, 10), (10, 10), (421, 100_000)])
def test_wilson_agrees_with_scipy(k: int, n: int) -> None:
    scipys = binomtest(k, n).proportion_ci(0.95, "wilson")
    assert statistics.interval(k, n) == pytest.approx((scipys.low, scipys.high), rel=1e-12)


def test_no_hit_in_a_million_runs_bounds_the_rate() -> None:
    low, high = statistics.interval(0, 1_000_000)
    assert low == 0.0
    assert high == pytest.approx(3.69e-6, rel=1e-3)


def test_no_run_tells_nothing() -> None:
    assert statistics.interval(0, 0) == (0.0, 1.0)


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


def test_missing_scipy_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(InputError, match="pip install scipy"):
        statistics.upper_bound(10)
