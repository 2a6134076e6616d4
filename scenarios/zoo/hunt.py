"""Hunts: how many seeds, and how much CPU time, random runs need to find a mutant.

A seed finds a mutant if its run with the mutant has a violation inside the promise that its run without it lacks. The
run without it is made only for seeds that violate. With blows, a run with the mutant that raises early warnings goes on
with each blow after them, and is compared with a run without the mutant that has the same blow. Nothing is stored: a
hunt is a function of mutant and seeds, except for its times.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import chain
from statistics import median
from typing import TYPE_CHECKING, Final

from scenarios.format.blow import parse
from scenarios.format.catalogue import load
from scenarios.single import recording
from scenarios.single.run import prepare_process, run, run_at_differences, run_blows, run_mutated, run_row
from scenarios.sweep.workers import Workers
from sim.config import shown
from sim.protocol.modes import mode as mode_named
from sim.protocol.mutants import named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from scenarios.format.scenario import Scenario
    from scenarios.single.rows import Row
    from sim.protocol.modes import Mode

NOT_FOUND: Final = -1


@dataclass(frozen=True, slots=True)
class Hunt:
    """The result of hunting a mutant in a range of seeds, up to the first seed that finds it.

    Attributes:
        mutant: its name.
        scenario: in which it was hunted.
        first: the first seed of the range.
        tried: number of seeds that were run.
        seconds: CPU time of this process, also of the runs without the mutant.
        took: in how many runs the mutated place was executed.
        differed: in how many runs the mutant decided otherwise.
        errors: how many runs ended with an error; they find nothing.
        seed: the seed that found it, `NOT_FOUND` if none did.
        kinds: the violations that found it.
        blow: the blow with which the seed found it; empty: without one.
        continued: number of further runs, with blows.
    """

    mutant: str
    scenario: str
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
        """Whether a seed found the mutant."""
        return self.seed != NOT_FOUND


def hunt(
    mutant: str,
    seeds: range,
    seconds: float | None = None,
    scenario_name: str = "",
    blows: int = 0,
    at_difference: int = 0,
) -> Hunt:
    """Hunt a mutant.

    Args:
        mutant: its name.
        seeds: the seeds, in order.
        seconds: CPU time after which no other seed is run.
        scenario_name: another scenario than the mutant's own.
        blows: number of blows after each early warning.
        at_difference: number of blows where the mutant decides otherwise, for each seed that finds nothing before.
    """
    prepare_process()
    spec = named(mutant)
    scenario = load(scenario_name or spec.scenario).with_settings(dict(spec.settings))
    base = mode_named(spec.mode)
    mutated = base.override({"mutant": mutant})
    tried = took = differed = errors = continued = 0
    begun = time.process_time()
    found = NOT_FOUND
    kinds: tuple[str, ...] = ()
    blow = ""
    for seed in seeds:
        row, mutants = run_mutated(scenario, mutated, seed)
        tried += 1
        took += mutant in mutants.took
        differed += mutant in mutants.differed
        errors += row["verdict"] == "error"
        rows: Iterable[Row] = [row]
        if blows and row["warnings"]:
            rows = run_blows(scenario, mutated, seed, blows=blows)
        if at_difference:
            rows = chain(rows, run_at_differences(scenario, mutated, seed, mutants.differences, at_difference))
        for one in rows:
            continued += bool(one["blow"])
            kinds = caused(scenario, base, one, mutated)
            if kinds:
                found, blow = seed, one["blow"]
                break
        if kinds:
            break
        if seconds is not None and time.process_time() - begun > seconds:
            break
    spent = time.process_time() - begun
    return Hunt(mutant, scenario.name, seeds.start, tried, spent, took, differed, errors, found, kinds, blow, continued)


def caused(scenario: Scenario, base: Mode, row: Row, mutated: Mode) -> tuple[str, ...]:
    """Violations of a run in the mode `mutated` inside the promise that the same plan and batches lack in `base`."""
    inside = _kinds(row["violations_inside"])
    if not inside or row["verdict"] == "error":
        return ()
    without = run_row(same_plan(scenario, mutated, row), base, row["seed"])
    return tuple(sorted(inside - _kinds(without["violations"]))) if without["verdict"] != "error" else ()


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
class Summary:
    """The hunts of one mutant in disjoint ranges of seeds."""

    hunts: Sequence[Hunt]

    @property
    def mutant(self) -> str:
        """Its name."""
        return self.hunts[0].mutant

    @property
    def found(self) -> int:
        """The number of ranges in which it was found."""
        return sum(one.found for one in self.hunts)

    @property
    def runs(self) -> int:
        """The number of runs with the mutant and without blows."""
        return sum(one.tried for one in self.hunts)

    @property
    def continued(self) -> int:
        """The number of runs with the mutant and with blows."""
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

    def median(self, measure: Callable[[Hunt], float]) -> float | None:
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
        """Whether random runs find it within the budget of its tier; None if too few seeds were run to say so."""
        seeds, budget = self.seeds, named(self.mutant).budget
        if seeds is not None:
            return seeds <= budget
        return False if max(one.tried for one in self.hunts if not one.found) >= budget else None

    @property
    def kinds(self) -> list[str]:
        """The violations that found it."""
        return sorted({kind for one in self.hunts for kind in one.kinds})

    @property
    def first_find(self) -> Hunt | None:
        """The first hunt that found it."""
        return next((one for one in self.hunts if one.found), None)


def hunts(
    mutants: Sequence[str],
    seeds: range,
    number: int = 1,
    seconds: float | None = None,
    scenario_name: str = "",
    blows: int = 0,
    processes: int = 1,
    at_difference: int = 0,
) -> Iterator[Summary]:
    """Hunt mutants, each in the same disjoint ranges.

    Args:
        mutants: their names.
        seeds: all seeds.
        number: of ranges.
        seconds: CPU time of each range, see `hunt`.
        scenario_name: see `hunt`.
        blows: see `hunt`.
        processes: processes that hunt at the same time; 1: only this one.
        at_difference: see `hunt`.
    """
    parts = ranges(seeds, number)
    how = seconds, scenario_name, blows, at_difference
    if processes == 1:
        for mutant in mutants:
            yield Summary([hunt(mutant, part, *how) for part in parts])
        return
    with Workers(processes) as workers:
        begun = [[workers.pool.submit(hunt, mutant, part, *how) for part in parts] for mutant in mutants]
        for tasks in begun:
            yield Summary([task.result() for task in tasks])


def replay(find: Hunt) -> str:
    """The command that repeats the run that found a mutant."""
    spec = named(find.mutant)
    words = [f"highwater run {find.scenario} --mode {spec.mode} --seed {find.seed} --rule mutant={find.mutant}"]
    words += [f"--set {key}={shown(value)}" for key, value in spec.settings]
    return " ".join([*words, f"--blow {find.blow}"] if find.blow else words)
