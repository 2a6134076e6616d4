"""What further partitions cost: `python -m tests.verification.bench.partitions`.

Runs of 120 s with two to four faults in a cluster of 6 brokers, with 3 replicas of each partition, as a sweep makes
them. The first partition is busy; the others are idle or busy, too. Runs of all counts alternate, and each seed counts
with its fastest run, so that ratios hold on a machine with other work. Memory is the most that a process with one run
of a count has.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.places import ROOT

if TYPE_CHECKING:
    from scenarios.format.scenario import Scenario

COUNTS: Final = (1, 2, 10, 50, 200)
ROUNDS: Final = 3
SEEDS: Final = range(4)
CHEAP: Final = 20
"""Runs with more busy partitions are made once."""
_TEXT: Final = """
schema = 1
name = "several"
title = "Partitions of which one or all are busy"
description = "A cluster that fails now and then."
brokers.count = 6
control = "real"

[config]
default.replication.factor = 3
sim.end.offsets.interval.ms = 5000
sim.spare.brokers = 3

[draw]
min.insync.replicas = [1, 2, 2]

[workload]
bursts = [5, 7]
batches = [5, 7]
gap_ms = [0, 500]
records = [1, 6]
near_percent = 60

[faults]
horizon_ms = 120000
count = [2, 4]
kinds = ["kill", "power-loss", "controlled-restart", "cut"]
restart_ms = [2000, 60000]
cut_ms = [1000, 40000]
aimed_percent = 30
burst_percent = 10

[expect]
"elr-4.3" = "may-violate"

[[topics]]
name = "orders"
"""
_OTHERS: Final = """
[[topics]]
name = "others"
partitions = {count}
idle = {idle}
"""


def scenario(count: int, *, idle: bool) -> Scenario:
    """A scenario with so many partitions, of which the first is busy."""
    from scenarios.format.schema import read

    others = _OTHERS.format(count=count - 1, idle=str(idle).lower()) if count > 1 else ""
    return read(_TEXT + others, "several.toml")


def _run(made: Scenario, seed: int) -> tuple[float, int]:
    """CPU seconds and events of a run."""
    from tests.named import run_row

    begin = time.process_time()
    row = run_row(made, "elr-4.3", seed)
    assert row["verdict"] in ("ok", "violation"), row
    return time.process_time() - begin, row["events"]


def _megabytes() -> int:
    """The most memory that this process has had."""
    # Not `getrusage`, which counts the parent before this program began.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def _memory(count: int, *, idle: bool) -> int:
    """Megabytes of a process that makes the runs of one count."""
    words = [sys.executable, "-m", "tests.verification.bench.partitions", "--memory", str(count)]
    words += [] if idle else ["--busy"]
    return int(json.loads(subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout))


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.verification.bench.partitions", description=__doc__)
    parser.add_argument("--idle", action="store_true", help="leave out runs of which all partitions are busy")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--busy", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    from scenarios.single.run import prepare_process

    prepare_process()
    if options.memory:
        _run(scenario(options.memory, idle=not options.busy), SEEDS[0])
        sys.stdout.write(json.dumps(_megabytes()) + "\n")
        return
    kinds = [(count, True) for count in COUNTS]
    kinds += [] if options.idle else [(count, False) for count in COUNTS[1:]]
    made = {kind: scenario(kind[0], idle=kind[1]) for kind in kinds}
    fastest: dict[tuple[tuple[int, bool], int], float] = {}
    events = dict.fromkeys(kinds, 0)
    for number in range(ROUNDS):
        for kind in kinds:
            if number and kind[0] > CHEAP and not kind[1]:
                continue
            for seed in SEEDS:
                seconds, processed = _run(made[kind], seed)
                fastest[kind, seed] = min(fastest.get((kind, seed), seconds), seconds)
                events[kind] += processed if not number else 0
    sums = {kind: sum(fastest[kind, seed] for seed in SEEDS) for kind in kinds}
    sys.stdout.write("| partitions | others | events | ms | times one partition | MB |\n|---|---|---|---|---|---|\n")
    for kind in kinds:
        count, idle = kind
        others = ("idle" if idle else "busy") if count > 1 else ""
        ms, times = sums[kind] / len(SEEDS) * 1e3, sums[kind] / sums[kinds[0]]
        cells = (
            count,
            others,
            f"{events[kind] // len(SEEDS):,}",
            f"{ms:,.0f}",
            f"{times:.1f}",
            _memory(count, idle=idle),
        )
        sys.stdout.write("| " + " | ".join(map(str, cells)) + " |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
