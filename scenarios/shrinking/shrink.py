"""Shrinking: from a run that fails to the smallest one that fails in the same way for the same cause."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from scenarios.shrinking import passes
from scenarios.shrinking.criterion import Keeper, OutOfTimeError, Symptom, Trials
from scenarios.shrinking.ddmin import ddmin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from faults.plan import Fault
    from scenarios.shrinking.case import Case
    from scenarios.shrinking.cause import Repair

ROUNDS: Final = 4
"""What became smaller in one way may become smaller in another; after so many rounds it is small enough."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a run is.

    Attributes:
        faults: of its plan.
        batches: that are sent.
        events: of the simulation.
    """

    faults: int
    batches: int
    events: int


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What came out.

    Attributes:
        case: the smallest run that was found.
        symptom: what it violates.
        cause: the single repairs that cure it, as they cured the run that was begun with; perhaps none.
        asked: of how many repairs that decided anything in that run.
        before: its size,
        after: and that of the smallest.
        runs: how many were made.
        whole: whether there was time for all of it; otherwise it may not be 1-minimal.
        besides: what else cures it by itself, where there was no time to look for a run that nothing else cures.
    """

    case: Case
    symptom: Symptom
    cause: tuple[Repair, ...]
    asked: int
    before: Size
    after: Size
    runs: int
    whole: bool
    besides: tuple[Repair, ...] = ()


def shrink(
    case: Case, symptom: Symptom, trials: Trials, tell: Callable[[Case, int], None] = lambda _case, _runs: None
) -> Shrunk:
    """Make a failed run small.

    Args:
        case: the run.
        symptom: what it violates, and what has to stay.
        trials: run it, and say when the time is over.
        tell: is called with each smaller case, and the number of runs until then.

    Raises:
        OutOfTimeError: before the cause was known.
    """
    keeper = Keeper(trials, case, symptom)
    shrinker = _Shrinker(case, keeper, lambda found: tell(found, trials.runs))
    whole = True
    besides: tuple[Repair, ...] = ()
    try:
        shrinker.work()
        shrinker.look_back()
    except OutOfTimeError:
        whole = False
        trials.has_time = True
        besides = shrinker.settle()
    kinds = tuple(trials.row(shrinker.case)["violations"].split(","))
    return Shrunk(
        case=shrinker.case.expecting(kinds),
        symptom=symptom,
        cause=keeper.cause,
        asked=keeper.asked,
        before=_size(case, trials),
        after=_size(shrinker.case, trials),
        runs=trials.runs,
        whole=whole,
        besides=besides,
    )


def _size(case: Case, trials: Trials) -> Size:
    return Size(len(case.faults), len(case.sends), trials.row(case)["events"])


class _Shrinker:
    """Holds the smallest case so far."""

    def __init__(self, case: Case, keeper: Keeper, tell: Callable[[Case], None]) -> None:
        self.case = case
        self._keeper = keeper
        self._tell = tell
        self._confirmed_before = [case]
        self._taken: list[Case] = []

    def work(self) -> None:
        """Every way of making it smaller, until none does."""
        self._confirmed(self._horizon)
        for _ in range(ROUNDS):
            before = self.case.key
            for way in (self._parts, self._cluster, self._faults, self._times):
                self._confirmed(way)
            if self.case.key == before:
                return
        self._confirmed(self._parts)

    def _confirmed(self, way: Callable[[], None]) -> None:
        """Go one way; if something else begins to cure the run on it, go back, and look at each step."""
        begin = self.case
        way()
        if not self._keeper.confirms(self.case):
            self.case = begin
            self._keeper.is_strict = True
            way()
            self._keeper.is_strict = False
        self._confirmed_before.append(self.case)

    def look_back(self) -> None:
        """Ask about all repairs at last. If one that decided nothing cures now, go on from where it did not yet."""
        if self.go_back():
            self._keeper.is_thorough = True
            self.work()

    def go_back(self) -> bool:
        """Go back to the last case that has the whole cause, if this one has not; tell whether that was needed."""
        cases = (self.case, *reversed(self._confirmed_before))
        found = next(case for case in cases if self._keeper.cause_of(case) == self._keeper.cause)
        changed = found is not self.case
        self.case = found
        return changed

    def settle(self) -> tuple[Repair, ...]:
        """Out of time: the smallest case so far, and what cures it besides; it was not looked for something smaller."""
        self.case = min([self.case, *reversed(self._taken)], key=lambda case: len(case.faults) + len(case.sends))
        return tuple(repair for repair in self._keeper.cause_of(self.case) if repair not in self._keeper.cause)

    def _take(self, case: Case | None) -> bool:
        """Go on with a case, if all is kept."""
        if case is None or case.key == self.case.key or not self._keeper.holds(case):
            return False
        self.case = case
        self._taken.append(case)
        self._tell(case)
        return True

    def _first(self, cases: Iterable[Case]) -> bool:
        """Go on with the first that keeps all."""
        return any(self._take(case) for case in cases)

    def _horizon(self) -> None:
        """The shortest beginning, by halving."""
        ends = passes.prefixes(self.case)
        low, high = 0, len(ends)
        whole = self.case
        while low < high:
            middle = (low + high) // 2
            if self._take(whole.with_horizon(ends[middle])):
                high = middle
            else:
                low = middle + 1

    def _parts(self) -> None:
        """Faults, then batches, then what is set."""
        case = self.case
        ddmin(case.faults, lambda faults: self._take(self.case.with_faults(faults)))
        ddmin(case.sends, lambda sends: self._take(self.case.with_sends(sends)))
        keys = passes.changed_settings(self.case)
        ddmin(keys, lambda kept: self._take(passes.only_settings(self.case, kept)))
        for name in ("broker_config", "broker_modes"):
            items = tuple(getattr(self.case.scenario, name).items())
            ddmin(items, lambda kept, name=name: self._take(self.case.with_scenario(**{name: dict(kept)})))  # type: ignore[misc]
        ddmin(tuple(self.case.recorded.older.items()), lambda kept: self._take(self.case.with_older(dict(kept))))
        self._take(self.case.with_scenario(settle_us=0))
        self._take(self.case.with_scenario(first=1))

    def _cluster(self) -> None:
        self._first(passes.smaller_clusters(self.case))
        for _ in range(len(self.case.sends) + 2):
            if not self._first(passes.simpler_sends(self.case)):
                return

    def _faults(self) -> None:
        """Plainer faults; what happened is looked up again after each change."""
        for place in range(len(self.case.faults)):
            while self._replace(place, passes.simpler_faults(self.case.faults[place], self.case.run().faults)):
                pass

    def _replace(self, place: int, faults: Iterable[Fault]) -> bool:
        return self._first(self._with_fault(place, fault) for fault in faults)

    def _with_fault(self, place: int, fault: Fault) -> Case:
        faults = self.case.faults
        return self.case.with_faults((*faults[:place], fault, *faults[place + 1 :]))

    def _times(self) -> None:
        for sooner in passes.compressed(self.case):
            self._take(sooner(self.case))
        for place in range(len(self.case.faults)):
            self._replace(place, passes.shorter_faults(self.case.faults[place]))
            fault = self.case.faults[place]
            rounder = passes.rounder(fault.at_us, least_us=passes.EARLIEST_US)
            self._replace(place, (replace(fault, at_us=us) for us in rounder))
        for place in range(len(self.case.sends)):
            rounder = passes.rounder(self.case.sends[place][3], least_us=passes.EARLIEST_US)
            self._first(self._with_time(place, us) for us in rounder)
        self._first(passes.shorter_horizons(self.case))

    def _with_time(self, place: int, due_us: int) -> Case:
        sends = self.case.sends
        moved = [*sends[:place], (*sends[place][:3], due_us), *sends[place + 1 :]]
        return self.case.with_sends(tuple(moved))
