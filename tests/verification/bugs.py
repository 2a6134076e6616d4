"""Measures fixed bugs: runs with a violation inside the promise, with the older value of a rule and with the repair.

    python -m tests.verification.bugs [--seeds 0..200] [--bugs KAFKA-1738,KAFKA-9839] [--write]

`--write` keeps the figures in ``highwater/lab/bugs/measured.toml``. The exit code is 1 if a repaired run violates.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from highwater.lab.bugs.bugs import FixedBug, Measured, fixed_bugs
from scenarios.format.catalogue import load
from scenarios.single.run import run_row
from sim.protocol.modes import mode as mode_named
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scenarios.format.scenario import Scenario

FILE = ROOT / "highwater" / "lab" / "bugs" / "measured.toml"
HEAD = "# Written by `python -m tests.verification.bugs --write`: runs with a violation inside the promise.\n"


def violates(scenario: Scenario, bug: FixedBug, pair: tuple[str, str], seed: int) -> bool:
    """Whether a run with this rule value has a violation inside the promise."""
    row = run_row(scenario, mode_named(bug.mode), seed, dict([pair]))
    if row["error"]:
        raise AssertionError(f"{scenario.name}, seed {seed}: {row['error']}")
    return bool(row["violations_inside"])


def measure(bug: FixedBug, name: str, seeds: range) -> Measured:
    """Run a scenario's seeds with both values; those that violate with the older one, and all of the repaired one."""
    assert bug.older is not None
    assert bug.repaired is not None
    scenario = load(name).with_settings({"sim.judge.waits": True})
    begun_s, first_s, before = time.process_time(), -1.0, 0
    for seed in seeds:
        if violates(scenario, bug, bug.older, seed):
            before += 1
            if first_s < 0:
                first_s = round(time.process_time() - begun_s, 1)
    after = sum(violates(scenario, bug, bug.repaired, seed) for seed in seeds)
    return Measured(before, after, len(seeds), first_s)


def text(found: dict[str, dict[str, Measured]]) -> str:
    """The file of figures."""
    lines = [HEAD]
    for name, scenarios in found.items():
        lines.append(f"\n[{name}]\n")
        for scenario, one in scenarios.items():
            figures = f"before = {one.before}, after = {one.after}, runs = {one.runs}, first_cpu_s = {one.first_cpu_s}"
            lines.append(f"{scenario} = {{ {figures} }}\n")
    return "".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a repaired run violates."""
    parser = argparse.ArgumentParser(description=__doc__)
    ruled = {name: bug for name, bug in fixed_bugs().items() if bug.older}
    parser.add_argument("--seeds", default="0..200")
    parser.add_argument("--bugs", default=",".join(ruled))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    first, end = map(int, options.seeds.split(".."))
    found: dict[str, dict[str, Measured]] = {}
    known: dict[tuple[object, ...], Measured] = {}
    for name in options.bugs.split(","):
        bug = ruled[name]
        found[name] = {}
        for scenario in bug.scenarios:
            case = bug.older, bug.repaired, bug.mode, scenario  # Two bugs may be one value of a rule.
            one = known[case] = known.get(case) or measure(bug, scenario, range(first, end))
            found[name][scenario] = one
            figures = f"before {one.before}, after {one.after} of {one.runs}, first after {one.first_cpu_s} s"
            sys.stdout.write(f"{name} {scenario}: {figures}\n")
            sys.stdout.flush()
    if options.write:
        FILE.write_text(text(found), encoding="utf-8")
    return int(any(one.after for scenarios in found.values() for one in scenarios.values()))


if __name__ == "__main__":
    raise SystemExit(main())
