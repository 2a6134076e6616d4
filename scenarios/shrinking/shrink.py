"""Shrinks a failing run to the smallest one that fails in the same way for the same cause.

For the next author. What must hold: every accepted case has the symptom, on the same side of the promise, and every
repair that cured the first run cures it (`scenarios.shrinking.criterion`). Without any one fault or batch of the
result, that no longer holds (1-minimal). The result depends on the run alone, unless the time is over. `make
hunt-shrink` checks all of this on 210 runs.

Why it is so: the same kind of violation may have another cause, so the set of single repairs is part of the criterion.
Trying every repair on every case would multiply the runs, and most steps add no cure; so repairs of the cause are tried
on each case, all others after each pass, and only a pass that added a cure is repeated step by step (`_confirm`). A
repair without effect on a case is not tried on its successors until the final `look_back`. The horizon comes first,
because a shorter run makes all others cheaper. If the time is over, the smallest case so far is kept, even if further
repairs cure it, and the result names them (`settle`).

What breaks it: anything by which removing one part moves unrelated messages. Then repairs cure by chance, become part
of the cause, and the result stays larger. For that reason, latencies are functions of a message's subject
(`sim/kernel/DESIGN.md`). A kind of fault whose realised form is no valid plan keeps its trigger
(`passes.simpler_faults`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from faults.plan import Fault
from scenarios.format.scenario import PlannedSend
from scenarios.shrinking import passes
from scenarios.shrinking.case import Case
from scenarios.shrinking.cause import Repair
from scenarios.shrinking.criterion import Criterion, OutOfTimeError, Symptom, Trials
from scenarios.shrinking.ddmin import ddmin
from sim.config import Value

ROUNDS: Final = 4
"""Most rounds of all passes; one pass may enable another."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a run, in numbers."""

    faults: int
    batches: int
    events: int


@dataclass(frozen=True, slots=True)
class ShrunkCase:
    """The result of shrinking: the smallest run found, and its violation.

    Attributes:
        cause: the single repairs that cure both it and the first run; perhaps none.
        asked: number of repairs that have an effect in the first run.
        whole: whether the time sufficed; otherwise the result may not be 1-minimal.
        first_config: settings of the run before it was shrunk.
        besides: further repairs that cure it, if the time did not suffice to exclude them.
    """

    case: Case
    symptom: Symptom
    cause: tuple[Repair, ...]
    asked: int
    before: Size
    after: Size
    runs: int
    whole: bool
    first_config: Mapping[str, Value]
    besides: tuple[Repair, ...] = ()


def shrink(
    case: Case, symptom: Symptom, trials: Trials, tell: Callable[[Case, int], None] = lambda _case, _runs: None
) -> ShrunkCase:
    """Shrink a failed run, and call `tell` with each smaller case and the number of runs so far.

    Raises:
        OutOfTimeError: the time was over before the cause was known.
    """
    criterion = Criterion(trials, case, symptom)
    shrinker = _Shrinker(case, criterion, lambda found: tell(found, trials.runs))
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
    return ShrunkCase(
        case=shrinker.case.expecting(kinds),
        symptom=symptom,
        cause=criterion.cause,
        asked=criterion.asked,
        before=_size(case, trials),
        after=_size(shrinker.case, trials),
        runs=trials.runs,
        whole=whole,
        first_config=case.scenario.config,
        besides=besides,
    )


def _size(case: Case, trials: Trials) -> Size:
    return Size(len(case.faults), len(case.sends), trials.row(case)["events"])


class _Shrinker:
    """Holds the smallest case so far."""

    def __init__(self, case: Case, criterion: Criterion, tell: Callable[[Case], None]) -> None:
        self.case = case
        self._criterion = criterion
        self._tell = tell
        self._confirmed_cases = [case]
        self._taken: list[Case] = []

    def work(self) -> None:
        """Run all passes until none makes the case smaller."""
        self._confirm(self._horizon)
        for _ in range(ROUNDS):
            before = self.case.key
            for shrink_pass in (self._parts, self._cluster, self._faults, self._times):
                self._confirm(shrink_pass)
            if self.case.key == before:
                return
        self._confirm(self._parts)

    def _confirm(self, shrink_pass: Callable[[], None]) -> None:
        """Run a pass; if another repair cures its result, repeat it with that check in each step."""
        begin = self.case
        shrink_pass()
        if not self._criterion.confirms(self.case):
            self.case = begin
            self._criterion.is_strict = True
            shrink_pass()
            self._criterion.is_strict = False
        self._confirmed_cases.append(self.case)

    def look_back(self) -> None:
        """Finally try all repairs. If a new one cures, continue from the last case that it does not cure."""
        if self.go_back():
            self._criterion.is_thorough = True
            self.work()

    def go_back(self) -> bool:
        """Return to the last case with the same cause; return whether that changed the case."""
        cases = (self.case, *reversed(self._confirmed_cases))
        found = next(case for case in cases if self._criterion.cause_of(case) == self._criterion.cause)
        changed = found is not self.case
        self.case = found
        return changed

    def settle(self) -> tuple[Repair, ...]:
        """Take the smallest case so far, as the time is over; return further repairs that cure it."""
        self.case = min([self.case, *reversed(self._taken)], key=lambda case: len(case.faults) + len(case.sends))
        return tuple(repair for repair in self._criterion.cause_of(self.case) if repair not in self._criterion.cause)

    def _take(self, case: Case | None) -> bool:
        """Continue with a case if the criterion holds."""
        if case is None or case.key == self.case.key or not self._criterion.holds(case):
            return False
        self.case = case
        self._taken.append(case)
        self._tell(case)
        return True

    def _first(self, cases: Iterable[Case]) -> bool:
        """Continue with the first case for which the criterion holds."""
        return any(self._take(case) for case in cases)

    def _horizon(self) -> None:
        """Find the shortest prefix by bisection."""
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
        """Remove partitions and log directories, then faults, batches and settings; or only faults and batches, if the
        cluster stays as it is.
        """
        if not self.case.recorded.keeps_cluster:
            while self._first(passes.fewer_partitions(self.case)):
                pass
            self._first(passes.fewer_directories(self.case))
            self._take(passes.without_topology(self.case))
        case = self.case
        ddmin(case.faults, lambda faults: self._take(self.case.with_faults(faults)))
        ddmin(case.sends, lambda sends: self._take(self.case.with_sends(sends)))
        for name, sends in self.case.recorded.further_sends.items():
            ddmin(sends, lambda kept, name=name: self._take(self._with_sends_of(name, kept)))  # type: ignore[misc]
        if not self.case.recorded.keeps_cluster:
            self._settings()
        self._take(self.case.with_scenario(settle_us=0))
        self._take(self.case.with_scenario(first=1))

    def _with_sends_of(self, name: str, sends: tuple[PlannedSend, ...]) -> Case:
        return self.case.with_further_sends({**self.case.recorded.further_sends, name: sends})

    def _settings(self) -> None:
        keys = tuple(key for key in passes.changed_settings(self.case) if key != passes.DIRECTORIES)
        ddmin(keys, lambda kept: self._take(passes.only_settings(self.case, kept)))
        for name in ("broker_config", "broker_modes"):
            items = tuple(getattr(self.case.scenario, name).items())
            ddmin(items, lambda kept, name=name: self._take(self.case.with_scenario(**{name: dict(kept)})))  # type: ignore[misc]
        ddmin(tuple(self.case.recorded.older.items()), lambda kept: self._take(self.case.with_older(dict(kept))))

    def _cluster(self) -> None:
        if not self.case.recorded.keeps_cluster:
            self._first(passes.smaller_clusters(self.case))
        for _ in range(len(self.case.sends) + 2):
            if not self._first(passes.simpler_sends(self.case)):
                return

    def _faults(self) -> None:
        """Simplify faults; realised faults are looked up again after each change."""
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
