"""Intervals and tests for counts of runs.

What has a closed form takes no library: a sweep counts intervals while it runs, and the import of `scipy.special` takes
half a second, that of `scipy.stats` twice as long.
"""

from __future__ import annotations

from math import expm1, log, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

from scenarios import memory
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.analysis.frame import Array

CONFIDENCE: Final = 0.95
"""Confidence level of all intervals."""
_TAIL: Final = (1 - CONFIDENCE) / 2
_Z: Final = NormalDist().inv_cdf(1 - _TAIL)


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
    centre = k + _Z * _Z / 2
    half = _Z * sqrt(k * (n - k) / n + _Z * _Z / 4)
    low, high = (centre - half) / (n + _Z * _Z), (centre + half) / (n + _Z * _Z)
    return low if k else 0.0, high if k < n else 1.0


def upper_bound(n: int) -> float:
    """The upper end of the exact (Clopper-Pearson, two-sided) interval for 0 of n, n > 0."""
    return -expm1(log(_TAIL) / n)


def exact(k: int, n: int) -> tuple[float, float]:
    """The exact (Clopper-Pearson) interval for k of n, n > 0."""
    quantile = _scipy_special().betaincinv
    low = float(quantile(k, n - k + 1, _TAIL)) if k else 0.0
    return low, float(quantile(k + 1, n - k, 1 - _TAIL)) if k < n else 1.0


def weighted_shares(parts: Sequence[tuple[float, int, int]]) -> tuple[float, float, float]:
    """A weighted sum of independent shares, with its 95 % interval from those of the parts (`exact`).

    The distances of the parts' ends from their shares are added as the square root of the sum of squares, separately
    below and above (MOVER: Zou and Donner 2008). So one part has the interval `exact`, and no end of the sum is below
    that of a part.

    Args:
        parts: weight, k and n of each; n > 0.

    Returns:
        The sum, lower and upper bound.
    """
    shares = [(weight * k / n, weight, exact(k, n)) for weight, k, n in parts]
    below = sqrt(sum((share - weight * low) ** 2 for share, weight, (low, _) in shares))
    above = sqrt(sum((weight * high - share) ** 2 for share, weight, (_, high) in shares))
    total = sum(share for share, _, _ in shares)
    return total, max(total - below, 0.0), total + above


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact two-sided McNemar test on paired seeds.

    Args:
        only_a: seeds that are positive in the first mode only.
        only_b: seeds that are positive in the second mode only.

    Returns:
        Probability of a split at least as uneven if the modes did not differ; 1 when no seed differs.
    """
    if only_a == only_b:
        return 1.0
    return min(1.0, 2 * float(_scipy_special().bdtr(min(only_a, only_b), only_a + only_b, 0.5)))


def mean_difference(differences: Sequence[int] | Array) -> tuple[float, float | None, float | None]:
    """The mean of paired differences and its 95 % interval (Student's t).

    Returns:
        Mean, lower and upper bound; a single pair has no interval.
    """
    import numpy as np

    numbers = np.asarray(differences)
    count = len(numbers)
    mean = int(numbers.sum()) / count
    if count < 2:
        return mean, None, None
    half = float(_scipy_special().stdtrit(count - 1, 1 - _TAIL)) * float(numbers.std(ddof=1)) / sqrt(count)
    return mean, mean - half, mean + half


def _scipy_special() -> Any:
    try:
        import scipy.special
    except ImportError as error:
        if memory.is_lacking(error):
            raise
        raise InputError("comparing needs scipy: pip install scipy") from error
    return scipy.special
