"""What a sweep consists of, and how it is cut.

A *variant* is a scenario at one point of a grid of settings, or as it is. A *unit* is one seed of one variant in all
its modes. A *wave* is a fixed range of units: what a stopped sweep has
finished. A *chunk* is the part of a wave that one task does; how many there are never shows in the rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

from scenarios import run
from scenarios.grid import points
from scenarios.scenario import Scenario, from_json
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scenarios.grid import Grid
    from scenarios.rows import Row

WAVES_MAX: Final = 32
WAVE_UNITS_MIN: Final = 2_000
"""A few seconds of work: in smaller waves, starting them and waiting for their last task would cost too much."""
TASKS_PER_SLOT: Final = 8
"""In a wave, if it is long enough: slots stand idle for half a task at its end."""
TASK_SECONDS_MIN: Final = 0.25
"""A task costs some 20 ms by itself."""


@dataclass(frozen=True)
class Sweep:
    """What to run.

    Attributes:
        scenarios: with names that differ.
        modes: scenario name -> modes.
        first_seed: seeds from here,
        end_seed: without this one.
        rules: overrides of rules.
        grid: settings that vary; each scenario is run at every point.

    Raises:
        InputError: no seeds, or seeds that rows have no room for.
    """

    scenarios: tuple[Scenario, ...]
    modes: Mapping[str, tuple[str, ...]]
    first_seed: int
    end_seed: int
    rules: Mapping[str, str] = field(default_factory=dict)
    grid: Grid = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.first_seed < self.end_seed <= 1 << 63:
            raise InputError(f"seeds {self.first_seed}..{self.end_seed} are not a range between 0 and 2^63")

    @property
    def seeds(self) -> int:
        """How many seeds each variant gets."""
        return self.end_seed - self.first_seed

    @cached_property
    def variants(self) -> tuple[Scenario, ...]:
        """Each scenario at all points of the grid."""
        return tuple(scenario.with_settings(point) for scenario in self.scenarios for point in points(self.grid))

    def key(self, variant: Scenario, mode: str) -> tuple[Any, ...]:
        """What the rows of a variant in a mode share: scenario, mode and the settings that vary."""
        return (variant.name, mode, *(variant.config[key] for key in self.grid))

    def units(self) -> range:
        """All units: the seeds of the first variant, then those of the next."""
        return range(self.seeds * len(self.variants))

    def runs(self, units: range) -> Iterator[tuple[Scenario, str, int]]:
        """The runs of some units."""
        for unit in units:
            index, seed = divmod(unit, self.seeds)
            scenario = self.variants[index]
            for mode in self.modes[scenario.name]:
                yield scenario, mode, self.first_seed + seed

    def count(self, units: range) -> int:
        """How many runs some units are."""
        total = 0
        for index, scenario in enumerate(self.variants):
            first, end = index * self.seeds, (index + 1) * self.seeds
            total += len(self.modes[scenario.name]) * len(range(max(first, units.start), min(end, units.stop)))
        return total

    def seed_ranges(self) -> dict[tuple[Any, ...], tuple[int, int, int, int]]:
        """What `scenarios.store.seed_ranges` must find."""
        each = (self.seeds, self.seeds, self.first_seed, self.end_seed - 1)
        return {self.key(variant, mode): each for variant in self.variants for mode in self.modes[variant.name]}

    def to_json(self) -> dict[str, Any]:
        """What ``run.json`` keeps and executors get."""
        return {
            "scenarios": [scenario.to_json() for scenario in self.scenarios],
            "modes": {scenario.name: list(self.modes[scenario.name]) for scenario in self.scenarios},
            "seeds": [self.first_seed, self.end_seed],
            "rules": dict(sorted(self.rules.items())),
            "grid": {key: list(values) for key, values in self.grid.items()},
        }

    def to_text(self) -> str:
        """`to_json` as text; `rows_of` takes it."""
        return json.dumps(self.to_json())


@lru_cache(maxsize=1)
def _from_text(text: str) -> Sweep:
    data = json.loads(text)
    first_seed, end_seed = data["seeds"]
    return Sweep(
        scenarios=tuple(from_json(scenario) for scenario in data["scenarios"]),
        modes={name: tuple(modes) for name, modes in data["modes"].items()},
        first_seed=first_seed,
        end_seed=end_seed,
        rules=data["rules"],
        grid={key: tuple(values) for key, values in data["grid"].items()},
    )


def grid_of(sweep: str) -> list[str]:
    """The settings that vary in a sweep.

    Args:
        sweep: `Sweep.to_text`.
    """
    return list(_from_text(sweep).grid)


def rows_of(sweep: str, units: range) -> Iterator[Row]:
    """Run some units, on a driver or an executor.

    Args:
        sweep: `Sweep.to_text`.
        units: what to run.
    """
    parsed = _from_text(sweep)
    for scenario, mode, seed in parsed.runs(units):
        yield run.run_row(scenario, mode, seed, parsed.rules) | {key: scenario.config[key] for key in parsed.grid}


def waves(units: range) -> list[range]:
    """Cut a sweep into waves, by its size alone."""
    size = max(WAVE_UNITS_MIN, -(-len(units) // WAVES_MAX))
    return [units[start : start + size] for start in range(0, len(units), size)]


def chunks_of(wave: range, count: int) -> list[range]:
    """Cut a wave into `count` chunks of equal size, or as many as it has units."""
    count = min(count, len(wave))
    return [wave[len(wave) * index // count : len(wave) * (index + 1) // count] for index in range(count)]


def chunk_count(seconds: float, slots: int, task_seconds: float) -> int:
    """How many tasks a wave of so many CPU seconds should be."""
    short = min(TASKS_PER_SLOT * slots, seconds / TASK_SECONDS_MIN)
    rounds = max(seconds / task_seconds, short) / slots
    return slots * max(1, round(rounds))
