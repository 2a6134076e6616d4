"""Counts, rates, availability and paired tables of a sweep, from its rows.

A comparison covers the values of one coordinate: the mode, or a setting that varied. The scenario and all other
coordinates are fixed in it. Pairs are runs with the same seed; a setting that the seed decides has none.

Runs with verdict `error` are inconclusive: they are counted separately, and excluded from every n. Vacuous runs, and
those that used up their budget (verdict `exhausted`), stay in n, because excluding them would depend on the outcome;
their number is shown beside each rate. Exhausted runs are excluded from availability: they did not run to the end.
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
from sim.config import shown
from sim.errors import InputError, did_you_mean
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from reports.analysis.frame import Array, Mask
    from scenarios.sweep.store import Store
    from sim.config import Value

COMPARE_VERSION: Final = 5
"""Version 1 compares modes only: it has `modes` instead of `groups`, and no availability. Version 2 lacks the counts by
damage, version 3 lacks `exhausted`, version 4 lacks `common_seeds` and the first sentence.
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
"""Columns to read, besides the settings that vary."""

MODE: Final = "mode"
"""The coordinate that is compared by default."""
SIDE: Final = "side"
"""The coordinate if runs of two folders are compared."""
ANY: Final = "any"
"""Stands for a violation of any kind."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Rate of a kind of violation: `k` of `n` runs, with the 95 % interval `low` to `high`.

    `inside` and `outside` split `k` by whether the violation breaks the mode's promise; `share_inside` is the share of
    all n runs whose faults were inside the promise.
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
    """A measure of availability over the runs of a group; lower is better."""

    measure: str
    mean: float
    median: float
    highest: int


@dataclass(frozen=True, slots=True)
class Group:
    """The runs with one value of the compared coordinate: `runs`, which is every n, and besides them `errors`.

    `exhausted` of the runs used up their budget, and might have shown more violations; `clean` ones ended without any
    violation, and not stalled.
    `warnings` are runs by kind of early warning; `rounds` are truncations, over all runs, that took one response about
    an epoch's end offset, two, or more. `availability` is empty if rows lack it. `inside_unclean` and
    `inside_lossy` are runs inside if damage is what unclean ends do, or what lossy ends do (`faults.promise.damage`),
    None in modes without eligible leader replicas.
    """

    name: str
    runs: int
    errors: int
    stalled: int
    exhausted: int
    clean: int
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
    """One kind on the same seeds in two groups, with the exact McNemar p of only_a against only_b."""

    kind: str
    both: int
    only_a: int
    only_b: int
    neither: int
    p: float


@dataclass(frozen=True, slots=True)
class AvailabilityDifference:
    """A measure of availability on the same seeds: the mean of a - b, `low` to `high` with 95 % confidence."""

    measure: str
    mean_a: float
    mean_b: float
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two groups on their `n` common seeds, `equal_faults` of which had the same realised faults."""

    a: str
    b: str
    n: int
    equal_faults: int
    share_equal_faults: float | None
    kinds: tuple[Paired, ...]
    availability: tuple[AvailabilityDifference, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The values of the coordinate `by`, each by itself and in pairs, with all others as in `fixed`.

    `common_seeds` is the number of seeds that every group ran.
    """

    scenario: str
    by: str
    fixed: dict[str, Value]
    common_seeds: int
    groups: tuple[Group, ...]
    pairs: tuple[Pair, ...]


def of_store(store: Store, by: str = MODE, kinds: Sequence[str] | None = None) -> list[Comparison]:
    """Compare the completed runs of a sweep; see `compare`. `by` may also be a setting that the seed decides: then each
    value has its own seeds, and there are no pairs.

    Raises:
        InputError: `by` did not vary, or the folder holds rows of a newer version, or none.
    """
    # One scenario at a time: a sweep of many millions of runs would not fit into memory as a whole.
    names = sorted(store.scenarios)
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


def inconclusive(comparisons: Iterable[Comparison]) -> list[str]:
    """Why compared runs are inconclusive, as the sweep itself says; empty if they are conclusive."""
    from scenarios.sweep.summary import undecided

    return [
        reason
        for one in comparisons
        for reason in undecided(
            " ".join([one.scenario, *(f"{key}={shown(value)}" for key, value in one.fixed.items())]),
            *(sum(getattr(group, count) for group in one.groups) for count in ("runs", "vacuous", "exhausted")),
        )
    ]


def read(store: Store, columns: Iterable[str], scenario: str) -> Frame:
    """Read columns of a scenario's rows wave by wave: a million rows as Arrow tables would take a gigabyte."""
    import pyarrow.compute as pc

    needed = list(dict.fromkeys(["scenario", *columns]))
    several = len(store.sweep.scenarios) > 1

    def tables() -> Iterator[pa.Table]:
        for _, table in store.tables(needed):
            yield table.filter(pc.field("scenario") == scenario) if several else table

    return Frame.of_tables(tables())


def _values_drawn(store: Store, by: str) -> tuple[Value, ...]:
    """The values from which a setting was drawn, in the order of the scenario files."""
    draws = [draw for variant in store.sweep.variants for draw in variant.draw_config.items()]
    if not (found := [value for key, values in draws if key == by for value in values]):
        known = dict.fromkeys([MODE, *store.grid, *(key for key, _ in draws)])
        raise InputError(f"--by {by!r} did not vary in this sweep{did_you_mean(by, known)}")
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
        kinds: kinds of violation; None: any, and each that occurred.
        paired: whether groups have seeds in common.

    Returns:
        One comparison for each scenario and combination of the other coordinates; modes are in order of name, settings
        in order of the grid.

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
            [GroupRuns(shown(value), frame, found[key][value]) for value in sorted(found[key], key=order[by])],
            kinds,
            paired=paired,
        )
        for key in sorted(found, key=place)
    ]


def of_sides(
    scenario: str, fixed: dict[str, Value], sides: Sequence[GroupRuns], kinds: Sequence[str] | None, about: str
) -> Comparison:
    """Compare groups of runs that may be of different folders; one of the kinds is `about`."""
    if kinds is None:
        seen = {kind for side in sides for kind in kinds_in(side.frame, "violations", side.places)}
        kinds = list(dict.fromkeys([about, ANY, *sorted(seen)]))
    return _comparison(scenario, SIDE, fixed, sides, kinds, paired=True)


def release_order(mode: str) -> tuple[int, str]:
    """Sort key of modes: bundled ones in order of release, then others by name."""
    names = list(MODES)
    return (names.index(mode) if mode in names else len(names)), mode


def as_json(comparisons: Iterable[Comparison]) -> dict[str, Any]:
    """The comparisons as one JSON-able object."""
    return {"schema_version": COMPARE_VERSION, "comparisons": [asdict(comparison) for comparison in comparisons]}


class GroupRuns:
    """The runs of a group.

    Args:
        name: name of the group.
        frame: the frame that holds their rows.
        places: indices of their rows in it, in order of the seeds.
    """

    def __init__(self, name: str, frame: Frame, places: Array) -> None:
        self.name = name
        self.frame = frame
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    def without(self, verdict: str) -> GroupRuns:
        """The runs with another verdict."""
        return self.only(~self.have("verdict", verdict.__eq__))

    def only(self, kept: Mask | Array) -> GroupRuns:
        """The runs selected by a mask or by indices."""
        return GroupRuns(self.name, self.frame, self.places[kept])

    def have(self, column: str, test: Callable[[Any], bool]) -> Mask:
        """Mask of the runs whose value passes a test."""
        found: Mask = self.frame.coded(column).where(test)[self.places]
        return found

    def show(self, column: str, kind: str) -> Mask:
        """Mask of the runs that have a kind in a column of kinds."""
        return self.have(column, bool if kind == ANY else lambda cell: kind in words(cell))

    def numbers(self, column: str) -> Array:
        """The runs' values in a column."""
        found: Array = self.frame.numbers(column)[self.places]
        return found

    def count(self, column: str, test: Callable[[Any], bool]) -> int:
        """Number of runs whose value passes a test."""
        return int(self.have(column, test).sum())


def _comparison(
    scenario: str,
    by: str,
    fixed: dict[str, Value],
    groups: Sequence[GroupRuns],
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
    if by == MODE:  # In a pair, the older release comes first.
        decided.sort(key=lambda group: release_order(group.name))
    return Comparison(
        scenario,
        by,
        fixed,
        len(reduce(np.intersect1d, seeds)) if paired else 0,
        tuple(_group(group, kinds, measures) for group in groups),
        tuple(_pair(a, b, kinds, measures) for a, b in combinations(decided, 2)) if paired else (),
    )


def _group(every: GroupRuns, kinds: Iterable[str], measures: Sequence[str]) -> Group:
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
        clean=runs.count("verdict", "ok".__eq__),
        vacuous=int(runs.numbers("vacuous").sum()),
        runs_inside=inside,
        share_inside=share_of(inside, len(runs)),
        inside_unclean=unclean,
        inside_lossy=lossy,
        rates=tuple(_rate(kind, runs, inside) for kind in kinds),
        warnings={kind: int(runs.show("warnings", kind).sum()) for kind in warned},
        rounds=(one, two, more),
        availability=tuple(_level(measure, ended) for measure in measures if len(ended)),
    )


def _rate(kind: str, runs: GroupRuns, runs_inside: int) -> Rate:
    k, n = int(runs.show("violations", kind).sum()), len(runs)
    inside = int(runs.show("violations_inside", kind).sum())
    low, high = interval(k, n)
    return Rate(kind, k, n, share_of(k, n), low, high, inside, k - inside, share_of(runs_inside, n))


def _level(measure: str, runs: GroupRuns) -> Level:
    import numpy as np

    numbers = runs.numbers(measure)
    return Level(measure, _mean(numbers), float(np.median(numbers)), int(numbers.max()))


def _pair(a: GroupRuns, b: GroupRuns, kinds: Iterable[str], measures: Sequence[str]) -> Pair:
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
        share_of(equal, len(one)),
        tuple(_paired(kind, one, other) for kind in kinds),
        tuple(_difference(measure, *ended) for measure in measures if len(ended[0])),
    )


def _paired(kind: str, first: GroupRuns, second: GroupRuns) -> Paired:
    a, b = first.show("violations", kind), second.show("violations", kind)
    both, only_a, only_b = int((a & b).sum()), int((a & ~b).sum()), int((b & ~a).sum())
    return Paired(kind, both, only_a, only_b, len(first) - both - only_a - only_b, mcnemar(only_a, only_b))


def _difference(measure: str, first: GroupRuns, second: GroupRuns) -> AvailabilityDifference:
    a, b = first.numbers(measure), second.numbers(measure)
    mean, low, high = mean_difference(a - b)
    return AvailabilityDifference(measure, _mean(a), _mean(b), mean, low, high)


def _mean(numbers: Array) -> float:
    return int(numbers.sum()) / len(numbers)


def _known(inside: Array) -> int | None:
    """Number of runs that are inside; None if no row has the information."""
    known = inside[inside != UNKNOWN]
    return int(known.sum()) if len(known) else None


def share_of(part: int, whole: int) -> float | None:
    """A part as a share; None of nothing."""
    return part / whole if whole else None
