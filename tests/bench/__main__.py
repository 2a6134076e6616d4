"""`make bench`: what a median run costs, in bare events, with checks and digest on.

Runs and bare events alternate, and each figure is the median of 7 such pairs, so that ratios hold on a machine with
other work. What the events of pings and empty fetches take is measured in the same run, and left out of the second
figure.
"""

from __future__ import annotations

import statistics
import sys
import time

from scenarios.catalogue import load
from scenarios.run import prepare_process, run, run_row
from scenarios.scenario import Scenario
from tests.bench.bare import bare_event_seconds
from tests.bench.idle import TimingKernel

ALTERNATIONS = 7
SEEDS = range(101)
MARKS = {"all events": 8_000, "without pings and empty fetches": 3_500}
FLOORS = {"batches_acked": 30, "records_acked": 60, "elections": 3, "faults": 5}


def _seconds(scenario: Scenario, mode: str, seed: int) -> float:
    begin = time.process_time()
    run_row(scenario, mode, seed)
    return time.process_time() - begin


def _idle_seconds(scenario: Scenario, mode: str, seed: int) -> float:
    """CPU seconds that pings and empty fetches take in a run."""
    kernel = TimingKernel()
    run(scenario, mode, seed, kernel=kernel)
    return kernel.idle_seconds


def _measure(scenario: Scenario, mode: str) -> dict[str, float]:
    """Medians over `SEEDS` in bare events, each the median of `ALTERNATIONS` alternations."""
    totals, rests = [], []
    for _ in range(ALTERNATIONS):
        bare = bare_event_seconds()
        seconds = {seed: _seconds(scenario, mode, seed) for seed in SEEDS}
        rest = [seconds[seed] - _idle_seconds(scenario, mode, seed) for seed in SEEDS]
        totals.append(statistics.median(seconds.values()) / bare)
        rests.append(statistics.median(rest) / bare)
    return dict(zip(MARKS, (statistics.median(totals), statistics.median(rests)), strict=True))


def main() -> int:
    """Measure, print, and tell by the exit code whether all marks and floors are met."""
    scenario = load("chaos")
    prepare_process()
    met = True
    for mode in ("hw", "kip101", "kip279", "kip320"):
        rows = [run_row(scenario, mode, seed) for seed in SEEDS]
        for name, floor in FLOORS.items():
            median = statistics.median(row[name] for row in rows)
            met &= median >= floor
            sys.stdout.write(f"chaos {mode}: median {name} {median:g} (floor {floor})\n")
        for name, figure in _measure(scenario, mode).items():
            met &= figure <= MARKS[name]
            sys.stdout.write(f"chaos {mode}: {figure:,.0f} bare events, {name} (mark {MARKS[name]:,})\n")
    sys.stdout.write("all marks met\n" if met else "a mark was missed\n")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
