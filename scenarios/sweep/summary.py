"""Counts of a sweep (``summary.json``), and its list of failing runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from scenarios.format.scenario import Expectation, Scenario
from scenarios.single import coverage_column as coverage
from scenarios.single.rows import BY_DAMAGE, ROUNDS, ROWS_VERSION, UNKNOWN, Row, is_internal
from scenarios.single.vacuity import VACUOUS, VACUOUS_MAX
from scenarios.sweep.error_groups import ErrorGroups
from scenarios.sweep.extent import Extent
from scenarios.sweep.units import Sweep
from sim import exit_codes
from sim.protocol.decisions import added_that_decided
from sim.protocol.rules import ADDED_VALUES

if TYPE_CHECKING:
    from scenarios.sweep.store import Store

FAILING_MAX: Final = 10_000
"""Most lines of ``violations.jsonl``; the rows contain all failures."""
EXHAUSTED_MAX: Final = 0.01
"""Share of exhausted runs of a scenario above which a sweep is inconclusive."""
_VERDICTS: Final = ("ok", "violation", "stalled", "error", "exhausted")
_GROUP: Final = (
    "verdict",
    "expected",
    "inside",
    *BY_DAMAGE,
    "violations",
    "violations_inside",
    "warnings",
    "vacuous",
    "reused",
)
_FAILING: Final = (
    "scenario",
    "mode",
    "seed",
    "verdict",
    "violations",
    "violations_inside",
    "inside",
    "signature",
    "error",
    "replay",
)


_OF_BLOW: Final = ("blow", "warning", "warning_us", "variant")


class _Counts:
    """Counts of one scenario in one mode: numbers of runs, and of truncations in `rounds`.

    Runs with verdict ``error`` are only in `runs`, `verdicts` and `unexpected`.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.verdicts: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.kinds_inside: Counter[str] = Counter()
        self.warnings: Counter[str] = Counter()
        self.rounds: Counter[str] = Counter()
        self.inside = 0
        self.by_damage: Counter[str] = Counter()
        self.vacuous = 0
        self.unexpected = 0
        self.reused = 0

    @property
    def decided(self) -> int:
        """Runs without an error: n of every rate."""
        return self.runs - self.verdicts["error"]

    def add(self, group: dict[str, Any]) -> None:
        """Add a group of ``count_all`` equal rows."""
        number = group["count_all"]
        self.runs += number
        self.verdicts[group["verdict"]] += number
        self.unexpected += number * (not group["expected"])
        self.reused += number * bool(group["reused"])
        if group["verdict"] == "error":
            return
        self.kinds.update(dict.fromkeys(filter(None, group["violations"].split(",")), number))
        self.kinds_inside.update(dict.fromkeys(filter(None, group["violations_inside"].split(",")), number))
        self.warnings.update(dict.fromkeys(filter(None, group["warnings"].split(",")), number))
        self.inside += number * group["inside"]
        self.by_damage.update({name: number * group[name] for name in BY_DAMAGE if group[name] != UNKNOWN})
        self.vacuous += number * group["vacuous"]

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "verdicts": {verdict: self.verdicts[verdict] for verdict in _VERDICTS},
            "kinds": {
                kind: {
                    "n": number,
                    "inside": self.kinds_inside[kind],
                    "rate": _share(number, self.decided),
                    "runs_inside_share": _share(self.inside, self.decided),
                }
                for kind, number in sorted(self.kinds.items())
            },
            "warnings": dict(sorted(self.warnings.items())),
            "rounds": {name.removeprefix("rounds_"): self.rounds[name] for name in ROUNDS},
            "inside": self.inside,
            "inside_share": _share(self.inside, self.decided),
            **{name: self.by_damage.get(name) for name in BY_DAMAGE},
            "vacuous": self.vacuous,
            "unexpected": self.unexpected,
            "reused": self.reused,
        }


class _BlowCounts:
    """Counts of the runs with blows of one scenario in one mode, which are in no rate of its seeds.

    Runs with verdict ``error`` are only in `runs`, `errors` and `unexpected`.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.second = 0
        self.errors = 0
        self.unexpected = 0
        self.after: dict[str, tuple[Counter[str], Counter[str]]] = {}
        """Kind of warning -> kind of violation -> runs, all ("" counts all runs) and inside the promise."""

    def add(self, group: dict[str, Any]) -> None:
        """Add a group of ``count_all`` equal rows."""
        number = group["count_all"]
        self.runs += number
        self.second += number * group["second"]
        self.unexpected += number * (not group["expected"])
        if group["verdict"] == "error":
            self.errors += number
            return
        kinds, inside = self.after.setdefault(group["warning"], (Counter(), Counter()))
        kinds.update(dict.fromkeys(["", *_words(group["violations"])], number))
        inside.update(dict.fromkeys(_words(group["violations_inside"]), number))

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "second": self.second,
            "errors": self.errors,
            "unexpected": self.unexpected,
            "after": {
                warning: {
                    "runs": kinds[""],
                    "kinds": {kind: {"n": kinds[kind], "inside": inside[kind]} for kind in sorted(kinds) if kind},
                }
                for warning, (kinds, inside) in sorted(self.after.items())
            },
        }


def blow_counts(store: Store) -> list[dict[str, Any]]:
    """Runs with blows of a sweep, which are in no rate: for each scenario, mode, kind of warning and of violation, the
    runs after such a warning, those that violate it, and those that do so inside the promise.

    The kind "" counts runs that violate nothing. Points of a grid are counted together.
    """
    columns = ["scenario", "mode", "warning", "violations", "violations_inside", "verdict"]
    runs: Counter[tuple[str, str, str]] = Counter()
    kinds: Counter[tuple[str, str, str, str]] = Counter()
    inside: Counter[tuple[str, str, str, str]] = Counter()
    rows = store.rows(columns)
    for scenario, mode, warning, violated, of_promise, verdict in zip(*(rows[name] for name in columns), strict=True):
        if verdict == "error":
            continue
        key = (scenario, mode, warning)
        runs[key] += 1
        kinds.update([(*key, kind) for kind in _words(violated) or [""]])
        inside.update([(*key, kind) for kind in _words(of_promise)])
    names = ("scenario", "mode", "warning", "kind")
    return [
        {**dict(zip(names, key, strict=True)), "runs": runs[key[:3]], "n": number, "inside": inside[key]}
        for key, number in sorted(kinds.items())
    ]


class SweepSummary:
    """Counts of the finished waves. `asked` are the requested seeds, if not the sweep's own range: a folder may have
    several.
    """

    def __init__(self, sweep: Sweep, asked: Extent | None = None) -> None:
        self._sweep = sweep
        self._key = ("scenario", "mode", *sweep.grid)
        self._order = {key: place for place, key in enumerate(key for keys in sweep.row_keys() for key in keys)}
        self._counts = {key: _Counts() for key in self._order}
        self._blows = {key: _BlowCounts() for key in self._order}
        self._reached = {mode.name: coverage.Reached() for modes in sweep.modes.values() for mode in modes}
        self._decided = {key: Counter[tuple[str, str]]() for key in self._order}
        self._failing: list[tuple[int, int, str, Row]] = []
        self._internal_errors = 0
        self._errors = ErrorGroups()
        self.failing = 0
        self.runs = 0
        self.runs_asked = sweep.count((asked or sweep.extent()).pieces())

    def add(self, rows: pa.Table) -> None:
        """Add the rows of a wave."""
        if self._sweep.blows:
            self._add_blows(rows.filter(pc.field("blow") != ""))
            rows = rows.filter(pc.field("blow") == "")
        names = [*self._key, *_GROUP]
        groups = rows.group_by(names, use_threads=False).aggregate([([], "count_all")])
        for group in groups.to_pylist():
            self._of(group).add(group)
            self.runs += group["count_all"]
        columns: tuple[list[Any], list[Any]] = rows["mode"].to_pylist(), rows["coverage"].to_pylist()
        for mode, column in zip(*columns, strict=True):
            self._reached[mode].add(column)
        decided = rows.filter(pc.field("verdict") != "error")
        sums = decided.group_by(list(self._key), use_threads=False).aggregate([(name, "sum") for name in ROUNDS])
        for total in sums.to_pylist():
            self._of(total).rounds.update({name: total[f"{name}_sum"] for name in ROUNDS})
        if ADDED_VALUES:
            self._add_decided(decided.select([*self._key, "decided"]))
        self._note_failing(rows.filter(pc.field("verdict") != "ok").select([*_FAILING, *self._sweep.grid]))

    def _add_blows(self, rows: pa.Table) -> None:
        """Add runs with blows. Of these, those that violate nothing inside the promise do not count as failing."""
        names = [*self._key, "second", "warning", "verdict", "expected", "violations", "violations_inside"]
        marked = rows.append_column("second", pc.match_substring(rows["blow"], "+"))
        for group in marked.group_by(names, use_threads=False).aggregate([([], "count_all")]).to_pylist():
            self._blows[self._key_of(group)].add(group)
        undecided = pc.field("verdict").isin(["error", "exhausted"])
        failing = rows.filter((pc.field("violations_inside") != "") | undecided)
        self._note_failing(failing.select([*_FAILING, *_OF_BLOW, *self._sweep.grid]))

    def _add_decided(self, rows: pa.Table) -> None:
        """Count the runs in which plug-ins' rule values decided something."""
        for group in rows.group_by([*self._key, "decided"]).aggregate([([], "count_all")]).to_pylist():
            modes = self._sweep.modes[group["scenario"]]
            mode = next(mode for mode in modes if mode.name == group["mode"]).override(self._sweep.rules)
            found = added_that_decided(mode.rules, int(group["decided"], 16))
            self._decided[self._key_of(group)].update(dict.fromkeys(found, group["count_all"]))

    def _note_failing(self, rows: pa.Table) -> None:
        """Keep the first `FAILING_MAX`, ordered by seed, then by the order of runs, then by blows."""
        self.failing += len(rows)
        found = rows.to_pylist()
        for row in found:
            self._errors.add(row)
            self._internal_errors += row["verdict"] == "error" and is_internal(row["error"])
        self._failing += ((row["seed"], self._order[self._key_of(row)], row.get("blow", ""), row) for row in found)
        self._failing.sort(key=lambda one: one[:3])
        del self._failing[FAILING_MAX:]

    def _of(self, row: dict[str, Any]) -> _Counts:
        return self._counts[self._key_of(row)]

    def _key_of(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self._key)

    def kinds(self) -> dict[str, int]:
        """Kind of violation -> runs."""
        return dict(sum((counts.kinds for counts in self._counts.values()), Counter[str]()))

    def errors(self) -> int:
        """Runs with verdict ``error``."""
        return sum(counts.verdicts["error"] for counts in self._counts.values()) + sum(
            counts.errors for counts in self._blows.values()
        )

    def to_json(self) -> dict[str, Any]:
        """Counts for each scenario, mode and point of the grid, with the outcome of its expectation."""
        results = [
            {
                "scenario": variant.name,
                "mode": mode,
                "settings": {key: variant.config[key] for key in self._sweep.grid},
                **self._counts[self._sweep.key(variant, mode)].to_json(),
                "expectation": _expectation(variant, mode).verdict,
                "met": self._met(variant, mode),
                **({"decided": self._by_plugins(variant, mode)} if ADDED_VALUES else {}),
                **({"blows": self._blows[self._sweep.key(variant, mode)].to_json()} if self._sweep.blows else {}),
            }
            for variant, mode in self._pairs()
        ]
        reached = coverage.to_json(self._reached)
        return {
            "runs": self.runs,
            "runs_asked": self.runs_asked,
            "results": results,
            "inconclusive": self.inconclusive(),
            "errors": [group.to_json() for group in self._errors.groups()],
            "failing": self.failing,
            "failing_listed": len(self._failing),
            "failing_capped": self.failing > len(self._failing),
            "coverage": reached,
        }

    def _by_plugins(self, variant: Scenario, name: str) -> list[dict[str, Any]]:
        """For each rule value of a plug-in that is in force, or like the one in force: the runs that it changes."""
        (mode,) = [mode for mode in self._sweep.modes[variant.name] if mode.name == name]
        rules, counts = mode.override(self._sweep.rules).rules, self._decided[self._sweep.key(variant, name)]
        return [
            {"rule": rule, "value": value, "in_force": rules.value(rule) == value, "runs": counts[rule, value]}
            for (rule, value), added in ADDED_VALUES.items()
            if rules.value(rule) in (value, added.like)
        ]

    def _pairs(self) -> Iterator[tuple[Scenario, str]]:
        for variant in self._sweep.variants:
            for mode in self._sweep.names(variant):
                yield variant, mode

    def _met(self, scenario: Scenario, mode: str) -> bool | None:
        """Whether the runs are as expected. If a random scenario must violate, at least one run has to.

        An exhausted run may break an expectation by a violation, but never meets one: None if that leaves it open.
        """
        counts, expectation = self._counts[self._sweep.key(scenario, mode)], _expectation(scenario, mode)
        if counts.unexpected or self._blows[self._sweep.key(scenario, mode)].unexpected:
            return False
        exhausted = counts.verdicts["exhausted"]
        if scenario.drawn and expectation.verdict == "violates":
            kinds = expectation.kinds or counts.kinds
            return any(counts.kinds[kind] for kind in kinds) or (None if exhausted else False)
        return None if exhausted and exhausted == counts.runs else True

    def failing_lines(self) -> bytes:
        """``violations.jsonl``: the first `FAILING_MAX` failing runs, a JSON line for each."""
        lines = []
        for *_, row in self._failing:
            kinds, inside = (_words(row[name]) for name in ("violations", "violations_inside"))
            rest = {name: value for name, value in row.items() if name not in ("violations", "violations_inside")}
            line = {"schema_version": ROWS_VERSION, **rest, "kinds": kinds, "kinds_inside": inside}
            lines.append(json.dumps(line, ensure_ascii=False))
        return "".join(f"{line}\n" for line in lines).encode()

    def exit_code(self) -> int:
        """The sweep's exit code, once it is complete; an error of a scenario or of a plug-in is unexpected."""
        if self._internal_errors:
            return exit_codes.INTERNAL
        if self.errors() or any(self._met(scenario, mode) is False for scenario, mode in self._pairs()):
            return exit_codes.UNEXPECTED
        return exit_codes.INCONCLUSIVE if self.inconclusive() else exit_codes.EXPECTED

    def inconclusive(self) -> list[str]:
        """Why the sweep is inconclusive, one sentence each; empty if it is conclusive."""
        return [reason for scenario in self._sweep.variants for reason in self._reasons(scenario)]

    def _reasons(self, scenario: Scenario) -> Iterator[str]:
        counts = [self._counts[self._sweep.key(scenario, mode)] for mode in self._sweep.names(scenario)]
        runs, vacuous = sum(count.decided for count in counts), sum(count.vacuous for count in counts)
        exhausted = sum(count.verdicts["exhausted"] for count in counts)
        name = " ".join((scenario.name, *scenario.overrides))
        yield from undecided(name, runs, vacuous, exhausted)
        for mode in self._sweep.names(scenario):
            if self._met(scenario, mode) is None:
                yield f"{name}: exhausted runs leave open whether {mode} is as expected"


def undecided(name: str, runs: int, vacuous: int, exhausted: int) -> Iterator[str]:
    """Why `runs` of a scenario are inconclusive, as `vacuous` or `exhausted` of them are: one sentence each."""
    if vacuous > VACUOUS_MAX * runs:
        yield (
            f"{name}: {vacuous:,} of {runs:,} runs are vacuous, more than {VACUOUS_MAX * 100:.0f} %. "
            f"Vacuous is {VACUOUS}. "
            "More faults (count in [faults]) or batches (bursts and batches in [workload]) make fewer runs vacuous"
        )
    if exhausted > EXHAUSTED_MAX * runs:
        yield f"{name}: {exhausted:,} of {runs:,} runs are exhausted, more than {EXHAUSTED_MAX * 100:.0f} %"


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def _expectation(scenario: Scenario, mode: str) -> Expectation:
    return scenario.expect.get(mode, Expectation("may-violate"))


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]
