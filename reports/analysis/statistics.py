"""Intervals and tests for counts of runs.

scipy is imported only where it is needed: its import takes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scenarios import memory
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.analysis.frame import Array

CONFIDENCE: Final = 0.95
"""Confidence level of all intervals."""


def interval(k: int, n: int) -> tuple[float, float]:
    """The 95 % interval for a rate: Wilson's, and for k = 0 from 0 to the exact (Clopper-Pearson) upper bound.

    Args:
        k: number of positive runs.
        n: number of runs; if 0, the interval is 0 to 1.

    Returns:
        Lower and upper bound, within 0 and 1.
    """
    if n == 0:
        return 0.0, 1.0
    return wilson(k, n) if k else (0.0, upper_bound(n))


def wilson(k: int, n: int) -> tuple[float, float]:
    """Wilson's score interval for k of n, n > 0."""
    found = _binomial_test(k, n).proportion_ci(CONFIDENCE, method="wilson")
    return float(found.low), float(found.high)


def upper_bound(n: int) -> float:
    """The upper end of the exact (Clopper-Pearson, two-sided) interval for 0 of n, n > 0."""
    return float(_binomial_test(0, n).proportion_ci(CONFIDENCE, method="exact").high)


def weighted_sum(parts: Sequence[tuple[float, int]]) -> tuple[float, float, float]:
    """A weighted sum of independent counts, with its 95 % interval: the gamma interval of Fay and Feuer (1997).

    With one part, it is Garwood's exact interval for a Poisson count. Binomial counts vary less, so it covers them too.

    Args:
        parts: weight and count of each.

    Returns:
        The sum, lower and upper bound.
    """
    gamma = _scipy_stats().gamma
    total = sum(weight * count for weight, count in parts)
    variance = sum(weight * weight * count for weight, count in parts)
    tail = (1 - CONFIDENCE) / 2
    low = float(gamma.ppf(tail, total**2 / variance, scale=variance / total)) if total else 0.0
    most = max(weight for weight, _ in parts)
    above, spread = total + most, variance + most**2
    return total, low, float(gamma.isf(tail, above**2 / spread, scale=spread / above))


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact two-sided McNemar test on paired seeds.

    Args:
        only_a: seeds that are positive in the first mode only.
        only_b: seeds that are positive in the second mode only.

    Returns:
        Probability of a split at least as uneven if the modes did not differ; 1 when no seed differs.
    """
    if only_a + only_b == 0:
        return 1.0
    return float(_binomial_test(only_a, only_a + only_b).pvalue)


def mean_difference(differences: Sequence[int] | Array) -> tuple[float, float | None, float | None]:
    """The mean of paired differences and its 95 % interval (Student's t).

    Returns:
        Mean, lower and upper bound; a single pair has no interval.
    """
    import numpy as np

    numbers = np.asarray(differences)
    mean = int(numbers.sum()) / len(numbers)
    if len(numbers) < 2:
        return mean, None, None
    if numbers.min() == numbers.max():  # scipy would warn about cancellation.
        return mean, mean, mean
    found = _scipy_stats().ttest_1samp(numbers, 0).confidence_interval(CONFIDENCE)
    return mean, float(found.low), float(found.high)


def _binomial_test(k: int, n: int) -> Any:
    return _scipy_stats().binomtest(k, n, 0.5)


def _scipy_stats() -> Any:
    try:
        import scipy.stats
    except ImportError as error:
        if memory.is_lacking(error):
            raise
        raise InputError("comparing needs scipy: pip install scipy") from error
    return scipy.stats
