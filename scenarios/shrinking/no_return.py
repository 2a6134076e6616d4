"""The point of no return: the time after which the violation can hardly be avoided.

A prefix of the run is continued many times, each time with other latencies and without later faults; batches are sent
as before. The share of continuations with the same violation measures how much was decided at the prefix's end. The
point of no return is where this share rises most.

For the next author. The effort is limited in events, not seconds, so the curve is the same on every machine. A few
pilots at landmarks find the steepest rise, bisection narrows it until no step lies between its sides, and only a few
prefixes get all continuations. Shares between landmarks are unknown, so a rise and fall between two of them is missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import OutOfTimeError, Symptom, Trials

CONTINUATIONS: Final = 200
"""Continuations of a reported prefix."""
PILOTS: Final = 20
"""Continuations of a pilot, a prefix that only narrows the search."""
PILOTS_LEAST: Final = 3
"""Fewest continuations of a pilot."""
LANDMARKS: Final = 8
"""Most pilots of the first pass, spread over the run."""
CLOSE: Final = 6
"""Most prefixes that get all `CONTINUATIONS`."""
EVENTS: Final = 400_000
"""Budget for all continuations of reported prefixes, in events."""
PILOT_EVENTS: Final = 300_000
"""Budget for all pilots, in events: half of it at the landmarks, the rest between them."""
SETUP: Final = 60
"""Cost of setting a run up, in events."""
FROM_THE_BEGINNING: Final = -1
STEEP: Final = 0.5
"""Smallest rise that is a point of no return."""


@dataclass(frozen=True, slots=True)
class Share:
    """Continuations of a prefix that ends with `after_us` (`FROM_THE_BEGINNING` for an empty one); those with the same
    kind of violation, inside or outside the promise, are `violating`.
    """

    after_us: int
    violating: int
    runs: int

    @property
    def rate(self) -> float:
        """The share."""
        return self.violating / self.runs


@dataclass(frozen=True, slots=True)
class Curve:
    """Shares over time.

    Attributes:
        shares: ordered by time; unknown between two of them.
        step: the two shares with the largest rise between them; None if no rise is `STEEP`.
        whole: whether the time sufficed; then no step happens between the two shares of `step`.
    """

    shares: tuple[Share, ...]
    step: tuple[Share, Share] | None
    whole: bool


def curve(case: Case, symptom: Symptom, trials: Trials, times: Sequence[int], landmarks: Sequence[int]) -> Curve:
    """Continue a failed run from several times on, of the `times` of steps up to the violation.

    Pilots begin at the landmarks, at most `LANDMARKS` of them, and at the last of `times` if there are none.
    """
    search = _PrefixSearch(case, symptom, trials)
    whole = True
    marks = sorted(set(landmarks)) or sorted(set(times))[-1:]
    if len(marks) > LANDMARKS:
        marks = [marks[number * (len(marks) - 1) // (LANDMARKS - 1)] for number in range(LANDMARKS)]
    try:
        search.work(sorted(set(times)), [FROM_THE_BEGINNING, *marks])
    except OutOfTimeError:
        whole = False
    shares = tuple(Share(after_us, *tried) for after_us, tried in sorted(search.tried.items()))
    return Curve(shares, _step(shares), whole)


def _step(shares: Sequence[Share]) -> tuple[Share, Share] | None:
    rises = [(later.rate - sooner.rate, sooner, later) for sooner, later in pairwise(shares)]
    rise, sooner, later = max(rises, key=lambda entry: entry[0], default=(0.0, None, None))
    return (sooner, later) if sooner and later and rise >= STEEP else None


class _PrefixSearch:
    """Counts continuations of prefixes; `tried`: end of a prefix -> violating continuations, all continuations."""

    def __init__(self, case: Case, symptom: Symptom, trials: Trials) -> None:
        self.tried: dict[int, tuple[int, int]] = {}
        self._case = case
        self._symptom = symptom
        self._trials = trials

    def work(self, times: Sequence[int], landmarks: Sequence[int]) -> None:
        """Find the steepest rise by bisection, then measure both sides of it precisely."""
        each = self._trials.row(self._case)["events"] + SETUP
        pilots = max(PILOTS_LEAST, min(PILOTS, PILOT_EVENTS // (2 * len(landmarks) * each)))
        for after_us in landmarks:
            self._try(after_us, pilots)
        low, high = max(pairwise(landmarks), key=self._rise)
        while between := [at_us for at_us in times if low < at_us < high]:
            middle = between[len(between) // 2]
            self._try(middle, pilots)
            low, high = max(((low, middle), (middle, high)), key=self._rise)
        chosen = self._chosen(low, high)
        runs = max(pilots, min(CONTINUATIONS, EVENTS // (len(chosen) * each)))
        for after_us in chosen:
            self._try(after_us, runs)

    def _chosen(self, low: int, high: int) -> list[int]:
        """Prefixes to measure precisely: both sides of the rise, both ends, and shares other than 0 and 1."""
        ends = (min(self.tried), max(self.tried))
        unsure = [after_us for after_us, (violating, runs) in self.tried.items() if 0 < violating < runs]
        return list(dict.fromkeys((low, high, *ends, *sorted(unsure))))[:CLOSE]

    def _rise(self, ends: tuple[int, int]) -> float:
        sooner, later = (self.tried[after_us] for after_us in ends)
        return later[0] / later[1] - sooner[0] / sooner[1]

    def _try(self, after_us: int, runs: int) -> None:
        """Continue a prefix until it has `runs` continuations."""
        while (tried := self.tried.get(after_us, (0, 0)))[1] < runs:
            row = self._trials.row(self._case.continued(after_us, tried[1] + 1))
            found = self._symptom.seen_in(row)
            self.tried[after_us] = (tried[0] + found, tried[1] + 1)
