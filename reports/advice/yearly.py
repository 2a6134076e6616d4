"""Losses per partition-year: incidents a year, stratum by stratum, times the share of them that lose records."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

from reports.advice import incidents
from reports.advice.experiment import has_lost
from reports.advice.incidents import Exposure, Stratum
from reports.advice.pool import Pool
from reports.analysis.statistics import interval, weighted_sum
from scenarios.single.run import run_row

FEWEST: Final = 2
"""Incidents of a stratum in each wave, at least."""
WAVE: Final = 500
"""Incidents of a wave, about."""
PIECE: Final = 10
"""Incidents of a task, at most."""
SEEDS: Final = 1_000_000
"""Seeds of a stratum: those of the next one begin after them."""


@dataclass(slots=True)
class Tally:
    """The simulated incidents of a stratum.

    Attributes:
        lost: those that lost acknowledged records.
        stalled: those after which an operator has to act; they lost nothing, or are in `lost`.
        exhausted: those that used up a budget.
    """

    stratum: Stratum
    runs: int = 0
    lost: int = 0
    stalled: int = 0
    exhausted: int = 0

    def add(self, other: Tally) -> None:
        """Add incidents of the same stratum."""
        self.runs += other.runs
        self.lost += other.lost
        self.stalled += other.stalled
        self.exhausted += other.exhausted

    @property
    def share(self) -> tuple[float, float]:
        """The 95 % interval of the share that loses records."""
        return interval(self.lost, self.runs)

    @property
    def losses_a_year(self) -> tuple[float, float, float]:
        """The stratum's losses a year, with their interval."""
        low, high = self.share
        a_year = self.stratum.a_year
        return a_year * self.lost / self.runs, a_year * low, a_year * high

    @property
    def weight(self) -> float:
        """Losses a year that one lost run stands for."""
        return self.stratum.a_year / self.runs


@dataclass(frozen=True, slots=True)
class Estimate:
    """Losses per partition-year.

    Attributes:
        tallies: the strata, in order of incidents a year.
        larger_a_year: incidents a year with more faults than were simulated: at most all of them lose records.
    """

    exposed: Exposure
    tallies: Sequence[Tally]
    larger_a_year: float

    @property
    def losses_a_year(self) -> tuple[float, float, float]:
        """Losses a year, with the 95 % interval."""
        found, low, high = weighted_sum([(one.weight, one.lost) for one in self.tallies])
        return found, low, high + self.larger_a_year

    @property
    def runs(self) -> int:
        """Simulated incidents."""
        return sum(one.runs for one in self.tallies)

    @property
    def dominating(self) -> Tally | None:
        """The stratum with most of the losses; None if there is no loss."""
        found = max(self.tallies, key=lambda one: one.losses_a_year[0])
        return found if found.lost else None

    @property
    def widest(self) -> Tally:
        """The stratum in which one lost run stands for most: it sets the upper end while no run loses anything."""
        return max(self.tallies, key=lambda one: one.weight)


def waves(exposed: Exposure, runs: int | None, budget_s: float, pool: Pool) -> Iterator[Estimate]:
    """Simulate waves of incidents; after each, the estimate so far.

    How many incidents of a stratum a wave has depends on its incidents a year alone, and never on what was lost.

    Args:
        exposed: the cluster and its rates.
        runs: number of incidents, about; None: as many as the time allows, in whole waves.
        budget_s: the time in seconds, if there is no number.
        pool: the processes that simulate them.
    """
    begin_s = time.monotonic()
    found, larger_a_year = incidents.strata(exposed)
    tallies = [Tally(stratum) for stratum in found]
    number = 0
    while True:
        wave = WAVE if runs is None else min(WAVE, runs - number * WAVE)
        tasks = [
            Task(exposed, stratum, place * SEEDS + tally.runs, count)
            for place, (tally, stratum, count) in enumerate(zip(tallies, found, allocated(found, wave), strict=True))
        ]
        pieces = [piece for task in tasks for piece in task.pieces()]
        for piece, result in zip(pieces, pool.map(simulate, pieces), strict=True):
            tallies[piece.first_seed // SEEDS].add(result)
        number += 1
        yield Estimate(exposed, sorted(tallies, key=lambda one: -one.stratum.a_year), larger_a_year)
        used_s = time.monotonic() - begin_s
        if number * WAVE >= runs if runs is not None else used_s * (number + 1) / number > budget_s:
            return


def allocated(found: Sequence[Stratum], runs: int) -> list[int]:
    """Incidents of each stratum: by the square root of how often they occur, since rare ones lose more."""
    roots = [sqrt(stratum.a_year) for stratum in found]
    return [max(FEWEST, round(runs * root / sum(roots))) for root in roots]


@dataclass(frozen=True, slots=True)
class Task:
    """Some incidents of a stratum, by their seeds."""

    exposed: Exposure
    stratum: Stratum
    first_seed: int
    count: int

    def pieces(self) -> Iterator[Task]:
        """Tasks of at most `PIECE` incidents."""
        end = self.first_seed + self.count
        for seed in range(self.first_seed, end, PIECE):
            yield Task(self.exposed, self.stratum, seed, min(PIECE, end - seed))


def simulate(task: Task) -> Tally:
    """Run the incidents of a task.

    Raises:
        RuntimeError: a run ended with an error.
    """
    found = Tally(task.stratum)
    for seed in range(task.first_seed, task.first_seed + task.count):
        row = run_row(incidents.draw(task.exposed, task.stratum, seed), task.exposed.mode, seed)
        if row["verdict"] == "error":
            raise RuntimeError(f"{task.stratum.name}, seed {seed}: {row['error']}")
        found.runs += 1
        found.lost += has_lost(row)
        found.stalled += row["verdict"] == "stalled"
        found.exhausted += row["verdict"] == "exhausted"
    return found


def assumptions(estimate: Estimate) -> list[str]:
    """What the figure takes for granted, in sentences."""
    exposed = estimate.exposed
    lasts_s = exposed.rates.lasts_s
    lasts = ", ".join(f"{name} {lasts_s[name]} s" for name in exposed.a_year if lasts_s[name])
    return [
        "causes strike independently of each other, of the load and of the time of day; each broker or rack alike",
        f"after {exposed.gap_us / 1e6:,.0f} s without a fault, the partition is as if none had struck",
        f"a fault lasts from half of its time to all of it: {lasts}",
        f"{exposed.batches_per_s:.3g} batches a second are sent around faults, and a fifth of that in quiet times",
        "an operator repairs what waits for him; acknowledged records that come back then are not lost",
    ]


NOT_MODELLED: Final = (
    "bugs outside of replication, corrupted disks, full disks, mistakes of operators, deleted topics",
    "rolling restarts: planned restarts strike one broker at a time, but nobody waits for a full ISR between two",
    "other partitions: one incident may strike many of them at once, so their losses do not add up to incidents",
    "disks of one age or batch that fail together, machines that do not return",
)
"""What no rate of this estimate covers."""


def left_out(estimate: Estimate) -> list[str]:
    """Causes with rate 0, and why."""
    rates = estimate.exposed.rates
    return [f"{name}: 0 a year ({rates.sources[name]})" for name, rate in rates.a_year.items() if not rate]


def answer(estimate: Estimate) -> list[str]:
    """The figure with its interval, and which strata decide it, in sentences."""
    found, low, high = estimate.losses_a_year
    lines = [
        f"A partition loses acknowledged records {found:.2g} times a year (95 %: {low:.2g} to {high:.2g})"
        if found
        else f"No incident loses acknowledged records: a partition loses some at most {high:.2g} times a year (95 %)"
    ]
    if estimate.dominating is not None:
        name, losses = estimate.dominating.stratum.name, estimate.dominating.losses_a_year
        lines.append(f"Most of it: {name}, {losses[0]:.2g} a year (95 %: {losses[1]:.2g} to {losses[2]:.2g})")
    widest = estimate.widest
    lines.append(
        f"The upper end is decided by {widest.stratum.name}: {widest.stratum.a_year:.2g} incidents a year, of which "
        f"{widest.lost:,} of {widest.runs:,} simulated ones lose records; more --incidents narrow it"
    )
    lines.append(
        f"Incidents with more faults than were simulated: {estimate.larger_a_year:.2g} a year; the upper end counts all"
    )
    stalled = sum(one.stalled for one in estimate.tallies)
    if stalled:
        lines.append(f"In {stalled:,} of {estimate.runs:,} simulated incidents, the partition waits for an operator")
    exhausted = sum(one.exhausted for one in estimate.tallies)
    if exhausted:
        lines.append(
            f"{exhausted:,} of {estimate.runs:,} simulated incidents used up a budget: what they lost later is missing"
        )
    return lines
