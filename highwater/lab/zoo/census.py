"""Counts, in runs without mutants, how often each mutated place is executed, and how often its mutant would differ.

One run answers for all mutants, because a mutated place notes that it was asked whether its mutant is on or not. A
mutant that never differs in a scenario cannot be found there: its random runs lack something.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scenarios.format.catalogue import load
from scenarios.single.run import prepare_process, run_mutated
from sim.protocol.modes import mode as mode_named
from sim.protocol.mutants import MUTANTS

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    return list(dict.fromkeys(one.mode for one in MUTANTS.values()))


def scenarios() -> list[str]:
    """Scenarios in which mutants are hunted."""
    return list(dict.fromkeys(one.scenario for one in MUTANTS.values()))


def census(scenario_name: str, seeds: range) -> Iterator[Census]:
    """Count over some seeds of a random scenario, in each of `modes`."""
    prepare_process()
    scenario = load(scenario_name)
    for name in modes():
        mode = mode_named(name)
        took: Counter[str] = Counter()
        differed: Counter[str] = Counter()
        for seed in seeds:
            _, seen = run_mutated(scenario, mode, seed)
            took.update(seen.took)
            differed.update(seen.differed)
        yield Census(scenario.name, name, len(seeds), took, differed)
