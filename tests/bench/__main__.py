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
MODES = ("hw", "kip101", "kip279", "kip320", "kip320-repaired")
MARK = 3_000
FLOORS = {"batches_acked": 30, "records_acked": 60, "elections": 3, "faults": 5}
FLOOR_HORIZON_US = 300_000_000


def _seconds(scenario: Scenario, mode: str, seed: int) -> float:
    begin = time.process_time()
    run_row(scenario, mode, seed)
    return time.process_time() - begin


def measure() -> dict[str, Any]:
    """Bare events of a median `chaos` run in each mode, the median of `ALTERNATIONS` alternations; and what shows that
    runs are the same: the digests of all seeds, hashed.
    """
    scenario = load("chaos")
    prepare_process()
    figures: dict[str, Any] = {}
    digests = hashlib.sha256()
    for mode in MODES:
        medians = []
        for _ in range(ALTERNATIONS):
            bare = bare_event_seconds()
            medians.append(statistics.median(_seconds(scenario, mode, seed) for seed in SEEDS) / bare)
        figures[mode] = statistics.median(medians)
        for seed in SEEDS:
            digests.update(run_row(scenario, mode, seed)["digest"].encode())
    return {**figures, "digests": digests.hexdigest()}


def floors_met() -> bool:
    """Print what a median run does in each mode."""
    scenario = load("chaos")
    assert scenario.faults is not None
    met = scenario.faults.horizon_us >= FLOOR_HORIZON_US
    sys.stdout.write(f"chaos: {scenario.faults.horizon_us / 1e6:g} s of faults (at least {FLOOR_HORIZON_US / 1e6:g})\n")
    for mode in MODES:
        rows = [run_row(scenario, mode, seed) for seed in SEEDS]
        medians = {name: statistics.median(row[name] for row in rows) for name in FLOORS}
        met &= all(medians[name] >= floor for name, floor in FLOORS.items())
        words = ", ".join(f"{name} {medians[name]:g} (floor {floor})" for name, floor in FLOORS.items())
        sys.stdout.write(f"chaos {mode}: median {words}\n")
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
    for mode in MODES:
        figure = plain[mode]
        best = figure if fast is None else min(figure, fast[mode])
        met &= best <= MARK
        also = "not compiled here" if fast is None else f"{fast[mode]:,.0f} compiled"
        sys.stdout.write(f"chaos {mode}: {figure:,.0f} bare events, {also} (mark {MARK:,})\n")
    sys.stdout.write("all marks met\n" if met else "a mark was missed\n")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
