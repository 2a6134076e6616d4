"""Last replicas standing in a sweep of `elr-chaos`: which modes lose data by them, which save it, and at what cost.

Reads a sweep's folder (``highwater sweep elr-chaos --output DIR ...``) and prints, for each mode, the seeds that lost
acknowledged records, and those of them in which a last replica standing lacked these when it was chosen to lead
(`sim.history.last_standing`: told by what happened to ISR and logs, not by kinds of faults). Then, for each two modes
on the seeds that both ran, how many seeds the one saves that the other loses, and the difference in time without a
leader and in time that writes waited. A run counts as inside if what it lost is inside its own mode's promise.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

from reports.analysis.statistics import interval, mcnemar, mean_difference
from scenarios.sweep.store import Store

LOSS: Final = "committed-loss"
TIMES: Final = ("leaderless_ms", "hw_wait_ms")
COLUMNS: Final = ("mode", "seed", "verdict", "violations", "violations_inside", "last_standing", "vacuous", *TIMES)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: whether it lost acknowledged records, inside the promise, by a last replica standing."""

    lost: bool
    inside: bool
    standing: bool
    stalled: bool
    vacuous: bool
    times_ms: tuple[int, ...]


def runs(folder: Path) -> dict[str, dict[int, Run]]:
    """Mode -> seed -> run, without those that failed with an error."""
    found: dict[str, dict[int, Run]] = {}
    rows = Store(folder).rows(list(COLUMNS))
    for mode, seed, verdict, kinds, kinds_inside, standing, vacuous, *times_ms in zip(
        *(rows[name] for name in COLUMNS), strict=True
    ):
        if verdict != "error":
            found.setdefault(mode, {})[seed] = Run(
                lost=LOSS in kinds.split(","),
                inside=LOSS in kinds_inside.split(","),
                standing=standing > 0,
                stalled=verdict == "stalled",
                vacuous=vacuous,
                times_ms=tuple(times_ms),
            )
    return found


def of_mode(name: str, found: dict[int, Run]) -> str:
    """The line of a mode."""
    every = found.values()
    lost = [run for run in every if run.lost]
    standing = [run for run in lost if run.standing]
    low, high = interval(len(standing), len(found))
    return (
        f"{name}: {len(found)} seeds, {sum(run.vacuous for run in every)} vacuous, "
        f"{sum(run.stalled for run in every)} wait for an operator; {len(lost)} lost acknowledged records "
        f"({sum(run.inside for run in lost)} inside), {len(standing)} by a last replica standing "
        f"({sum(run.inside for run in standing)} inside): {low:.3%} to {high:.3%}"
    )


def of_pair(names: tuple[str, str], found: dict[str, dict[int, Run]]) -> list[str]:
    """The line of a pair of modes."""
    a, b = names
    both = [(run, found[b][seed]) for seed, run in found[a].items() if seed in found[b]]
    only_a = [one for one, other in both if one.lost and not other.lost]
    only_b = [other for one, other in both if other.lost and not one.lost]
    story = [other.lost for one, other in both if one.lost and one.standing]
    p = mcnemar(len(only_a), len(only_b))
    both_lose = sum(one.lost and other.lost for one, other in both)
    saves = (
        f"{a} and {b}, {len(both)} seeds: {b} saves {len(only_a)} that {a} loses ({_split(only_a)}), {a} saves "
        f"{len(only_b)} that {b} loses ({_split(only_b)}), both lose {both_lose}; McNemar p {p:.2g}"
    )
    lines = [
        saves,
        f"  of {len(story)} that {a} loses by a last replica standing, {b} saves {len(story) - sum(story)}",
    ]
    for place, name in enumerate(TIMES):
        mean, low, high = mean_difference([other.times_ms[place] - one.times_ms[place] for one, other in both])
        bounds = "" if low is None or high is None else f", {low:+.0f} to {high:+.0f} with 95 % confidence"
        lines.append(f"  {name}: {b} - {a} = {mean:+.0f} ms a run{bounds}")
    return lines


def _split(saved: list[Run]) -> str:
    inside = sum(run.inside for run in saved)
    return f"{inside} inside, {len(saved) - inside} outside its promise"


def main() -> int:
    """Print the table; 1 if no mode lost records this way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of a sweep")
    found = runs(parser.parse_args().folder)
    for name, one in found.items():
        sys.stdout.write(of_mode(name, one) + "\n")
    for names in combinations(found, 2):
        sys.stdout.write("\n".join(of_pair(names, found)) + "\n")
    return 0 if any(run.standing for one in found.values() for run in one.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
