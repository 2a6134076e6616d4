"""A sweep, and how it is divided.

A *variant* is a scenario at one point of a grid of settings. A *unit* is one seed of one variant in all its modes; a
piece is a range of units (`scenarios.sweep.extent`). A *wave* is the part that a driver runs at once and that counts as
a whole; a *chunk* is the part of a wave that one task runs. The division never affects the rows.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final

from scenarios import plugged
from scenarios.format import relevance
from scenarios.format.grid import Grid, points
from scenarios.format.plugins import ensure
from scenarios.format.scenario import Scenario, from_json
from scenarios.single import run
from scenarios.single.rows import Row
from scenarios.sweep.extent import Extent, Piece, merged
from sim.errors import InputError
from sim.kernel.streams import SEED_END
from sim.protocol.modes import MODES, Mode, Promised
from sim.protocol.modes import mode as mode_named
from sim.protocol.rules import Rules

TASKS_PER_SLOT: Final = 8
"""Tasks of a long wave per slot."""
TASK_SECONDS_MIN: Final = 0.25
"""Shortest task; each has an overhead of some 20 ms."""


@dataclass(frozen=True)
class Sweep:
    """A sweep.

    Attributes:
        scenarios: scenarios with distinct names.
        modes: scenario name -> modes. A mode outside `MODES` is stored with all its rules.
        end_seed: end of seeds, exclusive.
        grid: settings that vary; each scenario runs at every point.
        blows: blows after each early warning (`scenarios.single.run.run_blows`). Their runs have rows of their own,
            which no extent and no rate of the seeds includes.
        reuses: whether a row is taken over from another mode with the same history (`scenarios.single.reuse`), instead
            of running the seed again.
        varied: rules in whose values the modes differ, because they were asked for.

    Raises:
        InputError: there are no seeds, or too large ones; two modes have the same name.
    """

    scenarios: tuple[Scenario, ...]
    modes: Mapping[str, tuple[Mode, ...]]
    first_seed: int
    end_seed: int
    rules: Mapping[str, str] = field(default_factory=dict)
    grid: Grid = field(default_factory=dict)
    blows: int = 0
    reuses: bool = True
    varied: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.first_seed < self.end_seed <= SEED_END:
            raise InputError(f"seeds {self.first_seed}..{self.end_seed} are not a range between 0 and 2^63")
        known = {**MODES}
        for mode in (mode for modes in self.modes.values() for mode in modes):
            if known.setdefault(mode.name, mode) != mode:
                raise InputError(f"two modes are called {mode.name!r}; rows could not distinguish them")

    @cached_property
    def variants(self) -> tuple[Scenario, ...]:
        """Each scenario at all points of the grid."""
        return tuple(scenario.with_settings(point) for scenario in self.scenarios for point in points(self.grid))

    def names(self, scenario: Scenario) -> list[str]:
        """Names of a scenario's modes, in the order of runs."""
        return [mode.name for mode in self.modes[scenario.name]]

    def key(self, variant: Scenario, mode: str) -> tuple[Any, ...]:
        """The key of a variant's rows in a mode, without the seed: scenario, mode and the settings that vary."""
        return (variant.name, mode, *(variant.config[key] for key in self.grid))

    def extent(self) -> Extent:
        """All seeds of all variants."""
        return Extent((variant, self.first_seed, self.end_seed) for variant in range(len(self.variants)))

    def count(self, pieces: Iterable[Piece]) -> int:
        """Number of runs in some pieces."""
        return sum(len(self.modes[self.variants[variant].name]) * (end - first) for variant, first, end in pieces)

    def row_keys(self) -> list[list[tuple[Any, ...]]]:
        """For each variant the keys of its modes, in the order of runs."""
        return [[self.key(variant, mode) for mode in self.names(variant)] for variant in self.variants]

    def idle(self) -> list[str]:
        """Given rules and settings without effect, one line each."""
        runs = [(scenario, mode) for scenario in self.scenarios for mode in self.modes[scenario.name]]
        given = (word.partition("=")[0] for scenario in self.scenarios for word in scenario.overrides)
        return relevance.idle(runs, self.rules, (*given, *self.grid), self.varied)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``run.json`` and executors."""
        own = {
            mode.name: _mode_to_json(mode) for modes in self.modes.values() for mode in modes if mode.name not in MODES
        }
        return {
            "scenarios": [scenario.to_json() for scenario in self.scenarios],
            "modes": {scenario.name: self.names(scenario) for scenario in self.scenarios},
            **({"own_modes": own} if own else {}),
            "seeds": [[self.first_seed, self.end_seed]],
            "rules": dict(sorted(self.rules.items())),
            "grid": {key: list(values) for key, values in self.grid.items()},
            **({"blows": self.blows} if self.blows else {}),
            **({} if self.reuses else {"reuses": False}),
            **({"plugins": plugged.hashes()} if plugged.LOADED else {}),
        }

    @property
    def title(self) -> str:
        """Scenarios, modes and seeds in one line, as job pages show them."""
        modes = dict.fromkeys(mode.name for modes in self.modes.values() for mode in modes)
        scenarios = ", ".join(scenario.name for scenario in self.scenarios)
        return f"{scenarios} in {', '.join(modes)}, seeds {self.first_seed}..{self.end_seed}"

    def to_text(self) -> str:
        """`to_json` as text, with the plug-ins that are loaded; `rows_of` takes it."""
        return json.dumps({**self.to_json(), "shipped": plugged.shipped()})


def _mode_to_json(mode: Mode) -> dict[str, Any]:
    about = {"release": mode.release, "follows": mode.follows, "summary": mode.summary, "source": mode.source}
    return {**about, "rules": mode.rules.as_dict(), "promise": asdict(mode.promise)}


def _mode_from_json(name: str, data: Mapping[str, Any]) -> Mode:
    rules, promise = Rules.of(data["rules"]), Promised(**data["promise"])
    return Mode(name, data["release"], data["summary"], rules, promise, data["follows"], data.get("source", ""))


@lru_cache(maxsize=1)
def _from_text(text: str) -> Sweep:
    data = json.loads(text)
    ensure(data["shipped"])
    return from_run(data)


def from_run(data: Mapping[str, Any]) -> Sweep:
    """The sweep of a ``run.json`` of any version; raises InputError if a mode or plug-in is missing."""
    if missing := sorted(data.get("plugins", {}).keys() - plugged.LOADED.keys()):
        raise InputError(f"the sweep has plug-in {missing[0]}: load it with --plugin")
    known = {**MODES, **{name: _mode_from_json(name, mode) for name, mode in data.get("own_modes", {}).items()}}
    ranges = seed_ranges(data)
    first_seed, end_seed = ranges[0][0], ranges[-1][1]
    return Sweep(
        scenarios=tuple(from_json(scenario) for scenario in data["scenarios"]),
        modes={name: tuple(mode_named(mode, known) for mode in modes) for name, modes in data["modes"].items()},
        first_seed=first_seed,
        end_seed=end_seed,
        rules=data["rules"],
        grid={key: tuple(values) for key, values in data.get("grid", {}).items()},
        blows=data.get("blows", 0),
        reuses=data.get("reuses", True),
    )


def seed_ranges(data: Mapping[str, Any]) -> list[tuple[int, int]]:
    """The requested ranges of seeds in ``run.json``."""
    return merged([(first, end) for first, end in data["seeds"]])


def grid_of(sweep: str) -> list[str]:
    """The settings that vary in a sweep (`Sweep.to_text`)."""
    return list(_from_text(sweep).grid)


def variants_of(sweep: str) -> int:
    """The number of variants of a sweep (`Sweep.to_text`)."""
    return len(_from_text(sweep).variants)


def rows_of(sweep: str, pieces: Iterable[Piece], seconds: float = math.inf) -> Iterator[Row]:
    """Run some pieces of a sweep (`Sweep.to_text`), on a driver or an executor.

    No further unit starts after these seconds; the driver assigns the rest again. So a far too low estimate loses no
    more work than a correct one if the sweep is stopped.
    """
    parsed = _from_text(sweep)
    end = time.perf_counter() + seconds
    begun = False
    for variant, first, stop in pieces:
        scenario = parsed.variants[variant]
        settings = {key: scenario.config[key] for key in parsed.grid}
        for seed in range(first, stop):
            if begun and time.perf_counter() > end:
                return
            begun = True
            modes = parsed.modes[scenario.name]
            for row in run.run_modes(scenario, modes, seed, parsed.rules, parsed.blows, reuses=parsed.reuses):
                yield row | settings


def chunk_count(seconds: float, slots: int, task_seconds: float) -> int:
    """Number of tasks for a wave of some CPU seconds."""
    short = min(TASKS_PER_SLOT * slots, seconds / TASK_SECONDS_MIN)
    rounds = max(seconds / task_seconds, short) / slots
    return slots * max(1, round(rounds))
