"""How many seeds of each random scenario a review has time for."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from scenarios.campaign.campaign import Campaign
from scenarios.campaign.runner import LocalRunner
from scenarios.single.run import run_modes
from sim.protocol.decisions import to_values

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from scenarios.format.scenario import Scenario
    from sim.protocol.modes import Mode

PILOT: Final = 8
"""Most seeds that tell how long a scenario takes, and whether the rules have an effect in it."""
PILOTS_SHARE: Final = 0.1
"""Most of the time that all pilots may take."""
LEAST: Final = 20
"""Fewest seeds of a scenario, if its share of the time suffices for them: the next ones need theirs."""
FEWEST: Final = 5
"""Fewest seeds otherwise."""
MOST: Final = 100_000
EVENLY: Final = 0.4
"""Share of the time that all scenarios get alike; the rest goes to those in which the rules have an effect."""
OVERHEAD_S: Final = 2.0
"""Of a sweep: starting processes, writing and comparing rows."""


@dataclass(slots=True)
class PacedRun:
    """A random scenario to run in two modes.

    Attributes:
        scenario: the scenario.
        modes: the base, and the mode or what replaces it.
        seed_s: time of a seed in both modes, in one process.
        touched: share of the pilot's seeds on which a differing rule had an effect.
    """

    scenario: Scenario
    modes: tuple[Mode, Mode]
    seed_s: float = 0.0
    touched: float = 0.0

    def try_out(self, differing: Collection[tuple[str, str]], limit_s: float, clock: Callable[[], float]) -> None:
        """Measure both on a few seeds, for about `limit_s` at most."""
        pilot = Campaign(partial(has_effect, self.scenario, self.modes, frozenset(differing)), LocalRunner())
        begin = clock()
        found = [effect for _, effect in pilot.run(range(PILOT), until=lambda *_: clock() - begin >= limit_s)]
        self.touched = sum(found) / len(found)
        self.seed_s = (clock() - begin) / len(found)


def has_effect(scenario: Scenario, modes: Sequence[Mode], differing: Collection[tuple[str, str]], seed: int) -> bool:
    """Run a seed in all modes; whether one of the values would have acted differently in the first one."""
    base, *_ = run_modes(scenario, modes, seed)
    return bool(to_values(int(base["decided"], 16)) & set(differing))


@dataclass(slots=True)
class Pace:
    """Distributes the time of a review over its runs, and corrects itself by how long they took.

    Attributes:
        budget_s: time of the whole review, from `begin_s` on.
        processes: number of worker processes.
        clock: seconds.
        slower: how much longer sweeps take than their pilots tell.
    """

    budget_s: float
    processes: int
    clock: Callable[[], float] = time.perf_counter
    begin_s: float = field(init=False)
    slower: float = field(init=False, default=1.0)

    def __post_init__(self) -> None:
        self.begin_s = self.clock()

    @property
    def left_s(self) -> float:
        """Time that is left."""
        return self.begin_s + self.budget_s - self.clock()

    def try_out(self, runs: list[PacedRun], differing: Collection[tuple[str, str]]) -> None:
        """Measure each on a few seeds."""
        for run in runs:
            run.try_out(differing, PILOTS_SHARE * self.budget_s / len(runs), self.clock)

    def in_order(self, runs: list[PacedRun]) -> list[PacedRun]:
        """One with few effects first, to learn from it; then those with most, so that the others can adjust."""
        first, *others = sorted(runs, key=lambda run: run.touched)
        return [first, *reversed(others)]

    def seeds(self, ahead: list[PacedRun]) -> int:
        """Number of seeds of the first of the runs ahead."""
        effects = sum(run.touched for run in ahead)
        share = 1 / len(ahead)
        if effects:
            share = EVENLY * share + (1 - EVENLY) * ahead[0].touched / effects
        work_s = (self.left_s - OVERHEAD_S * len(ahead)) * share
        each_s = ahead[0].seed_s * self.slower / self.processes
        least = LEAST if LEAST * each_s < work_s else FEWEST
        number = max(least, min(MOST, int(work_s / each_s)))
        digits: int = 10 ** max(0, len(str(number)) - 2)
        return number // digits * digits

    def learn(self, run: PacedRun, number: int, took_s: float) -> None:
        """Take account of how long a sweep took."""
        expected_s = number * run.seed_s / self.processes
        if expected_s > OVERHEAD_S:
            self.slower = min(4.0, max(0.25, (took_s - OVERHEAD_S) / expected_s))
