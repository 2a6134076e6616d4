"""Counts and failing runs of a sweep, kept wave by wave: of a sweep that grows, each wave is read once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.analysis.compare import ANY, MODE, Comparison, Group, Rate, release_order, share_of
from reports.analysis.frame import Frame, words
from reports.analysis.statistics import interval
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from reports.analysis.frame import Array
    from scenarios.format.scenario import Scenario
    from scenarios.sweep.store import Store
    from scenarios.sweep.units import Sweep

_OUTCOME: Final = ("verdict", "violations", "violations_inside", "inside", "vacuous")
OK: Final = "ok"
ERROR: Final = "error"


@dataclass(frozen=True, slots=True)
class RunKind:
    """What runs of a sweep have in common that are counted together.

    Attributes:
        variant: number of the scenario at a point of the grid (`Sweep.variants`).
        mode: number of the mode among those of the scenario.
        verdict: their verdict.
        kinds: kinds of violation.
        broken: those inside the promise.
        inside: whether their faults were inside the promise.
        vacuous: whether too little happened (`scenarios.single.vacuity`).
    """

    variant: int
    mode: int
    verdict: str
    kinds: tuple[str, ...]
    broken: tuple[str, ...]
    inside: bool
    vacuous: bool

    @property
    def shown(self) -> tuple[str, ...]:
        """Kinds of violation; the verdict of a run that failed without one."""
        return self.kinds or (self.verdict,)


@dataclass(frozen=True, slots=True)
class FailingRun:
    """A run whose verdict is not ``ok``."""

    kind: RunKind
    seed: int


@dataclass(frozen=True, slots=True)
class _WaveCounts:
    """The numbers of runs of a wave by kind, and the seeds of those that failed, each with the number of its kind;
    `beside` are the seeds that earlier waves contain.
    """

    beside: str
    counts: Counter[int]
    seeds: Array
    kinds: Array


class SweepTally:
    """Counts of a sweep's seeds; runs with blows are left out."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self._modes = {scenario.name: sweep.names(scenario) for scenario in sweep.scenarios}
        self._variants = {
            (variant.name, *(variant.config[key] for key in sweep.grid)): place
            for place, variant in enumerate(sweep.variants)
        }
        self._kinds: dict[RunKind, int] = {}
        self._waves: dict[str, _WaveCounts] = {}
        self._seeds: Array | None = None
        self._codes: Array | None = None

    def update(self, store: Store) -> None:
        """Read the waves that are new; forget those that no longer count, or count in another way."""
        import numpy as np

        there = {wave.name: str(wave.beside.pieces()) for wave in store.waves if wave.name not in store.damage}
        self._waves = {name: known for name, known in self._waves.items() if there.get(name) == known.beside}
        columns = ["scenario", "mode", "seed", *_OUTCOME, *self.sweep.grid]
        for wave, table in store.tables(columns, self._waves):
            try:
                self._waves[wave.name] = self._count(Frame.of_tables([table]), there[wave.name])
            except (KeyError, ValueError):
                raise InputError(f"{store.folder.shown}: {wave.name} has rows of another sweep") from None
        parts = [self._waves[name] for name in there if name in self._waves]
        seeds = np.concatenate([np.zeros(0, np.int64), *(part.seeds for part in parts)])
        codes = np.concatenate([np.zeros(0, np.int32), *(part.kinds for part in parts)])
        places = np.array([(kind.variant, kind.mode) for kind in self._kinds] or [(0, 0)])
        order = np.lexsort((places[codes, 1], places[codes, 0], seeds))
        self._seeds, self._codes = seeds[order], codes[order]

    def _count(self, frame: Frame, beside: str) -> _WaveCounts:
        import numpy as np

        counts = Counter[int]()
        seeds, kinds = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        names = ["scenario", *self.sweep.grid, MODE, *_OUTCOME]
        for values, places in frame.groups(names).items() if len(frame) else ():
            *variant, mode, verdict, violations, broken, inside, vacuous = values
            scenario = str(variant[0])
            kind = RunKind(
                self._variants[tuple(variant)],
                self._modes[scenario].index(mode),
                verdict,
                tuple(words(violations)),
                tuple(words(broken)),
                bool(inside),
                bool(vacuous),
            )
            number = self._kinds.setdefault(kind, len(self._kinds))
            counts[number] += len(places)
            if verdict != OK:
                seeds.append(frame.numbers("seed")[places])
                kinds.append(np.full(len(places), number, np.int32))
        return _WaveCounts(beside, counts, np.concatenate(seeds), np.concatenate(kinds))

    def counts(self) -> Counter[RunKind]:
        """The numbers of runs."""
        total = sum((wave.counts for wave in self._waves.values()), Counter[int]())
        kinds = list(self._kinds)
        return Counter({kinds[number]: count for number, count in total.items()})

    def comparisons(self) -> list[Comparison]:
        """The modes of each scenario at each point of the grid: rates only, without pairs and availability."""
        counts = self.counts()
        found = []
        for place, variant in enumerate(self.sweep.variants):
            here = [(kind, count) for kind, count in counts.items() if kind.variant == place]
            kinds = [ANY, *sorted({name for kind, _ in here if kind.verdict != ERROR for name in kind.kinds})]
            groups = [
                _group(mode, [(kind, count) for kind, count in here if kind.mode == number], kinds)
                for number, mode in enumerate(self.sweep.names(variant))
            ]
            if here:
                found.append(Comparison(variant.name, MODE, self.point(variant), 0, tuple(groups), ()))
        return found

    def point(self, variant: Scenario) -> dict[str, bool | int | str]:
        """The settings of a variant that vary."""
        return {key: variant.config[key] for key in self.sweep.grid}

    def failing(self, mode: str | None = None, kind: str | None = None) -> Failing:
        """The failing runs by seed, of one mode and with one kind of violation (or verdict), or all."""
        import numpy as np

        kinds = list(self._kinds)
        is_wanted = [
            (mode is None or self.mode_of(found) == mode) and (kind is None or kind in found.shown) for found in kinds
        ]
        seeds = np.zeros(0, np.int64) if self._seeds is None else self._seeds
        codes = np.zeros(0, np.int32) if self._codes is None else self._codes
        chosen = np.array([*is_wanted, False])[codes]
        return Failing(kinds, seeds[chosen], codes[chosen])

    @property
    def modes(self) -> list[str]:
        """Names of all modes, in order of release."""
        return sorted({name for names in self._modes.values() for name in names}, key=release_order)

    @property
    def shown_kinds(self) -> list[str]:
        """Kinds of violation of the failing runs, and verdicts of those without one."""
        return sorted({name for kind in self.counts() if kind.verdict != OK for name in kind.shown})

    def mode_of(self, kind: RunKind) -> str:
        """The name of its mode."""
        return self._modes[self.sweep.variants[kind.variant].name][kind.mode]


class Failing:
    """Failing runs, in order of seed, scenario and mode."""

    def __init__(self, kinds: Sequence[RunKind], seeds: Array, codes: Array) -> None:
        self._kinds = kinds
        self._seeds = seeds
        self._codes = codes

    def __len__(self) -> int:
        return len(self._seeds)

    def rows(self, first: int, end: int) -> Iterator[FailingRun]:
        """Those from `first` to before `end`."""
        pairs = zip(self._codes[first:end].tolist(), self._seeds[first:end].tolist(), strict=True)
        return (FailingRun(self._kinds[code], seed) for code, seed in pairs)


def _group(mode: str, counts: Iterable[tuple[RunKind, int]], kinds: Sequence[str]) -> Group:
    counts = list(counts)
    ended = [(kind, count) for kind, count in counts if kind.verdict != ERROR]
    runs = sum(count for _, count in ended)
    inside = sum(count for kind, count in ended if kind.inside)
    verdicts = Counter[str]()
    for kind, count in counts:
        verdicts[kind.verdict] += count
    return Group(
        name=mode,
        runs=runs,
        errors=verdicts[ERROR],
        stalled=verdicts["stalled"],
        exhausted=verdicts["exhausted"],
        clean=verdicts[OK],
        vacuous=sum(count for kind, count in ended if kind.vacuous),
        runs_inside=inside,
        share_inside=share_of(inside, runs),
        inside_unclean=None,
        inside_lossy=None,
        rates=tuple(_rate(name, ended, runs, inside) for name in kinds),
        warnings={},
        rounds=(0, 0, 0),
        availability=(),
    )


def _rate(name: str, counts: Iterable[tuple[RunKind, int]], runs: int, runs_inside: int) -> Rate:
    k = inside = 0
    for kind, count in counts:
        k += count * (bool(kind.kinds) if name == ANY else name in kind.kinds)
        inside += count * (bool(kind.broken) if name == ANY else name in kind.broken)
    return Rate(name, k, runs, share_of(k, runs), *interval(k, runs), inside, k - inside, share_of(runs_inside, runs))
