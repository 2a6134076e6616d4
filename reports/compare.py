"""Counts, rates and paired tables of a sweep, from its rows.

Runs with verdict `error` decide nothing: they are counted apart and are in no n. Vacuous runs stay in n, because
leaving them out would depend on the outcome; their number stands beside each rate.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from reports.statistics import interval, mcnemar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SCHEMA_VERSION: Final = 1
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
    "warnings",
    "rounds_1",
    "rounds_2",
    "rounds_more",
]
"""What is read of a sweep's rows."""

ANY: Final = "any"
"""Stands for a violation of whatever kind."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How often a kind of violation was seen: `k` of `n` runs, `low` to `high` with 95 % confidence.

    `inside` and `outside` split `k` by whether the violation breaks the mode's promise.
    """

    kind: str
    k: int
    n: int
    rate: float | None
    low: float
    high: float
    inside: int
    outside: int


@dataclass(frozen=True, slots=True)
class ModeCounts:
    """One mode of one scenario: `runs` that decided something, and beside them `errors`.

    `warnings` are runs by kind of early warning; `rounds` are truncations, over all runs, that took one answer about
    an epoch's end, two, or more.
    """

    mode: str
    runs: int
    errors: int
    stalled: int
    vacuous: int
    runs_inside: int
    share_inside: float | None
    rates: tuple[Rate, ...]
    warnings: dict[str, int]
    rounds: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Paired:
    """A kind on the same seeds in two modes, with the exact McNemar p of only_a against only_b."""

    kind: str
    both: int
    only_a: int
    only_b: int
    neither: int
    p: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Two modes on their `n` common seeds; `equal_faults` of these had the same faults as realised."""

    a: str
    b: str
    n: int
    equal_faults: int
    share_equal_faults: float | None
    kinds: tuple[Paired, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All modes of one scenario, each by itself and in pairs."""

    scenario: str
    modes: tuple[ModeCounts, ...]
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class _Run:
    verdict: str
    kinds: frozenset[str]
    kinds_inside: frozenset[str]
    inside: bool
    vacuous: bool
    faults_hash: str
    warnings: frozenset[str]
    rounds: tuple[int, int, int]

    def shows(self, kind: str) -> bool:
        return bool(self.kinds) if kind == ANY else kind in self.kinds

    def shows_inside(self, kind: str) -> bool:
        return bool(self.kinds_inside) if kind == ANY else kind in self.kinds_inside


def compare(columns: Mapping[str, Sequence[Any]]) -> list[Comparison]:
    """Compare the modes of each scenario.

    Args:
        columns: the columns `COLUMNS` of a sweep's rows.

    Returns:
        One comparison for each scenario, in order of name; modes in order of name too.
    """
    scenarios: dict[str, dict[str, dict[int, _Run]]] = defaultdict(lambda: defaultdict(dict))
    for scenario, mode, seed, *rest in zip(*(columns[name] for name in COLUMNS), strict=True):
        scenarios[scenario][mode][seed] = _run(*rest)
    return [_comparison(scenario, modes) for scenario, modes in sorted(scenarios.items())]


def as_json(comparisons: Iterable[Comparison]) -> dict[str, Any]:
    """The comparisons as one JSON-able object."""
    return {"schema_version": SCHEMA_VERSION, "scenarios": [asdict(comparison) for comparison in comparisons]}


def _run(
    verdict: str,
    inside: bool,
    kinds: str,
    kinds_inside: str,
    vacuous: bool,
    faults_hash: str,
    warnings: str,
    *rounds: int,
) -> _Run:
    one, two, more = rounds
    return _Run(
        verdict, _words(kinds), _words(kinds_inside), inside, vacuous, faults_hash, _words(warnings), (one, two, more)
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split(",")) if text else frozenset()


def _comparison(scenario: str, modes: Mapping[str, Mapping[int, _Run]]) -> Comparison:
    kinds = [ANY, *sorted({kind for runs in modes.values() for run in runs.values() for kind in run.kinds})]
    decided = {
        mode: {seed: run for seed, run in runs.items() if run.verdict != "error"} for mode, runs in modes.items()
    }
    return Comparison(
        scenario,
        tuple(_mode_counts(mode, list(modes[mode].values()), kinds) for mode in sorted(modes)),
        tuple(_pair(a, b, decided[a], decided[b], kinds) for a, b in combinations(sorted(modes), 2)),
    )


def _mode_counts(mode: str, every: Sequence[_Run], kinds: Iterable[str]) -> ModeCounts:
    verdicts = Counter(run.verdict for run in every)
    runs = [run for run in every if run.verdict != "error"]
    inside = sum(run.inside for run in runs)
    return ModeCounts(
        mode=mode,
        runs=len(runs),
        errors=verdicts["error"],
        stalled=verdicts["stalled"],
        vacuous=sum(run.vacuous for run in runs),
        runs_inside=inside,
        share_inside=_share(inside, len(runs)),
        rates=tuple(_rate(kind, runs) for kind in kinds),
        warnings=dict(sorted(Counter(kind for run in runs for kind in run.warnings).items())),
        rounds=(
            sum(run.rounds[0] for run in runs),
            sum(run.rounds[1] for run in runs),
            sum(run.rounds[2] for run in runs),
        ),
    )


def _rate(kind: str, runs: Sequence[_Run]) -> Rate:
    k, n = sum(run.shows(kind) for run in runs), len(runs)
    inside = sum(run.shows_inside(kind) for run in runs)
    return Rate(kind, k, n, _share(k, n), *interval(k, n), inside=inside, outside=k - inside)


def _pair(a: str, b: str, runs_a: Mapping[int, _Run], runs_b: Mapping[int, _Run], kinds: Iterable[str]) -> Pair:
    pairs = [(run, runs_b[seed]) for seed, run in runs_a.items() if seed in runs_b]
    equal = sum(first.faults_hash == second.faults_hash for first, second in pairs)
    return Pair(a, b, len(pairs), equal, _share(equal, len(pairs)), tuple(_paired(kind, pairs) for kind in kinds))


def _paired(kind: str, pairs: Sequence[tuple[_Run, _Run]]) -> Paired:
    table = Counter((first.shows(kind), second.shows(kind)) for first, second in pairs)
    only_a, only_b = table[True, False], table[False, True]
    return Paired(kind, table[True, True], only_a, only_b, table[False, False], mcnemar(only_a, only_b))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
