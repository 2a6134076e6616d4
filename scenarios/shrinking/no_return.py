"""The point of no return: from when on data is as good as lost.

A run up to some time is continued many times, each time under other latencies and without later faults; batches are
sent as before. The share of continuations that violate what the run violated, over the times up to which it was as it
was, tells how much was decided by then: where it rises most is the point of no return.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from scenarios.shrinking.keeping import OutOfTimeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scenarios.shrinking.case import Case
    from scenarios.shrinking.keeping import Symptom, Trials

CONTINUATIONS: Final = 200
"""Of each prefix that counts,"""
PILOTS: Final = 20
"""and of those that only tell which these are,"""
PILOTS_LEAST: Final = 3
"""at least."""
LANDMARKS: Final = 8
"""Times at which the curve is looked at first,"""
CLOSE: Final = 6
"""and of all times those that are looked at closely."""
EVENTS: Final = 400_000
"""What continuations of the prefixes that count may cost together, in events of the simulation; a limit in seconds
would give other curves on other machines.
"""
PILOT_EVENTS: Final = 300_000
"""What those of the others may cost: half of it at the landmarks, the rest between them."""
SETUP: Final = 60
"""What a run costs beside its events, in events."""
FROM_THE_BEGINNING: Final = -1
STEEP: Final = 0.5
"""A rise by less is no point of no return."""


@dataclass(frozen=True, slots=True)
class Share:
    """Continuations of one prefix.

    Attributes:
        after_us: until then it was as it was, this included; `FROM_THE_BEGINNING`: nothing was.
        violating: how many of them violate the same kind, on whichever side of the promise,
        runs: of how many.
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
        shares: in order of time; between two of them nothing was tried, so nothing is known.
        step: the two shares between which it rises most; None where no rise is `STEEP`.
        whole: whether there was time for all of it; then nothing happens between the two shares of the step.
    """

    shares: tuple[Share, ...]
    step: tuple[Share, Share] | None
    whole: bool


def curve(case: Case, symptom: Symptom, trials: Trials, times: Sequence[int], landmarks: Sequence[int]) -> Curve:
    """Continue a failed run from several times on.

    Args:
        case: the run.
        symptom: what it violates.
        trials: run what is tried, and say when the time is over.
        times: of what happens in it up to the violation.
        landmarks: some of them, between which the curve is looked at first; `LANDMARKS` of them, if there are more, and
            the last of all times, if there are none.
    """
    search = _Search(case, symptom, trials)
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


class _Search:
    """Tries prefixes.

    Attributes:
        tried: time -> continuations that violate, and how many were tried.
    """

    def __init__(self, case: Case, symptom: Symptom, trials: Trials) -> None:
        self.tried: dict[int, tuple[int, int]] = {}
        self._case = case
        self._symptom = symptom
        self._trials = trials

    def work(self, times: Sequence[int], landmarks: Sequence[int]) -> None:
        """Find where the share rises most, and look closely at what is on both sides of it."""
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
        """What is looked at closely: both sides of the step, both ends, and shares that are neither 0 nor 1."""
        ends = (min(self.tried), max(self.tried))
        unsure = [after_us for after_us, (violating, runs) in self.tried.items() if 0 < violating < runs]
        return list(dict.fromkeys((low, high, *ends, *sorted(unsure))))[:CLOSE]

    def _rise(self, ends: tuple[int, int]) -> float:
        sooner, later = (self.tried[after_us] for after_us in ends)
        return later[0] / later[1] - sooner[0] / sooner[1]

    def _try(self, after_us: int, runs: int) -> None:
        """Continue from a time on until so many continuations were tried."""
        while (tried := self.tried.get(after_us, (0, 0)))[1] < runs:
            row = self._trials.row(self._case.continued(after_us, tried[1] + 1))
            found = self._symptom.seen_in(row)
            self.tried[after_us] = (tried[0] + found, tried[1] + 1)
