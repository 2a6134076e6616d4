"""What has to stay while a run is made smaller: the kind of violation, its side of the promise, and its cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scenarios.shrinking.cause import Repair, repairs
from sim.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios.shrinking.case import Case
    from scenarios.single.rows import Row


BUDGET: Final = "sim.event.budget"
STALLED: Final = "stalled"
"""The verdict of a run without a leader, which waits for an administrator."""
EVENTS_LEAST: Final = 10_000
EVENTS_TIMES: Final = 4
"""A case may take so many times the events of the run that was begun with."""


class OutOfTimeError(Exception):
    """The budget is used up."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """A violation as a row tells of it.

    Attributes:
        kind: of the violation; or `STALLED`.
        inside: whether it is inside the promise of the mode.
    """

    kind: str
    inside: bool

    def shown_by(self, row: Row) -> bool:
        """Whether a run has it; kinds of which some are inside count as inside."""
        return self.seen_in(row) and self.inside == (self.kind in _words(row["violations_inside"]))

    def seen_in(self, row: Row) -> bool:
        """Whether a run has it, on whichever side of the promise."""
        return bool(row["verdict"] == STALLED) if self.kind == STALLED else self.kind in _words(row["violations"])

    def gone_from(self, row: Row) -> bool:
        """Whether a run that came to its end lacks it on either side of the promise."""
        return row["verdict"] not in ("error", "exhausted") and not self.seen_in(row)

    def cured_in(self, row: Row) -> bool:
        """Whether a run that came to its end lacks it; one of outside the promise must not be inside either."""
        if not self.inside:
            return self.gone_from(row)
        return row["verdict"] not in ("error", "exhausted") and self.kind not in _words(row["violations_inside"])


def symptom(row: Row, kind: str | None = None) -> Symptom:
    """What a failed run is about.

    Args:
        row: of the run.
        kind: which of its violations; None: the first of those inside the promise, or of all. Of a run that violates
            nothing, but waits for an administrator, that.

    Raises:
        InputError: it violates nothing, or nothing of that kind.
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
    """Runs cases, each once.

    Args:
        out_of_time: whether the budget is used up.

    Attributes:
        runs: how many were made.
        has_time: whether runs may be made though the budget is used up.
    """

    def __init__(self, out_of_time: Callable[[], bool] = lambda: False) -> None:
        self.runs = 0
        self.has_time = False
        self._most_events = 0
        self._out_of_time = out_of_time
        self._rows: dict[str, Row] = {}

    def row(self, case: Case) -> Row:
        """The row of a case.

        Raises:
            OutOfTimeError: it was not run before, and the budget is used up.
        """
        key = case.key
        found = self._rows.get(key)
        if found is None:
            if self.is_over:
                raise OutOfTimeError
            found = self._rows[key] = self._limited(case).row()
            self._most_events = self._most_events or max(EVENTS_LEAST, EVENTS_TIMES * found["events"])
            self.runs += 1
        return found

    @property
    def is_over(self) -> bool:
        """Whether no more runs may be made."""
        return self._out_of_time() and not self.has_time

    def _limited(self, case: Case) -> Case:
        """What goes round for much longer than the first run is given up; this changes no digest."""
        budget = int(case.scenario.config[BUDGET])
        if not 0 < self._most_events < budget:
            return case
        return case.with_settings({BUDGET: self._most_events})


class Keeper:
    """Tells whether a case still shows what is to be kept.

    Whether what cured the run still does is asked of every case. Whether nothing else cures it is asked by `confirms`,
    and of every case only when `is_strict`: most do not change that. Repairs that decided nothing in a case (the run is
    the same with them) are asked about no more in cases that come of it, unless `is_thorough`.

    Args:
        trials: run cases.
        case: the failed run,
        symptom: and what it is about.

    Attributes:
        cause: the repairs that cure it, each by itself.
        asked: how many repairs decide anything in it.
        is_strict: see above,
        is_thorough: as well.
    """

    def __init__(self, trials: Trials, case: Case, symptom: Symptom) -> None:
        self.symptom = symptom
        self.is_strict = False
        self.is_thorough = False
        self._trials = trials
        self._idle: set[Repair] = set()
        trials.row(case)  # First, since it says how many events are too many.
        found = {repair: self._cures(case, repair) for repair in repairs(case)}
        self.cause = tuple(sorted(repair for repair, cures in found.items() if cures))
        self.asked = len(found) - len(self._idle)

    def holds(self, case: Case) -> bool:
        """Whether a case has the symptom, and is cured as the run was; `is_strict`: and by nothing else."""
        if not case.fits or not self.symptom.shown_by(self._trials.row(case)):
            return False
        return all(self._cures(case, repair) for repair in self.cause) and (not self.is_strict or self.confirms(case))

    def confirms(self, case: Case) -> bool:
        """Whether no repair cures a case that did not cure the run."""
        idle = () if self.is_thorough else self._idle
        others = [repair for repair in repairs(case) if repair not in self.cause and repair not in idle]
        return not any(self._cures(case, repair) for repair in others)

    def cause_of(self, case: Case) -> tuple[Repair, ...]:
        """All repairs that cure a case, whatever decided anything before; those of the run are tried in any case."""
        return tuple(sorted(repair for repair in {*repairs(case), *self.cause} if self._cures(case, repair)))

    def _cures(self, case: Case, repair: Repair) -> bool:
        repaired = repair.apply(case)
        if not (repaired.fits and repair.is_possible(case)):
            return False
        row = self._trials.row(repaired)
        if row["digest"] == self._trials.row(case)["digest"]:
            self._idle.add(repair)
            return False
        return self.symptom.cured_in(row)
