"""`make bench`: what a median run costs, in bare events, with checks and digest on.

Runs and bare events alternate, and each figure is the median of 7 such pairs, so that ratios hold on a machine with
other work. With a C compiler both are measured: the sources, and what a run consists of compiled
(`tests.bench.compiled`); the mark is for the faster one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from scenarios.catalogue import load
from scenarios.run import prepare_process, run_row
from scenarios.scenario import Scenario
from tests.bench.bare import bare_event_seconds

ROOT = Path(__file__).parent.parent.parent
ALTERNATIONS = 7
SEEDS = range(101)
MARKS = {
    **{("chaos", mode): 3_000 for mode in ("hw", "kip101", "kip279", "kip320", "kip320-repaired")},
    **{("elr-chaos", mode): 3_500 for mode in ("kip320", "kraft", "elr", "elr-recovery")},
}
"""Scenario and mode -> bare events of a median run, at most."""
FLOORS = {"batches_acked": 30, "records_acked": 60, "elections": 3, "faults": 5}
FLOOR_HORIZON_US = 300_000_000


def _seconds(scenario: Scenario, mode: str, seed: int) -> float:
    begin = time.process_time()
    run_row(scenario, mode, seed)
    return time.process_time() - begin


def measure() -> dict[str, Any]:
    """Bare events of a median run for each of `MARKS`, the median of `ALTERNATIONS` alternations; and what shows that
    runs are the same: the digests of all seeds, hashed.
    """
    prepare_process()
    figures: dict[str, Any] = {}
    digests = hashlib.sha256()
    for name, mode in MARKS:
        scenario = load(name)
        medians = []
        for _ in range(ALTERNATIONS):
            bare = bare_event_seconds()
            medians.append(statistics.median(_seconds(scenario, mode, seed) for seed in SEEDS) / bare)
        figures[f"{name} {mode}"] = statistics.median(medians)
        for seed in SEEDS:
            digests.update(run_row(scenario, mode, seed)["digest"].encode())
    return {**figures, "digests": digests.hexdigest()}


def floors_met() -> bool:
    """Print what a median run does in each mode."""
    met = True
    for name, mode in MARKS:
        scenario = load(name)
        assert scenario.faults is not None
        rows = [run_row(scenario, mode, seed) for seed in SEEDS]
        medians = {column: statistics.median(row[column] for row in rows) for column in FLOORS}
        met &= all(medians[column] >= floor for column, floor in FLOORS.items())
        met &= scenario.faults.horizon_us >= FLOOR_HORIZON_US
        words = ", ".join(f"{column} {medians[column]:g} (floor {floor})" for column, floor in FLOORS.items())
        sys.stdout.write(f"{name} {mode}: {scenario.faults.horizon_us / 1e6:g} s of faults, median {words}\n")
    return met


def compiled(directory: Path) -> dict[str, Any] | None:
    """The figures of the compiled build in a directory, None if there is none."""
    if not list((directory / "sim").glob("*.so")):
        return None
    command = [sys.executable, "-m", "tests.bench", "--figures"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(directory), str(ROOT)]), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, cwd=directory)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> int:
    """Measure, print, and tell by the exit code whether mark and floors are met."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--compiled", type=Path, help="directory of the compiled build")
    parser.add_argument("--figures", action="store_true", help="print figures only, as JSON")
    options = parser.parse_args()
    if options.figures:
        sys.stdout.write(json.dumps(measure()))
        return 0
    met = floors_met()
    plain = measure()
    fast = compiled(options.compiled.resolve()) if options.compiled else None
    if fast is not None and fast["digests"] != plain["digests"]:
        sys.stdout.write("the compiled build gives other digests than the sources\n")
        met = False
    for (scenario, mode), mark in MARKS.items():
        name = f"{scenario} {mode}"
        figure = plain[name]
        best = figure if fast is None else min(figure, fast[name])
        met &= best <= mark
        also = "not compiled here" if fast is None else f"{fast[name]:,.0f} compiled"
        sys.stdout.write(f"{name}: {figure:,.0f} bare events, {also} (mark {mark:,})\n")
    sys.stdout.write("all marks met\n" if met else "a mark was missed\n")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
