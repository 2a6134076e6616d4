"""Cost of a run in repeatable counts instead of seconds: instructions, misses and mispredictions, by valgrind.

``python tests/verification/bench/counted.py DIR WHAT SCENARIO MODE RUNS`` makes runs with the packages in a folder,
as they are (``run``) or as a sweep's worker makes and writes them (``sweep``). Two numbers of runs are counted in a
process each; what they differ by is what the runs between cost, without what every process costs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

FEW: Final = 10
MANY: Final = 40
COUNTED: Final = {
    "instructions": ("Ir",),
    "instruction-cache misses (L1)": ("I1mr",),
    "data-cache misses (L1)": ("D1mr", "D1mw"),
    "mispredicted branches": ("Bcm", "Bim"),
}
"""What is counted -> valgrind's names of what adds up to it."""


def valgrind() -> str | None:
    """Path of valgrind; None if it is not installed."""
    return shutil.which("valgrind")


def counts(folder: Path, what: str, scenario: str, mode: str) -> dict[str, float]:
    """Each count of `COUNTED` for one run.

    Args:
        folder: of the packages.
        what: ``run`` or ``sweep``.
        scenario: a drawn scenario.
        mode: a mode.

    Raises:
        RuntimeError: the runs failed.
    """
    # Modules that are imported first are compiled once, and not in one of the two processes.
    subprocess.run(_words(folder, what, scenario, mode, MANY), cwd=folder, capture_output=True, check=False)
    with ThreadPoolExecutor(2) as pool:
        few, many = pool.map(lambda runs: _events(folder, what, scenario, mode, runs), (FEW, MANY))
    return {name: sum(many[event] - few[event] for event in events) / (MANY - FEW) for name, events in COUNTED.items()}


def _words(folder: Path, what: str, scenario: str, mode: str, runs: int) -> list[str]:
    return [sys.executable, __file__, str(folder), what, scenario, mode, str(runs)]


def _events(folder: Path, what: str, scenario: str, mode: str, runs: int) -> dict[str, int]:
    """Valgrind's counts of a process with that many runs."""
    tool = ("--tool=callgrind", "--callgrind-out-file=/dev/null", "--cache-sim=yes", "--branch-sim=yes")
    words = [str(valgrind()), *tool, *_words(folder, what, scenario, mode, runs)]
    # Where objects lie, and so what they displace, depends on hashes.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    names = re.search(r"Events\s*:\s*(.+)", done.stderr)
    values = re.search(r"Collected\s*:\s*(.+)", done.stderr)
    if done.returncode or names is None or values is None:
        raise RuntimeError(done.stderr[-2_000:])
    return dict(zip(names[1].split(), map(int, values[1].split()), strict=True))


def sweep(name: str, mode: str, seeds: int) -> None:
    """Make and write the rows of the first seeds, as a worker of a sweep does."""
    from scenarios.format.catalogue import load
    from scenarios.sweep import parts
    from scenarios.sweep.folder import open_folder
    from scenarios.sweep.units import Sweep, rows_of
    from sim.protocol.modes import mode as mode_named

    what = Sweep((load(name),), {name: (mode_named(mode),)}, 0, seeds)
    with tempfile.TemporaryDirectory() as place:
        parts.write_part(open_folder(place), "0", 0, list(rows_of(what.to_text(), [(0, 0, seeds)])))


def main() -> None:
    """Make the runs, after one that is not counted twice."""
    folder, what, name, mode, runs = sys.argv[1:]
    sys.path[0] = folder
    from scenarios.format.catalogue import load
    from scenarios.single.run import prepare_process, run_row
    from sim.protocol.modes import mode as mode_named

    prepare_process()
    scenario = load(name)
    if what == "sweep":
        sweep(name, mode, int(runs) + 1)
    else:
        for seed in range(int(runs) + 1):
            run_row(scenario, mode_named(mode), seed)


if __name__ == "__main__":
    main()
