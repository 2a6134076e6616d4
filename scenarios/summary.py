"""What a sweep found, in counts: ``summary.json`` and the list of failing runs."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from scenarios import coverage, store
from scenarios.rows import BY_DAMAGE, SCHEMA_VERSION, UNKNOWN
from scenarios.scenario import Expectation, Scenario

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from scenarios.units import Sweep

VACUOUS_MAX: Final = 0.05
"""Share of vacuous runs of a drawn scenario beyond which a sweep says nothing."""
FAILING_MAX: Final = 10_000
"""Lines of ``violations.jsonl``; the rows hold them all."""
_VERDICTS: Final = ("ok", "violation", "stalled", "error")
_GROUP: Final = (
    "verdict",
    "expected",
    "inside",
    *BY_DAMAGE,
    "violations",
    "violations_inside",
    "warnings",
    "vacuous",
)
ROUNDS: Final = ("rounds_1", "rounds_2", "rounds_more")
"""Columns of rows: completed truncations by how many answers they took."""
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


class _Counts:
    """Counts of one scenario in one mode; each is a number of runs, but for rounds: these are truncations."""

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

    def add(self, group: dict[str, Any]) -> None:
        """Take equal rows, of which there are ``count_all``."""
        number = group["count_all"]
        self.runs += number
        self.verdicts[group["verdict"]] += number
        self.kinds.update(dict.fromkeys(filter(None, group["violations"].split(",")), number))
        self.kinds_inside.update(dict.fromkeys(filter(None, group["violations_inside"].split(",")), number))
        self.warnings.update(dict.fromkeys(filter(None, group["warnings"].split(",")), number))
        self.inside += number * group["inside"]
        self.by_damage.update({name: number * group[name] for name in BY_DAMAGE if group[name] != UNKNOWN})
        self.vacuous += number * group["vacuous"]
        self.unexpected += number * (not group["expected"])

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "verdicts": {verdict: self.verdicts[verdict] for verdict in _VERDICTS},
            "kinds": {
                kind: {
                    "n": number,
                    "inside": self.kinds_inside[kind],
                    "rate": _share(number, self.runs),
                    "runs_inside_share": _share(self.inside, self.runs),
                }
                for kind, number in sorted(self.kinds.items())
            },
            "warnings": dict(sorted(self.warnings.items())),
            "rounds": {name.removeprefix("rounds_"): self.rounds[name] for name in ROUNDS},
            "inside": self.inside,
            "inside_share": _share(self.inside, self.runs),
            **{name: self.by_damage.get(name) for name in BY_DAMAGE},
            "vacuous": self.vacuous,
            "unexpected": self.unexpected,
        }


class Summary:
    """Counts over the waves that are done."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._key = ("scenario", "mode", *sweep.grid)
        self._counts = {key: _Counts() for key in sweep.seed_ranges()}
        self._reached = {mode: coverage.Reached() for modes in sweep.modes.values() for mode in modes}
        self.runs = 0
        self.runs_asked = sweep.count(sweep.units())

    def add(self, folder: Path) -> None:
        """Take a wave."""
        for group in store.groups(folder, (*self._key, *_GROUP)):
            self._of(group).add(group)
            self.runs += group["count_all"]
        for mode, column in store.values(folder, ("mode", "coverage")):
            self._reached[mode].add(column)
        for total in store.sums(folder, self._key, ROUNDS):
            self._of(total).rounds.update({name: total[name] for name in ROUNDS})

    def _of(self, row: dict[str, Any]) -> _Counts:
        return self._counts[tuple(row[name] for name in self._key)]

    def kinds(self) -> dict[str, int]:
        """Kind of violation -> runs."""
        return dict(sum((counts.kinds for counts in self._counts.values()), Counter[str]()))

    def errors(self) -> int:
        """Runs with verdict ``error``."""
        return sum(counts.verdicts["error"] for counts in self._counts.values())

    def to_json(self) -> dict[str, Any]:
        """Runs and, per scenario, mode and settings that vary, what became of them and of the expectation."""
        results = [
            {
                "scenario": variant.name,
                "mode": mode,
                "settings": {key: variant.config[key] for key in self._sweep.grid},
                **self._counts[self._sweep.key(variant, mode)].to_json(),
                "expectation": _expectation(variant, mode).verdict,
                "met": self._met(variant, mode),
            }
            for variant, mode in self._pairs()
        ]
        reached = coverage.to_json(self._reached)
        return {"runs": self.runs, "runs_asked": self.runs_asked, "results": results, "coverage": reached}

    def _pairs(self) -> Iterator[tuple[Scenario, str]]:
        for variant in self._sweep.variants:
            for mode in self._sweep.modes[variant.name]:
                yield variant, mode

    def _met(self, scenario: Scenario, mode: str) -> bool:
        """Whether the runs are as expected; where a drawn scenario must violate, one run has to."""
        counts, expectation = self._counts[self._sweep.key(scenario, mode)], _expectation(scenario, mode)
        if scenario.drawn and expectation.verdict == "violates":
            kinds = expectation.kinds or counts.kinds
            return not counts.unexpected and any(counts.kinds[kind] for kind in kinds)
        return not counts.unexpected

    def exit_code(self) -> int:
        """The sweep's exit code, once it is complete: 70 error, 1 unexpected, 3 inconclusive, 0 as expected."""
        if self.errors():
            return 70
        if not all(self._met(scenario, mode) for scenario, mode in self._pairs()):
            return 1
        return 3 if any(map(self._inconclusive, self._sweep.variants)) else 0

    def _inconclusive(self, scenario: Scenario) -> bool:
        counts = [self._counts[self._sweep.key(scenario, mode)] for mode in self._sweep.modes[scenario.name]]
        vacuous = sum(one.vacuous for one in counts)
        return scenario.drawn and vacuous > VACUOUS_MAX * sum(one.runs for one in counts)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def _expectation(scenario: Scenario, mode: str) -> Expectation:
    return scenario.expect.get(mode, Expectation("may-violate"))


def failing_lines(folders: Sequence[Path], grid: Iterable[str] = ()) -> tuple[bytes, dict[str, Any]]:
    """List the failing runs.

    Args:
        folders: the waves that are done.
        grid: settings that vary; each line names their values.

    Returns:
        A JSON line for each, wave by wave, at most `FAILING_MAX`; how many failing runs there are, how many are listed,
        and whether that is fewer.
    """
    lines: list[str] = []
    failing = 0
    for folder in folders:
        rows = store.failing(folder, _FAILING, list(grid))
        failing += len(rows)
        for row in rows[: FAILING_MAX - len(lines)]:
            kinds = _words(row.pop("violations"))
            inside = _words(row.pop("violations_inside"))
            line = {"schema_version": SCHEMA_VERSION, **row, "kinds": kinds, "kinds_inside": inside}
            lines.append(json.dumps(line, ensure_ascii=False))
    counts = {"failing": failing, "failing_listed": len(lines), "failing_capped": failing > len(lines)}
    return "".join(f"{line}\n" for line in lines).encode(), counts


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]
