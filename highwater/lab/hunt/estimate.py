"""How likely something new is: the discovery probability of random runs.

Causes are the species, failures the individuals, and a hunt is a sample: the probability that the next individual is of
a species not yet seen is estimated by the share of species that were seen once (Good, Biometrika 40, 1953; Robbins,
Annals of Mathematical Statistics 39, 1968; for software tests: Boehme, STADS: Software Testing as Species Discovery,
ACM TOSEM 27, 2018). Per CPU hour that is a rate: species seen once, divided by the hours.

Its variance is estimated by f1 + 2 f2, f2 being the species that were seen twice (Esty, Annals of Statistics 11, 1983).
Below ten species seen once, the normal interval is too narrow, so the exact one of a Poisson count (Garwood, 1936)
bounds it from outside. A weighted hunt is no simple sample: arms that find more are run more. So the figure is one for
a hunt that goes on as this one did.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SOURCE: Final = (
    "Good (1953) and Robbins (1968), as applied to tests by Böhme (STADS, 2018): causes seen once, per CPU hour; "
    "interval of Esty (1983), not narrower than the exact Poisson interval"
)
_Z: Final = 1.959964
"""Two-sided 95 %."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """How many new causes the next CPU hour finds, with the bounds of the 95 % interval; `once` and `twice` are the
    causes that were seen once, and twice.
    """

    once: int
    twice: int
    per_hour: float
    low_per_hour: float
    high_per_hour: float

    @property
    def probability(self) -> float:
        """The probability of at least one in the next CPU hour."""
        return 1 - exp(-self.per_hour)

    @property
    def low(self) -> float:
        """The lower bound of the probability."""
        return 1 - exp(-self.low_per_hour)

    @property
    def high(self) -> float:
        """The upper bound of the probability."""
        return 1 - exp(-self.high_per_hour)


def discovery(counts: Iterable[int], cpu_hours: float) -> Discovery | None:
    """The estimate from how often each cause was seen; None if there was no time at all."""
    if cpu_hours <= 0:
        return None
    there = list(counts)
    once, twice = there.count(1), there.count(2)
    half = _Z * sqrt(once + 2 * twice)
    exact = poisson_interval(once)
    low, high = max(0.0, min(once - half, exact[0])), max(once + half, exact[1])
    return Discovery(once, twice, *(count / cpu_hours for count in (once, low, high)))


def poisson_interval(count: int) -> tuple[float, float]:
    """The exact 95 % interval of a Poisson mean (Garwood, 1936), by bisection: no library is needed."""
    low = 0.0 if count == 0 else _mean_with(lambda mean: 1 - _at_most(count - 1, mean), count)
    return low, _mean_with(lambda mean: 1 - _at_most(count, mean), count, tail=0.975)


def _at_most(count: int, mean: float) -> float:
    """Probability of at most so many events."""
    term = exp(-mean)
    total = term
    for number in range(1, count + 1):
        term *= mean / number
        total += term
    return total


def _mean_with(probability: Callable[[float], float], count: int, tail: float = 0.025) -> float:
    """The mean at which an increasing probability reaches `tail`."""
    low, high = 0.0, count + 10 * sqrt(count + 1) + 10
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if probability(middle) > tail else (middle, high)
    return (low + high) / 2
