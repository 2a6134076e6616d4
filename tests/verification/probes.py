"""``python -m tests.verification.probes``: whether random runs still reach what they used to reach.

A probe is a place that a run can reach (`sim.protocol.probes`), or a kind of fault that took effect. ``probes.json``
has the number of runs that reached each, of `RUNS` runs of all random scenarios in their modes. A probe is expected in
proportion to that number. It fails if a fifth less, minus five standard deviations, is not reached; below `RARE`
expected runs it is rare: it may be absent. A kind of fault that strikes no more, a branch of a rule that is asked no
more or a checker that never decides would otherwise pass unnoticed, since nothing is violated without them.

``--update REASON`` measures and stores. ``--remove N`` shows that the contract holds: N times, a kind of fault or a
value of a rule, drawn by ``--seed`` among those that are not rare, is taken away from all runs, and must be noticed.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, replace
from itertools import count, islice
from math import sqrt
from random import Random
from typing import TYPE_CHECKING, Any, Final

from faults.kinds.registry import KINDS
from scenarios.format.catalogue import load, names
from scenarios.single.coverage_column import Reached
from scenarios.single.run import prepare_process, run_row
from sim.protocol.modes import mode as mode_named
from sim.protocol.probes import PROBES, RULE_BRANCH
from sim.protocol.rules import RULES
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scenarios.format.scenario import Scenario
    from sim.protocol.modes import Mode

FILE: Final = ROOT / "tests" / "verification" / "probes.json"
RUNS: Final = 3_000
RARE: Final = 20
"""Expected runs; with so many, chance alone misses a probe once in 500 million times."""
SHARE: Final = 0.8
DEVIATIONS: Final = 5
EXPENSIVE_EVERY: Final = 5
"""Scenarios with controllers as processes run in one of so many rounds."""
FAULT: Final = "fault"

Counts = dict[str, int]
"""Probe -> number of runs that reached it."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What is taken away: a kind of fault, or a value of a rule, which becomes another one."""

    probe: str
    kind: str = ""
    rule: str = ""
    value: str = ""
    other: str = ""

    def scenario(self, scenario: Scenario) -> Scenario:
        """The scenario without it."""
        return replace(scenario, without_faults=(self.kind,)) if self.kind else scenario

    def rules(self, scenario: Scenario, mode: Mode) -> dict[str, str]:
        """Rule values laid over those of all brokers; those that are upgraded have a mode of their own before."""
        has_value = self.rule and (mode.rules.value(self.rule) == self.value or scenario.upgraded_from)
        return {self.rule: self.other} if has_value else {}


NOTHING: Final = Removal("")


def schedule() -> Iterator[tuple[Scenario, Mode, int]]:
    """The runs, without end: in each round all random scenarios, each in the next of its modes."""
    scenarios = [scenario for scenario in map(load, names()) if scenario.drawn]
    modes = {scenario.name: list(map(mode_named, scenario.expect)) for scenario in scenarios}
    for seed in count():
        for scenario in scenarios:
            place, skipped = divmod(seed, EXPENSIVE_EVERY if scenario.controller_count else 1)
            if not skipped:
                yield scenario, modes[scenario.name][place % len(modes[scenario.name])], seed


def probes() -> list[str]:
    """The names of all probes, in the order of the column."""
    return [*(f"{probe.group}: {probe.name}" for probe in PROBES), *(f"{FAULT}: {kind}" for kind in KINDS)]


def measured(runs: int, removal: Removal = NOTHING) -> Counts:
    """The counts of the first so many runs."""
    prepare_process()
    reached = Reached()
    for scenario, mode, seed in islice(schedule(), runs):
        row = run_row(removal.scenario(scenario), mode, seed, removal.rules(scenario, mode))
        if row["error"]:
            raise AssertionError(f"{scenario.name} {mode.name} {seed}: {row['error']}")
        reached.add(row["coverage"])
    return dict(zip(probes(), reached.counts(), strict=False))


def least(stored: int, runs: int) -> int:
    """How many of so many runs have to reach a probe that `RUNS` runs reached so often; 0: it is rare."""
    expected = stored * runs / RUNS
    return 0 if expected < RARE else max(1, int(SHARE * expected - DEVIATIONS * sqrt(expected)))


def stored() -> Counts:
    """What was measured."""
    found: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return dict(found["probes"])


def failures(found: Counts, expected: Counts, runs: int) -> list[str]:
    """A line for each probe that is reached too seldom, or that is no more."""
    lines = []
    for probe, number in expected.items():
        bound = least(number, runs)
        if probe not in found:
            lines.append(f"{probe}: there is no such probe any more")
        elif found[probe] < bound:
            lines.append(
                f"{probe}: {found[probe]} of {runs} runs, expected {number * runs / RUNS:.0f}, at least {bound}"
            )
    return lines


def removals(expected: Counts, runs: int, random: Random, number: int) -> list[Removal]:
    """Draw kinds of fault and values of rules that are not rare in so many runs."""
    every = [Removal(f"{FAULT}: {kind}", kind=kind) for kind in KINDS]
    for rule, spec in RULES.items():
        for value in spec.values:
            others = [other for other in spec.values if other != value]
            probe = f"{RULE_BRANCH}: {rule}={value}"
            every.append(Removal(probe, rule=rule, value=value, other=others[random.randrange(len(others))]))
    possible = [one for one in every if least(expected.get(one.probe, 0), runs)]
    return [possible.pop(random.randrange(len(possible))) for _ in range(min(number, len(possible)))]


def main() -> int:
    """Measure and compare; 1 if a probe fails, or a removal is not noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="fewer take less time, and more probes are rare")
    parser.add_argument("--update", metavar="REASON", help="store what is measured, for this reason")
    parser.add_argument("--remove", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1, help="draws what is removed")
    options = parser.parse_args()
    if options.update is not None:
        found = {"reason": options.update, "probes": measured(RUNS)}
        FILE.write_text(f"{json.dumps(found, indent=1)}\n", encoding="utf-8")
        return 0
    expected = stored()
    failed = False
    if options.remove:
        for removal in removals(expected, options.runs, Random(options.seed), options.remove):
            lines = failures(measured(options.runs, removal), expected, options.runs)
            failed |= not lines
            sys.stdout.write(f"without {removal.probe}: {lines[0] if lines else 'NOT NOTICED'}\n")
            sys.stdout.flush()
        return int(failed)
    lines = failures(measured(options.runs), expected, options.runs)
    sys.stdout.writelines(f"{line}\n" for line in lines or ["all as expected"])
    return int(bool(lines))


if __name__ == "__main__":
    raise SystemExit(main())
