"""Runs of what most sweeps consist of, for the compiler to count: see `build_hook.py`."""

from __future__ import annotations

from typing import Final

from scenarios.format.catalogue import load
from scenarios.single.run import prepare_process, run_row
from sim.protocol.modes import mode

RUNS: Final = {
    "chaos": ("hw", "kip101", "kip279", "kip320"),
    "elr-chaos": ("kraft", "elr", "kip320"),
    "power": ("hw", "kip320", "elr"),
    "sessions": ("kip320", "elr-4.3"),
    "partitions": ("kip101", "elr"),
    "rolling": ("kip320", "kraft"),
    "reassignments": ("elr-4.3",),
    "operations": ("elr-4.3",),
    "messages": ("kip320", "elr-4.3"),
    "overtaking": ("kip320", "elr-4.3"),
    "windows": ("elr-4.3",),
}
SEEDS: Final = range(1_000, 1_012)


def main() -> None:
    """Make them."""
    prepare_process()
    for name, modes in RUNS.items():
        scenario = load(name)
        for one in modes:
            for seed in SEEDS:
                run_row(scenario, mode(one), seed)


if __name__ == "__main__":
    main()
