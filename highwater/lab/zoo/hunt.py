"""Hunts: how many seeds, and how much CPU time, random runs or random walks need to find a mutant or a bug of Kafka.

A seed finds it if its run has a violation inside the promise that its counterpart lacks: the run of the same plan
without the mutant, or with the repair. The counterpart is run only for seeds that violate. With blows, a run that
raises early warnings goes on with each blow after them. With blows at the difference, it goes on where it begins to
differ from its counterpart: such a hunt knows where the bug is, which plain random runs do not, so figures of the two
do not compare. Walks are those of `highwater.lab.zoo.walks`, and each counts as a seed. A hunt is a function of
target and seeds, except for its times.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain, islice
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from scenarios.campaign.campaign import Campaign
from scenarios.format.blow import parse
from scenarios.single import recording
from scenarios.single.run import (
    MutantsSeen,
    run,
    run_at_differences,
    run_blows,
    run_compared,
    run_mutated,
    run_row,
)
from sim.protocol.modes import mode as mode_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from highwater.lab.zoo.runs import TargetRuns
    from highwater.lab.zoo.targets import Target
    from scenarios.campaign.record import Record
    from scenarios.campaign.runner import Runner
    from scenarios.format.scenario import Scenario
    from scenarios.single.rows import Row
    from sim.protocol.modes import Mode


NOT_FOUND: Final = -1


@dataclass(frozen=True, slots=True)
class TargetHunt:
    """The result of hunting a target in a range of seeds, up to the first seed that finds it.

    Attributes:
        target: what was hunted.
        walked: whether with walks; then the range stands for as many walks from its first seed.
        first: the first seed of the range.
        tried: number of seeds that were run, or of walks.
        seconds: CPU time of this process, also of the counterparts.
        took: in how many runs the mutated place was executed; for a rule, all runs with blows at the difference; 0 for
            walks.
        differed: in how many runs the mutant decided otherwise; for a rule, in how many the repair would have; 0 for
            walks, and for a rule without blows at the difference.
        errors: how many runs ended with an error; they find nothing.
        seed: the seed that found it, `NOT_FOUND` if none did.
        kinds: the violations that found it; with walks, early warnings, too.
        blow: the blow with which the seed found it; empty: without one.
        continued: number of further runs, with blows.
    """

    target: Target
    walked: bool
    first: int
    tried: int
    seconds: float
    took: int
    differed: int
    errors: int
    seed: int
    kinds: tuple[str, ...]
    blow: str = ""
    continued: int = 0

    @property
    def found(self) -> bool:
        """Whether a seed found the target."""
        return self.seed != NOT_FOUND

    def to_json(self) -> dict[str, Any]:
        """All but the target."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "target"}

    @classmethod
    def of_json(cls, target: Target, found: Mapping[str, Any]) -> TargetHunt:
        """The result of hunting a target, from `to_json`."""
        return cls(target, **{**found, "kinds": tuple(found["kinds"])})


def hunt(
    target: Target, seeds: range, seconds: float | None = None, blows: int = 0, at_difference: int = 0
) -> TargetHunt:
    """Hunt a target with runs.

    Args:
        target: see there.
        seeds: the seeds, in order.
        seconds: CPU time after which no other seed is run.
        blows: number of blows after each early warning.
        at_difference: number of blows where the run differs from its counterpart.
    """
    runs = target.runs
    scenario = runs.load()
    wrong, _ = runs.modes
    tried = took = differed = errors = continued = 0
    begun = time.process_time()
    found = NOT_FOUND
    kinds: tuple[str, ...] = ()
    blow = ""
    for seed in seeds:
        row, seen = _compared(target, scenario, seed) if at_difference else run_mutated(scenario, wrong, seed)
        tried += 1
        took += target.name in seen.took
        differed += target.name in seen.differed
        errors += row["verdict"] == "error"
        rows: Iterable[Row] = [row]
        if blows and row["warnings"]:
            rows = run_blows(scenario, wrong, seed, blows=blows)
        if at_difference:
            rows = chain(rows, run_at_differences(scenario, wrong, seed, seen.differences, at_difference))
        for one in rows:
            continued += bool(one["blow"])
            kinds = caused(runs, scenario, one)
            if kinds:
                found, blow = seed, one["blow"]
                break
        if kinds:
            break
        if seconds is not None and time.process_time() - begun > seconds:
            break
    spent = time.process_time() - begun
    return TargetHunt(target, False, seeds.start, tried, spent, took, differed, errors, found, kinds, blow, continued)


def hunt_walking(target: Target, seeds: range, seconds: float | None = None) -> TargetHunt:
    """Hunt a target with as many walks as there are seeds, which all follow from the first one.

    Args:
        target: one that walks hunt.
        seeds: see above.
        seconds: time after which no other walk begins.
    """
    assert target.walks is not None
    begun = time.process_time()
    found = target.walks.hunt(len(seeds), seeds.start, seconds)
    spent = time.process_time() - begun
    seed = seeds.start if found.stopped else NOT_FOUND
    return TargetHunt(target, True, seeds.start, found.walks, spent, 0, 0, 0, seed, tuple(sorted(found.paths)))


def _compared(target: Target, scenario: Scenario, seed: int) -> tuple[Row, MutantsSeen]:
    """A run, and where it differs from its counterpart."""
    wrong, right = target.runs.modes
    if wrong.rules.mutant == target.name:
        return run_mutated(scenario, wrong, seed)
    row, found = run_compared(scenario, wrong, right, seed)
    names = frozenset([target.name])
    return row, MutantsSeen(names, names if found else frozenset(), found)


def caused(runs: TargetRuns, scenario: Scenario, row: Row) -> tuple[str, ...]:
    """Violations of a run that show what is hunted: those that count and that the same plan and batches lack in the
    counterpart, and with each of the rule values that should cure them, but not with those that should not.
    """
    wrong, right = runs.modes
    kinds = _counted(runs, row)
    if not kinds or row["verdict"] == "error" or (runs.lossy_ends is not None and row["lossy_ends"] > runs.lossy_ends):
        return ()
    plan = same_plan(scenario, wrong, row)
    base = mode_named(runs.base)
    for cure in (right, *(base.override({rule: value}) for rule, value in runs.also_by)):
        without = run_row(plan, cure, row["seed"])
        kinds -= _kinds(without["violations"])
        if not kinds or without["verdict"] == "error":
            return ()
    for rule, value in runs.not_by:
        kinds &= _kinds(run_row(plan, base.override({rule: value}), row["seed"])["violations"])
    return tuple(sorted(kinds))


def _counted(runs: TargetRuns, row: Row) -> set[str]:
    """The violations of a row that count."""
    inside = _kinds(row["violations_inside"])
    kinds = inside if runs.is_promised else _kinds(row["violations"]) - inside
    return kinds.intersection(runs.kinds) if runs.kinds else kinds


def same_plan(scenario: Scenario, mode: Mode, row: Row) -> Scenario:
    """The scenario of a run's row, for a run in another mode: if the run has blows, a recording of its plan, because
    the other run may not raise the warnings that these follow.
    """
    if not row["blow"]:
        return scenario
    result = run(replace(scenario, blows=parse(row["blow"])), mode, row["seed"])
    return recording.of_run(scenario, result).scenario


def _kinds(names: str) -> set[str]:
    return set(filter(None, names.split(",")))


def ranges(seeds: range, number: int) -> list[range]:
    """Disjoint ranges of equal length, as long as the seeds allow."""
    length = len(seeds) // number
    return [seeds[place * length : (place + 1) * length] for place in range(number)]


@dataclass(frozen=True, slots=True)
class TargetSummary:
    """The hunts of one target in disjoint ranges of seeds."""

    hunts: Sequence[TargetHunt]

    @property
    def target(self) -> Target:
        """What was hunted."""
        return self.hunts[0].target

    @property
    def found(self) -> int:
        """The number of ranges in which it was found."""
        return sum(one.found for one in self.hunts)

    @property
    def walked(self) -> bool:
        """Whether with walks."""
        return self.hunts[0].walked

    @property
    def runs(self) -> int:
        """The number of runs without blows, or of walks."""
        return sum(one.tried for one in self.hunts)

    @property
    def continued(self) -> int:
        """The number of runs with blows."""
        return sum(one.continued for one in self.hunts)

    @property
    def took(self) -> int:
        """In how many of them the mutated place was executed."""
        return sum(one.took for one in self.hunts)

    @property
    def differed(self) -> int:
        """In how many of them the mutant decided otherwise."""
        return sum(one.differed for one in self.hunts)

    @property
    def errors(self) -> int:
        """How many of them ended with an error."""
        return sum(one.errors for one in self.hunts)

    def median(self, measure: Callable[[TargetHunt], float]) -> float | None:
        """The median over the ranges; None if it was found in no more than half of them.

        Ranges without a find count as larger than all others.
        """
        values = sorted(measure(one) for one in self.hunts if one.found)
        missing = len(self.hunts) - len(values)
        return median([*values, *[float("inf")] * missing]) if len(values) > missing else None

    @property
    def seeds(self) -> float | None:
        """Median number of seeds up to the first that finds it."""
        return self.median(lambda one: one.tried)

    @property
    def seconds(self) -> float | None:
        """Median CPU time up to that seed."""
        return self.median(lambda one: one.seconds)

    @property
    def within_budget(self) -> bool | None:
        """Whether it is found within its budget; None if too few seeds were run to say so."""
        seeds, budget = self.seeds, self.target.budget
        if budget is None:
            return True if seeds is not None else None
        if seeds is not None:
            return seeds <= budget
        return False if max(one.tried for one in self.hunts if not one.found) >= budget else None

    @property
    def keeps_mark(self) -> bool | None:
        """Whether it is found within its mark; None if it has no mark, or the hunts ended too early to say so."""
        mark, seconds = self.target.mark, self.seconds
        if mark is None:
            return None
        if seconds is not None:
            return seconds <= mark.seconds
        return False if max(one.seconds for one in self.hunts if not one.found) >= mark.seconds else None

    @property
    def kinds(self) -> list[str]:
        """The violations that found it."""
        return sorted({kind for one in self.hunts for kind in one.kinds})

    @property
    def first_find(self) -> TargetHunt | None:
        """The first hunt that found it."""
        return next((one for one in self.hunts if one.found), None)


def hunts(
    targets: Sequence[tuple[Target, bool]],
    seeds: range,
    runner: Runner,
    record: Record | None = None,
    number: int = 1,
    seconds: float | None = None,
    blows: int = 0,
    at_difference: int = 0,
) -> Iterator[TargetSummary]:
    """Hunt targets, each in the same disjoint ranges.

    Args:
        targets: what to hunt, and whether with walks.
        seeds: all seeds.
        runner: where to hunt: one process hunts in one range at a time.
        record: keeps finished ranges.
        number: of ranges.
        seconds: CPU time of each range, see `hunt`.
        blows: see `hunt`.
        at_difference: see `hunt`.
    """
    parts = ranges(seeds, number)
    named = {target.name: target for target, _ in targets}
    campaign = Campaign(partial(_hunt, named, seconds, blows, at_difference), runner, record)
    results = campaign.run((target.name, walks, part.start, part.stop) for target, walks in targets for part in parts)
    for target, _ in targets:
        yield TargetSummary([TargetHunt.of_json(target, result) for _, result in islice(results, len(parts))])


def _hunt(
    targets: Mapping[str, Target],
    seconds: float | None,
    blows: int,
    at_difference: int,
    case: tuple[str, bool, int, int],
) -> dict[str, Any]:
    name, walks, start, stop = case
    target, seeds = targets[name], range(start, stop)
    found = hunt_walking(target, seeds, seconds) if walks else hunt(target, seeds, seconds, blows, at_difference)
    return found.to_json()


def replay(find: TargetHunt) -> str:
    """The command that repeats what found its target."""
    target = find.target
    if find.walked:
        assert target.walks is not None
        return target.walks.command(find.tried, find.seed)
    return target.runs.command(find.seed, find.blow)
