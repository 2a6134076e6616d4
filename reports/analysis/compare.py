"""Counts, rates, availability and paired tables of a sweep, from its rows.

What is compared are the values of one coordinate: the mode, or a setting that varied. Everything else, the other
coordinates and the scenario, is the same within one comparison, and pairs are made of runs with the same seed; of a
setting that the seed decides there are none.

Runs with verdict `error` decide nothing: they are counted apart and are in no n. Vacuous runs, and those that were
given up (verdict `exhausted`), stay in n, because leaving them out would depend on the outcome; their number stands
beside each rate. Of availability, runs that were given up tell nothing: they did not come to its end.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import combinations
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Final

from reports.analysis.statistics import interval, mcnemar, mean_difference
from scenarios.single.rows import AVAILABILITY, BY_DAMAGE, ROUNDS, UNKNOWN
from scenarios.single.rows import COLUMNS as ROW_COLUMNS
from sim.config import shown
from sim.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from scenarios.sweep.store import Store
    from sim.config import Value

SCHEMA_VERSION: Final = 4
"""Version 1 compared modes only: `modes` in place of `groups`, and no availability; version 2 lacks what is inside by
damage; version 3 lacks `exhausted`.
"""
COLUMNS: Final = [
    "scenario",
    "mode",
    "seed",
    "verdict",
    "inside",
    "violations",
    "violations_inside",
    "vacuous",
    "faults_hash",
    *BY_DAMAGE,
    "warnings",
    *ROUNDS,
    *AVAILABILITY,
]
"""What is read of a sweep's rows, beside the settings that vary."""

MODE: Final = "mode"
"""The coordinate that is compared when nothing else is asked for."""
DRAWN: Final = "drawn_settings"
ANY: Final = "any"
"""Stands for a violation of whatever kind."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How often a kind of violation was seen: `k` of `n` runs, `low` to `high` with 95 % confidence.

    `inside` and `outside` split `k` by whether the violation breaks the mode's promise; `share_inside` of all n runs
    were inside it.
    """

    kind: str
    k: int
    n: int
    rate: float | None
    low: float
    high: float
    inside: int
    outside: int
    share_inside: float | None


@dataclass(frozen=True, slots=True)
class Level:
    """A measure of availability over the runs of a group; less is better."""

    measure: str
    mean: float
    median: float
    highest: int


@dataclass(frozen=True, slots=True)
class Group:
    """The runs with one value of what is compared: `runs`, which are each n, and beside them `errors`.

    Of the runs, `exhausted` were given up, and may have shown more.
    `warnings` are runs by kind of early warning; `rounds` are truncations, over all runs, that took one answer about
    an epoch's end, two, or more. `availability` is empty where rows do not tell of it. `inside_unclean` and
    `inside_lossy` are runs inside if damage is what unclean ends do, or what lossy ends do (`faults.damage`), None in
    modes without eligible leader replicas.
    """

    name: str
    runs: int
    errors: int
    stalled: int
    exhausted: int
    vacuous: int
    runs_inside: int
    share_inside: float | None
    inside_unclean: int | None
    inside_lossy: int | None
    rates: tuple[Rate, ...]
    warnings: dict[str, int]
    rounds: tuple[int, int, int]
    availability: tuple[Level, ...]


@dataclass(frozen=True, slots=True)
class Paired:
    """A kind on the same seeds in two groups, with the exact McNemar p of only_a against only_b."""

    kind: str
    both: int
    only_a: int
    only_b: int
    neither: int
    p: float


@dataclass(frozen=True, slots=True)
class Difference:
    """A measure of availability on the same seeds: the mean of a - b, `low` to `high` with 95 % confidence."""

    measure: str
    mean_a: float
    mean_b: float
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two groups on their `n` common seeds; `equal_faults` of these had the same faults as realised."""

    a: str
    b: str
    n: int
    equal_faults: int
    share_equal_faults: float | None
    kinds: tuple[Paired, ...]
    availability: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The values of the coordinate `by`, each by itself and in pairs, where all others are as `fixed` says."""

    scenario: str
    by: str
    fixed: dict[str, Value]
    groups: tuple[Group, ...]
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class _Run:
    verdict: str
    kinds: frozenset[str]
    kinds_inside: frozenset[str]
    inside: bool
    vacuous: bool
    faults_hash: str
    by_damage: tuple[int, ...]
    warnings: frozenset[str]
    rounds: tuple[int, ...]
    availability: tuple[int, ...]

    def shows(self, kind: str) -> bool:
        return bool(self.kinds) if kind == ANY else kind in self.kinds

    def shows_inside(self, kind: str) -> bool:
        return bool(self.kinds_inside) if kind == ANY else kind in self.kinds_inside


_Runs = dict[int, _Run]


def of_store(store: Store, by: str = MODE) -> list[Comparison]:
    """Compare what a sweep has done so far; see `compare`. A setting that the seed decides will do, too: each of its
    values has seeds of its own then, and there are no pairs.

    Raises:
        InputError: `by` did not vary, or the folder holds rows of a newer version, or none.
    """
    # One scenario after the other: a sweep of millions of runs would not fit into memory as a whole.
    names = sorted(scenario.name for scenario in store.sweep.scenarios)
    columns = [*COLUMNS, *store.grid]
    if by in (MODE, *store.grid):
        comparisons = [one for name in names for one in compare(store.rows(columns, name), store.grid, by)]
    else:
        grid = {**store.grid, by: _values_drawn(store, by)}
        drawn = (_with_drawn(store.rows([*columns, DRAWN], name), by) for name in names)
        comparisons = [one for rows in drawn for one in compare(rows, grid, by, paired=False)]
    if not comparisons:
        torn = [f"{store.folder.shown}: {error}" for error in store.damage.values()]
        raise InputError(*torn, f"{store.folder.shown} holds no rows yet: no wave of its sweep is done")
    return comparisons


def _values_drawn(store: Store, by: str) -> tuple[Value, ...]:
    """What a setting was drawn from, in the order of the scenario files."""
    draws = [draw for variant in store.sweep.variants for draw in variant.draw_config.items()]
    if not (found := [value for key, values in draws if key == by for value in values]):
        known = dict.fromkeys([MODE, *store.grid, *(key for key, _ in draws)])
        raise InputError(f"--by {by!r} did not vary in this sweep{did_you_mean(by, known)}")
    if store.run["schema_version"] < ROW_COLUMNS[DRAWN].since:
        raise InputError(
            f"--by {by!r}: rows of schema_version {store.run['schema_version']} do not tell what was drawn"
        )
    return tuple(dict.fromkeys(found))


def _with_drawn(rows: dict[str, list[Any]], key: str) -> dict[str, list[Any]]:
    """The rows whose seed decided a setting, with a column for it."""
    drawn = [json.loads(text) for text in rows[DRAWN]]
    places = [place for place, settings in enumerate(drawn) if key in settings]
    kept = {name: [column[place] for place in places] for name, column in rows.items()}
    return kept | {key: [drawn[place][key] for place in places]}


def compare(
    columns: Mapping[str, Sequence[Any]],
    grid: Mapping[str, Sequence[Value]] | None = None,
    by: str = MODE,
    *,
    paired: bool = True,
) -> list[Comparison]:
    """Compare the modes of each scenario, or the values of a setting.

    Args:
        columns: the columns `COLUMNS` of a sweep's rows, and those of `grid`.
        grid: the settings that varied, with their values.
        by: what to compare: `MODE` or one of `grid`.
        paired: whether groups have seeds in common.

    Returns:
        One comparison for each scenario and combination of the other coordinates, in order; modes in order of name,
        settings in that of the grid.

    Raises:
        InputError: `by` did not vary.
    """
    grid = grid or {}
    if by != MODE and by not in grid:
        raise InputError(f"--by {by!r} did not vary in this sweep{did_you_mean(by, [MODE, *grid])}")
    coordinates = [MODE, *grid]
    others = [name for name in coordinates if name != by]
    found: dict[tuple[Any, ...], dict[Any, _Runs]] = defaultdict(lambda: defaultdict(dict))
    keys = zip(*(columns[name] for name in ("scenario", *others)), strict=True)
    values = zip(*(columns[name] for name in COLUMNS if name not in ("scenario", MODE)), strict=True)
    for key, value, (seed, *rest) in zip(keys, columns[by], values, strict=True):
        found[key][value][seed] = _run(*rest)
    order: dict[str, Callable[[Any], Any]] = {key: list(values).index for key, values in grid.items()}
    order[MODE] = str

    def place(key: tuple[Any, ...]) -> list[Any]:
        return [key[0], *(order[name](value) for name, value in zip(others, key[1:], strict=True))]

    return [
        _comparison(
            key[0],
            by,
            dict(zip(others, key[1:], strict=True)),
            [(shown(value), found[key][value]) for value in sorted(found[key], key=order[by])],
            paired=paired,
        )
        for key in sorted(found, key=place)
    ]


def as_json(comparisons: Iterable[Comparison]) -> dict[str, Any]:
    """The comparisons as one JSON-able object."""
    return {"schema_version": SCHEMA_VERSION, "comparisons": [asdict(comparison) for comparison in comparisons]}


def _run(
    verdict: str,
    inside: bool,
    kinds: str,
    kinds_inside: str,
    vacuous: bool,
    faults_hash: str,
    inside_unclean: int,
    inside_lossy: int,
    warnings: str,
    *numbers: int,
) -> _Run:
    return _Run(
        verdict,
        _words(kinds),
        _words(kinds_inside),
        inside,
        vacuous,
        faults_hash,
        (inside_unclean, inside_lossy),
        _words(warnings),
        numbers[:3],
        numbers[3:],
    )


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(text.split(",")) if text else frozenset()


def _comparison(
    scenario: str, by: str, fixed: dict[str, Value], groups: Sequence[tuple[str, _Runs]], *, paired: bool
) -> Comparison:
    every = [run for _, runs in groups for run in runs.values()]
    kinds = [ANY, *sorted({kind for run in every for kind in run.kinds})]
    measures = tuple(
        name for at, name in enumerate(AVAILABILITY) if all(run.availability[at] != UNKNOWN for run in every)
    )
    decided = [(name, {seed: run for seed, run in runs.items() if run.verdict != "error"}) for name, runs in groups]
    return Comparison(
        scenario,
        by,
        fixed,
        tuple(_group(name, list(runs.values()), kinds, measures) for name, runs in groups),
        tuple(_pair(a, b, kinds, measures) for a, b in combinations(decided, 2)) if paired else (),
    )


def _group(name: str, every: Sequence[_Run], kinds: Iterable[str], measures: Sequence[str]) -> Group:
    verdicts = Counter(run.verdict for run in every)
    runs = [run for run in every if run.verdict != "error"]
    ended = [run for run in runs if run.verdict != "exhausted"]
    inside = sum(run.inside for run in runs)
    return Group(
        name=name,
        runs=len(runs),
        errors=verdicts["error"],
        stalled=verdicts["stalled"],
        exhausted=verdicts["exhausted"],
        vacuous=sum(run.vacuous for run in runs),
        runs_inside=inside,
        share_inside=_share(inside, len(runs)),
        inside_unclean=_known(run.by_damage[0] for run in runs),
        inside_lossy=_known(run.by_damage[1] for run in runs),
        rates=tuple(_rate(kind, runs, inside) for kind in kinds),
        warnings=dict(sorted(Counter(kind for run in runs for kind in run.warnings).items())),
        rounds=(
            sum(run.rounds[0] for run in runs),
            sum(run.rounds[1] for run in runs),
            sum(run.rounds[2] for run in runs),
        ),
        availability=tuple(_level(measure, ended) for measure in measures if ended),
    )


def _rate(kind: str, runs: Sequence[_Run], runs_inside: int) -> Rate:
    k, n = sum(run.shows(kind) for run in runs), len(runs)
    inside = sum(run.shows_inside(kind) for run in runs)
    low, high = interval(k, n)
    return Rate(kind, k, n, _share(k, n), low, high, inside, k - inside, _share(runs_inside, n))


def _level(measure: str, runs: Sequence[_Run]) -> Level:
    place = AVAILABILITY.index(measure)
    numbers = [run.availability[place] for run in runs]
    return Level(measure, fmean(numbers), median(numbers), max(numbers))


def _pair(a: tuple[str, _Runs], b: tuple[str, _Runs], kinds: Iterable[str], measures: Sequence[str]) -> Pair:
    pairs = [(run, b[1][seed]) for seed, run in a[1].items() if seed in b[1]]
    ended = [pair for pair in pairs if "exhausted" not in (pair[0].verdict, pair[1].verdict)]
    equal = sum(first.faults_hash == second.faults_hash for first, second in pairs)
    return Pair(
        a[0],
        b[0],
        len(pairs),
        equal,
        _share(equal, len(pairs)),
        tuple(_paired(kind, pairs) for kind in kinds),
        tuple(_difference(measure, ended) for measure in measures if ended),
    )


def _paired(kind: str, pairs: Sequence[tuple[_Run, _Run]]) -> Paired:
    table = Counter((first.shows(kind), second.shows(kind)) for first, second in pairs)
    only_a, only_b = table[True, False], table[False, True]
    return Paired(kind, table[True, True], only_a, only_b, table[False, False], mcnemar(only_a, only_b))


def _difference(measure: str, pairs: Sequence[tuple[_Run, _Run]]) -> Difference:
    place = AVAILABILITY.index(measure)
    numbers = [(first.availability[place], second.availability[place]) for first, second in pairs]
    mean, low, high = mean_difference([one - other for one, other in numbers])
    return Difference(measure, fmean(one for one, _ in numbers), fmean(other for _, other in numbers), mean, low, high)


def _known(inside: Iterable[int]) -> int | None:
    """How many runs are inside; None if that is known of no run."""
    known = [number for number in inside if number != UNKNOWN]
    return sum(known) if known else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
