"""`make hunt`: many random seeds in several modes; each violation inside the promise must be explained.

A violation is explained if the same seed and plan do not show it inside the promise when one rule is given its
repaired value (definitions of the promise: `faults.promise.promise`). What shows up in its place must be explained in
turn, by one more rule: in a few seeds two bugs meet. Which rules repair a seed, each by itself, is printed; seeds that
none repair are the ones to look at. In older modes several bugs meet in one seed, so they are not asked for. Of a clean
mode nothing may be violated inside the promise.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from scenarios.format.catalogue import load
from scenarios.format.scenario import Scenario
from scenarios.shrinking.cause import later_values
from scenarios.single.rows import Row
from scenarios.single.run import prepare_process
from sim.protocol.modes import mode as mode_named
from tests.named import run_row

CHUNK = 250


def inside(row: Row) -> set[str]:
    """Kinds of violations inside the promise."""
    return set(filter(None, row["violations_inside"].split(",")))


def cures(scenario: Scenario, mode: str, seed: int, kinds: set[str], rules: dict[str, str], depth: int) -> list[str]:
    """Repairs that remove all kinds: one rule, or one and another that removes what the first reveals."""
    found = []
    for rule, value in later_values(mode_named(mode)):
        if rule in rules:
            continue
        repaired = {**rules, rule: value}
        left = inside(run_row(scenario, mode, seed, repaired))
        if not left:
            found.append(f"{rule}={value}")
        elif depth > 1 and not left & kinds:
            found += [f"{rule}={value} {more}" for more in cures(scenario, mode, seed, left, repaired, depth - 1)]
    return found


def hunt(chunk: tuple[str, str, int, int, bool]) -> list[tuple[Row, list[str]]]:
    """Run some seeds: their rows and, on request, the repairs of their violations inside the promise."""
    name, mode, first, end, explain = chunk
    prepare_process()
    scenario = load(name)
    found = []
    for seed in range(first, end):
        row = run_row(scenario, mode, seed)
        kinds = inside(row)
        found.append((row, cures(scenario, mode, seed, kinds, {}, 2) if explain and kinds else []))
    return found


def main() -> int:
    """Hunt and print; 1 after an error, too many vacuous runs, or an unexplained violation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="chaos")
    parser.add_argument("--modes", default="hw,kip101,kip279,kip320,kip320-repaired")
    parser.add_argument("--explain", default="kip320", help="the mode whose violations must be explained")
    parser.add_argument("--clean", default="kip320-repaired", help="the mode that keeps its promise")
    parser.add_argument("--seeds", type=int, default=50_000)
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
        promised = Counter(kind for row in rows for kind in inside(row))
        repaired = Counter(", ".join(found) for _, found in results if found)
        example = {", ".join(found): row["seed"] for row, found in reversed(results) if found}
        open_seeds = [
            (row["seed"], row["violations_inside"]) for row, found in results if row["violations_inside"] and not found
        ]
        errors = [(row["seed"], row["error"]) for row in rows if row["error"]]
        vacuous = sum(row["vacuous"] for row in rows) / count
        share = sum(row["inside"] for row in rows) / count
        lines = [
            f"{options.scenario} {mode}: {count} seeds, {share:.1%} inside the promise, {vacuous:.1%} vacuous",
            f"  violated: {dict(kinds)}",
            f"  inside: {dict(promised)}",
            f"  errors: {errors}",
        ]
        if mode == options.explain:
            lines += [f"  {n} repaired by {cures}, as seed {example[cures]}" for cures, n in repaired.most_common()]
            lines.append(f"  not explained: {open_seeds}")
            failed |= bool(open_seeds)
        if mode == options.clean:
            failed |= bool(promised)
        sys.stdout.write("\n".join(lines) + "\n")
        failed |= bool(errors) or vacuous >= 0.05
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
