"""`make hunt`: with and without elision (`sim.environment.elision`), random plans give equal histories.

Latencies are drawn, and pings come at intervals that no timer is a multiple of:
two events at the same microsecond would be ordered by chance. Without elision a run may need far more events than any
that is not one: what goes round at the speed of the network (KAFKA-10706) does so to the end.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING

from faults.kinds.registry import KINDS
from scenarios.format.catalogue import load
from scenarios.single.ended_run import EndedRun
from scenarios.single.rows import row as row_of
from scenarios.single.run import _execute, prepare_process
from sim.kernel.scheduler import Kernel
from sim.protocol.modes import mode as mode_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scenarios.format.scenario import Scenario
    from sim.config import Value

INTERVALS: dict[str, Value] = {
    "sim.heartbeat.interval.ms": 5_753,
    "broker.heartbeat.interval.ms": 1_951,
}
FIXED: dict[str, Value] = {"sim.network.latency": "fixed", **INTERVALS}
CHUNK = 100
EVENT_BUDGET = 50_000_000


@dataclass(slots=True)
class Compared:
    """Pairs of runs, one with and one without elision.

    Attributes:
        differ: (seed, mode) of those whose histories are not equal, or which failed.
        events: with and without.
        idle: simulated messages that could have been left out, with and without.
    """

    differ: list[tuple[int, str]]
    events: tuple[int, int]
    idle: tuple[int, int]


def scenario_of(name: str, *, all_kinds: bool, latency: str = "drawn") -> Scenario:
    """A drawn scenario, perhaps with all kinds of faults, or with fixed latencies."""
    scenario = load(name)
    assert scenario.faults is not None
    kinds = tuple(KINDS) if all_kinds else scenario.faults.kinds
    return replace(
        scenario,
        config={**scenario.config, **INTERVALS, "sim.network.latency": latency},
        faults=replace(scenario.faults, kinds=kinds),
    )


def compare(scenario: Scenario, pairs: Sequence[tuple[int, str]]) -> Compared:
    """Run seeds in modes with and without elision."""
    plain = replace(scenario, config={**scenario.config, "sim.elision": False})
    found = Compared([], (0, 0), (0, 0))
    for seed, mode in pairs:
        runs = [_execute(one, mode_named(mode), seed, {}, Kernel(EVENT_BUDGET)) for one in (scenario, plain)]
        rows = [row_of(EndedRun(run, error)) for run, error in runs]
        if rows[0]["digest"] != rows[1]["digest"] or any(row["error"] for row in rows):
            found.differ.append((seed, mode))
        found.events = (found.events[0] + rows[0]["events"], found.events[1] + rows[1]["events"])
        idle = [run.cluster.network.idle_messages for run, _ in runs]
        found.idle = (found.idle[0] + idle[0], found.idle[1] + idle[1])
    return found


def _hunt(chunk: tuple[str, bool, list[tuple[int, str]]]) -> Compared:
    name, all_kinds, pairs = chunk
    prepare_process()
    return compare(scenario_of(name, all_kinds=all_kinds), pairs)


def main() -> int:
    """Compare histories and print the results; 1 if any differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="chaos")
    parser.add_argument("--modes", default="hw,kip101,kip279,kip320,kip320-repaired")
    parser.add_argument("--first", type=int, default=0, help=f"first seed, a multiple of {CHUNK}")
    parser.add_argument("--seeds", type=int, default=20_000, help="how many; each is run in one mode, by turns")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    modes = options.modes.split(",")
    end = options.first + options.seeds
    chunks = [
        (
            options.scenario,
            bool(first // CHUNK % 2),
            [(seed, modes[seed % len(modes)]) for seed in range(first, min(first + CHUNK, end))],
        )
        for first in range(options.first, end, CHUNK)
    ]
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(_hunt, chunks))
    differ = [
        (*pair, "all kinds" if chunk[1] else options.scenario)
        for chunk, result in zip(chunks, results, strict=True)
        for pair in result.differ
    ]
    events = [sum(result.events[way] for result in results) for way in (0, 1)]
    idle = [sum(result.idle[way] for result in results) for way in (0, 1)]
    sys.stdout.write(
        f"{options.scenario}: {options.seeds} plans with and without elision\n"
        f"  events: {events[0]:,} and {events[1]:,}, {events[1] / events[0]:.1f} times as many\n"
        f"  pings and empty fetches simulated: {idle[0]:,} and {idle[1]:,}\n"
        f"  histories that differ: {differ}\n"
    )
    return int(bool(differ))


if __name__ == "__main__":
    raise SystemExit(main())
