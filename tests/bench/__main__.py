"""`make bench`: what a median run costs, in bare events, with checks and digest on.

Runs and bare events alternate, and each figure is the median of 7 such pairs, so that ratios hold on a machine with
other work. The events of heartbeats and empty fetches are counted apart; what they cost is measured on a cluster to
which nothing else happens.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from dataclasses import replace

from scenarios.catalogue import load
from scenarios.run import run, run_row
from scenarios.scenario import Scenario
from tests.bench.bare import bare_event_seconds
from tests.bench.idle import CountingKernel

ALTERNATIONS = 7
SEEDS = range(101)
MARKS = {"all events": 8_000, "without heartbeats and empty fetches": 3_000}
FLOORS = {"batches_acked": 30, "records_acked": 60, "elections": 3, "faults": 5}


def _seconds(scenario: Scenario, mode: str, seed: int) -> float:
    begin = time.process_time()
    run_row(scenario, mode, seed)
    return time.process_time() - begin


def _idle_event_seconds(scenario: Scenario, mode: str) -> float:
    """CPU seconds of one event of an idle cluster: the difference between a long and a short idle run."""
    assert scenario.faults is not None
    long = replace(scenario, workload=None, faults=replace(scenario.faults, count=(0, 0)))
    assert long.faults is not None
    short = replace(long, faults=replace(long.faults, horizon_us=long.faults.horizon_us // 10))
    events = run_row(long, mode, 0)["events"] - run_row(short, mode, 0)["events"]
    both = [statistics.median(_seconds(each, mode, seed) for seed in range(15)) for each in (long, short)]
    return (both[0] - both[1]) / float(events)


def _measure(scenario: Scenario, mode: str) -> dict[str, float]:
    """Medians over `SEEDS` in bare events, each the median of `ALTERNATIONS` alternations."""
    idle = {}
    for seed in SEEDS:
        kernel = CountingKernel()
        run(scenario, mode, seed, kernel=kernel)
        idle[seed] = kernel.idle
    totals, rests = [], []
    for _ in range(ALTERNATIONS):
        bare = bare_event_seconds()
        per_idle_event = _idle_event_seconds(scenario, mode)
        seconds = {seed: _seconds(scenario, mode, seed) for seed in SEEDS}
        totals.append(statistics.median(seconds.values()) / bare)
        rests.append(statistics.median(seconds[seed] - idle[seed] * per_idle_event for seed in SEEDS) / bare)
    return dict(zip(MARKS, (statistics.median(totals), statistics.median(rests)), strict=True))


def main() -> int:
    """Measure, print, and tell by the exit code whether all marks and floors are met."""
    scenario = load("power")
    gc.collect()
    gc.freeze()
    met = True
    for mode in ("hw", "kip101"):
        rows = [run_row(scenario, mode, seed) for seed in SEEDS]
        for name, floor in FLOORS.items():
            median = statistics.median(row[name] for row in rows)
            met &= median >= floor
            sys.stdout.write(f"power {mode}: median {name} {median:g} (floor {floor})\n")
        for name, figure in _measure(scenario, mode).items():
            met &= figure <= MARKS[name]
            sys.stdout.write(f"power {mode}: {figure:,.0f} bare events, {name} (mark {MARKS[name]:,})\n")
    sys.stdout.write("all marks met\n" if met else "a mark was missed\n")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
