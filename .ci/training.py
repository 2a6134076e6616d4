"""Runs of what most sweeps consist of, and searches, for the compiler to count: see `build_hook.py`."""

from __future__ import annotations

from typing import Final

from highwater.lab.explore.modes.subject import subject_of
from highwater.lab.explore.search import search
from highwater.lab.explore.walk import walk
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
SEARCHED: Final = ("elr-repaired", "kip320-repaired")
STATES: Final = 20_000


def main() -> None:
    """Make them."""
    prepare_process()
    for name, modes in RUNS.items():
        scenario = load(name)
        for one in modes:
            for seed in SEEDS:
                run_row(scenario, mode(one), seed)
    for name in SEARCHED:
        search(subject_of(name, {}, {}), until=(), most_states=STATES)
        walk(subject_of(name, {}, {}), until=(), walks=STATES, most_events=60, most_states=STATES)


if __name__ == "__main__":
    main()
