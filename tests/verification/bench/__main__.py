"""`make bench`: what a median run costs, in bare events, with checks and digest on.

Runs and bare events alternate, and each figure is the median of 7 such pairs, so that ratios hold on a machine with
other work. ``--against DIR`` measures the packages in another folder too, a compiled build's or another
checkout's: each folder in a process of its own, taking turns. The mark is for the fastest of those that are this code.
What a run, and a run of a sweep with its row written, costs in instructions and misses is counted where valgrind is.
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
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.places import ROOT
from tests.verification.bench import counted
from tests.verification.bench.bare import bare_event_seconds

if TYPE_CHECKING:
    from scenarios.format.scenario import Scenario

ALTERNATIONS = 7
SEEDS = range(101)
MARKS = {
    **{("chaos", mode): 3_000 for mode in ("hw", "kip101", "kip279", "kip320", "kip320-repaired")},
    **{("elr-chaos", mode): 3_500 for mode in ("kip320", "kraft", "elr", "elr-recovery")},
}
"""Scenario and mode -> bare events of a median run, at most."""
SWEPT = ("chaos", "kip320", 5_000)
"""The sweep that is measured as a worker does it: scenario, mode, seeds."""
FLOORS = {"batches_acked": 30, "records_acked": 60, "elections": 3, "faults": 5}
FLOOR_HORIZON_US = 300_000_000


def _seconds(scenario: Scenario, mode: str, seed: int) -> float:
    from tests.named import run_row

    begin = time.process_time()
    run_row(scenario, mode, seed)
    return time.process_time() - begin


def _swept_seconds() -> float:
    """CPU seconds of a run of `SWEPT`, its row and its part of the file included."""
    name, mode, seeds = SWEPT
    begin = time.process_time()
    counted.sweep(name, mode, seeds)
    return (time.process_time() - begin) / seeds


def serve() -> None:
    """Answer each line ``scenario mode`` with bare events of a median run, ``sweep`` with those of one of `SWEPT`,
    ``code`` with code and digests.
    """
    from scenarios.format.catalogue import load
    from scenarios.single.run import prepare_process

    prepare_process()
    for line in sys.stdin:
        name, _, mode = line.strip().partition(" ")
        if mode:
            bare = bare_event_seconds()
            scenario = load(name)
            answer: Any = statistics.median(_seconds(scenario, mode, seed) for seed in SEEDS) / bare
        elif name == "sweep":
            answer = _swept_seconds() / bare_event_seconds()
        else:
            answer = _code()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _code() -> dict[str, str]:
    """The code version, and a hash of the digests of all seeds."""
    from scenarios.format.catalogue import load
    from scenarios.version import code_version, versions
    from tests.named import run_row

    digests = hashlib.sha256()
    for name, mode in MARKS:
        for seed in SEEDS:
            digests.update(run_row(load(name), mode, seed)["digest"].encode())
    return {"code": code_version(), "build": versions().get("build", ""), "digests": digests.hexdigest()}


def floors_met() -> bool:
    """Print the events of a median run in each mode; whether the floors are met."""
    from scenarios.format.catalogue import load
    from tests.named import run_row

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


class Measured:
    """The packages of a folder, measured in another process."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        words = [sys.executable, "-m", "tests.verification.bench", "--serve", str(folder)]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        process = subprocess.Popen(words, cwd=ROOT, env=environment, stdin=-1, stdout=-1, text=True)
        self._process = stack.enter_context(process)
        self.name = os.path.relpath(folder)
        self.code: dict[str, str] = self.ask("code")

    def ask(self, line: str) -> Any:
        """See `serve`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def compared(sides: list[Measured]) -> bool:
    """Measure all folders in turn and print; whether marks are met and digests of equal code are equal."""
    here, *others = sides
    met = True
    for side in sides:
        same = side.code["code"] == here.code["code"]
        equal = side.code["digests"] == here.code["digests"]
        met &= equal or not same
        words = ["this code" if same else "other code", "equal digests" if equal else "other digests"]
        sys.stdout.write(f"{side.name}: {side.code['build']}, {side.code['code']}, {', '.join(words)}\n")
    for (scenario, mode), mark in MARKS.items():
        name = f"{scenario} {mode}"
        rounds = [[side.ask(name) for side in sides] for _ in range(ALTERNATIONS)]
        figures = [statistics.median(column) for column in zip(*rounds, strict=True)]
        ours = [figure for side, figure in zip(sides, figures, strict=True) if side.code["code"] == here.code["code"]]
        met &= min(ours) <= mark
        also = "".join(
            f", {figure:,.0f} in {side.name} (x{figure / figures[0]:.3f})"
            for side, figure in zip(others, figures[1:], strict=True)
        )
        sys.stdout.write(f"{name}: {figures[0]:,.0f} bare events{also} (mark {mark:,})\n")
        sys.stdout.flush()
    for side in sides:
        name, mode, seeds = SWEPT
        figure = side.ask("sweep")
        sys.stdout.write(f"{side.name}: a sweep of {seeds:,} {name} {mode}: {figure:,.0f} bare events a run\n")
    return met


def count(folders: list[Path]) -> None:
    """Print valgrind's counts, one line for each folder."""
    if counted.valgrind() is None:
        sys.stdout.write("instructions and misses are not counted: there is no valgrind\n")
        return
    for folder in folders:
        for what in ("run", "sweep"):
            for name, mode in (("chaos", "kip320"), ("elr-chaos", "elr")):
                found = counted.counts(folder, what, name, mode)
                words = ", ".join(f"{value:,.0f} {event}" for event, value in found.items())
                sys.stdout.write(f"{os.path.relpath(folder)}: {what} {name} {mode}: {words}\n")
                sys.stdout.flush()


def main() -> int:
    """Measure and print; 1 if a mark or floor is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.verification.bench", description=__doc__)
    parser.add_argument("--against", metavar="DIR", type=Path, action="append", default=[], help="folder of packages")
    parser.add_argument("--serve", metavar="DIR", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        sys.path.insert(0, str(options.serve))
        serve()
        return 0
    met = floors_met()
    folders = [folder.resolve() for folder in (ROOT, *options.against)]
    with ExitStack() as stack:
        met &= compared([Measured(folder, stack) for folder in folders])
    count(folders)
    sys.stdout.write("all marks met\n" if met else "a mark was missed\n")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
