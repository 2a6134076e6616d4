"""Requests for a run or a sweep, with their checks.

The command line builds them from its options, `highwater.functions` from its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sim.config import Value, parse
from sim.errors import InputError
from sim.kernel.streams import SEED_END
from sim.protocol import rules as known_rules

if TYPE_CHECKING:
    from pathlib import Path

    from reports.evidence.replay import Origin
    from scenarios.format.grid import Grid
    from scenarios.format.scenario import Scenario
    from scenarios.properties.releases import Release
    from scenarios.sweep.store import Store
    from scenarios.sweep.units import Sweep
    from sim.protocol.modes import Mode

T = TypeVar("T")
RUNS_MAX: Final = 10**12
"""A thousand cores would need weeks for so many."""
COMBINATIONS_MAX: Final = 10_000
_SEED: Final = re.compile(r"0x[0-9a-f]{1,99}|[0-9]{1,99}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A request for one run; see `highwater.functions.run`.

    Without a `source`, `plan` brings it along; otherwise that is the ``plan.json`` of a run of `source`.
    """

    source: str | None = None
    plan: Path | None = None
    seed: int | None = None
    mode: str | None = None
    scenario: str | None = None
    rules: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Value] = field(default_factory=dict)
    strict: bool = False
    blow: str = ""
    without_faults: Sequence[str] = ()
    partition: str | None = None

    def origin(self) -> Origin:
        """Scenario, seed and overrides of the run.

        Raises:
            InputError: the request is not valid.
        """
        from scenarios.format import selection

        found = self._origin()
        return replace(found, scenario=selection.showing(found.scenario, self.partition))

    def _origin(self) -> Origin:
        from reports.evidence import replay

        laid = self.rules, self.settings
        if self.plan is not None:
            if self.without_faults:
                raise InputError("a recorded run has its own faults: --without-fault goes without --plan")
            if self.blow:
                raise InputError("a recorded run has the faults of its blows in its plan: --blow goes without --plan")
            if self.scenario is not None:
                raise InputError("--scenario chooses among those of a sweep's folder, and goes without --plan")
            return replay.of_plan(self.plan, self.source, self.seed, *laid, strict=self.strict)
        if self.source is None:
            raise InputError(
                "a failed run is missing: one of a sweep's folder, a scenario, or a recorded run: --plan FILE"
            )
        return replay.origin(
            self.source,
            self.seed,
            self.scenario,
            *laid,
            strict=self.strict,
            blow=self.blow,
            without=self.without_faults,
        )

    def one(self) -> tuple[Origin, Mode]:
        """The run's `origin` and its mode.

        Raises:
            InputError: the request is not valid, or names no mode where there are several.
        """
        origin = self.origin()
        return origin, origin.only_mode(self.mode)


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """A request for a sweep: a range of seeds of some scenarios in some modes; see `highwater.functions.sweep`."""

    scenarios: Sequence[str]
    seeds: range
    modes: Sequence[str] = ()
    every_mode: bool = False
    rules: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    strict: bool = False
    blows: int = 0
    release: Release | None = None
    reuses: bool = True
    without_faults: Sequence[str] = ()
    varied: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def sweep(self) -> Sweep:
        """Check the request and return its sweep.

        Raises:
            InputError: the request is not valid.
        """
        from scenarios.format import selection
        from scenarios.format.blow import BLOWS_MAX
        from scenarios.format.grid import points
        from scenarios.sweep.units import Sweep

        grid = {key: tuple(values) for key, values in self.settings.items() if len(values) > 1}
        fixed = {key: values[0] for key, values in self.settings.items() if key not in grid}
        chosen = self._chosen(fixed, grid)
        by_scenario = {
            scenario.name: self._varied(selection.modes(scenario, self.modes, everyone=self.every_mode))
            for scenario in chosen
        }
        self._check_size(grid, sum(map(len, by_scenario.values())))
        for scenario, point in product(chosen, points(grid)):
            selection.check_settings(scenario, point)
        if not 0 <= self.blows <= BLOWS_MAX:
            raise InputError(f"--blows {self.blows} is not valid: a number from 0 to {BLOWS_MAX} is needed")
        if self.blows and not any(scenario.drawn for scenario in chosen):
            raise InputError("--blows follow early warnings of random scenarios, and these are scripted")
        rules, varied = self.rules, tuple(self.varied)
        return Sweep(
            chosen, by_scenario, self.seeds.start, self.seeds.stop, rules, grid, self.blows, self.reuses, varied
        )

    def _varied(self, modes: Sequence[Mode]) -> tuple[Mode, ...]:
        """Each mode with every combination of the values of varied rules."""
        from sim.protocol.modes import changed

        if not self.varied:
            return tuple(modes)
        combinations = [dict(zip(self.varied, values, strict=True)) for values in product(*self.varied.values())]
        if len(combinations) > COMBINATIONS_MAX:
            raise InputError(
                f"--rule asks for {len(combinations)} combinations; at most {COMBINATIONS_MAX} are possible"
            )
        found = [changed(mode, values) for mode in modes for values in combinations]
        return tuple({mode.name: mode for mode in found}.values())

    def _chosen(self, settings: Mapping[str, Value], grid: Grid) -> tuple[Scenario, ...]:
        from scenarios.format import selection

        if not self.scenarios:
            raise InputError("a scenario is missing")
        names = dict.fromkeys(self.scenarios)
        chosen = tuple(
            selection.scenario(
                name,
                settings,
                strict=self.strict,
                later=grid,
                release=self.release,
                without=self.without_faults,
            )
            for name in names
        )
        found = [scenario.name for scenario in chosen]
        twice = sorted({name for name in found if found.count(name) > 1})
        if twice:
            raise InputError(f"two scenarios are called {twice[0]!r}; rows could not distinguish them")
        return chosen

    def _check_size(self, grid: Grid, runs_each: int) -> None:
        combinations = prod(map(len, grid.values()))
        if combinations > COMBINATIONS_MAX:
            raise InputError(f"--set asks for {combinations} combinations; at most {COMBINATIONS_MAX} are possible")
        runs = (self.seeds.stop - self.seeds.start) * combinations * runs_each
        if runs > RUNS_MAX:
            raise InputError(f"--seeds asks for {runs} runs in all; at most {RUNS_MAX} are possible")


def sweep_request(
    scenarios: str | Sequence[str],
    modes: str | Iterable[str],
    seeds: str | range,
    *,
    rules: Mapping[str, str | Sequence[str]] | None,
    settings: Mapping[str, object] | None,
    release: str | None,
    server_properties: str | Path | Sequence[str | Path],
    without_faults: Sequence[str],
    blows: int,
    reuse: bool,
) -> SweepRequest:
    """The request of `highwater.functions.sweep` and `highwater.spark.runs`.

    Raises:
        InputError: a value is not valid.
    """
    from pathlib import Path

    from scenarios.properties.cluster import Cluster

    files = [server_properties] if isinstance(server_properties, str | Path) else server_properties
    cluster = Cluster.of(files, release)
    chosen = cluster.release
    named = tuple(modes.split(",") if isinstance(modes, str) and modes else modes)
    given = setting_lists(settings)
    fixed, varied = rule_lists(rules)
    return SweepRequest(
        [scenarios] if isinstance(scenarios, str) else list(scenarios),
        seed_range(seeds),
        named or (() if chosen is None else (chosen.mode.name,)),
        rules=fixed,
        varied=varied,
        settings={**{key: (value,) for key, value in cluster.settings(given).items()}, **given},
        blows=blows,
        release=chosen,
        reuses=reuse,
        without_faults=without_faults,
    )


@dataclass(frozen=True, slots=True)
class StoreRequest:
    """A request for the rows of a sweep's folder.

    Attributes:
        folder: the folder.
        scenario: only rows of this scenario.
        mode: only rows of these modes, as ``hw,kip101``.
    """

    folder: str
    scenario: str | None = None
    mode: str | None = None

    def store(self) -> Store:
        """Open the folder.

        Raises:
            InputError: it is no sweep's, or has no such scenario or mode.
        """
        from scenarios.sweep.store import Store

        return Store(self.folder).choose(self.scenario, None if self.mode is None else self.mode.split(","))

    def pair(self, other: str) -> tuple[tuple[Store, Store], list[str]]:
        """Open this folder and another one, to compare them; also return the modes that are named for them.

        Raises:
            InputError: a folder is no sweep's, or lacks a scenario or mode, or there are more than two modes.
        """
        from scenarios.sweep.store import Store

        modes = [] if self.mode is None else self.mode.split(",")
        if len(modes) > 2:
            raise InputError(f"--mode {self.mode!r} names {len(modes)} modes; with two folders, name one for each")
        one, two = Store(self.folder), Store(other)
        ends = zip((one, two), (modes[:1], modes[-1:]), strict=True)
        for store, named in ends:
            store.choose(self.scenario, named or None)
        return (one, two), modes


# Parts of a request.


def seed(given: str | int) -> int:
    """Check a seed; text is decimal, or hexadecimal with ``0x``.

    Raises:
        InputError: it is not a seed.
    """
    number = given if isinstance(given, int) else -1
    if isinstance(given, str) and _SEED.fullmatch(given):
        number = int(given, 0 if given[1:2] in ("x", "X") else 10)
    if not 0 <= number < SEED_END:
        raise InputError(
            f"seed {str(given)!r} is not valid: a whole number from 0 to 2^63 - 1 is needed, decimal or 0x"
        )
    return number


def seed_range(given: str | range) -> range:
    """Check a range of seeds; text is ``A..B`` (without B), or ``N`` for ``0..N``.

    Raises:
        InputError: it is not a range, has gaps, or is empty.
    """
    if isinstance(given, range):
        if given.step != 1:
            raise InputError(f"seeds {given} is not valid: a sweep runs every seed of a range")
        given = f"{given.start}..{given.stop}"
    first, dots, end = given.partition("..")
    if not dots and not _SEED.fullmatch(given):
        raise InputError(f"--seeds {given!r} is not a range: A..B is needed, as in 0..1000 (B is not part of it), or N")
    start, stop = (seed(first), seed(end)) if dots else (0, seed(first))
    if stop <= start:
        raise InputError(f"--seeds {given!r} is empty: the end is not part of the range and must be above the start")
    return range(start, stop)


def rules(given: Mapping[str, str] | None) -> dict[str, str]:
    """Check rules to override.

    Raises:
        InputError: with all their problems.
    """
    found = dict(given or {})
    _read_all(known_rules.check, found)
    return found


def rule_lists(given: Mapping[str, str | Sequence[str]] | None) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Check rules to override, and those of which lists or tuples of values are swept in every combination.

    Raises:
        InputError: with all their problems, among them empty lists and repeated values.
    """

    def read(name: str, value: object) -> tuple[str, ...]:
        values = tuple(value) if isinstance(value, list | tuple) else (str(value),)
        for one in values:
            known_rules.check(name, one)
        if not values or len(set(values)) < len(values):
            raise InputError(f"{name} = {value!r} is not valid: it {'names a value twice' if values else 'is empty'}")
        return values

    found = _read_all(read, given or {})
    fixed = {name: values[0] for name, values in found.items() if len(values) == 1}
    return fixed, {name: values for name, values in found.items() if len(values) > 1}


def settings(given: Mapping[str, object] | None) -> dict[str, Value]:
    """Check settings to override, one value each.

    Raises:
        InputError: with all their problems.
    """
    return _read_all(parse, given or {})


def setting_lists(given: Mapping[str, object] | None) -> dict[str, tuple[Value, ...]]:
    """Check settings to override; lists or tuples of values are swept in every combination.

    Raises:
        InputError: with all their problems, among them empty lists and repeated values.
    """

    def read(key: str, value: object) -> tuple[Value, ...]:
        values = tuple(parse(key, one) for one in (value if isinstance(value, list | tuple) else [value]))
        if not values or len(set(values)) < len(values):
            raise InputError(f"{key} = {value!r} is not valid: it {'names a value twice' if values else 'is empty'}")
        return values

    return _read_all(read, given or {})


def _read_all(read: Callable[[str, Any], T], given: Mapping[str, Any]) -> dict[str, T]:
    """Read each value; raise one InputError with all problems."""
    found: dict[str, T] = {}
    problems: list[str] = []
    for key, value in given.items():
        try:
            found[key] = read(key, value)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(*problems)
    return found
