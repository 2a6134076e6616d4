"""`make hunt`: many `power` seeds in every mode; what the newest mode violates inside its promise must be explained.

A violation is explained if the same seed and plan show none inside the promise when one rule is given its repaired
value (definitions of the promise: `faults.promise`). Which rule repairs a seed is printed; seeds that no rule repairs
are the ones to look at. In older modes several bugs meet in one seed, so they are not asked for.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from scenarios.catalogue import load
from scenarios.rows import Row
from scenarios.run import prepare_process, run_row
from sim.protocol.modes import MODES
from sim.protocol.rules import RULES

CHUNK = 250


def repairs(mode: str) -> list[tuple[str, str]]:
    """All later values of the rules of a mode: (rule, value)."""
    rules = MODES[mode].rules.as_dict()
    return [
        (name, value) for name, spec in RULES.items() for value in spec.values[spec.values.index(rules[name]) + 1 :]
    ]


def hunt(chunk: tuple[str, str, int, int, bool]) -> list[tuple[Row, list[str]]]:
    """Run some seeds; rows with, if asked for, the repairs of those that are violated inside the promise."""
    name, mode, first, end, explain = chunk
    prepare_process()
    scenario = load(name)
    found = []
    for seed in range(first, end):
        row = run_row(scenario, mode, seed)
        cures = []
        if explain and row["violations_inside"]:
            cures = [
                f"{rule}={value}"
                for rule, value in repairs(mode)
                if not run_row(scenario, mode, seed, {rule: value})["violations_inside"]
            ]
        found.append((row, cures))
    return found


def main() -> int:
    """Hunt and print; 1 if there was an error, too many vacuous runs, or a violation that nothing explains."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="power")
    parser.add_argument("--modes", default="hw,kip101")
    parser.add_argument("--explain", default="kip101", help="the mode whose violations must be explained")
    parser.add_argument("--seeds", type=int, default=20_000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    failed = False
    for mode in options.modes.split(","):
        chunks = [
            (options.scenario, mode, first, min(first + CHUNK, options.seeds), mode == options.explain)
            for first in range(0, options.seeds, CHUNK)
        ]
        with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
            results = [result for part in pool.map(hunt, chunks) for result in part]
        rows = [row for row, _ in results]
        count = len(rows)
        kinds = Counter(kind for row in rows for kind in row["violations"].split(",") if kind)
        inside = Counter(kind for row in rows for kind in row["violations_inside"].split(",") if kind)
        cures = Counter(cure for _, found in results for cure in found)
        open_seeds = [
            (row["seed"], row["violations_inside"]) for row, found in results if row["violations_inside"] and not found
        ]
        errors = [(row["seed"], row["error"]) for row in rows if row["error"]]
        vacuous = sum(row["vacuous"] for row in rows) / count
        share = sum(row["inside"] for row in rows) / count
        lines = [
            f"{options.scenario} {mode}: {count} seeds, {share:.1%} inside the promise, {vacuous:.1%} vacuous",
            f"  violated: {dict(kinds)}",
            f"  inside: {dict(inside)}",
            f"  errors: {errors}",
        ]
        if mode == options.explain:
            lines += [f"  repaired by: {dict(cures.most_common())}", f"  not explained: {open_seeds}"]
            failed |= bool(open_seeds)
        sys.stdout.write("\n".join(lines) + "\n")
        failed |= bool(errors) or vacuous >= 0.05
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
