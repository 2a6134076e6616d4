"""What must stay the same while a run shrinks: the kind of violation, its side of the promise, and its cause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from scenarios.shrinking.case import Case
from scenarios.shrinking.cause import Repair, repairs
from scenarios.single.reuse import is_alike, promise_alike
from scenarios.single.rows import Row
from sim.errors import InputError, did_you_mean

BUDGET: Final = "sim.event.budget"
STALLED: Final = "stalled"
"""The verdict of a run without a leader that waits for an administrator."""
EVENTS_LEAST: Final = 10_000
EVENTS_TIMES: Final = 4
"""Most events of a case, as a multiple of the first run's."""


class OutOfTimeError(Exception):
    """The time budget is used up."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """A violation (or `STALLED`), as rows report it, and whether it is inside the mode's promise."""

    kind: str
    inside: bool

    def shown_by(self, row: Row) -> bool:
        """Whether a run has it on this side of the promise; inside if at least one of its violations is."""
        return self.seen_in(row) and self.inside == (self.kind in _words(row["violations_inside"]))

    def seen_in(self, row: Row) -> bool:
        """Whether a run has it on either side of the promise."""
        return bool(row["verdict"] == STALLED) if self.kind == STALLED else self.kind in _words(row["violations"])

    def gone_from(self, row: Row) -> bool:
        """Whether a completed run lacks it on both sides of the promise."""
        return row["verdict"] not in ("error", "exhausted") and not self.seen_in(row)

    def cured_in(self, row: Row) -> bool:
        """Whether a completed run lacks it on this side of the promise; one outside must not be inside either."""
        if not self.inside:
            return self.gone_from(row)
        return row["verdict"] not in ("error", "exhausted") and self.kind not in _words(row["violations_inside"])


def has_effect(changed: Row, row: Row) -> bool:
    """Whether a change of a case changed the run: its steps, which the digest covers, or its violations.

    Violations can change alone, because the log start that a process reads from its file is no step. Whether they are
    inside the promise is not compared: that can change with the mode while the run stays the same.
    """
    return bool(changed["digest"] != row["digest"] or changed["violations"] != row["violations"])


def symptom(row: Row, kind: str | None = None) -> Symptom:
    """The symptom of a failed run: a violation of this kind, or `STALLED`; by default the stall, or the first violation
    inside the promise, or the first.

    Raises:
        InputError: the run has no violation, or none of that kind.
    """
    kinds, inside = _words(row["violations"]), _words(row["violations_inside"])
    what = f"{row['scenario']}, mode {row['mode']}, seed {row['seed']}"
    if row["verdict"] == "error":
        raise InputError(f"{what} ends with an error: {row['error'].splitlines()[0]}")
    if row["verdict"] == STALLED and kind in (None, STALLED):
        return Symptom(STALLED, inside=False)
    if not kinds:
        raise InputError(f"{what} violates nothing (verdict {row['verdict']})")
    if kind is not None and kind not in kinds:
        raise InputError(f"{what} has no violation {kind!r}{did_you_mean(kind, kinds)}")
    kind = kind or (inside or kinds)[0]
    return Symptom(kind, kind in inside)


def _words(cell: str) -> list[str]:
    return cell.split(",") if cell else []


class Trials:
    """Runs cases, each once, and counts them (`runs`), until it is out of time; with `has_time` also after that."""

    def __init__(self, out_of_time: Callable[[], bool] = lambda: False) -> None:
        self.runs = 0
        self.has_time = False
        self._most_events = 0
        self._out_of_time = out_of_time
        self._rows: dict[str, Row] = {}

    def row(self, case: Case) -> Row:
        """The row of a case; raises OutOfTimeError if it was not run before and the time budget is used up."""
        key = case.key
        found = self._rows.get(key)
        if found is None:
            if self.is_over:
                raise OutOfTimeError
            found = self._rows[key] = self._limited(case).row()
            self._most_events = self._most_events or max(EVENTS_LEAST, EVENTS_TIMES * found["events"])
            self.runs += 1
        return found

    def changed_row(self, case: Case, changed: Case) -> Row:
        """The row of a changed case, which is not run if other rules or another mode can make no difference in it."""
        row = self.row(case)
        if changed.scenario is case.scenario and changed.seed == case.seed:
            one, other = case.mode.override(case.rules), changed.mode.override(changed.rules)
            if promise_alike(one, other, {}) and is_alike(case.scenario, row, one, other, {}):
                return row
        return self.row(changed)

    @property
    def is_over(self) -> bool:
        """Whether further runs are refused."""
        return self._out_of_time() and not self.has_time

    def _limited(self, case: Case) -> Case:
        """Limit the events of a case that takes much longer than the first run; this changes no digest."""
        budget = int(case.scenario.config[BUDGET])
        if not 0 < self._most_events < budget:
            return case
        return case.with_settings({BUDGET: self._most_events})


class Criterion:
    """Decides whether a case still has the symptom and cause of the failed run.

    Each case must be cured by the repairs that cured the run. `confirms` checks that no other repair cures it; that is
    checked for each case only if `is_strict`, because most cases do not change it. Repairs without effect on a case
    (its digest is the same with them) are not tried on later cases, unless `is_thorough`.

    Attributes:
        cause: the repairs that cure the failed run, each by itself.
        asked: number of repairs that have an effect on it.
    """

    def __init__(self, trials: Trials, case: Case, symptom: Symptom) -> None:
        self.symptom = symptom
        self.is_strict = False
        self.is_thorough = False
        self._trials = trials
        self._idle: set[Repair] = set()
        trials.row(case)  # First, because it sets the limit of events.
        found = {repair: self._cures(case, repair) for repair in repairs(case)}
        self.cause = tuple(sorted(repair for repair, cures in found.items() if cures))
        self.asked = len(found) - len(self._idle)

    def holds(self, case: Case) -> bool:
        """Whether a case has the symptom and is cured as the run was (if `is_strict`: by nothing else)."""
        if not case.fits or not self.symptom.shown_by(self._trials.row(case)):
            return False
        return all(self._cures(case, repair) for repair in self.cause) and (not self.is_strict or self.confirms(case))

    def confirms(self, case: Case) -> bool:
        """Whether every repair that cures a case cured the run, too."""
        idle = () if self.is_thorough else self._idle
        others = [repair for repair in repairs(case) if repair not in self.cause and repair not in idle]
        return not any(self._cures(case, repair) for repair in others)

    def cause_of(self, case: Case) -> tuple[Repair, ...]:
        """All repairs that cure a case, including those without effect so far."""
        return tuple(sorted(repair for repair in {*repairs(case), *self.cause} if self._cures(case, repair)))

    def _cures(self, case: Case, repair: Repair) -> bool:
        repaired = repair.apply(case)
        if not (repaired.fits and repair.is_possible(case)):
            return False
        row = self._trials.changed_row(case, repaired)
        if not has_effect(row, self._trials.row(case)):
            self._idle.add(repair)
            return False
        return self.symptom.cured_in(row)
