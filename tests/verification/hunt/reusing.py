"""`make hunt-reuse`: rows that are taken over equal those of runs, in all columns.

A seed runs as a sweep runs it: in a mode, then in others with the rows that they have in common. Each row that was
taken over is compared with that of a run in its mode. The other modes are those of eight pairs, in both directions, and
those with one rule replaced, of which there are twenty. Settings, faults, expectations and versions of single brokers
vary with the seed; every seventh seed has blows.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final

from scenarios.format.blow import parse
from scenarios.format.scenario import Expectation
from scenarios.single.run import prepare_process, run_modes, run_row
from sim.protocol.modes import MODES, Mode
from tests.verification.hunt.deciding import scenario_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scenarios.format.scenario import Scenario

PAIRS: Final = (
    ("kip101", "kip279"),
    ("kip320-2.1", "kip320"),
    ("kip320", "kip320-2.6.1"),
    ("kip320", "kip320-repaired"),
    ("kraft", "kraft-3.9.1"),
    ("kraft-3.5", "kraft"),
    ("elr", "elr-4.3"),
    ("elr-4.3", "elr-repaired"),
)
CHANGES: Final = (
    ("hw", "isr_lag", "end-offset"),
    ("hw", "follower_truncation", "leader-epoch"),
    ("kip101", "late_reply", "truncation-epoch"),
    ("kip279", "producer_recovery", "epoch-bump"),
    ("kip279", "list_offsets_guard", "yes"),
    ("kip320", "isr_eligibility", "alive"),
    ("kip320", "session_epoch", "every-fetch"),
    ("kip320", "hw_needs_min_isr", "yes"),
    ("kip320", "stop_replica", "unchecked"),
    ("kip320", "truncation_fencing", "no"),
    ("kraft", "unclean_registration", "transitions"),
    ("kraft", "producer_dedup", "no"),
    ("kraft", "elr", "on"),
    ("elr", "last_known_leader", "fenced-too"),
    ("elr", "min_isr_change", "keeps-elr"),
    ("elr-4.3", "clean_shutdown", "ignored"),
    ("elr-4.3", "unclean_recovery", "log-inspection"),
    ("elr-4.3", "isr_floor", "min-isr"),
    ("elr-4.3", "consumer_validation", "no"),
    ("elr-4.3", "equal_partition_epoch", "keeps-pending-isr"),
)
"""A mode, and the rule that is replaced in it."""
SCENARIOS: Final = ("chaos", "elr-chaos", "operations", "reassignments", "partitions", "power", "rolling", "sessions")
EXPECTATIONS: Final = (
    Expectation("may-violate"),
    Expectation("clean"),
    Expectation("violates", ("committed-loss",)),
    Expectation("clean", ("committed-loss",)),
)
MIXED_EVERY: Final = 5
BLOWS_EVERY: Final = 7


def mine(place: int) -> Mode:
    """The mode of one of `CHANGES`, which the command line knows by a file."""
    base, rule, value = CHANGES[place]
    changed = MODES[base].override({rule: value})
    return replace(changed, name=f"change-{place}", release="none", follows="4.3", source=f"change-{place}.toml")


GROUPS: Final[dict[str, list[Mode]]] = {}
"""Mode that runs first -> the others."""
for _one, _other in PAIRS:
    GROUPS.setdefault(_one, []).append(MODES[_other])
    GROUPS.setdefault(_other, []).append(MODES[_one])
for _place, (_base, *_) in enumerate(CHANGES):
    GROUPS.setdefault(_base, []).append(mine(_place))


@dataclass(slots=True)
class Found:
    """Results of some seeds.

    Attributes:
        rows: rows of the modes that do not run first, by pair.
        reused: those of them that were taken over.
        blows: rows of runs with blows that were taken over.
        differ: (scenario, seed, blow, mode that ran, mode, columns) of rows that differ from those of a run.
    """

    rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    reused: Counter[tuple[str, str]] = field(default_factory=Counter)
    blows: int = 0
    differ: list[tuple[str, int, str, str, str, list[str]]] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Add other results."""
        self.rows += other.rows
        self.reused += other.reused
        self.blows += other.blows
        self.differ += other.differ


def varied(name: str, seed: int, modes: Sequence[Mode]) -> Scenario:
    """A random scenario with the settings, expectations and versions of single brokers that a seed has."""
    scenario = scenario_of(name, seed)
    expect = {mode.name: EXPECTATIONS[(seed + place) % len(EXPECTATIONS)] for place, mode in enumerate(modes)}
    older = {2: modes[seed // MIXED_EVERY % len(modes)].name}
    mixed = older if seed % MIXED_EVERY == 0 and set(older.values()) <= MODES.keys() else {}
    return replace(scenario, expect=expect, broker_modes=mixed, strict=seed % 11 == 0)


def check(found: Found, name: str, first: str, seed: int) -> None:
    """Run a seed as a sweep does, and each row that was taken over by itself."""
    modes = [MODES[first], *GROUPS[first]]
    scenario = varied(name, seed, modes)
    by_name = {mode.name: mode for mode in modes}
    for row in run_modes(scenario, modes, seed, {}, 2 if seed % BLOWS_EVERY == 0 else 0):
        if row["mode"] == first:
            assert not row["reused"]
            continue
        found.rows[first, row["mode"]] += 1
        if row["reused"]:
            found.reused[first, row["mode"]] += 1
            found.blows += bool(row["blow"])
            again = run_row(replace(scenario, blows=parse(row["blow"])), by_name[row["mode"]], seed)
            columns = [column for column in again if column != "reused" and again[column] != row[column]]
            if columns or list(row) != list(again):
                found.differ.append((name, seed, row["blow"], row["reused"], row["mode"], columns))


def hunt(task: tuple[str, str, int, int]) -> Found:
    """Check some seeds of a scenario in a mode."""
    name, first, begin, end = task
    prepare_process()
    found = Found()
    for seed in range(begin, end):
        check(found, name, first, seed)
    return found


def main() -> int:
    """Compare rows until enough were taken over; print the results; 1 if any differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows to take over, at least")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    found = Found()
    begin, step = options.first, 5
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        while found.reused.total() < options.rows and not found.differ:
            tasks = [(name, first, begin, begin + step) for name in SCENARIOS for first in GROUPS]
            for part in pool.map(hunt, tasks):
                found.add(part)
            begin += step
    for one in found.differ:
        sys.stderr.write(f"{one}\n")
    for pair, rows in sorted(found.rows.items()):
        changed = pair[1].removeprefix("change-")
        what = " ".join(CHANGES[int(changed)][1:]) if changed.isdigit() else pair[1]
        sys.stdout.write(f"  {pair[0]:16} {what:40} {rows:6} rows, {found.reused[pair]:6} taken over\n")
    total = found.reused.total()
    sys.stdout.write(f"{total:,} rows taken over ({found.blows:,} with blows), {len(found.differ)} of them differ\n")
    return int(bool(found.differ))


if __name__ == "__main__":
    raise SystemExit(main())
