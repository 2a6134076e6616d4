"""Counts, rates, availability and paired tables of a sweep, from its rows.

What is compared are the values of one coordinate: the mode, or a setting that varied. Everything else, the other
coordinates and the scenario, is the same within one comparison, and pairs are made of runs with the same seed; of a
setting that the seed decides there are none.

Runs with verdict `error` decide nothing: they are counted apart and are in no n. Vacuous runs, and those that were
given up (verdict `exhausted`), stay in n, because leaving them out would depend on the outcome; their number stands
beside each rate. Of availability, runs that were given up tell nothing: they did not come to its end.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from reports.analysis.frame import DRAWN, Frame, kinds_in, words
from reports.analysis.statistics import interval, mcnemar, mean_difference
from scenarios.single.rows import AVAILABILITY, BY_DAMAGE, ROUNDS, UNKNOWN
from scenarios.single.rows import COLUMNS as ROW_COLUMNS
from sim.config import shown
from sim.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from reports.analysis.frame import Array, Mask
    from scenarios.sweep.store import Store
    from sim.config import Value

COMPARE_VERSION: Final = 5
"""Version 1 compared modes only: `modes` in place of `groups`, and no availability; version 2 lacks what is inside by
damage; version 3 lacks `exhausted`; version 4 lacks `common_seeds` and the first sentence.
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
    `inside_lossy` are runs inside if damage is what unclean ends do, or what lossy ends do (`faults.promise.damage`),
    None in modes without eligible leader replicas.
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
    """The values of the coordinate `by`, each by itself and in pairs, where all others are as `fixed` says.

    `common_seeds` are those that every group ran.
    """

    scenario: str
    by: str
    fixed: dict[str, Value]
    common_seeds: int
    groups: tuple[Group, ...]
    pairs: tuple[Pair, ...]


def of_store(store: Store, by: str = MODE, kinds: Sequence[str] | None = None) -> list[Comparison]:
    """Compare what a sweep has done so far; see `compare`. A setting that the seed decides will do, too: each of its
    values has seeds of its own then, and there are no pairs.

    Raises:
        InputError: `by` did not vary, or the folder holds rows of a newer version, or none.
    """
    # One scenario after the other: a sweep of many millions of runs would not fit into memory as a whole.
    names = sorted(scenario.name for scenario in store.sweep.scenarios)
    columns = [*COLUMNS, *store.grid]
    is_drawn = by not in (MODE, *store.grid)
    grid = {**store.grid, by: _values_drawn(store, by)} if is_drawn else store.grid
    comparisons = []
    for name in names:
        frame = read(store, [*columns, DRAWN] if is_drawn else columns, name)
        comparisons += compare(frame.with_drawn(by) if is_drawn else frame, grid, by, kinds, paired=not is_drawn)
    if not comparisons:
        raise store.no_rows()
    return comparisons


def read(store: Store, columns: Iterable[str], scenario: str) -> Frame:
    """Some columns of a scenario's rows, wave by wave: as Arrow tables a million of them would take a gigabyte."""
    needed = list(dict.fromkeys(["scenario", *columns]))
    several = len(store.sweep.scenarios) > 1

    def tables() -> Iterator[pa.Table]:
        for _, table in store.tables(needed):
            if several:
                places = [place for place, name in enumerate(table["scenario"].to_pylist()) if name == scenario]
                yield table.take(places) if places else table.slice(0, 0)
            else:
                yield table

    return Frame.of_tables(tables())


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


def compare(
    rows: Frame | Mapping[str, Any],
    grid: Mapping[str, Sequence[Value]] | None = None,
    by: str = MODE,
    kinds: Sequence[str] | None = None,
    *,
    paired: bool = True,
) -> list[Comparison]:
    """Compare the modes of each scenario, or the values of a setting.

    Args:
        rows: the columns `COLUMNS` of a sweep's rows, and those of `grid`.
        grid: the settings that varied, with their values.
        by: what to compare: `MODE` or one of `grid`.
        kinds: of violations; None: any, and each that was seen.
        paired: whether groups have seeds in common.

    Returns:
        One comparison for each scenario and combination of the other coordinates, in order; modes in order of name,
        settings in that of the grid.

    Raises:
        InputError: `by` did not vary.
    """
    grid = grid or {}
    frame = rows if isinstance(rows, Frame) else Frame(rows)
    if by != MODE and by not in grid:
        raise InputError(f"--by {by!r} did not vary in this sweep{did_you_mean(by, [MODE, *grid])}")
    others = [name for name in (MODE, *grid) if name != by]
    found: dict[tuple[Any, ...], dict[Any, Array]] = defaultdict(dict)
    for (*key, value), places in (frame.groups(["scenario", *others, by]) if len(frame) else {}).items():
        found[tuple(key)][value] = places
    order: dict[str, Callable[[Any], Any]] = {key: list(values).index for key, values in grid.items()}
    order[MODE] = str

    def place(key: tuple[Any, ...]) -> list[Any]:
        return [key[0], *(order[name](value) for name, value in zip(others, key[1:], strict=True))]

    return [
        _comparison(
            key[0],
            by,
            dict(zip(others, key[1:], strict=True)),
            [_Runs(shown(value), frame, found[key][value]) for value in sorted(found[key], key=order[by])],
            kinds,
            paired=paired,
        )
        for key in sorted(found, key=place)
    ]


def as_json(comparisons: Iterable[Comparison]) -> dict[str, Any]:
    """The comparisons as one JSON-able object."""
    return {"schema_version": COMPARE_VERSION, "comparisons": [asdict(comparison) for comparison in comparisons]}


class _Runs:
    """The runs of a group.

    Args:
        name: of the group.
        frame: of which they are rows.
        places: where they stand there, in order of the seeds.
    """

    def __init__(self, name: str, frame: Frame, places: Array) -> None:
        self.name = name
        self.frame = frame
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    def without(self, verdict: str) -> _Runs:
        """Those that ended otherwise."""
        return self.only(~self.have("verdict", verdict.__eq__))

    def only(self, kept: Mask | Array) -> _Runs:
        """Those of a mask, or at some places."""
        return _Runs(self.name, self.frame, self.places[kept])

    def have(self, column: str, test: Callable[[Any], bool]) -> Mask:
        """Which of them have a value that passes a test."""
        found: Mask = self.frame.coded(column).where(test)[self.places]
        return found

    def show(self, column: str, kind: str) -> Mask:
        """Which of them have a kind in a column of kinds."""
        return self.have(column, bool if kind == ANY else lambda cell: kind in words(cell))

    def numbers(self, column: str) -> Array:
        """A column of theirs."""
        found: Array = self.frame.numbers(column)[self.places]
        return found

    def count(self, column: str, test: Callable[[Any], bool]) -> int:
        """How many of them have a value that passes a test."""
        return int(self.have(column, test).sum())


def _comparison(
    scenario: str,
    by: str,
    fixed: dict[str, Value],
    groups: Sequence[_Runs],
    kinds: Sequence[str] | None,
    *,
    paired: bool,
) -> Comparison:
    import numpy as np

    if kinds is None:
        seen = {kind for group in groups for kind in kinds_in(group.frame, "violations", group.places)}
        kinds = [ANY, *sorted(seen)]
    measures = tuple(name for name in AVAILABILITY if all((group.numbers(name) != UNKNOWN).all() for group in groups))
    decided = [group.without("error") for group in groups]
    seeds = [group.numbers("seed") for group in decided]
    return Comparison(
        scenario,
        by,
        fixed,
        len(reduce(np.intersect1d, seeds)) if paired else 0,
        tuple(_group(group, kinds, measures) for group in groups),
        tuple(_pair(a, b, kinds, measures) for a, b in combinations(decided, 2)) if paired else (),
    )


def _group(every: _Runs, kinds: Iterable[str], measures: Sequence[str]) -> Group:
    runs = every.without("error")
    ended = runs.without("exhausted")
    inside = int(runs.numbers("inside").sum())
    warned = sorted(kinds_in(runs.frame, "warnings", runs.places))
    one, two, more = (int(runs.numbers(name).sum()) for name in ROUNDS)
    unclean, lossy = (_known(runs.numbers(name)) for name in BY_DAMAGE)
    return Group(
        name=every.name,
        runs=len(runs),
        errors=len(every) - len(runs),
        stalled=runs.count("verdict", "stalled".__eq__),
        exhausted=len(runs) - len(ended),
        vacuous=int(runs.numbers("vacuous").sum()),
        runs_inside=inside,
        share_inside=_share(inside, len(runs)),
        inside_unclean=unclean,
        inside_lossy=lossy,
        rates=tuple(_rate(kind, runs, inside) for kind in kinds),
        warnings={kind: int(runs.show("warnings", kind).sum()) for kind in warned},
        rounds=(one, two, more),
        availability=tuple(_level(measure, ended) for measure in measures if len(ended)),
    )


def _rate(kind: str, runs: _Runs, runs_inside: int) -> Rate:
    k, n = int(runs.show("violations", kind).sum()), len(runs)
    inside = int(runs.show("violations_inside", kind).sum())
    low, high = interval(k, n)
    return Rate(kind, k, n, _share(k, n), low, high, inside, k - inside, _share(runs_inside, n))


def _level(measure: str, runs: _Runs) -> Level:
    import numpy as np

    numbers = runs.numbers(measure)
    return Level(measure, _mean(numbers), float(np.median(numbers)), int(numbers.max()))


def _pair(a: _Runs, b: _Runs, kinds: Iterable[str], measures: Sequence[str]) -> Pair:
    import numpy as np

    _, first, second = np.intersect1d(a.numbers("seed"), b.numbers("seed"), assume_unique=True, return_indices=True)
    one, other = a.only(first), b.only(second)
    equal = int((one.numbers("faults_hash") == other.numbers("faults_hash")).sum())
    given_up = one.have("verdict", "exhausted".__eq__) | other.have("verdict", "exhausted".__eq__)
    ended = one.only(~given_up), other.only(~given_up)
    return Pair(
        a.name,
        b.name,
        len(one),
        equal,
        _share(equal, len(one)),
        tuple(_paired(kind, one, other) for kind in kinds),
        tuple(_difference(measure, *ended) for measure in measures if len(ended[0])),
    )


def _paired(kind: str, first: _Runs, second: _Runs) -> Paired:
    a, b = first.show("violations", kind), second.show("violations", kind)
    both, only_a, only_b = int((a & b).sum()), int((a & ~b).sum()), int((b & ~a).sum())
    return Paired(kind, both, only_a, only_b, len(first) - both - only_a - only_b, mcnemar(only_a, only_b))


def _difference(measure: str, first: _Runs, second: _Runs) -> Difference:
    a, b = first.numbers(measure), second.numbers(measure)
    mean, low, high = mean_difference(a - b)
    return Difference(measure, _mean(a), _mean(b), mean, low, high)


def _mean(numbers: Array) -> float:
    return int(numbers.sum()) / len(numbers)


def _known(inside: Array) -> int | None:
    """How many runs are inside; None if that is known of no run."""
    known = inside[inside != UNKNOWN]
    return int(known.sum()) if len(known) else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
