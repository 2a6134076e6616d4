"""Counts, in runs without mutants, how often each mutated place is executed, and how often its mutant would differ.

One run answers for all mutants, because a mutated place notes that it was asked whether its mutant is on or not. A
mutant that never differs in a scenario cannot be found there: its random runs lack something.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from scenarios.campaign.campaign import Campaign
from scenarios.format.catalogue import load
from scenarios.single.run import run_mutated
from sim.protocol.modes import mode as mode_named
from sim.protocol.mutants import MUTANTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scenarios.campaign.record import Record
    from scenarios.campaign.runner import Runner

SEEDS: Final = 50
"""Seeds of a case, at most."""


@dataclass(frozen=True, slots=True)
class Census:
    """Counts over runs of one scenario, for the mutants that are hunted in one mode.

    Attributes:
        took: mutant -> runs that executed its place.
        differed: mutant -> runs in which it would have decided otherwise.
    """

    scenario: str
    mode: str
    runs: int
    took: Counter[str] = field(default_factory=Counter)
    differed: Counter[str] = field(default_factory=Counter)


def modes() -> list[str]:
    """Modes in which mutants are hunted."""
    return list(dict.fromkeys(mutant.mode for mutant in MUTANTS.values()))


def scenarios() -> list[str]:
    """Scenarios in which mutants are hunted."""
    return list(dict.fromkeys(mutant.scenario for mutant in MUTANTS.values()))


def census(names: Sequence[str], seeds: range, runner: Runner, record: Record | None = None) -> Iterator[Census]:
    """Count over some seeds of random scenarios, each in each of `modes`."""
    found = [Census(name, mode, len(seeds)) for name in names for mode in modes()]
    parts = [(first, min(first + SEEDS, seeds.stop)) for first in range(seeds.start, seeds.stop, SEEDS)]
    results = Campaign(count, runner, record).run((one.scenario, one.mode, *part) for one in found for part in parts)
    for one in found:
        for _, (took, differed) in islice(results, len(parts)):
            one.took.update(took)
            one.differed.update(differed)
        yield one


def count(case: tuple[str, str, int, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Count over the seeds of a case (scenario, mode, first seed, end): see `Census.took` and `differed`."""
    name, mode, *ends = case
    scenario = load(name)
    took: Counter[str] = Counter()
    differed: Counter[str] = Counter()
    for seed in range(*ends):
        _, seen = run_mutated(scenario, mode_named(mode), seed)
        took.update(seen.took)
        differed.update(seen.differed)
    return dict(took), dict(differed)
